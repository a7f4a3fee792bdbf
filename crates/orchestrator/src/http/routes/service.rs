//! What needs no credential: is it alive, how does it fare, what is it.

use crate::http::error::Failure;
use crate::http::{Answer, Site, docs, json_response};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which service this is.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Version {
    /// `fuse-orchestrator`.
    pub service: String,
    /// The release.
    pub version: String,
}

/// That a probe passed.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Probe {
    /// `ok`.
    pub status: String,
}

fn ok() -> Response {
    let probe = Probe {
        status: "ok".to_owned(),
    };
    json_response(StatusCode::OK, &probe)
}

/// The process answers.
#[utoipa::path(get, path = "/health", operation_id = "health",
    responses((status = 200, description = "It does", body = Probe)))]
pub async fn health() -> Response {
    ok()
}

/// The database answers, and commits go through.
#[utoipa::path(get, path = "/ready", operation_id = "ready",
    responses((status = 200, description = "It does", body = Probe)))]
pub async fn ready(State(site): State<Arc<Site>>) -> Answer {
    match site.app.ready().await {
        Ok(()) => Ok(ok()),
        Err(why) => Err(Failure::unavailable(why)),
    }
}

/// Figures for Prometheus.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics",
    responses((status = 200, description = "The OpenMetrics text format", body = String,
        content_type = "application/openmetrics-text")))]
pub async fn metrics(State(site): State<Arc<Site>>) -> Response {
    let mut response = site.app.metrics.page().into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8"),
    );
    response
}

/// Which service and which release answers.
#[utoipa::path(get, path = "/v1/version", operation_id = "version",
    responses((status = 200, description = "The release", body = Version)))]
pub async fn version() -> Response {
    let version = Version {
        service: "fuse-orchestrator".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    json_response(StatusCode::OK, &version)
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "openapi",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value)))]
pub async fn openapi() -> Response {
    let mut response = docs::openapi().into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}
