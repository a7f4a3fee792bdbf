//! Ends that nobody decided: the deadline, and the destroy of the environment (spec: "Concepts", "Invariants").

use super::{EnvUid, Record, Resolve, RunState, holds_an_action};
use crate::access::Caller;
use crate::access::actor::system;
use crate::audit::AuditDraft;
use crate::transition::{CloseEnv, Grant, Transition};
use fuse_api::audit::AuditEvent;
use fuse_api::environment::EnvState;
use fuse_api::hitl::{GrantReach, OnTimeout};
use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::{Decision, Kind, Outcome, State};
use fuse_api::time::Timestamp;

/// What has to be known of an intervention to expire it. No content is: an expiry never opens what is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Which intervention.
    pub id: InterventionId,
    /// Its environment.
    pub env_id: EnvId,
    /// What kind of answer was wanted.
    pub kind: Kind,
    /// The gate that raised it.
    pub gate: Option<String>,
    /// What its environment says of silence.
    pub on_timeout: OnTimeout,
    /// The version this was read at.
    pub version: i64,
}

impl From<&Record> for Due {
    fn from(record: &Record) -> Self {
        Self {
            id: record.view.id.clone(),
            env_id: record.view.env_id.clone(),
            kind: record.view.kind,
            gate: record.view.gate.clone(),
            on_timeout: record.on_timeout,
            version: record.version,
        }
    }
}

/// What silence means for a kind: secret, takeover and expiry always time out as a reject.
#[must_use]
pub fn silence(kind: Kind, on_timeout: OnTimeout) -> Outcome {
    match kind {
        Kind::Secret | Kind::Takeover | Kind::Expiry => Outcome::Reject,
        Kind::Ask | Kind::Review | Kind::Exec | Kind::Lifecycle | Kind::Computer | Kind::Stall => {
            match on_timeout {
                OnTimeout::Reject => Outcome::Reject,
                OnTimeout::Allow => Outcome::Approve,
            }
        }
    }
}

/// Expires an intervention whose deadline has passed. A held action that silence allows is ready to run then; its gate's
/// default grant is not given, since nobody gave it.
#[must_use]
pub fn expire(due: &Due, now: Timestamp) -> Transition {
    let outcome = silence(due.kind, due.on_timeout);
    let held = holds_an_action(due.kind);
    let run = match outcome {
        Outcome::Approve if held => RunState::Ready,
        Outcome::Approve | Outcome::Reject => RunState::Nothing,
    };
    let decision = Decision {
        outcome,
        answer: String::new(),
        reason: match outcome {
            Outcome::Approve => {
                "nobody decided before the deadline; on_timeout is allow".to_owned()
            }
            Outcome::Reject => "nobody decided before the deadline".to_owned(),
        },
        decided_by: system(),
        decided_at: now,
        edited_argv: None,
        edited_text: None,
        grant: (held && outcome == Outcome::Approve).then_some(GrantReach::Once),
    };
    Transition {
        resolve: Some(Resolve {
            id: due.id.clone(),
            expected_version: due.version,
            state: State::Expired,
            decision,
            run,
        }),
        audit: vec![AuditDraft {
            event: AuditEvent::Expired,
            at: now,
            env_id: Some(due.env_id.clone()),
            intervention_id: Some(due.id.clone()),
            on: due.kind.as_str().to_owned(),
            gate: due.gate.clone().unwrap_or_default(),
            actor: system(),
            remote_addr: String::new(),
            recording_id: None,
        }],
        ..Transition::default()
    }
}

/// Ends an environment's part: it goes to `to`, and what is pending in it is cancelled.
#[must_use]
pub fn close(
    env_uid: EnvUid,
    from: &[EnvState],
    to: EnvState,
    why: &str,
    now: Timestamp,
) -> Transition {
    Transition {
        close: Some(CloseEnv {
            env_uid,
            to,
            from: from.to_vec(),
            unless_pending: false,
            at: now,
            cancel_with: Decision {
                outcome: Outcome::Reject,
                answer: String::new(),
                reason: why.to_owned(),
                decided_by: system(),
                decided_at: now,
                edited_argv: None,
                edited_text: None,
                grant: None,
            },
            actor: system(),
        }),
        ..Transition::default()
    }
}

/// Ends an idle environment's part, unless something is pending in it by now.
#[must_use]
pub fn close_idle(
    env_uid: EnvUid,
    from: &[EnvState],
    to: EnvState,
    why: &str,
    now: Timestamp,
) -> Transition {
    let mut change = close(env_uid, from, to, why, now);
    if let Some(close) = &mut change.close {
        close.unless_pending = true;
    }
    change
}

/// The note that a grant let an action through.
#[must_use]
pub fn grant_used(
    env_id: &EnvId,
    grant: &Grant,
    on: Kind,
    caller: &Caller,
    at: Timestamp,
) -> AuditDraft {
    AuditDraft {
        event: AuditEvent::GrantUsed,
        at,
        env_id: Some(env_id.clone()),
        intervention_id: Some(grant.intervention_id.clone()),
        on: on.as_str().to_owned(),
        gate: grant.gate.clone(),
        actor: caller.actor.clone(),
        remote_addr: caller.remote_addr.clone(),
        recording_id: None,
    }
}
