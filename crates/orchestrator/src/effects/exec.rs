//! Approved actions: each runs at most once, after its approval is on record, and its outcome is put on record too.

use crate::app::{ALIVE, App, AppError, Outcome};
use fuse_api::environment::EnvState;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{ActionResult, ExecPayload};
use fuse_backend::CallError;
use fuse_domain::intervention::run::{self, Recovery};
use fuse_domain::intervention::{Record, decide};
use fuse_domain::policy::LifecycleAction;
use fuse_store::EnvironmentRow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Performs what becomes ready until the process stops.
pub async fn run_ready(app: Arc<App>, mut ready: mpsc::UnboundedReceiver<InterventionId>) {
    while let Some(id) = ready.recv().await {
        let app = Arc::clone(&app);
        tokio::spawn(async move {
            if let Err(error) = perform(&app, &id).await {
                // It stays ready or started on record; the recovery loop takes it up again.
                tracing::warn!(%id, ?error, "an approved action could not be performed now");
            }
        });
    }
}

/// Performs one approved action, unless somebody else does.
async fn perform(app: &App, id: &InterventionId) -> Result<(), AppError> {
    let Some(record) = app.store.get_intervention(id).await? else {
        return Ok(());
    };
    let Some(env) = app.store.get_environment_by_uid(&record.env_uid).await? else {
        return Ok(());
    };
    if env.host_id != app.host_id {
        return Ok(());
    }
    match run::recover(&record.run, |instance| app.instance.is_alive(instance)) {
        Recovery::Leave => return Ok(()),
        Recovery::Settle => {
            app.metrics.may_have_run();
            app.commit(run::settle(&record)).await?;
            return Ok(());
        }
        Recovery::Run => {}
    }
    let started = match app
        .commit(run::start(&record, app.instance.id().clone()))
        .await?
    {
        Outcome::Conflict => return Ok(()),
        Outcome::Done(mut records) => records
            .pop()
            .ok_or_else(|| AppError::Internal("a start committed without its record".into()))?,
    };
    // From here on the action counts as tried: whatever happens, its outcome goes on record.
    let result = outcome_of(app, &started, &env).await;
    put_on_record(app, &started, &result).await;
    Ok(())
}

async fn outcome_of(app: &App, record: &Record, env: &EnvironmentRow) -> ActionResult {
    let payload = &record.view.payload;
    match (decide::approved_exec(record), &payload.lifecycle) {
        (Some(exec), None) => command(app, record, env, &exec).await,
        (None, Some(lifecycle)) => match LifecycleAction::parse(&lifecycle.action) {
            Some(LifecycleAction::Destroy) => destroy(app, env).await,
            Some(
                LifecycleAction::Fork
                | LifecycleAction::Migrate
                | LifecycleAction::Drain
                | LifecycleAction::Snapshot
                | LifecycleAction::RotateToken,
            )
            | None => cannot(),
        },
        (Some(_), Some(_)) | (None, None) => cannot(),
    }
}

fn cannot() -> ActionResult {
    run::failed("it did not run: this release cannot perform such an action")
}

async fn destroy(app: &App, env: &EnvironmentRow) -> ActionResult {
    match app
        .close_and_remove(env, &ALIVE, "the environment was destroyed")
        .await
    {
        Ok(()) | Err(AppError::Refused(_)) => ActionResult::default(),
        Err(AppError::Unavailable(why)) => run::failed(&format!("it is under way: {why}")),
        Err(AppError::Internal(cause)) => {
            tracing::error!(env = %env.id, cause, "an approved destroy failed");
            run::failed("the orchestrator failed; the environment may or may not be gone")
        }
    }
}

async fn command(
    app: &App,
    record: &Record,
    env: &EnvironmentRow,
    exec: &ExecPayload,
) -> ActionResult {
    match env.state {
        EnvState::Running => {}
        EnvState::Provisioning
        | EnvState::Draining
        | EnvState::Destroying
        | EnvState::Destroyed
        | EnvState::Failed => {
            return run::failed(&format!(
                "it did not run: the environment is {}",
                env.state.as_str()
            ));
        }
    }
    let begun = std::time::Instant::now();
    // The command carries the intervention's id, so that the guest itself never starts it twice.
    let outcome = app
        .run_in_guest(env, exec, record.view.id.as_str().to_owned())
        .await;
    app.metrics.exec_ran(begun.elapsed());
    match outcome {
        Ok(Ok(exec)) => ActionResult {
            exec: Some(exec),
            ..ActionResult::default()
        },
        Ok(Err(CallError::Refused(refusal))) => run::failed(&format!("it did not run: {refusal}")),
        Ok(Err(CallError::NotSent(_))) => {
            run::failed("it did not run: the guest could not be reached")
        }
        Ok(Err(CallError::Lost(_))) => {
            run::failed("the guest was lost while it ran this action; it may or may not have run")
        }
        Err(AppError::Refused(_) | AppError::Unavailable(_)) => {
            run::failed("it did not run: the guest could not be reached")
        }
        Err(AppError::Internal(cause)) => {
            tracing::error!(id = %record.view.id, cause, "an approved action failed");
            run::failed("it did not run: the orchestrator failed")
        }
    }
}

/// Keeps trying until the result is on record: a database outage must not turn a known outcome into an unknown one.
async fn put_on_record(app: &App, started: &Record, result: &ActionResult) {
    let mut pause = Duration::from_millis(50);
    loop {
        match app.commit(run::finish(started, result.clone())).await {
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(id = %started.view.id, ?error, "a result could not be put on record; trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(2));
            }
        }
    }
}
