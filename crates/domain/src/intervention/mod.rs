//! The intervention: its record, and the one transition out of `pending`.

pub mod decide;
pub mod declared;
pub mod end;
pub mod exec;
pub mod raise;
pub mod request;
pub mod run;
#[cfg(test)]
mod tests;

use fuse_api::hitl::OnTimeout;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{ActionResult, Decision, Intervention, Kind, Payload, State};
use fuse_api::time::Timestamp;

/// Names one life of an environment. Environment ids come back after a destroy; this does not, so nothing of an earlier
/// life can reach a later one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnvUid(pub String);

/// Whether an approved action has run (spec: "Across an orchestrator restart").
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// There is nothing to run.
    Nothing,
    /// It is approved on record and nobody has started it.
    Ready,
    /// This orchestrator instance started it.
    Started(InstanceId),
    /// Its result is on record.
    Done,
}

/// One run of one orchestrator process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstanceId(pub String);

/// An intervention as the ledger holds it: what the wire shows, and what only the orchestrator needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What the wire shows.
    pub view: Intervention,
    /// The life of the environment that it belongs to.
    pub env_uid: EnvUid,
    /// What an expiry decides.
    pub on_timeout: OnTimeout,
    /// Every decision has to name a person.
    pub require_actor: bool,
    /// Whether its action has run.
    pub run: RunState,
    /// Grows by one with each change; a change commits only over the version that it was computed from.
    pub version: i64,
}

/// Leaves `pending`: what a compare-and-set on the version writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolve {
    /// Which intervention.
    pub id: InterventionId,
    /// The version the decision was computed from.
    pub expected_version: i64,
    /// The terminal state.
    pub state: State,
    /// How it ended.
    pub decision: Decision,
    /// Whether there is something to run now.
    pub run: RunState,
}

/// Moves the run of an approved action on: what a compare-and-set on the version writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Which intervention.
    pub id: InterventionId,
    /// The version it was computed from.
    pub expected_version: i64,
    /// The new run state: `Started` or `Done`.
    pub run: RunState,
    /// The result, with `Done`.
    pub result: Option<ActionResult>,
}

/// The hash that names a payload, so that a person decides what that person saw.
#[must_use]
pub fn payload_hash(payload: &Payload) -> String {
    crate::audit::canonical_hash(&serde_json::to_value(payload).unwrap_or_default())
}

/// Whether an intervention of this kind holds an action, which an approval performs.
#[must_use]
pub const fn holds_an_action(kind: Kind) -> bool {
    match kind {
        Kind::Exec | Kind::Lifecycle | Kind::Computer => true,
        Kind::Ask | Kind::Review | Kind::Secret | Kind::Takeover | Kind::Stall | Kind::Expiry => {
            false
        }
    }
}

impl Record {
    /// Whether a waiter has nothing left to wait for: a held action is delivered once its result is on record.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match self.view.state {
            State::Pending => false,
            State::Approved | State::Rejected | State::Expired | State::Cancelled => match self.run
            {
                RunState::Nothing | RunState::Done => true,
                RunState::Ready | RunState::Started(_) => false,
            },
        }
    }

    /// Whether the deadline has passed.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.view.state == State::Pending && self.view.deadline <= now
    }
}
