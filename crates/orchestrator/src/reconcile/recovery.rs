//! What a process that is gone left behind, and guests that ended on their own.

use super::pause;
use crate::app::{App, AppResult, Outcome, backend_id, maker_of};
use fuse_api::environment::EnvState;
use fuse_backend::BackendError;
use fuse_domain::intervention::EnvUid;
use fuse_domain::intervention::end;
use fuse_domain::intervention::run::{self, Recovery};
use fuse_store::{EnvironmentChange, EnvironmentRow};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often to look.
const EVERY: Duration = Duration::from_secs(2);
/// How many actions to look at in one round.
const ROUND: u32 = 500;

pub(super) async fn run(app: Arc<App>) {
    let mut wait = Duration::ZERO;
    let mut under_way = UnderWay::default();
    while pause(&app, wait).await {
        wait = EVERY;
        app.instance.sweep();
        if let Err(error) = actions(&app).await {
            tracing::warn!(
                ?error,
                "looking after approved actions failed; trying again"
            );
        }
        if let Err(error) = environments(&app, &mut under_way).await {
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

/// The environments that are being looked after. One that takes longer than a round is not looked after twice at once.
#[derive(Default)]
struct UnderWay(HashMap<EnvUid, JoinHandle<()>>);

impl UnderWay {
    fn start<F>(&mut self, uid: &EnvUid, work: impl FnOnce() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.0.retain(|_, task| !task.is_finished());
        if !self.0.contains_key(uid) {
            self.0.insert(uid.clone(), tokio::spawn(work()));
        }
    }
}

async fn environments(app: &Arc<App>, under_way: &mut UnderWay) -> AppResult<()> {
    let rows = app.store.live_on_host(&app.host_id).await?;
    app.homes
        .keep_only(&rows.iter().map(|row| &row.uid).collect());
    for row in rows {
        match row.state {
            EnvState::Provisioning => {
                if !is_being_made(app, &row.uid) {
                    under_way.start(&row.uid, || {
                        let (app, row) = (Arc::clone(app), row.clone());
                        async move { clear_away(&app, &row).await }
                    });
                }
            }
            EnvState::Destroying => {
                under_way.start(&row.uid, || {
                    let (app, row) = (Arc::clone(app), row.clone());
                    async move {
                        if let Err(error) = app.remove(&row).await {
                            tracing::warn!(env = %row.id, ?error, "removing an environment failed; trying again");
                        }
                    }
                });
            }
            EnvState::Running | EnvState::Draining => {
                under_way.start(&row.uid, || {
                    let (app, row) = (Arc::clone(app), row.clone());
                    async move { check_guest(&app, &row).await }
                });
            }
            EnvState::Destroyed | EnvState::Failed => {}
        }
    }
    Ok(())
}

/// Whether the instance that began to make an environment still does.
fn is_being_made(app: &App, uid: &EnvUid) -> bool {
    maker_of(uid).is_some_and(|maker| match maker == *app.instance.id() {
        true => app.homes.is_making(uid),
        false => app.instance.is_alive(&maker),
    })
}

/// Removes what an interrupted create left, unless it was finished after all.
async fn clear_away(app: &App, row: &EnvironmentRow) {
    tracing::warn!(env = %row.id, "its create was interrupted; removing what is there");
    let (from, why) = (
        [EnvState::Provisioning],
        "the environment's create was interrupted",
    );
    if let Err(error) = app.close_and_remove(row, &from, why).await {
        tracing::warn!(env = %row.id, ?error, "removing what is half made failed; trying again");
    }
}

/// A running environment without a guest has failed.
async fn check_guest(app: &App, row: &EnvironmentRow) {
    if let Some(guest) = app.homes.met_guest(&row.uid)
        && guest.status().await.is_ok()
    {
        return;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::Semaphore;

    #[tokio::test]
    async fn what_is_looked_after_is_not_looked_after_twice_at_once() {
        let mut under_way = UnderWay::default();
        let begun = Arc::new(AtomicU32::new(0));
        let may_end = Arc::new(Semaphore::new(0));
        let work = || {
            let (begun, may_end) = (Arc::clone(&begun), Arc::clone(&may_end));
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                let _ = may_end.acquire().await;
            }
        };
        let (one, two) = (EnvUid("one".into()), EnvUid("two".into()));
        for _ in 0..3 {
            under_way.start(&one, work);
            tokio::task::yield_now().await;
        }
        under_way.start(&two, work);
        tokio::task::yield_now().await;
        assert_eq!(begun.load(Ordering::SeqCst), 2);
        may_end.close();
        while under_way.0.values().any(|task| !task.is_finished()) {
            tokio::task::yield_now().await;
        }
        under_way.start(&one, work);
        tokio::task::yield_now().await;
        assert_eq!(begun.load(Ordering::SeqCst), 3);
    }
}
