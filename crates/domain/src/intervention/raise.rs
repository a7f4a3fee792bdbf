//! Raising: from a request or a gate's verdict to a record.

use super::{EnvUid, Record, RunState, payload_hash};
use crate::access::Caller;
use crate::audit::AuditDraft;
use crate::refusal::Refusal;
use crate::transition::Transition;
use fuse_api::audit::AuditEvent;
use fuse_api::hitl::OnTimeout;
use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::{Actor, Decision, Intervention, Kind, Mode, Outcome, Payload, State};
use fuse_api::time::Timestamp;

/// The shortest deadline, in seconds (spec: "Invariants").
pub const MIN_TIMEOUT_SECONDS: i64 = 10;

/// What is fixed about an environment for as long as it lives, as far as raising needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The environment.
    pub env_id: EnvId,
    /// This life of it.
    pub env_uid: EnvUid,
    /// What an expiry decides.
    pub on_timeout: OnTimeout,
    /// Every decision has to name a person.
    pub require_actor: bool,
}

/// What a new record is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// A fresh id.
    pub id: InterventionId,
    /// What kind of answer is wanted.
    pub kind: Kind,
    /// The gate that raises it, and how it treats the action.
    pub gate: Option<(String, Mode)>,
    /// Who raises it.
    pub triggered_by: Actor,
    /// What is up for a decision.
    pub payload: Payload,
    /// When the call arrived.
    pub now: Timestamp,
    /// How long it may stay pending, in seconds.
    pub timeout_seconds: i64,
}

impl Draft {
    /// A record that waits for a person.
    #[must_use]
    pub fn pending(self, home: &Home) -> Record {
        self.record(home, State::Pending, None)
    }

    /// A record that needs nobody: a gate has decided already.
    #[must_use]
    pub fn resolved(
        self,
        home: &Home,
        outcome: Outcome,
        reason: String,
        decided_by: Actor,
    ) -> Record {
        let decision = Decision {
            outcome,
            answer: String::new(),
            reason,
            decided_by,
            decided_at: self.now,
            edited_argv: None,
            edited_text: None,
            grant: None,
        };
        let state = match outcome {
            Outcome::Approve => State::Approved,
            Outcome::Reject => State::Rejected,
        };
        self.record(home, state, Some(decision))
    }

    fn record(self, home: &Home, state: State, decision: Option<Decision>) -> Record {
        let (gate, mode) = self.gate.unzip();
        Record {
            view: Intervention {
                id: self.id,
                env_id: home.env_id.clone(),
                kind: self.kind,
                state,
                deadline: self.now.plus_seconds(self.timeout_seconds),
                created_at: self.now,
                resolved_at: decision.as_ref().map(|d| d.decided_at),
                gate,
                mode,
                triggered_by: self.triggered_by,
                payload_hash: payload_hash(&self.payload),
                unreadable: false,
                payload: self.payload,
                decision,
                result: None,
            },
            env_uid: home.env_uid.clone(),
            on_timeout: home.on_timeout,
            require_actor: home.require_actor,
            run: RunState::Nothing,
            version: 1,
        }
    }
}

/// The transition that puts new records on file: a `raised` entry each, and a `decided` one for those born resolved.
#[must_use]
pub fn transition(records: Vec<Record>, caller: &Caller) -> Transition {
    let mut audit = Vec::with_capacity(records.len() + 1);
    for record in &records {
        audit.push(entry(
            record,
            AuditEvent::Raised,
            record.view.created_at,
            record.view.triggered_by.clone(),
            &caller.remote_addr,
        ));
        if let Some(decision) = &record.view.decision {
            audit.push(entry(
                record,
                AuditEvent::Decided,
                decision.decided_at,
                decision.decided_by.clone(),
                "",
            ));
        }
    }
    Transition {
        raise: records,
        audit,
        ..Transition::default()
    }
}

/// The audit entry of something that happened to an intervention.
#[must_use]
pub fn entry(
    record: &Record,
    event: AuditEvent,
    at: Timestamp,
    actor: Actor,
    remote_addr: &str,
) -> AuditDraft {
    AuditDraft {
        event,
        at,
        env_id: Some(record.view.env_id.clone()),
        intervention_id: Some(record.view.id.clone()),
        on: record.view.kind.as_str().to_owned(),
        gate: record.view.gate.clone().unwrap_or_default(),
        actor,
        remote_addr: remote_addr.to_owned(),
        recording_id: None,
    }
}

/// The deadline of a request: its own where it shortens the environment's, never longer (spec: "Asking").
///
/// # Errors
/// Above the environment's deadline, or below [`MIN_TIMEOUT_SECONDS`].
pub fn request_timeout(asked: Option<u64>, allowed: i64) -> Result<i64, Refusal> {
    let Some(asked) = asked else {
        return Ok(allowed);
    };
    let too_long = || {
        Refusal::invalid(
            "timeout_seconds",
            format!(
                "is {asked}, above this environment's {allowed}; a request can only shorten its deadline"
            ),
        )
    };
    let asked_signed = i64::try_from(asked).map_err(|_| too_long())?;
    if asked_signed < MIN_TIMEOUT_SECONDS {
        return Err(Refusal::invalid(
            "timeout_seconds",
            format!("is {asked}; {MIN_TIMEOUT_SECONDS} to {allowed} are allowed"),
        ));
    }
    if asked_signed > allowed {
        return Err(too_long());
    }
    Ok(asked_signed)
}

/// What a held, refused or recorded action shows beside itself.
#[must_use]
pub fn with_gates(mut action: Payload, gates: Vec<String>, gate_reason: &str) -> Payload {
    if gates.len() > 1 {
        action.gates = gates;
    }
    if !gate_reason.is_empty() {
        action.gate_reason = Some(gate_reason.to_owned());
    }
    action
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: ASK-4
    #[test]
    fn a_request_can_only_shorten_its_deadline() {
        assert_eq!(request_timeout(None, 600), Ok(600));
        assert_eq!(request_timeout(Some(10), 600), Ok(10));
        assert_eq!(request_timeout(Some(600), 600), Ok(600));
        let Err(Refusal::Invalid(v)) = request_timeout(Some(601), 600) else {
            panic!("taken")
        };
        assert!(v[0].message.contains("601") && v[0].message.contains("600"));
        assert!(request_timeout(Some(9), 600).is_err());
        assert!(request_timeout(Some(u64::MAX), 600).is_err());
    }
}
