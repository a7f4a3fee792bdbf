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
use fuse_api::routes::ROUTES;
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

/// No such method on a path that is there.
pub async fn unknown_method(request: Request) -> Answer {
    let path = pattern(&request);
    let (parts, rest) = request.into_parts();
    body::drain(&parts.headers, rest).await;
    let mut allowed: Vec<_> = ROUTES
        .iter()
        .filter(|row| row.path == path)
        .map(|row| row.method)
        .collect();
    allowed.sort_unstable();
    allowed.dedup();
    Err(Failure::no_route(format!(
        "{} is not served on this path; it takes {}",
        parts.method.as_str().chars().take(32).collect::<String>(),
        allowed.join(", ")
    )))
}
