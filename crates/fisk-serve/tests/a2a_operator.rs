//! Gated commands over A2A: refused, or asked about by way of the operator.

mod common;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use common::{
    App, PATIENCE,
    agent::{Agent, answer, asks, message, result},
    is_denial, soon,
};
use fisk_domain::{Approval, PromptFailure};
use fisk_operator::{ApprovalRequest, Confirm, Input, Prompter, Select};
use fisk_serve::Limits;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Answers with one thing, and remembers what it was asked.
struct Operator {
    answer: Option<Result<Approval, PromptFailure>>,
    interactive: bool,
    asked: Mutex<Vec<String>>,
    withdrawn: AtomicUsize,
}

impl Operator {
    fn with(answer: Option<Result<Approval, PromptFailure>>) -> Arc<Self> {
        Arc::new(Self {
            answer,
            interactive: true,
            asked: Mutex::default(),
            withdrawn: AtomicUsize::new(0),
        })
    }
}

impl Prompter for Operator {
    fn interactive(&self) -> bool {
        self.interactive
    }

    fn approve<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Approval, PromptFailure>> {
        self.asked
            .lock()
            .unwrap()
            .push(request.command.whole().to_owned());
        if self.answer == Some(Err(PromptFailure::Failed("panic".into()))) {
            panic!("the prompter falls over, as this test wants it to");
        }
        match &self.answer {
            Some(answer) => Box::pin(std::future::ready(answer.clone())),
            // Somebody says yes just as the question is withdrawn.
            None => Box::pin(async {
                cancel.cancelled().await;
                self.withdrawn.fetch_add(1, Ordering::SeqCst);
                Ok(Approval::Once)
            }),
        }
    }

    fn confirm<'a>(
        &'a self,
        _question: &'a Confirm,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, PromptFailure>> {
        panic!("a served surface asks nothing but approvals")
    }

    fn select<'a>(
        &'a self,
        _question: &'a Select,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<usize>, PromptFailure>> {
        panic!("a served surface asks nothing but approvals")
    }

    fn input<'a>(
        &'a self,
        _question: &'a Input,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<String>, PromptFailure>> {
        panic!("a served surface asks nothing but approvals")
    }
}

// check: FISK-14
// check: FISK-11
#[tokio::test]
async fn a_gated_command_is_refused_where_nobody_answers_for_it() {
    let app = App::new();
    let agent = Agent::start(app.served().await, Limits::default(), None).await;
    assert!(agent.serving.warning().unwrap().ends_with(": purge, peek"));
    let (status, sent) = agent.send(asks("purge", json!({}))).await;
    assert_eq!(status, 200);
    assert_eq!(
        sent["task"]["status"]["state"],
        json!("TASK_STATE_COMPLETED")
    );
    assert!(is_denial(result(&sent["task"])), "{sent}");
    assert!(app.ran().is_empty());
}

// check: FISK-14
#[tokio::test]
async fn the_operators_yes_runs_a_gated_command_once_and_no_allowance_stays() {
    let app = App::new();
    for yes in [Approval::Once, Approval::Session] {
        let operator = Operator::with(Some(Ok(yes)));
        let mut served = app.served().await;
        served.operator = Some(operator.clone());
        let agent = Agent::start(served, Limits::default(), None).await;
        assert_eq!(agent.serving.warning(), None);
        for _ in 0..2 {
            let (_, sent) = agent.send(asks("purge", json!({"target": "a b"}))).await;
            assert_eq!(result(&sent["task"])["exit_code"], json!(0));
        }
        let asked = operator.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 2);
        assert!(asked[0].ends_with("/app purge '--target=a b'"), "{asked:?}");
    }
}

// check: FISK-14
#[tokio::test]
async fn every_other_answer_of_the_operator_denies() {
    let app = App::new();
    let limits = Limits {
        operator: Duration::from_millis(300),
        ..Limits::default()
    };
    let mut operators: Vec<Arc<Operator>> = [
        Some(Ok(Approval::Denied { reason: None })),
        Some(Err(PromptFailure::Expired)),
        Some(Err(PromptFailure::Failed("no route".into()))),
        None,
    ]
    .into_iter()
    .map(Operator::with)
    .collect();
    operators.push(Arc::new(Operator {
        answer: Some(Ok(Approval::Once)),
        interactive: false,
        asked: Mutex::default(),
        withdrawn: AtomicUsize::new(0),
    }));
    for operator in operators {
        let mut served = app.served().await;
        served.operator = Some(operator);
        let agent = Agent::start(served, limits.clone(), None).await;
        let (_, sent) = agent.send(asks("purge", json!({}))).await;
        assert!(is_denial(result(&sent["task"])), "{sent}");
    }
    assert!(app.ran().is_empty());
}

// check: FISK-62
#[tokio::test]
async fn a_question_whose_caller_goes_away_is_withdrawn_and_a_late_yes_runs_nothing() {
    let app = App::new();
    let operator = Operator::with(None);
    let mut served = app.served().await;
    served.operator = Some(operator.clone());
    served.max_concurrent_tools = 1;
    let agent = Agent::start(served, Limits::default(), None).await;
    let request = agent.post("/v1/message:send", &message(asks("purge", json!({}))));
    let waiting = tokio::spawn(request.send());
    soon("somebody is asked", || {
        !operator.asked.lock().unwrap().is_empty()
    })
    .await;
    // Who waits for an answer takes no slot.
    let (_, sent) = agent.send(asks("fail", json!({}))).await;
    assert_eq!(result(&sent["task"])["exit_code"], json!(3));
    waiting.abort();
    soon("the question is withdrawn", || {
        operator.withdrawn.load(Ordering::SeqCst) == 1
    })
    .await;
    agent.cancel.cancel();
    tokio::time::timeout(PATIENCE, agent.serving.wait())
        .await
        .expect("it ends");
    assert_eq!(app.ran(), ["fail"]);
}

// check: FISK-58
#[tokio::test]
async fn a_task_that_is_cancelled_while_the_operator_is_asked_is_cancelled_and_not_denied() {
    let app = App::new();
    let operator = Operator::with(None);
    let mut served = app.served().await;
    served.operator = Some(operator.clone());
    let agent = Agent::start(served, Limits::default(), None).await;
    let mut call = message(asks("purge", json!({})));
    call["configuration"] = json!({"returnImmediately": true});
    let (_, sent) = answer(agent.post("/v1/message:send", &call)).await;
    let id = sent["task"]["id"].as_str().unwrap();
    soon("somebody is asked", || {
        !operator.asked.lock().unwrap().is_empty()
    })
    .await;
    let cancel = agent.post(&format!("/v1/tasks/{id}:cancel"), &json!({}));
    let (status, cancelled) = answer(cancel).await;
    assert_eq!(status, 200);
    assert_eq!(cancelled["status"]["state"], json!("TASK_STATE_CANCELED"));
    assert_eq!(operator.withdrawn.load(Ordering::SeqCst), 1);
    assert!(app.ran().is_empty());
}

// check: FISK-62
#[tokio::test]
async fn a_prompter_that_falls_over_fails_its_task_and_nothing_else() {
    let app = App::new();
    let operator = Operator::with(Some(Err(PromptFailure::Failed("panic".into()))));
    let mut served = app.served().await;
    served.operator = Some(operator);
    let agent = Agent::start(served, Limits::default(), None).await;
    let (_, sent) = agent.send(asks("purge", json!({}))).await;
    assert_eq!(sent["task"]["status"]["state"], json!("TASK_STATE_FAILED"));
    let (_, sent) = agent.send(asks("fail", json!({}))).await;
    assert_eq!(result(&sent["task"])["exit_code"], json!(3));
    assert_eq!(app.ran(), ["fail"]);
}
