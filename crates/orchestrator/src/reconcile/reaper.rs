//! Environments that are idle or have run for long enough are destroyed. The reaper's destroys pass no gates.

use super::pause;
use crate::app::{ALIVE, App, AppResult};
use fuse_store::EnvironmentRow;
use std::sync::Arc;
use std::time::Duration;

/// How often to look.
const EVERY: Duration = Duration::from_secs(1);

pub(super) async fn run(app: Arc<App>) {
    while pause(&app, EVERY).await {
        if let Err(error) = reap(&app).await {
            tracing::warn!(?error, "the reaper failed; trying again");
        }
    }
}

async fn reap(app: &App) -> AppResult<()> {
    let now = app.now();
    for row in app.store.idle_environments(&app.host_id, now).await? {
        tracing::info!(env = %row.id, "idle for its whole idle_timeout; destroying it");
        tell(&row, app.reap_idle(&row).await);
    }
    for row in app.store.overdue_environments(&app.host_id, now).await? {
        tracing::info!(env = %row.id, "ran for its whole max_runtime; destroying it");
        let why = "the environment reached its max_runtime and was destroyed";
        tell(&row, app.close_and_remove(&row, &ALIVE, why).await);
    }
    Ok(())
}

/// One that cannot be removed does not keep the others alive. It is out of service by then; the driver goes on with it.
fn tell(row: &EnvironmentRow, reaped: AppResult<()>) {
    if let Err(error) = reaped {
        tracing::warn!(env = %row.id, ?error, "an environment could not be reaped");
    }
}
