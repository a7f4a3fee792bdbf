//! Interventions: list, read, wait, decide.

use super::later;
use crate::app::InterventionFilter;
use crate::http::call::Call;
use crate::http::docs::{DecideAction, DecideBody, GoDuration, StateFilter};
use crate::http::{Answer, Site, json_response, shown, to_the_end};
use axum::extract::{Request, State};
use fuse_api::ids::EnvId;
use fuse_api::intervention::{ApproveRequest, Intervention, InterventionList, Kind, RejectRequest};
use fuse_api::routes::Served;
use http::StatusCode;
use std::sync::Arc;

const PATH: &str = "/v1/interventions/{id}";

/// Interventions, newest first; the pending ones unless `state` says otherwise.
#[utoipa::path(get, path = "/v1/interventions", operation_id = "list_interventions", tag = "interventions",
    params(
        ("env" = Option<EnvId>, Query, description = "Of this environment only"),
        ("state" = Option<StateFilter>, Query, description = "One state, or all; pending by default"),
        ("kind" = Option<Kind>, Query, description = "Of this kind only"),
        ("actor" = Option<String>, Query, description = "Raised or decided by this actor only"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "Entries per page, 50 by default"),
        ("cursor" = Option<String>, Query, min_length = 1, description = "Where the page before ended"),
    ),
    responses((status = 200, description = "A page", body = InterventionList)))]
pub async fn list(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    let query = call.query(&["env", "state", "kind", "actor", "limit", "cursor"])?;
    let filter = InterventionFilter {
        env: query.env()?,
        state: query.intervention_state()?,
        kind: query.kind()?,
        actor: query.text("actor"),
        limit: query.limit()?,
        cursor: query.cursor()?,
    };
    let page = site.app.list_interventions(&call.who, filter).await?;
    Ok(json_response(StatusCode::OK, &page))
}

/// One intervention; with `wait`, as soon as there is something to say.
///
/// It answers 200 always: at once where the intervention is settled (for a held action: once its result is there), else when it
/// settles or when the wait is over. Read again while its state is `pending`.
#[utoipa::path(get, path = "/v1/interventions/{id}", operation_id = "get_intervention", tag = "interventions",
    params(
        ("id" = String, Path, description = "The intervention's id"),
        ("wait" = Option<GoDuration>, Query,
            description = "How long to wait, in Go's syntax (30s); at most 50 seconds count"),
    ),
    responses((status = 200, description = "As it stands", body = Intervention)))]
pub async fn get(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    let wait = call.query(&["wait"])?.wait()?;
    let id = call.intervention_id()?;
    let intervention = match wait {
        None => Box::pin(site.app.get_intervention(&call.who, &id)).await?,
        Some(wait) => {
            call.trace.caller_sets_length();
            site.app.wait(&call.who, &id, wait).await?
        }
    };
    Ok(shown(StatusCode::OK, &intervention))
}

/// Decides an intervention, by `action`.
///
/// `approve` and `reject` need `hitl:decide` or the master token. `secret` is not served yet: 501.
#[utoipa::path(post, path = "/v1/interventions/{id}", operation_id = "decide_intervention", tag = "interventions",
    params(
        ("id" = String, Path, description = "The intervention's id"),
        ("action" = DecideAction, Query, description = "How to decide"),
    ),
    request_body(content = DecideBody, description = "What the action takes"),
    responses((status = 200, description = "The decided intervention", body = Intervention)))]
pub async fn act(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    let row = call.action("POST", PATH)?;
    let app = Arc::clone(&site.app);
    let decided = match (row.served, row.action) {
        (Served::Later, _) => return later::refuse(&call, row),
        (Served::Yes, Some("approve")) => {
            let body: ApproveRequest = call.optional_body()?;
            let id = call.intervention_id()?;
            to_the_end(async move { app.approve(&call.who, &id, body).await }).await?
        }
        (Served::Yes, _) => {
            let body: RejectRequest = call.optional_body()?;
            let id = call.intervention_id()?;
            to_the_end(async move { app.reject(&call.who, &id, body).await }).await?
        }
    };
    Ok(shown(StatusCode::OK, &decided))
}
