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
use crate::known::Shown;
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use error::Failure;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
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
        .layer(axum::middleware::from_fn(edge::only_the_table))
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(&site),
            edge::edge,
        ))
        .with_state(site)
}

/// An answer that shows an intervention.
fn shown(status: StatusCode, shown: &Shown) -> Response {
    printed(status, shown.json())
}

/// An answer that is JSON.
fn json_response<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => printed(status, bytes.into()),
        // The wire types all print; this is not reached, and a plain 500 is all that could be said.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn printed(status: StatusCode, json: Bytes) -> Response {
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

/// Runs a verb that changes something to its end, also when the caller goes away in the middle of it.
async fn to_the_end<T, W>(work: W) -> Result<T, Failure>
where
    T: Send + 'static,
    W: Future<Output = Result<T, AppError>> + Send + 'static,
{
    ToTheEnd(Some(Box::pin(work.in_current_span())))
        .await
        .map_err(Failure::from)
}

/// Work that goes on as a task of its own where whoever waits for it is gone. As long as somebody waits it costs no task.
struct ToTheEnd<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Future for ToTheEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Taken out while it runs: work that panics has ended.
        let Some(mut work) = self.0.take() else {
            return Poll::Pending;
        };
        let done = work.as_mut().poll(context);
        if done.is_pending() {
            self.0 = Some(work);
        }
        done
    }
}

impl<T: Send + 'static> Drop for ToTheEnd<T> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}

/// The empty answer.
fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

#[cfg(test)]
mod access_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::{Request, State};
    use futures_util::FutureExt;

    fn size_of_answer<F>(_: fn(State<Arc<Site>>, Request) -> F) -> usize {
        size_of::<F>()
    }

    #[tokio::test]
    async fn a_verb_goes_on_when_its_caller_is_gone() {
        let (go, wait) = tokio::sync::oneshot::channel::<()>();
        let (done, ended) = tokio::sync::oneshot::channel();
        let mut work = Box::pin(to_the_end(async move {
            let _ = wait.await;
            let _ = done.send("done");
            Ok(())
        }));
        assert!((&mut work).now_or_never().is_none(), "it waits");
        drop(work);
        go.send(()).expect("it still waits");
        assert_eq!(ended.await, Ok("done"));
    }

    #[test]
    fn a_parked_call_takes_little_room() {
        let size = size_of_answer(routes::interventions::get);
        assert!(size <= 3 * 1024, "{size} bytes");
    }
}
