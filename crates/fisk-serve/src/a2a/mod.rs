//! The Agent2Agent protocol, version 1, in its HTTP+JSON binding: an agent without a model, whose skills are commands.

mod card;
mod error;
mod message;
mod routes;
mod task;
mod tasks;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{
    Limits, Listen, ServeError, Served, Serving,
    run::Runner,
    server::{bind, guarded, serve},
};
use tasks::Tasks;

/// What the operator should read at the start.
fn warning(served: &Served) -> Option<String> {
    let gated: Vec<&str> = served
        .tools
        .gated()
        .map(|tool| tool.name().as_str())
        .collect();
    (served.operator.is_none() && !gated.is_empty()).then(|| {
        format!(
            "nobody answers for these commands over A2A, so they are refused: {}",
            gated.join(", ")
        )
    })
}

/// Serves A2A until `cancel` is triggered, with the default [`Limits`].
///
/// # Errors
/// The address is open to others and there is no token, or the port cannot be had.
pub async fn serve_a2a(
    served: Served,
    listen: Listen,
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    serve_a2a_within(served, listen, Limits::default(), cancel).await
}

/// The same with bounds of one's own.
///
/// # Errors
/// As for [`serve_a2a`].
pub async fn serve_a2a_within(
    served: Served,
    listen: Listen,
    limits: Limits,
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    let (listener, address) = bind(&listen).await?;
    let warning = warning(&served);
    let runner = Arc::new(Runner::new(served, limits, cancel.child_token()));
    let tasks = Arc::new(Tasks::new(Arc::clone(&runner)));
    let routes = routes::routes(tasks, listen.token.is_some());
    let router = guarded(routes, listen.token.as_deref(), &runner.limits);
    Ok(serve(listener, address, router, runner, warning))
}
