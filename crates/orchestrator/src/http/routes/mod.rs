//! The handlers, one file per noun.

mod audit;
mod environments;
pub mod interventions;
mod keys;
mod later;
mod service;

use super::body;
use super::call::pattern;
use super::error::Failure;
use super::{Answer, Site};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Every handler with its documentation.
pub fn all() -> OpenApiRouter<Arc<Site>> {
    let served = OpenApiRouter::new()
        .routes(routes!(service::health))
        .routes(routes!(service::ready))
        .routes(routes!(service::metrics))
        .routes(routes!(service::version))
        .routes(routes!(service::openapi))
        .routes(routes!(environments::create, environments::list))
        .routes(routes!(
            environments::get,
            environments::destroy,
            environments::act
        ))
        .routes(routes!(environments::events))
        .routes(routes!(interventions::list))
        .routes(routes!(interventions::get, interventions::act))
        .routes(routes!(audit::list))
        .routes(routes!(keys::create, keys::list))
        .routes(routes!(keys::revoke));
    later::add(served)
}

/// No such path.
pub async fn unknown_path(request: Request) -> Answer {
    let (parts, rest) = request.into_parts();
    body::drain(&parts.headers, rest).await;
    Err(Failure::no_route(
        "there is no such path; /v1/openapi.json lists them all",
    ))
}

/// No such method on a path that is there. It is said before any credential is asked for: the document is public.
pub async fn unknown_method(request: Request) -> Response {
    let allowed = fuse_api::routes::methods(pattern(&request)).join(", ");
    let (parts, rest) = request.into_parts();
    body::drain(&parts.headers, rest).await;
    let method: String = parts.method.as_str().chars().take(32).collect();
    let failure = Failure::wrong_method(format!(
        "{method} is not served on this path; it takes {allowed}"
    ));
    let mut response = failure.into_response();
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}
