//! The background loops. They take no input, are idempotent, and call the same verbs as the routes; they decide nothing.

mod deadlines;
mod figures;
mod notices;
mod reaper;
mod recovery;

use crate::app::App;
use fuse_api::ids::InterventionId;
use fuse_store::Notices;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Starts every loop. They end when the app stops.
pub fn start(
    app: &Arc<App>,
    heard: Notices,
    ready: mpsc::UnboundedReceiver<InterventionId>,
) -> JoinSet<()> {
    let mut loops = JoinSet::new();
    let wake = app.wake.clone();
    loops.spawn(async move { wake.run_ticks().await });
    loops.spawn(crate::effects::exec::run_ready(Arc::clone(app), ready));
    loops.spawn(notices::run(Arc::clone(app), heard));
    loops.spawn(deadlines::run(Arc::clone(app)));
    loops.spawn(recovery::run(Arc::clone(app)));
    loops.spawn(reaper::run(Arc::clone(app)));
    loops.spawn(figures::run(Arc::clone(app)));
    loops
}

/// Sleeps, or tells that the orchestrator stops.
async fn pause(app: &App, time: Duration) -> bool {
    let mut stopping = app.stopping();
    if *stopping.borrow() {
        return false;
    }
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        _ = stopping.changed() => false,
    }
}
