//! Environments: create, list, get, destroy, watch, and what is done to one.

use super::later;
use crate::app::{DestroyAnswer, EnvFilter, ExecAnswer};
use crate::events::EventStream;
use crate::http::call::Call;
use crate::http::docs::{EnvAction, EnvActionBody};
use crate::http::{Answer, Site, json_response, no_content, query, shown, to_the_end};
use axum::extract::{Request, State};
use axum::response::sse::{Event as Sse, KeepAlive};
use axum::response::{IntoResponse, Response};
use fuse_api::environment::{CreateEnvironment, EnvState, Environment, EnvironmentList};
use fuse_api::events::{Event, EventKind};
use fuse_api::exec::{ExecRequest, ExecResult};
use fuse_api::intervention::{Held, Intervention, RaiseRequest};
use fuse_api::routes::Served;
use http::StatusCode;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

const PATH: &str = "/v1/environments/{id}";
/// How often a quiet event stream says that it lives.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Makes an environment; answers once it runs.
#[utoipa::path(post, path = "/v1/environments", operation_id = "create_environment", tag = "environments",
    request_body = CreateEnvironment,
    responses((status = 201, description = "It runs", body = Environment)))]
pub async fn create(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    call.query(&[])?;
    let body: CreateEnvironment = call.body()?;
    let app = Arc::clone(&site.app);
    let made = to_the_end(async move { app.create_environment(&call.who, body).await }).await?;
    Ok(json_response(StatusCode::CREATED, &made))
}

/// Environments, newest first.
#[utoipa::path(get, path = "/v1/environments", operation_id = "list_environments", tag = "environments",
    params(
        ("task_id" = Option<String>, Query, pattern = "^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$",
            description = "Of this task only; an empty one counts as left out"),
        ("state" = Option<EnvState>, Query, description = "In this state only"),
        ("host_id" = Option<String>, Query, description = "On this host only"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "Entries per page, 50 by default"),
        ("cursor" = Option<String>, Query, min_length = 1, description = "Where the page before ended"),
    ),
    responses((status = 200, description = "A page", body = EnvironmentList)))]
pub async fn list(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    let query = call.query(&["task_id", "state", "host_id", "limit", "cursor"])?;
    let state = query
        .get("state")
        .map(|text| {
            EnvState::parse(text)
                .ok_or_else(|| query::one_of("state", STATES.iter().map(|s| s.as_str())))
        })
        .transpose()?;
    let filter = EnvFilter {
        task_id: query.text("task_id"),
        state,
        host_id: query.text("host_id"),
        limit: query.limit()?,
        cursor: query.cursor()?,
    };
    let page = site.app.list_environments(&call.who, filter).await?;
    Ok(json_response(StatusCode::OK, &page))
}

const STATES: [EnvState; 6] = [
    EnvState::Provisioning,
    EnvState::Running,
    EnvState::Draining,
    EnvState::Destroying,
    EnvState::Destroyed,
    EnvState::Failed,
];

/// One environment.
#[utoipa::path(get, path = "/v1/environments/{id}", operation_id = "get_environment", tag = "environments",
    params(("id" = String, Path, description = "The environment's id")),
    responses((status = 200, description = "As it stands", body = Environment)))]
pub async fn get(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    call.query(&[])?;
    let environment = site.app.get_environment(&call.who, &call.env_id()?).await?;
    Ok(json_response(StatusCode::OK, &environment))
}

/// Destroys an environment and cancels what is pending in it.
#[utoipa::path(delete, path = "/v1/environments/{id}", operation_id = "destroy_environment", tag = "environments",
    params(("id" = String, Path, description = "The environment's id")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 202, description = "A gate holds the destroy for a person", body = Held),
    ))]
pub async fn destroy(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    call.query(&[])?;
    let id = call.env_id()?;
    let app = Arc::clone(&site.app);
    match to_the_end(async move { app.destroy_environment(&call.who, &id).await }).await? {
        DestroyAnswer::Done => Ok(no_content()),
        DestroyAnswer::Held(intervention) => Ok(held(*intervention)),
    }
}

/// Does something to an environment, named by `action`.
///
/// `exec` runs a command (master token): 200 with how it ended, or 202 where a gate holds it. `request` raises a request for a
/// person: 201. The other actions are not served yet: 501.
#[utoipa::path(post, path = "/v1/environments/{id}", operation_id = "act_on_environment", tag = "environments",
    params(
        ("id" = String, Path, description = "The environment's id"),
        ("action" = EnvAction, Query, description = "What to do"),
    ),
    request_body(content = EnvActionBody, description = "What the action takes"),
    responses(
        (status = 200, description = "exec: the command ended", body = ExecResult),
        (status = 201, description = "request: the pending intervention", body = Intervention),
        (status = 202, description = "A gate holds the action for a person", body = Held),
    ))]
pub async fn act(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    let row = call.action("POST", PATH)?;
    match (row.served, row.action) {
        (Served::Later, _) => later::refuse(&call, row),
        (Served::Yes, Some("exec")) => exec(site, call).await,
        (Served::Yes, _) => raise(site, call).await,
    }
}

async fn exec(site: Arc<Site>, call: Call) -> Answer {
    let body: ExecRequest = call.body()?;
    let id = call.env_id()?;
    call.trace.caller_sets_length();
    let app = Arc::clone(&site.app);
    match to_the_end(async move { app.exec(&call.who, &id, body).await }).await? {
        ExecAnswer::Done(result) => Ok(json_response(StatusCode::OK, &result)),
        ExecAnswer::Held(intervention) => Ok(held(*intervention)),
    }
}

/// The answer to a call whose action waits for a person.
fn held(intervention: Intervention) -> Response {
    let held = Held {
        intervention_id: intervention.id.clone(),
        intervention,
    };
    json_response(StatusCode::ACCEPTED, &held)
}

async fn raise(site: Arc<Site>, call: Call) -> Answer {
    let body: RaiseRequest = call.body()?;
    let id = call.env_id()?;
    let app = Arc::clone(&site.app);
    let raised = to_the_end(async move { app.raise(&call.who, &id, body).await }).await?;
    Ok(shown(StatusCode::CREATED, &raised))
}

/// The environment's events: first its state, then each change.
///
/// Each `data:` line is an event as JSON. A quiet stream says `: keepalive` every 15 seconds; it ends after `destroyed` or
/// `failed`. It may drop events under load: it is a hint to read again, never the record.
#[utoipa::path(get, path = "/v1/environments/{id}/events", operation_id = "watch_environment", tag = "environments",
    params(("id" = String, Path, description = "The environment's id")),
    responses((status = 200, description = "Server-sent events", body = Event, content_type = "text/event-stream")))]
pub async fn events(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let call = Call::open(&site, request).await?;
    call.query(&[])?;
    call.trace.caller_sets_length();
    let stream = site.app.events(&call.who, &call.env_id()?).await?;
    Ok(sse(stream))
}

fn sse(stream: EventStream) -> Response {
    let events = futures_util::stream::unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(printed(&event)), stream))
    });
    axum::response::Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEPALIVE).text("keepalive"))
        .into_response()
}

fn printed(event: &Event) -> Sse {
    let name = match event.event {
        EventKind::State => "state",
        EventKind::Intervention => "intervention",
    };
    // The wire types all print; an empty event would be skipped by its reader.
    let data = serde_json::to_string(event).unwrap_or_default();
    Sse::default().id(event.id.clone()).event(name).data(data)
}
