//! The paths of the HTTP+JSON binding.

use std::{convert::Infallible, sync::Arc};

use a2a::{
    A2AError, SVC_PARAM_VERSION, SendMessageRequest, SendMessageResponse, StreamResponse, Task,
    TaskArtifactUpdateEvent, TaskStatusUpdateEvent,
};
use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, State},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post},
};
use futures_util::{Stream, stream};
use http::{
    HeaderMap, Uri,
    header::{CONTENT_TYPE, HOST},
};
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use super::{
    card::card,
    error::Problem,
    message::asked,
    tasks::{Handle, Tasks},
};

#[derive(Clone)]
struct Site {
    tasks: Arc<Tasks>,
    token: bool,
}

pub(super) fn routes(tasks: Arc<Tasks>, token: bool) -> Router {
    Router::new()
        .route("/.well-known/agent-card.json", get(show_card))
        .route("/v1/message:send", post(send))
        .route("/v1/message:stream", post(stream_message))
        .route("/v1/tasks/{id}", get(look).post(act))
        .fallback(elsewhere)
        .with_state(Site { tasks, token })
}

async fn show_card(State(site): State<Site>, headers: HeaderMap) -> Response {
    // The guard let it through: it names this server.
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    Json(card(&site.tasks.runner.served, host, site.token)).into_response()
}

async fn elsewhere(uri: Uri) -> Problem {
    if uri.path().contains("/pushNotificationConfigs") {
        return A2AError::push_notification_not_supported().into();
    }
    A2AError::method_not_found(uri.path()).into()
}

/// Answers with the task, once it is over unless the client is in no mood to wait. A client that waits and goes away takes its
/// call back.
async fn send(State(site): State<Site>, headers: HeaderMap, body: Bytes) -> Response {
    let (request, at_once) = match read(&headers, &body) {
        Ok(request) => request,
        Err(problem) => return problem.into_response(),
    };
    let mut handle = match begin(&site, request) {
        Ok(handle) => handle,
        Err(problem) => return problem.into_response(),
    };
    if !at_once {
        let waits = handle.cancel.clone().drop_guard();
        let over = handle.now.wait_for(is_over).await.is_ok();
        if over {
            waits.disarm();
        }
    }
    let task = handle.now.borrow().clone();
    Json(SendMessageResponse::Task(task)).into_response()
}

async fn stream_message(State(site): State<Site>, headers: HeaderMap, body: Bytes) -> Response {
    let (request, _at_once) = match read(&headers, &body) {
        Ok(request) => request,
        Err(problem) => return problem.into_response(),
    };
    match begin(&site, request) {
        Ok(handle) => {
            let cancel = handle.cancel.clone().drop_guard();
            events(handle.now, Some(cancel)).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

async fn look(State(site): State<Site>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    if let Err(problem) = version(&headers) {
        return problem.into_response();
    }
    match id.strip_suffix(":subscribe") {
        Some(id) => subscribe(&site, id),
        None => match site.tasks.get(&id) {
            Some(handle) => Json(handle.now.borrow().clone()).into_response(),
            None => Problem::from(A2AError::task_not_found(&id)).into_response(),
        },
    }
}

async fn act(State(site): State<Site>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    if let Err(problem) = version(&headers) {
        return problem.into_response();
    }
    if let Some(id) = id.strip_suffix(":subscribe") {
        return subscribe(&site, id);
    }
    let Some(id) = id.strip_suffix(":cancel") else {
        return Problem::from(A2AError::method_not_found(&id)).into_response();
    };
    let Some(mut handle) = site.tasks.get(id) else {
        return Problem::from(A2AError::task_not_found(id)).into_response();
    };
    if is_over(&handle.now.borrow()) {
        return Problem::from(A2AError::task_not_cancelable(id)).into_response();
    }
    handle.cancel.cancel();
    // It is over once its command is dead.
    let _ = handle.now.wait_for(is_over).await;
    let task = handle.now.borrow().clone();
    Json(task).into_response()
}

/// Another look at a task. Whoever looks does not end it by looking away.
fn subscribe(site: &Site, id: &str) -> Response {
    match site.tasks.get(id) {
        None => Problem::from(A2AError::task_not_found(id)).into_response(),
        Some(handle) if is_over(&handle.now.borrow()) => Problem::from(
            A2AError::unsupported_operation("the task is over; get it instead"),
        )
        .into_response(),
        Some(handle) => events(handle.now, None).into_response(),
    }
}

fn read(headers: &HeaderMap, body: &[u8]) -> Result<(SendMessageRequest, bool), Problem> {
    version(headers)?;
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .map(|kind| kind.split(';').next().unwrap_or_default().trim());
    if !kind.is_some_and(|kind| {
        kind.eq_ignore_ascii_case("application/json")
            || kind.eq_ignore_ascii_case("application/a2a+json")
    }) {
        return Err(A2AError::content_type_not_supported().into());
    }
    let request: SendMessageRequest = serde_json::from_slice(body)
        .map_err(|error| A2AError::invalid_params(format!("the body is no message: {error}")))?;
    let at_once = request
        .configuration
        .as_ref()
        .and_then(|configuration| configuration.return_immediately)
        .unwrap_or(false);
    Ok((request, at_once))
}

/// A client that names a version names ours.
fn version(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(version) = headers.get(SVC_PARAM_VERSION) else {
        return Ok(());
    };
    let version = version.to_str().unwrap_or_default();
    if version == "1" || version.starts_with("1.") {
        Ok(())
    } else {
        Err(A2AError::version_not_supported(version).into())
    }
}

fn begin(site: &Site, request: SendMessageRequest) -> Result<Handle, Problem> {
    let context = request.message.context_id.clone();
    let asked = asked(request)?;
    let (tool, call) = site
        .tasks
        .runner
        .check(&asked.tool, &asked.input)
        .map_err(A2AError::invalid_params)?;
    site.tasks
        .start(tool.clone(), call, context)
        .ok_or(Problem::Busy)
}

fn is_over(task: &Task) -> bool {
    task.status.state.is_terminal()
}

/// What is left to tell about a task.
enum Next {
    First,
    Change,
    Ending(Box<Task>),
    Nothing,
}

fn events(
    now: watch::Receiver<Task>,
    cancel: Option<DropGuard>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let told = stream::unfold(
        (now, cancel, Next::First),
        |(mut now, cancel, next)| async {
            let (event, next) = match next {
                Next::First => {
                    let task = now.borrow_and_update().clone();
                    let next = if is_over(&task) {
                        Next::Nothing
                    } else {
                        Next::Change
                    };
                    (StreamResponse::Task(task), next)
                }
                Next::Change => {
                    now.changed().await.ok()?;
                    let task = now.borrow_and_update().clone();
                    match (
                        is_over(&task),
                        task.artifacts.as_ref().and_then(|all| all.first()),
                    ) {
                        (true, Some(artifact)) => (
                            StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                                task_id: task.id.clone(),
                                context_id: task.context_id.clone(),
                                artifact: artifact.clone(),
                                append: None,
                                last_chunk: Some(true),
                                metadata: None,
                            }),
                            Next::Ending(Box::new(task)),
                        ),
                        (true, None) => (update(task), Next::Nothing),
                        (false, _) => (update(task), Next::Change),
                    }
                }
                Next::Ending(task) => (update(*task), Next::Nothing),
                Next::Nothing => {
                    if let Some(cancel) = cancel {
                        cancel.disarm();
                    }
                    return None;
                }
            };
            let event = Event::default().json_data(&event).ok()?;
            Some((Ok(event), (now, cancel, next)))
        },
    );
    Sse::new(told).keep_alive(KeepAlive::default())
}

fn update(task: Task) -> StreamResponse {
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id: task.id,
        context_id: task.context_id,
        status: task.status,
        metadata: None,
    })
}
