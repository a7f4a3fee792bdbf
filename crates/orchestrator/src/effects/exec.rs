//! Approved actions: each runs at most once, after its approval is on record, and its outcome is put on record too.

use crate::app::{ALIVE, App, AppError, Outcome};
use fuse_api::environment::EnvState;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{ActionResult, ExecPayload};
use fuse_backend::{CallError, RefusalCode};
use fuse_domain::intervention::run::{self, Recovery};
use fuse_domain::intervention::{Record, RunState, decide};
use fuse_domain::policy::LifecycleAction;
use fuse_store::EnvironmentRow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long an approved command waits for a guest that runs as many commands as it can.
const PATIENCE: Duration = Duration::from_secs(60);

/// Performs what becomes ready until the process stops. No action is performed by two tasks at once, so whatever stands on
/// record as started by this process while no task performs it was never begun here.
pub async fn run_ready(app: Arc<App>, mut ready: mpsc::UnboundedReceiver<InterventionId>) {
    let mut tasks = JoinSet::new();
    let mut under_way = HashMap::new();
    loop {
        tokio::select! {
            told = ready.recv() => match told {
                None => return,
                Some(id) => {
                    if !under_way.values().any(|busy| *busy == id) {
                        let task = tasks.spawn(tried(Arc::clone(&app), id.clone()));
                        under_way.insert(task.id(), id);
                    }
                }
            },
            Some(ended) = tasks.join_next_with_id() => {
                let (task, failed) = match ended {
                    Ok((task, ())) => (task, false),
                    Err(error) => (error.id(), error.is_panic()),
                };
                if let Some(id) = under_way.remove(&task)
                    && failed
                {
                    tracing::error!(%id, "performing an approved action failed");
                    let task = tasks.spawn(settled(Arc::clone(&app), id.clone()));
                    under_way.insert(task.id(), id);
                }
            }
        }
    }
}

async fn tried(app: Arc<App>, id: InterventionId) {
    if let Err(error) = perform(&app, &id).await {
        // It stays ready on record; the recovery loop takes it up again.
        tracing::warn!(%id, ?error, "an approved action could not be performed now");
    }
}

/// A fault of ours while an action was performed must not leave its waiters without an outcome.
async fn settled(app: Arc<App>, id: InterventionId) {
    match app.store.get_intervention(&id).await {
        Ok(Some(record)) if is_mine(&app, &record) => {
            app.metrics.may_have_run();
            put_on_record(&app, &record, &run::failed(run::MAY_OR_MAY_NOT)).await;
        }
        Ok(_) => {}
        Err(error) => tracing::error!(%id, %error, "an action in doubt could not be read"),
    }
}

fn is_mine(app: &App, record: &Record) -> bool {
    matches!(&record.run, RunState::Started(instance) if instance == app.instance.id())
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
    let Some(started) = start(app, record).await? else {
        return Ok(());
    };
    // From here on the action counts as tried: whatever happens, its outcome goes on record.
    let result = outcome_of(app, &started, &env).await;
    put_on_record(app, &started, &result).await;
    Ok(())
}

/// Claims the run on record; none where somebody else has it. A claim whose answer was lost is asked after until it is known:
/// nobody else would ever perform what stands there as started by this living process.
async fn start(app: &App, mut record: Record) -> Result<Option<Arc<Record>>, AppError> {
    let mut pause = Duration::from_millis(50);
    loop {
        let claim = run::start(&record, app.instance.id().clone());
        match app.commit(claim).await {
            Ok(Outcome::Done(mut records)) => {
                let started = records.pop();
                return started.map(Some).ok_or_else(|| {
                    AppError::Internal("a start committed without its record".into())
                });
            }
            Ok(Outcome::Conflict) => return Ok(None),
            Err(error) => {
                tracing::warn!(id = %record.view.id, ?error, "starting an approved action has no answer; asking again");
            }
        }
        record = loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(2));
            match app.store.get_intervention(&record.view.id).await {
                Ok(Some(read)) => break read,
                Ok(None) => return Ok(None),
                Err(error) => {
                    tracing::warn!(%error, "an approved action cannot be read; trying again")
                }
            }
        };
        match &record.run {
            RunState::Ready => {}
            RunState::Started(_) if is_mine(app, &record) => return Ok(Some(Arc::new(record))),
            RunState::Nothing | RunState::Started(_) | RunState::Done => return Ok(None),
        }
    }
}

async fn outcome_of(app: &App, record: &Record, env: &EnvironmentRow) -> ActionResult {
    // An edit that cannot be read would otherwise look like none.
    if record.view.unreadable {
        return run::failed(run::UNREADABLE);
    }
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
    let command_id = record.view.id.as_str();
    let outcome = loop {
        let outcome = app.run_in_guest(env, exec, command_id.to_owned()).await;
        let busy =
            matches!(&outcome, Ok(Err(CallError::Refused(r))) if r.code == RefusalCode::Busy);
        if !busy || begun.elapsed() > PATIENCE {
            break outcome;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    };
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
