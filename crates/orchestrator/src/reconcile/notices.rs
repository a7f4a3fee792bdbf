//! What the store hears is told to waiters, to event streams and to the runner of approved actions.

use crate::app::App;
use crate::known::Shown;
use fuse_api::environment::EnvState;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::State;
use fuse_domain::intervention::{EnvUid, Record, RunState};
use fuse_store::{KeyRow, Notice, Notices};
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};

/// Changes elsewhere that are read at the same time. A burst of them must not take every connection from the callers.
const READS: usize = 4;

pub(super) async fn run(app: Arc<App>, heard: Notices) {
    let missed = Notify::new();
    tokio::select! {
        () = listen(&app, heard, &missed) => {}
        () = catch_up(&app, &missed) => {}
    }
}

async fn listen(app: &Arc<App>, mut heard: Notices, missed: &Notify) {
    let reads = Arc::new(Semaphore::new(READS));
    while let Some(notice) = heard.recv().await {
        match notice {
            Notice::Changed(record) => {
                count(app, &record);
                spread(app, &app.known.committed(&record));
            }
            Notice::Remote(id) => {
                // At once: whoever parks over what was known has to be heard of by the read below.
                app.known.changed(&id);
                let (app, reads) = (Arc::clone(app), Arc::clone(&reads));
                tokio::spawn(async move {
                    let _turn = reads.acquire().await;
                    read_again(&app, &id).await;
                });
            }
            Notice::Environment { uid, id, state } => {
                app.known.environments.forget(&id);
                if !takes_part(state) {
                    // Its keys ended with it.
                    let ended = |row: &Arc<KeyRow>| row.env_uid.as_ref() == Some(&uid);
                    app.known.keys.forget_where(ended);
                }
                environment(app, &uid, state).await;
            }
            Notice::Key(id) => app.known.keys.forget_where(|row| row.key.id == id),
            Notice::Resync => {
                app.known.begin(app.store.hearing());
                missed.notify_one();
            }
        }
    }
}

/// However often changes are missed while this reads, it reads once more.
async fn catch_up(app: &App, missed: &Notify) {
    loop {
        missed.notified().await;
        resync(app).await;
    }
}

/// Whether an environment in this state may still have keys.
const fn takes_part(state: EnvState) -> bool {
    match state {
        EnvState::Provisioning | EnvState::Running | EnvState::Draining => true,
        EnvState::Destroying | EnvState::Destroyed | EnvState::Failed => false,
    }
}

fn spread(app: &App, shown: &Arc<Shown>) {
    app.wake.publish(shown);
    let record = &shown.record;
    match record.run {
        RunState::Nothing => app.events.intervention(record),
        RunState::Ready => {
            app.events.intervention(record);
            app.act_on(record);
        }
        // The action's own progress is no news of the intervention's state.
        RunState::Started(_) | RunState::Done => {}
    }
}

fn count(app: &App, record: &Record) {
    match (record.view.state, &record.run) {
        (State::Pending, _) => app.metrics.raised(record.view.kind),
        (_, RunState::Started(_) | RunState::Done) => {}
        (State::Approved | State::Rejected, _) => {
            if let Some(decision) = &record.view.decision {
                app.metrics.decided(decision.outcome);
            }
        }
        (State::Expired, _) => {
            let at = record.view.resolved_at.unwrap_or(record.view.deadline);
            let late = at
                .as_micros()
                .saturating_sub(record.view.deadline.as_micros());
            app.metrics.expired(std::time::Duration::from_micros(
                u64::try_from(late).unwrap_or(0),
            ));
        }
        (State::Cancelled, _) => app.metrics.cancelled(1),
    }
}

/// It changed elsewhere, or here with content too large to hand around.
async fn read_again(app: &App, id: &InterventionId) {
    match app.read(id).await {
        Ok(Some(shown)) => spread(app, &shown),
        Ok(None) => {}
        // A waiter's own next read tells it; nothing is lost.
        Err(error) => tracing::warn!(%id, ?error, "a change elsewhere could not be read"),
    }
}

async fn environment(app: &App, uid: &EnvUid, state: EnvState) {
    let error = match state {
        EnvState::Failed => match app.store.get_environment_by_uid(uid).await {
            Ok(row) => row.and_then(|row| row.error),
            Err(_) => None,
        },
        EnvState::Provisioning
        | EnvState::Running
        | EnvState::Draining
        | EnvState::Destroying
        | EnvState::Destroyed => None,
    };
    app.events.state(uid, state, error);
    match state {
        EnvState::Destroyed | EnvState::Failed => app.homes.forget(uid),
        EnvState::Provisioning | EnvState::Running | EnvState::Draining | EnvState::Destroying => {}
    }
}

/// Changes may have been missed: ask once for everything that somebody waits for or watches.
async fn resync(app: &App) {
    let awaited = app.wake.awaited();
    match app.store.settled_among(&awaited).await {
        Ok(settled) => {
            for id in settled {
                read_again(app, &id).await;
            }
        }
        Err(error) => tracing::warn!(%error, "reading again what is waited for failed"),
    }
    for uid in app.events.watched() {
        match app.store.get_environment_by_uid(&uid).await {
            Ok(Some(row)) => app.events.state(&uid, row.state, row.error),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "reading again what is watched failed"),
        }
    }
}
