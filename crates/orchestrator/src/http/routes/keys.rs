//! API keys.

use crate::http::call::Call;
use crate::http::{Answer, Site, json_response, no_content, to_the_end};
use axum::extract::{Request, State};
use fuse_api::keys::{CreateKey, CreatedKey, KeyList};
use http::StatusCode;
use std::sync::Arc;

/// Makes an API key and shows its secret this once.
#[utoipa::path(post, path = "/v1/api-keys", operation_id = "create_key", tag = "api-keys",
    request_body = CreateKey,
    responses((status = 201, description = "The key with its secret", body = CreatedKey)))]
pub async fn create(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    call.query(&[])?;
    let body: CreateKey = call.optional_body()?;
    let app = Arc::clone(&site.app);
    let made = to_the_end(async move { app.create_key(&call.who, body).await }).await?;
    Ok(json_response(StatusCode::CREATED, &made))
}

/// API keys without their secrets, newest first.
#[utoipa::path(get, path = "/v1/api-keys", operation_id = "list_keys", tag = "api-keys",
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "Entries per page, 50 by default"),
        ("cursor" = Option<String>, Query, min_length = 1, description = "Where the page before ended"),
    ),
    responses((status = 200, description = "A page", body = KeyList)))]
pub async fn list(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    let query = call.query(&["limit", "cursor"])?;
    let (limit, cursor) = (query.limit()?, query.cursor()?);
    let page = site
        .app
        .list_keys(&call.who, limit, cursor.as_deref())
        .await?;
    Ok(json_response(StatusCode::OK, &page))
}

/// Revokes an API key at once; doing so again changes nothing.
#[utoipa::path(delete, path = "/v1/api-keys/{id}", operation_id = "revoke_key", tag = "api-keys",
    params(("id" = String, Path, description = "The key's id")),
    responses((status = 204, description = "It is revoked")))]
pub async fn revoke(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    call.query(&[])?;
    let id = call.key_id()?;
    let app = Arc::clone(&site.app);
    to_the_end(async move { app.revoke_key(&call.who, &id).await }).await?;
    Ok(no_content())
}
