//! A person decides (spec: "Answering", "Approving, editing and granting").

use super::look::{Seen, too_many_changes};
use super::{ATTEMPTS, App, AppError, AppResult, Outcome, Rely};
use crate::known::Shown;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{ApproveRequest, Kind, RejectRequest};
use fuse_api::keys::Scope;
use fuse_api::routes::Access;
use fuse_domain::access::{Caller, Presented};
use fuse_domain::intervention::{Record, decide, holds_an_action};
use fuse_domain::refusal::Refusal;
use fuse_domain::transition::Transition;
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
    ) -> AppResult<Arc<Shown>> {
        let mut rely = Rely::Proven;
        for _ in 0..=ATTEMPTS {
            let seen = self.current(id, rely).await?;
            let change = self.approval(who, &seen.shown.record, &body).await;
            if let Some(decided) = self.decided(&seen, change).await? {
                return Ok(decided);
            }
            rely = Rely::Database;
        }
        Err(too_many_changes())
    }

    /// What an approval changes.
    async fn approval(
        &self,
        who: &Presented,
        record: &Record,
        body: &ApproveRequest,
    ) -> AppResult<Transition> {
        let caller = decider(who, record.view.kind)?;
        // Only what holds an action is decided by the policy too; the rest costs no look at the environment.
        let home = if holds_an_action(record.view.kind) {
            self.home_of(&record.env_uid).await?
        } else {
            None
        };
        let policy = home.as_ref().and_then(|h| h.policy.as_ref());
        let mut transition = decide::approve(record, body, &caller, policy, self.now())?;
        if let Some(home) = &home {
            self.note_edit(record, &mut transition, home);
        }
        Ok(transition)
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
    ) -> AppResult<Arc<Shown>> {
        let mut rely = Rely::Proven;
        for _ in 0..=ATTEMPTS {
            let seen = self.current(id, rely).await?;
            let change = self.rejection(who, &seen.shown.record, &body);
            if let Some(decided) = self.decided(&seen, change).await? {
                return Ok(decided);
            }
            rely = Rely::Database;
        }
        Err(too_many_changes())
    }

    fn rejection(
        &self,
        who: &Presented,
        record: &Record,
        body: &RejectRequest,
    ) -> AppResult<Transition> {
        let caller = decider(who, record.view.kind)?;
        Ok(decide::reject(record, body, &caller, self.now())?)
    }

    /// Puts a decision on record. None where it has to be made again over what is on record: another change came first, or it
    /// was refused over what somebody else may have changed since.
    async fn decided(
        &self,
        seen: &Seen,
        change: AppResult<Transition>,
    ) -> AppResult<Option<Arc<Shown>>> {
        let change = match change {
            Err(AppError::Refused(_)) if seen.may_be_out_of_date() => return Ok(None),
            change => change?,
        };
        match self.commit(change).await? {
            Outcome::Conflict => Ok(None),
            // The resolved record comes after those that an edit's notify gates raised.
            Outcome::Done(records) => match records.last() {
                Some(record) => Ok(Some(self.known.committed(record))),
                None => Err(AppError::Internal(
                    "a decision committed without its record".into(),
                )),
            },
        }
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
