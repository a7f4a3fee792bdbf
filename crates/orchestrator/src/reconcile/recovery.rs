//! What a process that is gone left behind, and guests that ended on their own.

use super::pause;
use crate::app::{App, AppResult, Outcome, backend_id, maker_of};
use fuse_api::environment::EnvState;
use fuse_backend::BackendError;
use fuse_domain::intervention::end;
use fuse_domain::intervention::run::{self, Recovery};
use fuse_store::{EnvironmentChange, EnvironmentRow};
use std::sync::Arc;
use std::time::Duration;

/// How often to look.
const EVERY: Duration = Duration::from_secs(2);
/// How many actions to look at in one round.
const ROUND: u32 = 500;

pub(super) async fn run(app: Arc<App>) {
    let mut wait = Duration::ZERO;
    while pause(&app, wait).await {
        wait = EVERY;
        app.instance.sweep();
        if let Err(error) = actions(&app).await {
            tracing::warn!(
                ?error,
                "looking after approved actions failed; trying again"
            );
        }
        if let Err(error) = environments(&app).await {
            tracing::warn!(?error, "looking after environments failed; trying again");
        }
    }
}

/// Approved actions that nobody performs are performed; those whose performer is gone are settled as in doubt.
async fn actions(app: &App) -> AppResult<()> {
    for record in app.store.ready_runs(&app.host_id, ROUND).await? {
        app.act_on(&record);
    }
    for record in app.store.started_runs(&app.host_id, ROUND).await? {
        match run::recover(&record.run, |instance| app.instance.is_alive(instance)) {
            Recovery::Settle => {
                tracing::warn!(id = %record.view.id, "an approved action may or may not have run");
                app.metrics.may_have_run();
                app.commit(run::settle(&record)).await?;
            }
            Recovery::Run | Recovery::Leave => {}
        }
    }
    Ok(())
}

async fn environments(app: &Arc<App>) -> AppResult<()> {
    for row in app.store.live_on_host(&app.host_id).await? {
        match row.state {
            EnvState::Provisioning => {
                let abandoned =
                    maker_of(&row.uid).is_none_or(|maker| !app.instance.is_alive(&maker));
                if abandoned {
                    tracing::warn!(env = %row.id, "its create was interrupted; removing what is there");
                    app.close_and_remove(&row, "the environment's create was interrupted")
                        .await?;
                }
            }
            EnvState::Destroying => {
                let app = Arc::clone(app);
                tokio::spawn(async move {
                    if let Err(error) = app.remove(&row).await {
                        tracing::warn!(env = %row.id, ?error, "removing an environment failed; trying again");
                    }
                });
            }
            EnvState::Running | EnvState::Draining => {
                let app = Arc::clone(app);
                tokio::spawn(async move { check_guest(&app, &row).await });
            }
            EnvState::Destroyed | EnvState::Failed => {}
        }
    }
    Ok(())
}

/// A running environment without a guest has failed.
async fn check_guest(app: &App, row: &EnvironmentRow) {
    let Ok(id) = backend_id(&row.uid) else {
        return;
    };
    let why = match app.backend.adopt(&id).await {
        Ok(guest) => {
            app.homes.keep_guest_if_new(&row.uid, guest);
            return;
        }
        Err(e @ (BackendError::NotFound(_) | BackendError::Dead { .. })) => e.to_string(),
        // It may answer again; calls to it say what they see.
        Err(_) => return,
    };
    let from = [EnvState::Running, EnvState::Draining];
    let message = format!("its guest ended on its own: {why}");
    let noted = EnvironmentChange {
        error: Some(message.clone()),
        ..EnvironmentChange::default()
    };
    // The reason comes first, so that whoever hears of the failure can read it.
    let closed = match app
        .store
        .update_environment(&row.uid, &from, noted, app.now())
        .await
    {
        Ok(_) => {
            let change = end::close(
                row.uid.clone(),
                &from,
                EnvState::Failed,
                &message,
                app.now(),
            );
            app.commit(change).await
        }
        Err(error) => Err(error.into()),
    };
    match closed {
        Ok(Outcome::Done(_)) => tracing::warn!(env = %row.id, why, "an environment failed"),
        Ok(Outcome::Conflict) => {}
        Err(error) => {
            tracing::warn!(env = %row.id, ?error, "a failed environment could not be closed")
        }
    }
}
