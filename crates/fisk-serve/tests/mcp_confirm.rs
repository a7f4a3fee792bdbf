//! Gated commands over MCP: who is asked, what counts as a yes, and what does not.

mod common;

use std::{sync::atomic::Ordering, time::Duration};

use common::{
    Answer, App, Client, ERAS, Era, Mcp, PATIENCE, Person, call, connect, is_denial, params, read,
    soon,
};
use fisk_serve::{ConfirmOverMcp, Limits, mcp_warning};
use rmcp::{
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResponse, ClientRequest, ElicitationAction,
        InputRequiredResult,
    },
    service::PeerRequestOptions,
};
use serde_json::{Value, json};

async fn start(app: &App, mode: ConfirmOverMcp, limits: Limits) -> Mcp {
    let mut served = app.served().await;
    served.confirm_over_mcp = mode;
    Mcp::start(served, limits, None).await
}

fn quick() -> Limits {
    Limits {
        answer: Duration::from_millis(400),
        ..Limits::default()
    }
}

// check: FISK-14
// check: FISK-15
#[tokio::test]
async fn a_gated_command_runs_once_its_user_approved_what_is_shown() {
    let app = App::new();
    let mcp = start(&app, ConfirmOverMcp::default(), Limits::default()).await;
    for era in ERAS {
        let person = Person::who(Answer::yes());
        let client = connect(&mcp.url(), era, person.clone()).await;
        let result = call(&client, "purge", json!({"target": "a b\u{202e}c"})).await;
        assert_eq!(read(&result)["exit_code"], json!(0), "{era:?}");
        let asked = person.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 1);
        assert!(asked[0].contains("ai:confirm"), "{}", asked[0]);
        assert!(asked[0].contains("/app purge "), "{}", asked[0]);
        assert!(asked[0].contains("a b\\u{202e}c"), "{}", asked[0]);
        client.cancel().await.unwrap();
    }
    assert_eq!(app.count("purge --target=a b\u{202e}c"), 2);
}

// check: FISK-14
// check: FISK-11
#[tokio::test]
async fn every_other_answer_denies_as_an_ordinary_result() {
    let app = App::new();
    for mode in [ConfirmOverMcp::Always, ConfirmOverMcp::Auto] {
        let mcp = start(&app, mode, quick()).await;
        for era in ERAS {
            for answer in [
                Answer::Give(ElicitationAction::Decline, None),
                Answer::Give(ElicitationAction::Cancel, Some(json!({"approve": true}))),
                Answer::Give(ElicitationAction::Accept, None),
                Answer::Give(ElicitationAction::Accept, Some(json!({"approve": false}))),
                Answer::Give(ElicitationAction::Accept, Some(json!({"approve": "yes"}))),
            ] {
                let told = format!("{mode:?} {era:?} {answer:?}");
                let client = connect(&mcp.url(), era, Person::who(answer)).await;
                let result = call(&client, "purge", json!({})).await;
                assert_eq!(result.is_error, Some(false), "{told}");
                assert!(is_denial(&read(&result)), "{told}: {}", read(&result));
                client.cancel().await.unwrap();
            }
        }
        // In the older protocol the server sees these too.
        for answer in [Answer::Silence, Answer::Fail] {
            let told = format!("{mode:?} {answer:?}");
            let client = connect(&mcp.url(), Era::Handshake, Person::who(answer)).await;
            let result = call(&client, "purge", json!({})).await;
            assert!(is_denial(&read(&result)), "{told}: {}", read(&result));
            client.cancel().await.unwrap();
        }
    }
    assert!(app.ran().is_empty(), "{:?}", app.ran());
}

// check: FISK-15
#[tokio::test]
async fn a_client_that_cannot_ask_is_refused_unless_the_mode_says_otherwise() {
    let app = App::new();
    for (mode, runs) in [
        (ConfirmOverMcp::Always, false),
        (ConfirmOverMcp::Auto, true),
        (ConfirmOverMcp::Never, true),
    ] {
        let mcp = start(&app, mode, Limits::default()).await;
        for era in ERAS {
            let client = connect(&mcp.url(), era, Person::who(Answer::Unable)).await;
            let result = read(&call(&client, "purge", json!({})).await);
            assert_eq!(is_denial(&result), !runs, "{mode:?} {era:?}: {result}");
            assert_eq!(result["exit_code"] == json!(0), runs, "{mode:?} {era:?}");
            client.cancel().await.unwrap();
        }
    }
    assert_eq!(app.count("purge"), 4);
}

// check: FISK-15
#[tokio::test]
async fn with_never_nobody_is_asked() {
    let app = App::new();
    let mcp = start(&app, ConfirmOverMcp::Never, Limits::default()).await;
    for era in ERAS {
        let person = Person::who(Answer::Give(ElicitationAction::Decline, None));
        let client = connect(&mcp.url(), era, person.clone()).await;
        assert_eq!(
            read(&call(&client, "purge", json!({})).await)["exit_code"],
            json!(0)
        );
        assert!(person.asked.lock().unwrap().is_empty());
    }
}

// check: FISK-15
#[tokio::test]
async fn the_start_warns_with_the_names_of_what_may_run_without_approval() {
    let app = App::new();
    let mut served = app.served().await;
    assert_eq!(mcp_warning(&served), None);
    for mode in [ConfirmOverMcp::Auto, ConfirmOverMcp::Never] {
        served.confirm_over_mcp = mode;
        let warning = mcp_warning(&served).unwrap();
        assert!(warning.ends_with(": purge, peek"), "{warning}");
        let mcp = Mcp::start(served.clone(), Limits::default(), None).await;
        assert_eq!(mcp.serving.warning(), Some(warning.as_str()));
    }
}

// check: FISK-7
#[tokio::test]
async fn nobody_is_asked_about_a_call_that_could_not_run() {
    let app = App::new();
    let mcp = start(&app, ConfirmOverMcp::Always, Limits::default()).await;
    for era in ERAS {
        let person = Person::who(Answer::yes());
        let client = connect(&mcp.url(), era, person.clone()).await;
        let result = call(&client, "purge", json!({"target": 1})).await;
        assert_eq!(result.is_error, Some(true));
        assert!(person.asked.lock().unwrap().is_empty());
    }
}

// check: FISK-62
#[tokio::test]
async fn each_call_is_asked_about_anew() {
    let app = App::new();
    let mcp = start(&app, ConfirmOverMcp::Always, Limits::default()).await;
    for era in ERAS {
        let person = Person::who(Answer::yes());
        let client = connect(&mcp.url(), era, person.clone()).await;
        for _ in 0..3 {
            call(&client, "purge", json!({})).await;
        }
        assert_eq!(person.asked.lock().unwrap().len(), 3);
    }
}

// check: FISK-62
#[tokio::test]
async fn the_wait_for_an_answer_takes_no_slot_and_none_of_the_commands_time() {
    let app = App::new();
    let mut served = app.served().await;
    served.max_concurrent_tools = 1;
    // Shorter than the wait below, and long enough for a command on a busy machine.
    served.tool_timeout = Duration::from_secs(4);
    let mcp = Mcp::start(served, Limits::default(), None).await;
    let person = Person::who(Answer::Silence);
    let thinking = connect(&mcp.url(), Era::Handshake, person.clone()).await;
    let peer = thinking.peer().clone();
    let waiting = tokio::spawn(async move { peer.call_tool(params("purge", json!({}))).await });
    soon("somebody is asked", || {
        !person.asked.lock().unwrap().is_empty()
    })
    .await;
    let other = connect(&mcp.url(), Era::Handshake, Person::who(Answer::Unable)).await;
    let asked_at = std::time::Instant::now();
    while asked_at.elapsed() < Duration::from_millis(4_500) {
        let result = call(&other, "fail", json!({})).await;
        assert_eq!(read(&result)["exit_code"], json!(3));
    }
    assert!(!waiting.is_finished());
    waiting.abort();
}

// check: FISK-62
#[tokio::test]
async fn a_question_that_nobody_answers_in_time_is_a_denial() {
    assert_eq!(Limits::default().answer, Duration::from_secs(5 * 60));
    let app = App::new();
    let mcp = start(&app, ConfirmOverMcp::Always, quick()).await;
    let person = Person::who(Answer::Silence);
    let client = connect(&mcp.url(), Era::Handshake, person.clone()).await;
    let result = read(&call(&client, "purge", json!({})).await);
    assert!(is_denial(&result));
    soon("the question is withdrawn", || {
        person.withdrawn.load(Ordering::SeqCst) == 1
    })
    .await;
    assert!(
        result["reason"]
            .as_str()
            .unwrap()
            .contains("nobody answered in time")
    );
    assert!(app.ran().is_empty());
}

// check: FISK-62
#[tokio::test]
async fn a_call_that_is_taken_back_withdraws_its_question_and_makes_room_for_the_next() {
    let app = App::new();
    let limits = Limits {
        questions: 1,
        ..Limits::default()
    };
    let mcp = start(&app, ConfirmOverMcp::Always, limits).await;
    let person = Person::who(Answer::Silence);
    let client = connect(&mcp.url(), Era::Handshake, person.clone()).await;
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params("purge", json!({}))));
    let asking = client
        .send_cancellable_request(request, PeerRequestOptions::no_options())
        .await
        .unwrap();
    soon("somebody is asked", || {
        !person.asked.lock().unwrap().is_empty()
    })
    .await;
    let other = connect(&mcp.url(), Era::Handshake, Person::who(Answer::yes())).await;
    let refused = read(&call(&other, "purge", json!({})).await);
    assert!(
        refused["reason"].as_str().unwrap().contains("too many"),
        "{refused}"
    );
    asking.cancel(None).await.unwrap();
    soon("the question is withdrawn", || {
        person.withdrawn.load(Ordering::SeqCst) == 1
    })
    .await;
    let ran = tokio::time::timeout(PATIENCE, async {
        while is_denial(&read(&call(&other, "purge", json!({})).await)) {}
    });
    assert!(ran.await.is_ok());
    assert_eq!(app.ran(), ["purge"]);
}

async fn ask(client: &Client, request: CallToolRequestParams) -> InputRequiredResult {
    match client.peer().call_tool_once(request).await.unwrap() {
        CallToolResponse::InputRequired(question) => question,
        other => panic!("{other:?}"),
    }
}

async fn retry(client: &Client, request: CallToolRequestParams) -> Value {
    match client.peer().call_tool_once(request).await.unwrap() {
        CallToolResponse::Complete(result) => read(&result),
        other => panic!("{other:?}"),
    }
}

fn approved(request: &CallToolRequestParams, state: Option<&str>) -> CallToolRequestParams {
    let yes = json!({"approval": {"action": "accept", "content": {"approve": true}}});
    let mut request = request.clone();
    request.input_responses = Some(serde_json::from_value(yes).unwrap());
    request.request_state = state.map(str::to_owned);
    request
}

// check: FISK-55
#[tokio::test]
async fn an_approval_is_good_for_one_run_of_the_command_that_was_shown() {
    let app = App::new();
    let mcp = start(&app, ConfirmOverMcp::Always, Limits::default()).await;
    let client = connect(&mcp.url(), Era::Stateless, Person::who(Answer::yes())).await;
    let shown = params("purge", json!({"target": "logs"}));
    let question = ask(&client, shown.clone()).await;
    let state = question.request_state.as_deref();

    let elsewhere = params("purge", json!({"target": "everything"}));
    assert!(is_denial(
        &retry(&client, approved(&elsewhere, state)).await
    ));
    let other_tool = params("peek", json!({}));
    assert!(is_denial(
        &retry(&client, approved(&other_tool, state)).await
    ));
    for forged in [None, Some(""), Some("rs1.AAAA.AAAA"), Some("approved")] {
        assert!(is_denial(&retry(&client, approved(&shown, forged)).await));
    }
    assert!(app.ran().is_empty(), "{:?}", app.ran());

    let first = retry(&client, approved(&shown, state)).await;
    assert_eq!(first["exit_code"], json!(0));
    let again = retry(&client, approved(&shown, state)).await;
    assert!(is_denial(&again), "{again}");
    assert_eq!(app.ran(), ["purge --target=logs"]);
}

// check: FISK-55
#[tokio::test]
async fn a_declined_question_cannot_be_approved_afterwards() {
    let app = App::new();
    let mcp = start(&app, ConfirmOverMcp::Always, Limits::default()).await;
    let client = connect(&mcp.url(), Era::Stateless, Person::who(Answer::yes())).await;
    let shown = params("purge", json!({}));
    let state = ask(&client, shown.clone()).await.request_state;
    let mut declined = approved(&shown, state.as_deref());
    declined.input_responses =
        serde_json::from_value(json!({"approval": {"action": "decline"}})).unwrap();
    assert!(is_denial(&retry(&client, declined).await));
    assert!(is_denial(
        &retry(&client, approved(&shown, state.as_deref())).await
    ));
    assert!(app.ran().is_empty());
}

// check: FISK-62
#[tokio::test]
async fn an_approval_that_is_brought_too_late_is_a_denial() {
    let app = App::new();
    let mcp = start(&app, ConfirmOverMcp::Always, quick()).await;
    let client = connect(&mcp.url(), Era::Stateless, Person::who(Answer::yes())).await;
    let shown = params("purge", json!({}));
    let state = ask(&client, shown.clone()).await.request_state;
    tokio::time::sleep(quick().answer * 2).await;
    assert!(is_denial(
        &retry(&client, approved(&shown, state.as_deref())).await
    ));
    assert!(app.ran().is_empty());
}

// check: FISK-10
#[tokio::test]
async fn a_command_line_that_is_too_long_to_be_read_is_denied() {
    let app = App::new();
    let mcp = start(&app, ConfirmOverMcp::Always, Limits::default()).await;
    for era in ERAS {
        let person = Person::who(Answer::yes());
        let client = connect(&mcp.url(), era, person.clone()).await;
        let result = call(&client, "purge", json!({"target": "x".repeat(20_000)})).await;
        assert!(is_denial(&read(&result)));
        assert!(person.asked.lock().unwrap().is_empty());
    }
    assert!(app.ran().is_empty());
}
