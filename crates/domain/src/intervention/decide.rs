//! Approving and rejecting (spec: "Answering", "Reviews", "Approving, editing and granting").

use super::raise::entry;
use super::request::{MAX_TEXT, bounded};
use super::{Record, Resolve, RunState};
use crate::access::{Caller, decide::may_decide};
use crate::policy::{
    ExecAction, LifecycleAction, Policy, default_grant, exec_digest, lifecycle_digest,
};
use crate::refusal::Refusal;
use crate::text::is_blank;
use crate::transition::{Grant, Transition};
use fuse_api::audit::AuditEvent;
use fuse_api::hitl::GrantReach;
use fuse_api::intervention::{
    ApproveRequest, Decision, ExecPayload, Kind, Outcome, Payload, RejectRequest, State,
};
use fuse_api::time::Timestamp;
use std::collections::BTreeMap;

/// Approves an intervention.
///
/// `policy` is that of the intervention's environment; it is needed for held actions only.
///
/// # Errors
/// In the order of settled refusals: who decides, then the state, then the content.
pub fn approve(
    record: &Record,
    request: &ApproveRequest,
    caller: &Caller,
    policy: Option<&Policy>,
    now: Timestamp,
) -> Result<Transition, Refusal> {
    may_decide(caller, record)?;
    still_open(record, now)?;
    readable(record)?;
    same_payload(record, request.payload_hash.as_deref())?;
    let reason = request.reason.clone().unwrap_or_default();
    bounded("reason", &reason, MAX_TEXT)?;
    let mut decision = Decision {
        outcome: Outcome::Approve,
        answer: String::new(),
        reason,
        decided_by: caller.actor.clone(),
        decided_at: now,
        edited_argv: None,
        edited_text: None,
        grant: None,
    };
    let mut grants = Vec::new();
    let mut run = RunState::Nothing;
    match record.view.kind {
        Kind::Ask => {
            useless(record.view.kind, request, &["answer"])?;
            decision.answer = answer(record, request)?;
        }
        Kind::Review => useless(record.view.kind, request, &[])?,
        Kind::Exec => {
            useless(record.view.kind, request, &["edited_argv", "grant"])?;
            decision.edited_argv = edit(record, request, policy)?;
            let edited = decision.edited_argv.is_some();
            let reach = granted_reach(record, request, policy, edited)?;
            decision.grant = Some(reach);
            grants = grants_of(record, reach, now);
            run = RunState::Ready;
        }
        Kind::Lifecycle => {
            useless(record.view.kind, request, &["grant"])?;
            let reach = granted_reach(record, request, policy, false)?;
            decision.grant = Some(reach);
            grants = grants_of(record, reach, now);
            run = RunState::Ready;
        }
        Kind::Secret => {
            return Err(Refusal::invalid(
                "action",
                "a secret request is answered with action=secret, not approved",
            ));
        }
        Kind::Takeover => {
            return Err(Refusal::invalid(
                "action",
                "a takeover is claimed with action=takeover on its environment, not approved",
            ));
        }
        // Nothing raises these yet; a record of them can only come from a later release.
        Kind::Computer | Kind::Stall | Kind::Expiry => {
            return Err(Refusal::Unserved(format!(
                "this release cannot approve an intervention of kind {}",
                record.view.kind
            )));
        }
    }
    let mut transition = resolve(record, State::Approved, decision, run, caller);
    for grant in &grants {
        let mut note = entry(
            record,
            AuditEvent::GrantCreated,
            now,
            caller.actor.clone(),
            &caller.remote_addr,
        );
        note.gate.clone_from(&grant.gate);
        transition.audit.push(note);
    }
    transition.grants = grants;
    Ok(transition)
}

/// Rejects an intervention.
///
/// # Errors
/// In the order of settled refusals; a rejection without a reason is refused (spec: "Invariants").
pub fn reject(
    record: &Record,
    request: &RejectRequest,
    caller: &Caller,
    now: Timestamp,
) -> Result<Transition, Refusal> {
    may_decide(caller, record)?;
    still_open(record, now)?;
    // What cannot be read has no hash to hold against the one that was seen; a no is safe all the same.
    if !record.view.unreadable {
        same_payload(record, request.payload_hash.as_deref())?;
    }
    if request.grant.is_some() {
        return Err(Refusal::invalid("grant", "a rejection grants nothing"));
    }
    let reason = request.reason.clone().unwrap_or_default();
    if is_blank(&reason) {
        return Err(Refusal::invalid(
            "reason",
            "is blank; a rejection needs a reason that the agent can read",
        ));
    }
    bounded("reason", &reason, MAX_TEXT)?;
    let decision = Decision {
        outcome: Outcome::Reject,
        answer: String::new(),
        reason,
        decided_by: caller.actor.clone(),
        decided_at: now,
        edited_argv: None,
        edited_text: None,
        grant: None,
    };
    Ok(resolve(
        record,
        State::Rejected,
        decision,
        RunState::Nothing,
        caller,
    ))
}

fn resolve(
    record: &Record,
    state: State,
    decision: Decision,
    run: RunState,
    caller: &Caller,
) -> Transition {
    let audit = entry(
        record,
        AuditEvent::Decided,
        decision.decided_at,
        decision.decided_by.clone(),
        &caller.remote_addr,
    );
    Transition {
        resolve: Some(Resolve {
            id: record.view.id.clone(),
            expected_version: record.version,
            state,
            decision,
            run,
        }),
        audit: vec![audit],
        ..Transition::default()
    }
}

/// An intervention moves out of `pending` once; one whose deadline has passed counts as resolved.
fn still_open(record: &Record, now: Timestamp) -> Result<(), Refusal> {
    match record.view.state {
        State::Pending if record.is_due(now) => {
            Err(Refusal::already(&record.view.id, State::Expired))
        }
        State::Pending => Ok(()),
        state @ (State::Approved | State::Rejected | State::Expired | State::Cancelled) => {
            Err(Refusal::already(&record.view.id, state))
        }
    }
}

/// What cannot be read is not approved: nobody would know what to.
fn readable(record: &Record) -> Result<(), Refusal> {
    if !record.view.unreadable {
        return Ok(());
    }
    Err(Refusal::Conflict {
        message: "what is stored of this intervention cannot be read, so it cannot be approved; it can be rejected".into(),
        details: BTreeMap::from([
            ("state".to_owned(), record.view.state.to_string()),
            ("intervention_id".to_owned(), record.view.id.to_string()),
        ]),
    })
}

fn same_payload(record: &Record, seen: Option<&str>) -> Result<(), Refusal> {
    match seen {
        Some(seen) if seen != record.view.payload_hash => Err(Refusal::Conflict {
            message: "payload_hash: the payload is no longer the one you saw; read the intervention again".into(),
            details: BTreeMap::from([
                ("state".to_owned(), record.view.state.to_string()),
                ("intervention_id".to_owned(), record.view.id.to_string()),
            ]),
        }),
        Some(_) | None => Ok(()),
    }
}

fn answer(record: &Record, request: &ApproveRequest) -> Result<String, Refusal> {
    let answer = request.answer.clone().unwrap_or_default();
    bounded("answer", &answer, MAX_TEXT)?;
    let choices = record
        .view
        .payload
        .ask
        .as_ref()
        .map(|ask| ask.choices.as_slice())
        .unwrap_or_default();
    if !choices.is_empty() && !choices.contains(&answer) {
        let allowed: Vec<String> = choices.iter().map(|c| format!("{c:?}")).collect();
        return Err(Refusal::invalid(
            "answer",
            format!("has to be one of the choices: {}", allowed.join(", ")),
        ));
    }
    Ok(answer)
}

fn useless(kind: Kind, request: &ApproveRequest, of_use: &[&str]) -> Result<(), Refusal> {
    let members = [
        ("answer", request.answer.is_some()),
        ("edited_argv", request.edited_argv.is_some()),
        ("edited_text", request.edited_text.is_some()),
        ("grant", request.grant.is_some()),
        ("extend_seconds", request.extend_seconds.is_some()),
    ];
    for (name, present) in members {
        if present && !of_use.contains(&name) {
            return Err(Refusal::invalid(
                name,
                format!("an approval of kind {kind} has no use for it"),
            ));
        }
    }
    Ok(())
}

/// The argv that a person writes in place of what was asked for; one that is equal is no edit.
fn edit(
    record: &Record,
    request: &ApproveRequest,
    policy: Option<&Policy>,
) -> Result<Option<Vec<String>>, Refusal> {
    let Some(argv) = &request.edited_argv else {
        return Ok(None);
    };
    check_argv("edited_argv", argv)?;
    let asked = record
        .view
        .payload
        .exec
        .as_ref()
        .and_then(|e| e.argv.as_ref());
    if asked == Some(argv) {
        return Ok(None);
    }
    check_edit(record, argv, policy)?;
    Ok(Some(argv.clone()))
}

fn granted_reach(
    record: &Record,
    request: &ApproveRequest,
    policy: Option<&Policy>,
    edited: bool,
) -> Result<GrantReach, Refusal> {
    let asked = request.grant.as_deref().map(reach).transpose()?;
    if edited {
        return match asked {
            None | Some(GrantReach::Once) => Ok(GrantReach::Once),
            Some(GrantReach::Env | GrantReach::Ttl(_)) => Err(Refusal::invalid(
                "grant",
                "an edit cannot carry a grant: it would cover the argv that was asked for; once is allowed",
            )),
        };
    }
    Ok(asked
        .unwrap_or_else(|| policy.map_or(GrantReach::Once, |p| by_default(p, &gates_of(record)))))
}

/// What an approval grants beyond this once: the same for every gate that held the action.
fn grants_of(record: &Record, reach: GrantReach, now: Timestamp) -> Vec<Grant> {
    let expires_at = match reach {
        GrantReach::Once => return Vec::new(),
        GrantReach::Env => None,
        GrantReach::Ttl(nanos) => Some(Timestamp::from_micros(
            now.as_micros().saturating_add(nanos / 1_000),
        )),
    };
    let Some(action) = digest(&record.view.payload) else {
        return Vec::new();
    };
    gates_of(record)
        .into_iter()
        .map(|gate| Grant {
            env_uid: record.env_uid.clone(),
            key: action.clone(),
            gate,
            reach,
            expires_at,
            intervention_id: record.view.id.clone(),
            created_at: now,
        })
        .collect()
}

/// Every gate that holds the action: what a grant is recorded for.
#[must_use]
pub fn gates_of(record: &Record) -> Vec<String> {
    if record.view.payload.gates.is_empty() {
        record.view.gate.iter().cloned().collect()
    } else {
        record.view.payload.gates.clone()
    }
}

fn check_edit(record: &Record, argv: &[String], policy: Option<&Policy>) -> Result<(), Refusal> {
    // Without its policy the edit cannot be checked, and what cannot be checked is refused.
    let Some(policy) = policy else {
        return Err(Refusal::Conflict {
            message: "the environment's policy is gone; the edit cannot be checked".into(),
            details: BTreeMap::from([("intervention_id".to_owned(), record.view.id.to_string())]),
        });
    };
    match policy.judge_edit(argv).deny {
        None => Ok(()),
        Some(gate) => Err(Refusal::denied(&gate.name, gate.denial(), &record.view.id)),
    }
}

/// The reach that a person asks for.
fn reach(text: &str) -> Result<GrantReach, Refusal> {
    let wrong = || {
        Refusal::invalid(
            "grant",
            format!("is {text:?}; once, env and ttl:DURATION (10s to 24h) are allowed"),
        )
    };
    let reach: GrantReach = text.parse().map_err(|_| wrong())?;
    match reach {
        GrantReach::Once | GrantReach::Env => Ok(reach),
        GrantReach::Ttl(nanos) if (10 * SECOND..=24 * 3600 * SECOND).contains(&nanos) => Ok(reach),
        GrantReach::Ttl(_) => Err(wrong()),
    }
}

const SECOND: i64 = 1_000_000_000;

/// The reach of an approval that does not say: no further than any gate of the set would have it. A gate that is
/// no longer there has nothing to say for.
fn by_default(policy: &Policy, gates: &[String]) -> GrantReach {
    let found: Vec<_> = gates.iter().map(|name| policy.gate(name)).collect();
    found
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .map_or(GrantReach::Once, |gates| default_grant(&gates))
}

/// What a grant for a held action is looked up by, beside the gate. Only an action of a known kind has one.
#[must_use]
pub fn digest(payload: &Payload) -> Option<String> {
    match (&payload.exec, &payload.lifecycle) {
        (Some(exec), None) => Some(exec_digest(action_of(exec))),
        (None, Some(lifecycle)) => {
            let params = lifecycle.params.clone().unwrap_or_default();
            LifecycleAction::parse(&lifecycle.action)
                .map(|action| lifecycle_digest(action, &params))
        }
        (None, None) | (Some(_), Some(_)) => None,
    }
}

/// A command as the gates see it.
#[must_use]
pub fn action_of(exec: &ExecPayload) -> ExecAction<'_> {
    match (&exec.argv, &exec.shell) {
        (_, Some(line)) => ExecAction::Shell(line),
        (Some(argv), None) => ExecAction::Argv(argv),
        (None, None) => ExecAction::Argv(&[]),
    }
}

/// Checks an argv's form: it is not empty, names a program, and holds no NUL.
///
/// # Errors
/// Names the element that is wrong.
pub fn check_argv(path: &str, argv: &[String]) -> Result<(), Refusal> {
    match argv.first() {
        None => return Err(Refusal::invalid(path, "is empty; it needs a program")),
        Some(program) if program.is_empty() => {
            return Err(Refusal::invalid(
                format!("{path}[0]"),
                "is empty; it names the program",
            ));
        }
        Some(_) => {}
    }
    for (i, argument) in argv.iter().enumerate() {
        if argument.contains('\0') {
            return Err(Refusal::invalid(
                format!("{path}[{i}]"),
                "holds a NUL character",
            ));
        }
    }
    Ok(())
}

/// What an approved exec runs: the edited argv where there is one, else exactly what was asked for.
#[must_use]
pub fn approved_exec(record: &Record) -> Option<ExecPayload> {
    let held = record.view.payload.exec.clone()?;
    let decision = record.view.decision.as_ref()?;
    match decision.outcome {
        Outcome::Reject => None,
        Outcome::Approve => Some(match &decision.edited_argv {
            Some(argv) => ExecPayload {
                argv: Some(argv.clone()),
                shell: None,
                timeout_ms: held.timeout_ms,
            },
            None => held,
        }),
    }
}
