//! Fisk's operator behind a real orchestrator.

use std::time::Duration;

use fisk_domain::{Approval, PromptFailure};
use fisk_operator::{
    ApprovalRequest, Confirm, Exact, FuseConfig, FusePrompter, Input, Prompter, Select, Token,
};
use fuse_e2e::{Env, Server, Store, both, each_store, until};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

both!(
    an_approval_is_what_a_person_says,
    a_long_command_line_is_reviewed_whole,
    questions_of_the_model_are_answered,
    silence_denies_although_the_policy_takes_it_for_a_yes,
    a_cancelled_run_withdraws_its_question,
    a_question_that_cannot_be_raised_denies,
);
each_store!(an_answer_arrives_over_a_server_that_is_killed);

fn block() -> Value {
    json!({"requests": {"ask": {}, "review": {}}})
}

fn prompter_with(server: &Server, env: &Env, token: &str, timeout: Option<u64>) -> FusePrompter {
    FusePrompter::new(FuseConfig {
        url: server.url(),
        token: Token::new(token),
        environment: env.id.clone(),
        timeout: timeout.map(Duration::from_secs),
        actor: None,
    })
    .expect("a prompter")
}

fn prompter(server: &Server, env: &Env) -> FusePrompter {
    prompter_with(server, env, server.token(), None)
}

fn command(argv: &[&str]) -> ApprovalRequest {
    ApprovalRequest {
        tool: "nats_stream_rm".to_owned(),
        command: Exact::argv(argv),
        tags: vec!["ai:confirm".to_owned()],
    }
}

type Approving = JoinHandle<Result<Approval, PromptFailure>>;

fn approve(
    prompter: &FusePrompter,
    request: &ApprovalRequest,
    cancel: &CancellationToken,
) -> Approving {
    let (prompter, request, cancel) = (prompter.clone(), request.clone(), cancel.clone());
    tokio::spawn(async move { prompter.approve(&request, &cancel).await })
}

/// The question that stands.
async fn pending(env: &Env) -> Value {
    until("a question stands", async || {
        let all = env.interventions().await;
        all.into_iter().find(|one| one["state"] == "pending")
    })
    .await
}

fn id(value: &Value) -> &str {
    value["id"].as_str().expect("an id")
}

/// A person gives this answer to the question that stands, which is returned.
async fn answer(env: &Env, answer: &str) -> Value {
    let asked = pending(env).await;
    let body = json!({"answer": answer, "payload_hash": asked["payload_hash"]});
    env.api.approve(id(&asked), body).await.ok(200);
    asked
}

// check: FISK-10, FISK-44
async fn an_approval_is_what_a_person_says(server: &Server) {
    let env = server.env(block()).await;
    let (prompter, cancel) = (prompter(server, &env), CancellationToken::new());
    assert!(prompter.interactive());
    let request = command(&["nats", "stream", "rm", "a b\u{202e}"]);
    for (said, meant) in [
        ("approve", Approval::Once),
        ("approve for the session", Approval::Session),
        ("deny", Approval::Denied { reason: None }),
    ] {
        let approving = approve(&prompter, &request, &cancel);
        let asked = answer(&env, said).await;
        let question = asked["payload"]["ask"]["question"].as_str().expect("text");
        assert!(
            question.contains("nats_stream_rm") && question.contains("ai:confirm"),
            "{question}"
        );
        assert!(
            question.ends_with(r": nats stream rm $'a b\u{202e}'"),
            "{question}"
        );
        assert_eq!(approving.await.expect("it ends"), Ok(meant));
    }
    // Where an allowance would be forgotten at once, none is offered.
    let approving = approve(&prompter.clone().once_only(), &request, &cancel);
    let asked = answer(&env, "approve").await;
    let choices = &asked["payload"]["ask"]["choices"];
    assert_eq!(choices, &json!(["approve", "deny"]));
    assert_eq!(approving.await.expect("it ends"), Ok(Approval::Once));
    let approving = approve(&prompter, &request, &cancel);
    let asked = pending(&env).await;
    env.api.reject(id(&asked), "use purge").await.ok(200);
    let denied = Approval::Denied {
        reason: Some("use purge".to_owned()),
    };
    assert_eq!(approving.await.expect("it ends"), Ok(denied));
}

// check: FISK-10, FISK-44
async fn a_long_command_line_is_reviewed_whole(server: &Server) {
    let env = server.env(block()).await;
    let (prompter, cancel) = (prompter(server, &env), CancellationToken::new());
    let request = command(&["nats", &"subject ".repeat(4000)]);
    let approving = approve(&prompter, &request, &cancel);
    let asked = pending(&env).await;
    assert_eq!(asked["kind"], "review");
    assert_eq!(
        asked["payload"]["review"]["content"],
        request.command.whole()
    );
    env.api.approve(id(&asked), json!({})).await.ok(200);
    assert_eq!(approving.await.expect("it ends"), Ok(Approval::Once));
}

// check: FISK-12, FISK-13
async fn questions_of_the_model_are_answered(server: &Server) {
    let env = server.env(block()).await;
    let (prompter, cancel) = (prompter(server, &env), CancellationToken::new());
    let confirm = Confirm {
        question: "Go\u{1b}[2J on?".to_owned(),
        default: Some(true),
    };
    for (said, meant) in [("yes", true), ("no", false)] {
        let (confirmed, asked) =
            tokio::join!(prompter.confirm(&confirm, &cancel), answer(&env, said));
        assert_eq!(confirmed, Ok(meant));
        assert_eq!(
            asked["payload"]["ask"]["question"],
            "The agent asks: Go on? (It suggests: yes)"
        );
    }
    let select = Select {
        question: "Which?".to_owned(),
        options: vec!["red\u{200b}".to_owned(), "blue".to_owned()],
        default: None,
    };
    let (selected, asked) = tokio::join!(prompter.select(&select, &cancel), answer(&env, "red"));
    assert_eq!(selected, Ok(Some(0)));
    assert_eq!(asked["payload"]["ask"]["choices"], json!(["red", "blue"]));
    let input = Input {
        question: "Name?".to_owned(),
        default: Some("web".to_owned()),
    };
    for (said, meant) in [("db", "db"), ("", "web")] {
        let (value, _) = tokio::join!(prompter.input(&input, &cancel), answer(&env, said));
        assert_eq!(value, Ok(Some(meant.to_owned())));
    }
    let (refused, ()) = tokio::join!(prompter.select(&select, &cancel), async {
        let asked = pending(&env).await;
        env.api.reject(id(&asked), "neither").await.ok(200);
    });
    assert_eq!(refused, Err(PromptFailure::Refused("neither".to_owned())));
}

// check: FISK-10, FISK-44
async fn silence_denies_although_the_policy_takes_it_for_a_yes(server: &Server) {
    let mut block = block();
    block["on_timeout"] = json!("allow");
    let env = server.env(block).await;
    let prompter = prompter_with(server, &env, server.token(), Some(10));
    let approving = approve(
        &prompter,
        &command(&["nats", "stream", "rm"]),
        &CancellationToken::new(),
    );
    let asked = id(&pending(&env).await).to_owned();
    assert_eq!(
        approving.await.expect("it ends"),
        Err(PromptFailure::Expired)
    );
    assert_eq!(env.api.read(&asked).await["decision"]["outcome"], "approve");
}

// check: FISK-10, FISK-44
async fn a_cancelled_run_withdraws_its_question(server: &Server) {
    let env = server.env(block()).await;
    let request = command(&["nats", "stream", "rm"]);
    let cancel = CancellationToken::new();
    let approving = approve(&prompter(server, &env), &request, &cancel);
    let asked = pending(&env).await;
    cancel.cancel();
    assert_eq!(
        approving.await.expect("it ends"),
        Err(PromptFailure::Cancelled)
    );
    let withdrawn = env.api.read(id(&asked)).await;
    assert_eq!(withdrawn["state"], "rejected", "{withdrawn}");

    // A run that is dropped withdraws it as well.
    let approving = approve(&prompter(server, &env), &request, &CancellationToken::new());
    let asked = pending(&env).await;
    approving.abort();
    until("it is withdrawn", async || {
        (env.api.read(id(&asked)).await["state"] == "rejected").then_some(())
    })
    .await;

    // A key that may not decide may not withdraw either; then the answer reaches nobody.
    let (_, key) = env.api.key("agent").await;
    let cancel = CancellationToken::new();
    let approving = approve(&prompter_with(server, &env, &key, None), &request, &cancel);
    let asked = pending(&env).await;
    cancel.cancel();
    assert_eq!(
        approving.await.expect("it ends"),
        Err(PromptFailure::Cancelled)
    );
    assert_eq!(env.api.read(id(&asked)).await["state"], "pending");

    // A run that is cancelled already asks nothing.
    let before = env.interventions().await.len();
    let approving = approve(&prompter(server, &env), &request, &cancel);
    assert_eq!(
        approving.await.expect("it ends"),
        Err(PromptFailure::Cancelled)
    );
    assert_eq!(env.interventions().await.len(), before);
}

// check: FISK-10, FISK-44
async fn a_question_that_cannot_be_raised_denies(server: &Server) {
    let (env, cancel) = (server.env(json!(null)).await, CancellationToken::new());
    let request = command(&["nats", "stream", "rm"]);
    // The policy declares no asks; the credential is none; nobody listens.
    let undeclared = prompter(server, &env);
    let unknown = prompter_with(server, &env, "fuse_sk_wrong", None);
    let nowhere = FusePrompter::new(FuseConfig {
        url: "http://127.0.0.1:9".to_owned(),
        token: Token::new("t"),
        environment: "agent".to_owned(),
        timeout: None,
        actor: None,
    })
    .expect("a prompter");
    for prompter in [undeclared, unknown, nowhere] {
        match prompter.approve(&request, &cancel).await {
            Err(PromptFailure::Failed(why)) => {
                assert!(!why.is_empty() && !why.contains("fuse_sk_wrong"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }
}

// check: FISK-10, FISK-44
async fn an_answer_arrives_over_a_server_that_is_killed(store: Store) {
    let server = Server::start(store);
    let env = server.env(block()).await;
    let request = command(&["nats", "stream", "rm"]);
    let approving = approve(
        &prompter(&server, &env),
        &request,
        &CancellationToken::new(),
    );
    let asked = pending(&env).await;
    server.kill9();
    // Long enough that more than one poll fails.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!approving.is_finished());
    server.restart();
    env.api
        .approve(id(&asked), json!({"answer": "approve"}))
        .await
        .ok(200);
    let ended = tokio::time::timeout(Duration::from_secs(60), approving).await;
    assert_eq!(
        ended.expect("in time").expect("it ends"),
        Ok(Approval::Once)
    );
}
