//! A person decides (spec: "Answering", "Approving, editing and granting").

use super::{App, AppResult, until_committed};
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{ApproveRequest, Intervention, Kind, RejectRequest};
use fuse_api::keys::Scope;
use fuse_api::routes::Access;
use fuse_domain::access::{Caller, Presented};
use fuse_domain::intervention::{Record, decide, holds_an_action};
use fuse_domain::refusal::Refusal;
use std::sync::Arc;

impl App {
    /// Approves an intervention; what it holds is then performed.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn approve(
        self: &Arc<Self>,
        who: &Presented,
        id: &InterventionId,
        body: ApproveRequest,
    ) -> AppResult<Intervention> {
        let records = until_committed!(self, {
            let record = self.current(id).await?;
            let caller = decider(who, record.view.kind)?;
            // Only what holds an action is decided by the policy too; the rest costs no look at the environment.
            let row = if holds_an_action(record.view.kind) {
                self.store.get_environment_by_uid(&record.env_uid).await?
            } else {
                None
            };
            let home = row.map(|row| self.home(&row)).transpose()?;
            let policy = home.as_ref().and_then(|h| h.policy.as_ref());
            let mut transition = decide::approve(&record, &body, &caller, policy, self.now())?;
            if let Some(home) = &home {
                self.note_edit(&record, &mut transition, home);
            }
            transition
        })?;
        Self::decided(records)
    }

    /// Rejects an intervention.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn reject(
        self: &Arc<Self>,
        who: &Presented,
        id: &InterventionId,
        body: RejectRequest,
    ) -> AppResult<Intervention> {
        let records = until_committed!(self, {
            let record = self.current(id).await?;
            let caller = decider(who, record.view.kind)?;
            decide::reject(&record, &body, &caller, self.now())?
        })?;
        Self::decided(records)
    }

    /// The resolved record comes after those that an edit's notify gates raised.
    fn decided(records: Vec<Arc<Record>>) -> AppResult<Intervention> {
        let record = records.into_iter().next_back().ok_or_else(|| {
            super::AppError::Internal("a decision committed without its record".into())
        })?;
        Ok(record.view.clone())
    }
}

/// Deciding takes hitl:decide; a secret or a takeover may also be rejected with the scope of its own kind.
fn decider(who: &Presented, kind: Kind) -> Result<Caller, Refusal> {
    let own = match kind {
        Kind::Secret => Some(Scope::Secret),
        Kind::Takeover => Some(Scope::Takeover),
        Kind::Ask
        | Kind::Review
        | Kind::Exec
        | Kind::Lifecycle
        | Kind::Computer
        | Kind::Stall
        | Kind::Expiry => None,
    };
    if let Some(scope) = own
        && let Ok(caller) = who.admit(Access::Scoped(scope))
    {
        return Ok(caller);
    }
    who.admit(Access::Scoped(Scope::Decide))
}
