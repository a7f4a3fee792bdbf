use super::*;
use crate::intervention::RunState;
use crate::intervention::decide::{approve, approved_exec, reject};
use crate::refusal::Refusal;
use crate::transition::Transition;
use fuse_api::audit::AuditEvent;
use fuse_api::error::Reason;
use fuse_api::hitl::GrantReach;
use fuse_api::intervention::{ApproveRequest, Outcome, RejectRequest, State};

fn yes() -> ApproveRequest {
    ApproveRequest::default()
}

fn no(reason: &str) -> RejectRequest {
    RejectRequest {
        reason: Some(reason.into()),
        ..RejectRequest::default()
    }
}

fn field(result: Result<Transition, Refusal>) -> String {
    match result {
        Err(Refusal::Invalid(violations)) => violations[0].path.clone(),
        other => panic!("not refused for its content: {other:?}"),
    }
}

fn reason(result: Result<Transition, Refusal>) -> Reason {
    match result {
        Err(Refusal::Forbidden { reason, .. }) => reason,
        other => panic!("not forbidden: {other:?}"),
    }
}

const FORCE_PUSH: &str = r#"{"gates":[
    {"name":"force-push","on":"exec","match":{"program":"git","args":["push","--force"]},"grant":"ttl:30m"},
    {"name":"pushes","on":"exec","match":{"program":"git","args":["push"]},"grant":"env"},
    {"name":"no-rm","on":"exec","match":{"program":"rm"},"mode":"deny","reason":"not yours"}]}"#;

// check: ASK-7 ASK-11 INV-4
#[test]
fn an_approved_ask_carries_answer_comment_person_and_time() {
    let record = ask(&["yes", "no"], &key("1", &[]));
    let request = ApproveRequest {
        answer: Some("yes".into()),
        reason: Some("go".into()),
        ..yes()
    };
    let change = approve(&record, &request, &master(Some("alice")), None, NOW).expect("approved");
    let resolve = change.resolve.expect("resolves");
    assert_eq!(resolve.state, State::Approved);
    assert_eq!(resolve.expected_version, record.version);
    let decision = resolve.decision;
    assert_eq!(decision.outcome, Outcome::Approve);
    assert_eq!(
        (decision.answer.as_str(), decision.reason.as_str()),
        ("yes", "go")
    );
    assert_eq!(
        (decision.decided_by.id.as_str(), decision.decided_at),
        ("alice", NOW)
    );
    assert_eq!(change.audit.len(), 1);
    assert_eq!(change.audit[0].event, AuditEvent::Decided);
    assert_eq!(change.audit[0].remote_addr, "192.0.2.1");
}

// check: ASK-3
#[test]
fn an_answer_is_one_of_the_choices() {
    let record = ask(&["yes", "no"], &key("1", &[]));
    for answer in [None, Some(""), Some("maybe"), Some("Yes")] {
        let request = ApproveRequest {
            answer: answer.map(str::to_owned),
            ..yes()
        };
        assert_eq!(
            field(approve(&record, &request, &master(None), None, NOW)),
            "answer"
        );
    }
}

// check: ASK-4
#[test]
fn a_free_ask_takes_any_answer_and_none() {
    let record = ask(&[], &key("1", &[]));
    assert!(approve(&record, &yes(), &master(None), None, NOW).is_ok());
    let long = ApproveRequest {
        answer: Some("x".repeat(64 * 1024 + 1)),
        ..yes()
    };
    assert_eq!(
        field(approve(&record, &long, &master(None), None, NOW)),
        "answer"
    );
}

// check: ASK-8 INV-12
#[test]
fn a_rejection_needs_a_reason_that_is_not_blank() {
    let record = ask(&[], &key("1", &[]));
    for blank in ["", " ", "\n\t", "\u{200b}"] {
        assert_eq!(
            field(reject(&record, &no(blank), &master(None), NOW)),
            "reason"
        );
    }
    assert_eq!(
        field(reject(
            &record,
            &RejectRequest::default(),
            &master(None),
            NOW
        )),
        "reason"
    );
    let change = reject(&record, &no("wait"), &master(None), NOW).expect("rejected");
    assert_eq!(change.resolve.expect("resolves").decision.reason, "wait");
}

// check: ASK-10 SIGNAL-8
#[test]
fn a_field_that_the_kind_has_no_use_for_is_named() {
    let record = ask(&[], &key("1", &[]));
    let grant = ApproveRequest {
        grant: Some("env".into()),
        ..yes()
    };
    assert_eq!(
        field(approve(&record, &grant, &master(None), None, NOW)),
        "grant"
    );
    let extend = ApproveRequest {
        extend_seconds: Some(60),
        ..yes()
    };
    assert_eq!(
        field(approve(&record, &extend, &master(None), None, NOW)),
        "extend_seconds"
    );
    let held = held(&["git", "push"], &["pushes"], &master(None));
    let answer = ApproveRequest {
        answer: Some("yes".into()),
        ..yes()
    };
    assert_eq!(
        field(approve(&held, &answer, &master(None), None, NOW)),
        "answer"
    );
}

// check: ASK-9 INV-3
#[test]
fn what_is_resolved_or_past_its_deadline_is_a_conflict_that_tells_its_state() {
    let mut record = ask(&[], &key("1", &[]));
    let late = NOW.plus_seconds(600);
    for (state, now, shown) in [
        (State::Pending, late, "expired"),
        (State::Approved, NOW, "approved"),
        (State::Cancelled, NOW, "cancelled"),
    ] {
        record.view.state = state;
        match approve(&record, &yes(), &master(None), None, now) {
            Err(Refusal::Conflict { details, .. }) => {
                assert_eq!(details["state"], shown);
                assert_eq!(details["intervention_id"], record.view.id.to_string());
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            reject(&record, &no("x"), &master(None), now),
            Err(Refusal::Conflict { .. })
        ));
    }
}

// check: ASK-12 ASK-13
#[test]
fn a_decision_on_another_payload_than_was_seen_is_a_conflict() {
    let record = ask(&[], &key("1", &[]));
    let seen = |hash: &str| ApproveRequest {
        payload_hash: Some(hash.into()),
        ..yes()
    };
    let hash = record.view.payload_hash.clone();
    assert_eq!(
        hash,
        crate::intervention::payload_hash(&record.view.payload)
    );
    assert_eq!(hash.len(), 64);
    assert!(approve(&record, &seen(&hash), &master(None), None, NOW).is_ok());
    assert!(matches!(
        approve(&record, &seen("00"), &master(None), None, NOW),
        Err(Refusal::Conflict { .. })
    ));
}

// check: ACCESS-9 ACTOR-5
#[test]
fn neither_the_key_nor_the_actor_that_raised_it_decides() {
    let raised_by_key = ask(&[], &key("1", &[]));
    let same = key("1", &[Scope::Decide]);
    assert_eq!(
        reason(approve(&raised_by_key, &yes(), &same, None, NOW)),
        Reason::SelfApproval
    );
    let other = key("2", &[Scope::Decide]);
    assert!(approve(&raised_by_key, &yes(), &other, None, NOW).is_ok());
    let raised_by_bob = ask(&[], &master(Some("bob")));
    assert_eq!(
        reason(reject(&raised_by_bob, &no("x"), &master(Some("bob")), NOW)),
        Reason::SelfApproval
    );
    assert!(approve(&raised_by_bob, &yes(), &master(Some("Bob")), None, NOW).is_ok());
}

// check: ACCESS-10
#[test]
fn the_bare_master_token_decides_what_it_raised() {
    let record = ask(&[], &master(None));
    assert!(approve(&record, &yes(), &master(None), None, NOW).is_ok());
}

// check: ACCESS-11 ACCESS-8
#[test]
fn where_a_person_is_required_the_bare_master_token_is_none() {
    let mut record = ask(&[], &key("1", &[]));
    record.require_actor = true;
    assert_eq!(
        reason(approve(&record, &yes(), &master(None), None, NOW)),
        Reason::ActorRequired
    );
    assert!(approve(&record, &yes(), &master(Some("alice")), None, NOW).is_ok());
    record.view.state = State::Approved;
    assert_eq!(
        reason(approve(&record, &yes(), &master(None), None, NOW)),
        Reason::ActorRequired,
        "who comes before the state"
    );
}

// check: REVIEW-8 REVIEW-9
#[test]
fn a_review_takes_comments_and_nothing_else() {
    let mut record = ask(&[], &key("1", &[]));
    record.view.kind = Kind::Review;
    let fine = ApproveRequest {
        reason: Some("after hours".into()),
        ..yes()
    };
    let change = approve(&record, &fine, &master(None), None, NOW).expect("approved");
    assert_eq!(
        change.resolve.expect("resolves").decision.reason,
        "after hours"
    );
    for (name, request) in [
        (
            "answer",
            ApproveRequest {
                answer: Some("y".into()),
                ..yes()
            },
        ),
        (
            "edited_argv",
            ApproveRequest {
                edited_argv: argv(&["ls"]),
                ..yes()
            },
        ),
        (
            "edited_text",
            ApproveRequest {
                edited_text: Some("x".into()),
                ..yes()
            },
        ),
        (
            "grant",
            ApproveRequest {
                grant: Some("once".into()),
                ..yes()
            },
        ),
        (
            "extend_seconds",
            ApproveRequest {
                extend_seconds: Some(60),
                ..yes()
            },
        ),
    ] {
        assert_eq!(
            field(approve(&record, &request, &master(None), None, NOW)),
            name
        );
    }
}

// check: GATE-11 GRANT-9
#[test]
fn an_approved_command_is_ready_to_run_exactly_as_asked() {
    let policy = policy(FORCE_PUSH);
    let mut record = held(&["git", "push"], &["pushes"], &master(None));
    let once = ApproveRequest {
        grant: Some("once".into()),
        ..yes()
    };
    let change = approve(&record, &once, &master(None), Some(&policy), NOW).expect("approved");
    let resolve = change.resolve.expect("resolves");
    assert_eq!(resolve.run, RunState::Ready);
    assert_eq!(resolve.decision.grant, Some(GrantReach::Once));
    assert!(change.grants.is_empty());
    record.view.decision = Some(resolve.decision);
    assert_eq!(approved_exec(&record), record.view.payload.exec);
}

// check: EDIT-1 EDIT-5
#[test]
fn an_edit_runs_in_place_of_what_was_asked_and_carries_no_grant() {
    let policy = policy(FORCE_PUSH);
    let mut record = held(&["git", "push", "--force"], &["force-push"], &master(None));
    let edited = ApproveRequest {
        edited_argv: argv(&["git", "push", "--force-with-lease"]),
        ..yes()
    };
    let change = approve(&record, &edited, &master(None), Some(&policy), NOW).expect("approved");
    let decision = change.resolve.expect("resolves").decision;
    assert_eq!(decision.grant, Some(GrantReach::Once));
    assert!(change.grants.is_empty());
    record.view.decision = Some(decision);
    let runs = approved_exec(&record).expect("runs");
    assert_eq!(runs.argv, edited.edited_argv);
    assert_eq!(runs.timeout_ms, Some(5_000));
    for (grant, allowed) in [("env", false), ("ttl:30m", false), ("once", true)] {
        let request = ApproveRequest {
            grant: Some(grant.into()),
            ..edited.clone()
        };
        let got = approve(
            &record_pending(&record),
            &request,
            &master(None),
            Some(&policy),
            NOW,
        );
        assert_eq!(got.is_ok(), allowed, "{grant}");
    }
}

fn record_pending(record: &Record) -> Record {
    let mut again = record.clone();
    again.view.decision = None;
    again
}

// check: EDIT-2
#[test]
fn an_edit_that_a_deny_gate_refuses_is_denied() {
    let policy = policy(FORCE_PUSH);
    let record = held(&["git", "push"], &["pushes"], &master(None));
    let edited = ApproveRequest {
        edited_argv: argv(&["sudo", "rm", "-rf", "/"]),
        ..yes()
    };
    match approve(&record, &edited, &master(None), Some(&policy), NOW) {
        Err(Refusal::Forbidden {
            reason,
            message,
            details,
        }) => {
            assert_eq!(reason, Reason::HitlDenied);
            assert_eq!(
                (message.as_str(), details["gate"].as_str()),
                ("not yours", "no-rm")
            );
        }
        other => panic!("{other:?}"),
    }
    let blind = approve(&record, &edited, &master(None), None, NOW);
    assert!(
        matches!(blind, Err(Refusal::Conflict { .. })),
        "an edit that cannot be checked"
    );
}

// check: EDIT-4
#[test]
fn an_edit_that_changes_nothing_is_none() {
    let policy = policy(FORCE_PUSH);
    let record = held(&["git", "push"], &["pushes"], &master(None));
    let request = ApproveRequest {
        edited_argv: argv(&["git", "push"]),
        grant: Some("env".into()),
        ..yes()
    };
    let change = approve(&record, &request, &master(None), Some(&policy), NOW).expect("approved");
    assert_eq!(change.resolve.expect("resolves").decision.edited_argv, None);
    assert_eq!(change.grants.len(), 1);
}

// check: EDIT-6
#[test]
fn a_shell_string_may_be_edited_into_an_argv() {
    let policy = policy(FORCE_PUSH);
    let mut record = held(&["x"], &["pushes"], &master(None));
    record.view.payload.exec = Some(ExecPayload {
        shell: Some("git push && rm x".into()),
        ..ExecPayload::default()
    });
    let request = ApproveRequest {
        edited_argv: argv(&["git", "push"]),
        ..yes()
    };
    let change = approve(&record, &request, &master(None), Some(&policy), NOW).expect("approved");
    record.view.decision = change.resolve.map(|r| r.decision);
    let runs = approved_exec(&record).expect("runs");
    assert_eq!((runs.argv, runs.shell), (argv(&["git", "push"]), None));
}

// check: GRANT-3 GRANT-4
#[test]
fn a_grant_is_given_for_every_gate_that_held_the_command() {
    let policy = policy(FORCE_PUSH);
    let record = held(
        &["git", "push", "--force"],
        &["force-push", "pushes"],
        &master(None),
    );
    let change = approve(&record, &yes(), &master(None), Some(&policy), NOW).expect("approved");
    let names: Vec<&str> = change.grants.iter().map(|g| g.gate.as_str()).collect();
    assert_eq!(names, ["force-push", "pushes"]);
    let thirty_minutes = GrantReach::Ttl(1_800_000_000_000);
    for grant in &change.grants {
        assert_eq!(
            grant.reach, thirty_minutes,
            "no further than any gate of the set"
        );
        assert_eq!(grant.expires_at, Some(NOW.plus_seconds(1800)));
    }
    let created = change
        .audit
        .iter()
        .filter(|a| a.event == AuditEvent::GrantCreated);
    assert_eq!(created.count(), 2);
    let env = ApproveRequest {
        grant: Some("env".into()),
        ..yes()
    };
    let change = approve(&record, &env, &master(None), Some(&policy), NOW).expect("approved");
    assert!(change.grants.iter().all(|g| g.expires_at.is_none()));
    for bad in ["forever", "ttl:9s", "ttl:25h", "ttl:", "ttl:-1m", ""] {
        let request = ApproveRequest {
            grant: Some(bad.into()),
            ..yes()
        };
        assert_eq!(
            field(approve(
                &record,
                &request,
                &master(None),
                Some(&policy),
                NOW
            )),
            "grant"
        );
    }
}

// check: GRANT-5
#[test]
fn a_grant_compares_the_command_alone() {
    let one = held(&["git", "push"], &["pushes"], &master(None));
    let mut two = one.clone();
    two.view.payload.exec.as_mut().expect("exec").timeout_ms = None;
    let digest = |r: &Record| crate::intervention::decide::digest(&r.view.payload);
    assert_eq!(digest(&one), digest(&two));
    assert_ne!(
        digest(&one),
        digest(&held(&["git", "push", "-f"], &["pushes"], &master(None)))
    );
    assert_ne!(
        digest(&one),
        digest(&held(&["git push"], &["pushes"], &master(None)))
    );
}
