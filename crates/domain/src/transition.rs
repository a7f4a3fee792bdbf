//! What one command changes. The ledger writes all of a transition or nothing of it.

use crate::audit::AuditDraft;
use crate::intervention::{EnvUid, Progress, Record, Resolve};
use fuse_api::environment::EnvState;
use fuse_api::hitl::GrantReach;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{Actor, Decision};
use fuse_api::time::Timestamp;
use std::sync::Arc;

/// The most interventions that may be pending in one environment.
pub const MAX_PENDING: i64 = 1_000;

/// What one command changes, in the order in which the audit entries tell it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transition {
    /// New interventions. The environment has to be alive, and a pending one has to find room below [`MAX_PENDING`].
    pub raise: Vec<Record>,
    /// One intervention leaves `pending`.
    pub resolve: Option<Resolve>,
    /// The run of an approved action moves on.
    pub progress: Option<Progress>,
    /// Approvals that cover identical repeats.
    pub grants: Vec<Grant>,
    /// An environment stops taking part; its pending interventions are cancelled, its grants dropped, its keys revoked.
    pub close: Option<CloseEnv>,
    /// The audit entries, in order. Cancellations by `close` add their own after these.
    pub audit: Vec<AuditDraft>,
}

/// An approval that covers identical repeats (spec: "Approving, editing and granting").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The life of the environment that it holds for.
    pub env_uid: EnvUid,
    /// The gate that it satisfies.
    pub gate: String,
    /// What exactly it covers: a digest of gate and action.
    pub key: String,
    /// How far it reaches.
    pub reach: GrantReach,
    /// When it ends, for a reach of limited time.
    pub expires_at: Option<Timestamp>,
    /// The approval that gave it.
    pub intervention_id: InterventionId,
    /// When it was given.
    pub created_at: Timestamp,
}

/// Ends an environment's part in everything that people decide.
#[derive(Debug, Clone, PartialEq)]
pub struct CloseEnv {
    /// The life that ends.
    pub env_uid: EnvUid,
    /// The state it goes to; it has to be in one of `from`.
    pub to: EnvState,
    /// The states it may come from.
    pub from: Vec<EnvState>,
    /// Not while anything is pending in it: a person is deciding (spec: "Invariants").
    pub unless_pending: bool,
    /// When.
    pub at: Timestamp,
    /// What each cancelled intervention is given as its decision.
    pub cancel_with: Decision,
    /// Who the `cancelled` audit entries name.
    pub actor: Actor,
}

/// How the ledger took a transition.
#[derive(Debug, Clone, PartialEq)]
pub enum Committed {
    /// It is on record. The records are as they now stand, in the order raised, resolved or progressed, cancelled.
    /// They are shared with the waiters that the commit wakes.
    Done(Vec<Arc<Record>>),
    /// Another change came first; nothing of this one was written. Load again and decide again.
    Conflict,
    /// The environment takes no new interventions; nothing was written.
    EnvironmentGone,
    /// Too many interventions are pending in the environment; nothing was written.
    TooManyPending,
}
