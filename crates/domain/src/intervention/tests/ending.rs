use super::*;
use crate::intervention::end::{Due, close, expire, silence};
use crate::intervention::{RunState, raise};
use fuse_api::audit::AuditEvent;
use fuse_api::environment::EnvState;
use fuse_api::hitl::GrantReach;
use fuse_api::intervention::{ActorSource, Outcome, State};

fn due(kind: Kind, on_timeout: OnTimeout) -> Due {
    let mut record = ask(&[], &master(None));
    record.view.kind = kind;
    record.on_timeout = on_timeout;
    Due::from(&record)
}

// check: INV-13 INV-20
#[test]
fn silence_is_a_no_unless_it_was_declared_a_yes() {
    let change = expire(&due(Kind::Ask, OnTimeout::Reject), NOW);
    let resolve = change.resolve.expect("resolves");
    assert_eq!(
        (resolve.state, resolve.decision.outcome),
        (State::Expired, Outcome::Reject)
    );
    assert!(!resolve.decision.reason.is_empty());
    let by = &resolve.decision.decided_by;
    assert_eq!((by.id.as_str(), by.source), ("system", ActorSource::System));
    assert_eq!(change.audit[0].event, AuditEvent::Expired);
    let allowed = expire(&due(Kind::Ask, OnTimeout::Allow), NOW)
        .resolve
        .expect("resolves");
    assert_eq!(
        (allowed.state, allowed.decision.outcome),
        (State::Expired, Outcome::Approve)
    );
    assert_eq!(allowed.decision.answer, "");
}

#[test]
fn a_credential_or_control_is_never_given_by_silence() {
    for kind in [Kind::Secret, Kind::Takeover, Kind::Expiry] {
        assert_eq!(silence(kind, OnTimeout::Allow), Outcome::Reject, "{kind}");
    }
    for kind in [
        Kind::Ask,
        Kind::Review,
        Kind::Exec,
        Kind::Lifecycle,
        Kind::Computer,
        Kind::Stall,
    ] {
        assert_eq!(silence(kind, OnTimeout::Allow), Outcome::Approve, "{kind}");
        assert_eq!(silence(kind, OnTimeout::Reject), Outcome::Reject, "{kind}");
    }
}

// check: INV-21 GRANT-8 GATE-16
#[test]
fn a_held_command_runs_by_silence_only_where_silence_allows_and_grants_nothing() {
    let allowed = expire(&due(Kind::Exec, OnTimeout::Allow), NOW);
    let resolve = allowed.resolve.expect("resolves");
    assert_eq!(resolve.run, RunState::Ready);
    assert_eq!(resolve.decision.grant, Some(GrantReach::Once));
    assert!(allowed.grants.is_empty());
    let refused = expire(&due(Kind::Exec, OnTimeout::Reject), NOW)
        .resolve
        .expect("resolves");
    assert_eq!(refused.run, RunState::Nothing);
    let ask = expire(&due(Kind::Ask, OnTimeout::Allow), NOW)
        .resolve
        .expect("resolves");
    assert_eq!(ask.run, RunState::Nothing);
}

// check: INV-8
#[test]
fn a_destroy_cancels_with_a_reject_by_the_system() {
    let change = close(
        home().env_uid,
        &[EnvState::Running],
        EnvState::Destroying,
        "gone",
        NOW,
    );
    let close = change.close.expect("closes");
    assert_eq!(close.cancel_with.outcome, Outcome::Reject);
    assert_eq!(close.cancel_with.reason, "gone");
    assert_eq!(close.actor.id, "system");
}

// check: INV-1
#[test]
fn every_record_has_a_deadline_after_its_creation() {
    let record = ask(&[], &master(None));
    assert_eq!(record.view.deadline, NOW.plus_seconds(600));
    assert!(!record.is_due(NOW.plus_seconds(599)));
    assert!(record.is_due(NOW.plus_seconds(600)));
}

// check: GATE-8 GATE-19
#[test]
fn a_record_that_needs_nobody_is_raised_and_decided_at_once() {
    let by = master(None);
    let refused = draft(Kind::Exec, Some("no-rm"), &by, Payload::default()).resolved(
        &home(),
        Outcome::Reject,
        "not yours".into(),
        crate::access::actor::gate("no-rm"),
    );
    assert_eq!(refused.view.state, State::Rejected);
    let change = raise::transition(vec![refused], &by);
    let events: Vec<AuditEvent> = change.audit.iter().map(|a| a.event).collect();
    assert_eq!(events, [AuditEvent::Raised, AuditEvent::Decided]);
    assert_eq!(change.audit[1].actor.id, "gate:no-rm");
}
