//! Figures that only the database knows.

use super::pause;
use crate::app::{App, AppResult};
use fuse_api::environment::EnvState;
use fuse_api::intervention::Kind;
use std::sync::Arc;
use std::time::Duration;

/// How often to count.
const EVERY: Duration = Duration::from_secs(10);

pub(super) async fn run(app: Arc<App>) {
    let mut wait = Duration::ZERO;
    while pause(&app, wait).await {
        wait = EVERY;
        // The figures stay as they were while the database is away; that it is away has a figure of its own.
        if count(&app).await.is_err() {
            app.metrics.database_error();
        }
    }
}

async fn count(app: &App) -> AppResult<()> {
    app.metrics.set_unreadable(fuse_store::unreadable_met());
    let failing = app.store.failing();
    app.metrics
        .set_failing(failing.map(|failing| failing.since));
    let pending = app.store.pending_by_kind().await?;
    for &kind in Kind::ALL {
        let count = pending
            .iter()
            .find(|(k, _)| *k == kind)
            .map_or(0, |(_, n)| *n);
        app.metrics
            .set_pending(kind, u64::try_from(count).unwrap_or(0));
    }
    let by_state = app.store.environments_by_state().await?;
    for state in [
        EnvState::Provisioning,
        EnvState::Running,
        EnvState::Draining,
        EnvState::Destroying,
        EnvState::Failed,
    ] {
        let count = by_state
            .iter()
            .find(|(s, _)| *s == state)
            .map_or(0, |(_, n)| *n);
        app.metrics
            .set_environments(state, u64::try_from(count).unwrap_or(0));
    }
    app.store.drop_ended_grants(app.now()).await?;
    Ok(())
}
