//! The audit log.

use crate::app::AuditFilter;
use crate::http::call::Call;
use crate::http::docs::Since;
use crate::http::{Answer, Site, json_response};
use axum::extract::{Request, State};
use fuse_api::audit::AuditPage;
use fuse_api::ids::EnvId;
use http::StatusCode;
use std::sync::Arc;

/// Entries of the audit log, oldest first.
#[utoipa::path(get, path = "/v1/hitl/audit", operation_id = "list_audit", tag = "audit",
    params(
        ("env" = Option<EnvId>, Query, description = "Of this environment only"),
        ("actor" = Option<String>, Query, description = "By this actor only"),
        ("since" = Option<Since>, Query,
            description = "Not older than this: a duration (24h) or an RFC 3339 time"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "Entries per page, 50 by default"),
        ("cursor" = Option<String>, Query, min_length = 1, description = "Where the page before ended"),
    ),
    responses((status = 200, description = "A page", body = AuditPage)))]
pub async fn list(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    let query = call.query(&["env", "actor", "since", "limit", "cursor"])?;
    let filter = AuditFilter {
        env: query.env()?,
        actor: query.text("actor"),
        since: query.since(site.app.now())?,
        limit: query.limit()?,
        cursor: query.cursor()?,
    };
    let page = site.app.audit(&call.who, filter).await?;
    Ok(json_response(StatusCode::OK, &page))
}
