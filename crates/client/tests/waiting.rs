//! Held, locked and refused calls, over connections that break.

mod support;

use std::sync::{Arc, Mutex};

use fuse_client::api::error::Reason;
use fuse_client::{Error, HumanRequest, ReviewRequest, Waiting};
use serde_json::json;
use support::{ENV, INT, Server, Step, decided, held, ok, pending, ran, refused, soon};

fn settled() -> Step {
    let mut value = decided("exec", "approved", "approve", "");
    value["result"] = json!({ "exec": ran() });
    ok(value)
}

// check: WAIT-6
#[tokio::test]
async fn a_held_exec_returns_the_result_of_the_approved_command() {
    let server = Server::start([
        held(),
        ok(pending("exec")),
        // Approved and still running.
        ok(decided("exec", "approved", "approve", "")),
        settled(),
    ])
    .await;
    let client = server.client();
    let result = soon(client.environments().exec(ENV, ["git", "push"]))
        .await
        .expect("a result");
    assert_eq!((result.exit_code, result.stdout.as_str()), (7, "out"));
    let poll = format!("GET /v1/interventions/{INT}?wait=50s");
    let exec = format!("POST /v1/environments/{ENV}?action=exec");
    assert_eq!(server.lines(), [exec, poll.clone(), poll.clone(), poll]);
    assert_eq!(server.seen()[0].body, json!({ "cmd": ["git", "push"] }));
}

// check: WAIT-6, WAIT-7
#[tokio::test]
async fn a_held_destroy_waits_for_the_person_and_then_for_the_end() {
    let gone = decided("lifecycle", "approved", "approve", "");
    let mut done = gone.clone();
    done["result"] = json!({});
    let server = Server::start([held(), ok(pending("lifecycle")), ok(gone), ok(done)]).await;
    let client = server.client();
    let mut told = Vec::new();
    let call = client.environments().destroy(ENV).on_wait(|waiting| {
        if let Waiting::Held(intervention) = waiting {
            told.push(intervention.id.to_string());
        }
    });
    soon(call).await.expect("destroyed");
    assert_eq!(told, [INT]);
    let poll = format!("GET /v1/interventions/{INT}?wait=50s");
    let destroy = format!("DELETE /v1/environments/{ENV}");
    assert_eq!(server.lines(), [destroy, poll.clone(), poll.clone(), poll]);

    let refused = decided("lifecycle", "rejected", "reject", "keep it");
    let mut failed = decided("lifecycle", "approved", "approve", "");
    failed["result"] = json!({ "error": "it may or may not have run" });
    let server = Server::start([held(), ok(refused), held(), ok(failed), held()]).await;
    let client = server.client();
    let outcome = soon(client.environments().destroy(ENV)).await;
    assert!(
        matches!(&outcome, Err(Error::InterventionRejected { reason, .. }) if reason == "keep it"),
        "{outcome:?}"
    );
    let outcome = soon(client.environments().destroy(ENV)).await;
    assert!(
        matches!(outcome, Err(Error::ActionFailed { .. })),
        "{outcome:?}"
    );
    let outcome = soon(client.environments().destroy(ENV).no_wait()).await;
    assert!(
        matches!(outcome, Err(Error::PendingIntervention { .. })),
        "{outcome:?}"
    );
}

// check: INV-11
#[tokio::test]
async fn a_wait_survives_dropped_connections_and_a_restarting_server() {
    let server = Server::start([
        held(),
        Step::Drop,
        Step::Text(502, "<h1>Bad gateway</h1>"),
        refused(503, "unavailable", json!({})),
        Step::Half,
        settled(),
    ])
    .await;
    let client = server.client();
    let result = soon(client.environments().exec(ENV, ["true"])).await;
    assert_eq!(result.expect("a result").exit_code, 7);
    assert!(server.is_done());
    let execs = server
        .lines()
        .iter()
        .filter(|line| line.starts_with("POST"))
        .count();
    assert_eq!(execs, 1);
}

#[tokio::test]
async fn a_wait_on_an_unreachable_server_ends_after_the_deadline() {
    let mut late = pending("exec");
    late["deadline"] = "2020-01-01T00:00:00Z".into();
    let body = json!({ "intervention_id": INT, "intervention": late });
    let server = Server::start([Step::Answer(202, body), Step::Drop]).await;
    let client = server.client();
    let error = soon(client.environments().exec(ENV, ["true"]))
        .await
        .expect_err("nobody there");
    assert!(matches!(error, Error::Transport { .. }), "{error:?}");
}

// check: WAIT-7
#[tokio::test]
async fn a_rejected_exec_is_an_error_with_the_reason() {
    for state in ["rejected", "expired", "cancelled"] {
        let server =
            Server::start([held(), ok(decided("exec", state, "reject", "not today"))]).await;
        let client = server.client();
        match soon(client.environments().exec(ENV, ["true"])).await {
            Err(Error::InterventionRejected {
                intervention_id,
                reason,
                intervention,
            }) => {
                assert_eq!(intervention_id.as_str(), INT);
                assert_eq!(reason, "not today");
                assert_eq!(intervention.state.as_str(), state);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_approved_exec_that_may_have_run_is_an_error() {
    let mut value = decided("exec", "approved", "approve", "");
    value["result"] = json!({ "error": "it may or may not have run" });
    let server = Server::start([held(), ok(value)]).await;
    let client = server.client();
    let error = soon(client.environments().exec(ENV, ["true"]))
        .await
        .expect_err("a failure");
    assert!(
        matches!(&error, Error::ActionFailed { message, .. } if message.contains("may or may not"))
    );
}

// check: WAIT-7
#[tokio::test]
async fn without_waiting_a_held_exec_returns_the_pending_intervention() {
    for whole_client in [false, true] {
        let server = Server::start([held()]).await;
        let builder = server.builder();
        let client = if whole_client {
            builder.no_wait()
        } else {
            builder
        }
        .build()
        .expect("a client");
        let exec = client.environments().exec(ENV, ["true"]);
        let outcome = soon(if whole_client { exec } else { exec.no_wait() }).await;
        assert!(
            matches!(&outcome, Err(Error::PendingIntervention { intervention }) if intervention.id.as_str() == INT)
        );
    }
}

#[tokio::test]
async fn an_expired_ask_gate_that_allows_still_waits_for_its_result() {
    let mut value = decided("exec", "expired", "approve", "");
    value["decision"]["decided_by"] = json!({ "id": "system", "source": "system" });
    let mut done = value.clone();
    done["result"] = json!({ "exec": ran() });
    let server = Server::start([held(), ok(value), ok(done)]).await;
    let client = server.client();
    assert_eq!(
        soon(client.environments().exec(ENV, ["true"]))
            .await
            .expect("a result")
            .exit_code,
        7
    );
}

#[tokio::test]
async fn waiting_on_a_record_of_a_gate_or_decider_ends_at_once() {
    for (source, mode) in [("gate", "notify"), ("decider", "ask")] {
        let mut value = decided("exec", "approved", "approve", "");
        value["mode"] = mode.into();
        value["decision"]["decided_by"] = json!({ "id": "x", "source": source });
        let server = Server::start([ok(value)]).await;
        let record = soon(server.client().interventions().wait(INT))
            .await
            .expect("a record");
        assert!(record.approved());
    }
}

fn locked() -> Step {
    refused(
        423,
        "locked",
        json!({ "intervention_id": INT, "kind": "takeover" }),
    )
}

#[tokio::test]
async fn a_locked_exec_waits_for_the_lock_and_is_sent_again() {
    let server = Server::start([
        locked(),
        // More often than an ordinary read is tried.
        Step::Drop,
        Step::Drop,
        Step::Text(502, "restarting"),
        ok(pending("takeover")),
        ok(decided("takeover", "approved", "approve", "")),
        ok(ran()),
    ])
    .await;
    let client = server.builder().tries(2).build().expect("a client");
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let exec = client
        .environments()
        .exec_shell(ENV, "make")
        .on_wait(move |waiting| {
            let text = match waiting {
                Waiting::Held(_) => "held".to_owned(),
                Waiting::Locked {
                    intervention_id,
                    kind,
                } => format!("{kind} {intervention_id}"),
            };
            tell.lock().expect("a lock").push(text);
        });
    assert_eq!(soon(exec).await.expect("a result").exit_code, 7);
    assert_eq!(*told.lock().expect("a lock"), [format!("takeover {INT}")]);
    let seen = server.seen();
    assert_eq!(seen[0].body, json!({ "shell": "make" }));
    assert_eq!(
        (&seen[6].line, &seen[6].body),
        (&seen[0].line, &seen[0].body)
    );
}

#[tokio::test]
async fn without_waiting_a_locked_exec_is_an_error_that_names_the_lock() {
    let server = Server::start([locked()]).await;
    let client = server.client();
    match soon(client.environments().exec(ENV, ["true"]).no_wait()).await {
        Err(Error::Locked {
            intervention_id,
            kind,
            ..
        }) => {
            assert_eq!((intervention_id.as_str(), kind.as_str()), (INT, "takeover"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_denied_exec_names_the_gate() {
    let details = json!({ "reason": "hitl_denied", "gate": "no-rm" });
    let server = Server::start([refused(403, "forbidden", details)]).await;
    let client = server.client();
    let error = soon(client.environments().exec(ENV, ["rm"]))
        .await
        .expect_err("a refusal");
    assert!(error.is(Reason::HitlDenied));
    assert_eq!(error.gate(), Some("no-rm"));
    assert_eq!(error.status(), Some(403));
    assert_eq!(error.to_string(), "no such luck");
}

// check: WAIT-6
#[tokio::test]
async fn a_question_is_raised_once_and_waited_on() {
    let server = Server::start([
        Step::Answer(201, pending("ask")),
        Step::Drop,
        ok(pending("ask")),
        ok(decided("ask", "approved", "approve", "")),
    ])
    .await;
    let client = server.client();
    let question = HumanRequest::ask("Go?").choices(["yes", "no"]);
    let outcome = soon(client.environments().request_human(ENV, question))
        .await
        .expect("an outcome");
    assert!(outcome.approved());
    assert_eq!(outcome.answer(), "yes");
    let seen = server.seen();
    assert_eq!(
        seen[0].line,
        format!("POST /v1/environments/{ENV}?action=request")
    );
    assert_eq!(
        seen[0].body,
        json!({ "kind": "ask", "question": "Go?", "choices": ["yes", "no"] })
    );
    assert_eq!(
        server
            .lines()
            .iter()
            .filter(|line| line.starts_with("POST"))
            .count(),
        1
    );
}

#[tokio::test]
async fn a_review_tells_verdict_and_comments() {
    let server = Server::start([
        Step::Answer(201, pending("review")),
        ok(decided("review", "rejected", "reject", "split it")),
    ])
    .await;
    let client = server.client();
    let review = ReviewRequest::content("x").message("ok?");
    let verdict = soon(client.environments().request_review(ENV, review))
        .await
        .expect("a verdict");
    assert!(!verdict.approved);
    assert_eq!(verdict.comments, "split it");
    assert_eq!(
        server.seen()[0].body,
        json!({ "kind": "review", "content": "x", "message": "ok?" })
    );
}

#[tokio::test]
async fn a_review_nobody_waits_for_is_no_verdict() {
    let server = Server::start([Step::Answer(201, pending("review"))]).await;
    let client = server.client();
    let review = ReviewRequest::path("/x").no_wait();
    let outcome = soon(client.environments().request_review(ENV, review)).await;
    assert!(matches!(outcome, Err(Error::PendingIntervention { .. })));
}
