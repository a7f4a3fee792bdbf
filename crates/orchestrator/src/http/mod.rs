//! The HTTP face: parse, authenticate, call the verb, print.
//!
//! Handlers decide nothing. What may be refused before a verb is called is what cannot be read (400, 413) and who cannot be
//! recognised (401); every other refusal is the verb's, in its settled order.

mod body;
mod call;
mod docs;
mod edge;
mod error;
mod json;
mod query;
mod routes;

pub use body::MAX_BODY;
pub use docs::openapi;
pub use edge::{Peer, REQUEST_ID};

use crate::app::{App, AppError};
use crate::config::Networks;
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use error::Failure;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;

/// What all handlers share.
pub struct Site {
    /// The verbs.
    pub app: Arc<App>,
    /// Whose `X-Forwarded-For` counts.
    pub proxies: Networks,
}

/// What a handler gives.
type Answer = Result<Response, Failure>;

/// The router over everything that is served.
pub fn router(site: Site) -> Router {
    let site = Arc::new(site);
    let (router, _) = routes::all().split_for_parts();
    router
        .fallback(routes::unknown_path)
        .method_not_allowed_fallback(routes::unknown_method)
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(&site),
            edge::edge,
        ))
        .with_state(site)
}

/// An answer that is JSON.
fn json_response<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let mut response = Response::new(Body::from(bytes));
            *response.status_mut() = status;
            response.headers_mut().insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            response
        }
        // The wire types all print; this is not reached, and a plain 500 is all that could be said.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Runs a verb that changes something to its end, also when the caller goes away in the middle of it.
async fn to_the_end<T, W>(work: W) -> Result<T, Failure>
where
    T: Send + 'static,
    W: Future<Output = Result<T, AppError>> + Send + 'static,
{
    match tokio::spawn(work.in_current_span()).await {
        Ok(done) => done.map_err(Failure::from),
        Err(ended) => Err(Failure::internal(format!("a verb did not end: {ended}"))),
    }
}

/// The empty answer.
fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::{Request, State};

    fn size_of_answer<F>(_: fn(State<Arc<Site>>, Request) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_parked_call_takes_little_room() {
        let size = size_of_answer(routes::interventions::get);
        assert!(size <= 3 * 1024, "{size} bytes");
    }
}
