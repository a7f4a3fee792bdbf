//! The end of an environment: its interventions are cancelled first, on record, then its guest is removed.

use super::gated::Gated;
use super::homes::backend_id;
use super::{App, AppError, AppResult, Outcome};
use fuse_api::environment::EnvState;
use fuse_api::ids::EnvId;
use fuse_api::intervention::Intervention;
use fuse_api::routes::Access;
use fuse_domain::access::Presented;
use fuse_domain::intervention::end;
use fuse_domain::policy::LifecycleAction;
use fuse_domain::refusal::Refusal;
use fuse_store::EnvironmentRow;

/// The states that an environment may be destroyed from.
pub(crate) const ALIVE: [EnvState; 4] = [
    EnvState::Provisioning,
    EnvState::Running,
    EnvState::Draining,
    EnvState::Failed,
];

/// What the call of a destroy comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum DestroyAnswer {
    /// It is gone.
    Done,
    /// It is held until a person decides.
    Held(Box<Intervention>),
}

impl App {
    /// Destroys an environment, unless a gate holds or refuses that. What is pending in it is cancelled (spec: "Invariants").
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn destroy_environment(
        &self,
        who: &Presented,
        id: &EnvId,
    ) -> AppResult<DestroyAnswer> {
        let now = self.now();
        let row = self.environment(id).await?;
        let caller = who.admit(Access::Full)?;
        // What is being removed already is past every gate.
        if row.state != EnvState::Destroying {
            let home = self.home(&row)?;
            if let Some(policy) = &home.policy {
                let verdict = policy.judge_lifecycle(LifecycleAction::Destroy);
                let action = Gated::lifecycle(LifecycleAction::Destroy);
                if let Some(held) = self.gated(&caller, &home, &action, &verdict, now).await? {
                    return Ok(DestroyAnswer::Held(Box::new(held.view.clone())));
                }
            }
        }
        self.close_and_remove(&row, &ALIVE, "the environment was destroyed")
            .await?;
        Ok(DestroyAnswer::Done)
    }

    /// Takes an environment that is in one of `from` out of service on record, then removes its guest. Going on after a crash, or
    /// where this is dropped halfway, is the driver's.
    pub(crate) async fn close_and_remove(
        &self,
        row: &EnvironmentRow,
        from: &[EnvState],
        why: &str,
    ) -> AppResult<()> {
        let change = end::close(row.uid.clone(), from, EnvState::Destroying, why, self.now());
        match self.commit(change).await? {
            Outcome::Done(_) => {}
            Outcome::Conflict => {
                // Somebody else is destroying it, or has.
                let state = self
                    .store
                    .get_environment_by_uid(&row.uid)
                    .await?
                    .map_or(EnvState::Destroyed, |now| now.state);
                if state != EnvState::Destroying {
                    return Err(Refusal::NotFound(fuse_domain::refusal::What::Environment).into());
                }
            }
        }
        self.remove(row).await
    }

    /// Destroys an idle environment, unless somebody began to decide something in it a moment ago.
    pub(crate) async fn reap_idle(&self, row: &EnvironmentRow) -> AppResult<()> {
        let from = [EnvState::Running, EnvState::Draining];
        let why = "the environment was idle and was destroyed";
        let change = end::close_idle(
            row.uid.clone(),
            &from,
            EnvState::Destroying,
            why,
            self.now(),
        );
        match self.commit(change).await? {
            Outcome::Done(_) => self.remove(row).await,
            Outcome::Conflict => Ok(()),
        }
    }

    /// Removes the guest of an environment that is out of service, and says so on record.
    pub(crate) async fn remove(&self, row: &EnvironmentRow) -> AppResult<()> {
        if row.host_id != self.host_id {
            // Its own host's driver sees the state and removes it.
            return Ok(());
        }
        self.homes.forget(&row.uid);
        self.backend
            .destroy(&backend_id(&row.uid)?)
            .await
            .map_err(|e| AppError::Unavailable(format!("removing {}: {e}", row.id)))?;
        let gone = end::close(
            row.uid.clone(),
            &[EnvState::Destroying],
            EnvState::Destroyed,
            "the environment was destroyed",
            self.now(),
        );
        self.commit(gone).await?;
        Ok(())
    }
}
