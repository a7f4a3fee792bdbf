//! Commands over A2A, over real HTTP.

mod common;

use std::time::Duration;

use common::{
    App, PATIENCE,
    agent::{Agent, answer, asks, message, result},
};
use fisk_serve::Limits;
use reqwest::StatusCode;
use serde_json::{Value, json};

// check: FISK-14
// check: FISK-58
#[tokio::test]
async fn the_card_tells_the_commands_how_to_call_them_and_which_need_approval() {
    let app = App::new();
    let agent = Agent::start(app.served().await, Limits::default(), Some("tok")).await;
    let url = agent.url("/.well-known/agent-card.json");
    let (status, card) = answer(reqwest::Client::new().get(url).bearer_auth("tok")).await;
    assert_eq!(status, 200);
    let typed: a2a::AgentCard = serde_json::from_value(card.clone()).unwrap();
    let ids: Vec<&str> = typed.skills.iter().map(|skill| skill.id.as_str()).collect();
    assert_eq!(ids, ["say", "fail", "hold", "purge", "peek"]);
    assert_eq!(typed.skills[0].tags, ["impact:ro"]);
    assert!(!typed.skills[0].description.contains("approval"));
    assert!(typed.skills[3].description.contains("approval"));
    assert_eq!(
        card["supportedInterfaces"][0]["url"],
        json!(agent.url("/v1"))
    );
    assert_eq!(
        card["supportedInterfaces"][0]["protocolBinding"],
        json!("HTTP+JSON")
    );
    assert_eq!(card["capabilities"]["streaming"], json!(true));
    let schemas = &card["capabilities"]["extensions"][0]["params"]["input_schemas"];
    assert_eq!(schemas["say"]["required"], json!(["text"]));
    assert!(schemas.get("destroy").is_none());
    assert!(card["securityRequirements"][0]["schemes"]["bearer"].is_object());
    assert!(card["description"].as_str().unwrap().contains("\"tool\""));
}

// check: FISK-58
// check: FISK-18
#[tokio::test]
async fn a_message_calls_one_command_and_its_task_has_the_result() {
    let app = App::new();
    let agent = Agent::start(app.served().await, Limits::default(), None).await;
    let text = json!({"text": json!({"tool": "fail"}).to_string()});
    for part in [asks("fail", json!({})), text] {
        let (status, sent) = agent.send(part).await;
        assert_eq!(status, 200);
        let task = &sent["task"];
        assert_eq!(task["status"]["state"], json!("TASK_STATE_COMPLETED"));
        assert_eq!(task["contextId"], json!("c1"));
        assert_eq!(
            result(task),
            &json!({"exit_code": 3, "output": "oops\n", "truncated": false})
        );
        let (status, seen) = agent.look(task["id"].as_str().unwrap()).await;
        assert_eq!((status, &seen), (StatusCode::OK, task));
    }
}

// check: FISK-58
#[tokio::test]
async fn what_is_no_call_is_an_error_that_tells_the_shape() {
    let app = App::new();
    let agent = Agent::start(app.served().await, Limits::default(), None).await;
    for (part, named) in [
        (json!({"text": "please restart everything"}), "\"tool\""),
        (asks("destroy", json!({})), "say, fail, hold, purge, peek"),
        (asks("say", json!({})), "text"),
        (asks("say", json!({"text": "x", "volume": 1})), "volume"),
    ] {
        for path in ["/v1/message:send", "/v1/message:stream"] {
            let (status, error) = answer(agent.post(path, &message(part.clone()))).await;
            assert_eq!(status, 400, "{part}");
            let text = error["error"]["message"].as_str().unwrap();
            assert!(text.contains(named), "{part}: {text}");
            assert_eq!(error["error"]["status"], json!("INVALID_ARGUMENT"));
        }
    }
    assert!(app.ran().is_empty());
}

// check: FISK-58
#[tokio::test]
async fn what_the_protocol_has_and_this_agent_has_not_is_told_by_its_name() {
    let app = App::new();
    let agent = Agent::start(app.served().await, Limits::default(), None).await;
    let call = asks("fail", json!({}));
    let mut push = message(call.clone());
    push["configuration"] = json!({"taskPushNotificationConfig": {"url": "http://localhost/"}});
    let mut on = message(call.clone());
    on["message"]["taskId"] = json!("t");
    let send = |body: &Value| agent.post("/v1/message:send", body);
    let old = reqwest::Client::new()
        .post(agent.url("/v1/message:send"))
        .header("content-type", "application/json")
        .header("a2a-version", "0.3")
        .body(message(call.clone()).to_string());
    let form = reqwest::Client::new()
        .post(agent.url("/v1/message:send"))
        .header("content-type", "text/plain")
        .body(message(call.clone()).to_string());
    let get = |path: &str| reqwest::Client::new().get(agent.url(path));
    for (request, status, reason) in [
        (send(&push), 400, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        (send(&on), 400, "UNSUPPORTED_OPERATION"),
        (send(&json!({"message": 1})), 400, "INVALID_PARAMS"),
        (old, 400, "VERSION_NOT_SUPPORTED"),
        (form, 400, "CONTENT_TYPE_NOT_SUPPORTED"),
        (get("/v1/tasks/none"), 404, "TASK_NOT_FOUND"),
        (get("/v1/tasks"), 501, "METHOD_NOT_FOUND"),
        (
            agent.post("/v1/tasks/none:cancel", &json!({})),
            404,
            "TASK_NOT_FOUND",
        ),
        (
            agent.post("/v1/tasks/none/pushNotificationConfigs", &json!({})),
            400,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
    ] {
        let (seen, error) = answer(request).await;
        assert_eq!(seen, status, "{reason}: {error}");
        assert_eq!(
            error["error"]["details"][0]["reason"],
            json!(reason),
            "{error}"
        );
    }
    assert!(app.ran().is_empty());
}

// check: FISK-58
#[tokio::test]
async fn a_stream_tells_the_task_its_result_and_its_end() {
    let app = App::new();
    let agent = Agent::start(app.served().await, Limits::default(), None).await;
    let call = message(asks("say", json!({"text": "x"})));
    let streamed = agent
        .post("/v1/message:stream", &call)
        .send()
        .await
        .unwrap();
    assert_eq!(streamed.headers()["content-type"], "text/event-stream");
    let text = tokio::time::timeout(PATIENCE, streamed.text());
    let text = text.await.expect("the stream ends").unwrap();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert!(events.first().unwrap().get("task").is_some(), "{text}");
    let [.., artifact, last] = events.as_slice() else {
        panic!("{text}");
    };
    assert_eq!(
        artifact["artifactUpdate"]["artifact"]["parts"][0]["data"]["exit_code"],
        json!(0)
    );
    assert_eq!(
        last["statusUpdate"]["status"]["state"],
        json!("TASK_STATE_COMPLETED")
    );
}

// check: FISK-58
#[tokio::test]
async fn a_client_that_goes_away_takes_its_call_back() {
    let app = App::new();
    let agent = Agent::start(app.served().await, Limits::default(), None).await;
    for (at, path) in ["/v1/message:send", "/v1/message:stream"]
        .iter()
        .enumerate()
    {
        let request = agent.post(path, &message(asks("hold", json!({}))));
        let held = tokio::spawn(async move {
            let answer = request.send().await.unwrap();
            answer.text().await
        });
        app.until("hold", at + 1).await;
        held.abort();
        app.until("killed", at + 1).await;
    }
}

// check: FISK-58
#[tokio::test]
async fn a_task_that_is_not_waited_for_goes_on_and_can_be_cancelled() {
    let app = App::new();
    let agent = Agent::start(app.served().await, Limits::default(), None).await;
    let mut call = message(asks("hold", json!({})));
    call["configuration"] = json!({"returnImmediately": true});
    let (_, sent) = answer(agent.post("/v1/message:send", &call)).await;
    let id = sent["task"]["id"].as_str().unwrap();
    app.until("hold", 1).await;
    let (_, seen) = agent.look(id).await;
    assert_eq!(seen["status"]["state"], json!("TASK_STATE_WORKING"));
    let cancel = || agent.post(&format!("/v1/tasks/{id}:cancel"), &json!({}));
    let (status, cancelled) = answer(cancel()).await;
    assert_eq!(status, 200);
    assert_eq!(cancelled["status"]["state"], json!("TASK_STATE_CANCELED"));
    assert_eq!(app.ran(), ["hold", "killed"]);
    let (status, error) = answer(cancel()).await;
    assert_eq!(status, 400);
    assert_eq!(
        error["error"]["details"][0]["reason"],
        json!("TASK_NOT_CANCELABLE")
    );
}

// check: FISK-57
#[tokio::test]
async fn a_command_past_its_time_is_killed_and_its_task_fails() {
    let app = App::new();
    let mut served = app.served().await;
    served.tool_timeout = Duration::from_millis(500);
    let agent = Agent::start(served, Limits::default(), None).await;
    let (_, sent) = agent.send(asks("hold", json!({}))).await;
    assert_eq!(sent["task"]["status"]["state"], json!("TASK_STATE_FAILED"));
    let told = &sent["task"]["status"]["message"]["parts"][0]["text"];
    assert!(told.as_str().unwrap().contains("was killed"), "{sent}");
    assert_eq!(app.ran(), ["hold", "killed"]);
}

// check: FISK-17
// check: FISK-59
#[tokio::test]
async fn the_same_checks_stand_before_it() {
    let app = App::new();
    let agent = Agent::start(app.served().await, Limits::default(), Some("tok")).await;
    let call = message(asks("fail", json!({})));
    let send = || agent.post("/v1/message:send", &call);
    let card = reqwest::Client::new().get(agent.url("/.well-known/agent-card.json"));
    assert_eq!(answer(card).await.0, 401);
    assert_eq!(answer(send()).await.0, 401);
    let foreign = send()
        .bearer_auth("tok")
        .header("origin", "http://evil.example");
    assert_eq!(answer(foreign).await.0, 403);
    let rebound = send().bearer_auth("tok").header("host", "evil.example");
    assert_eq!(answer(rebound).await.0, 403);
    assert!(app.ran().is_empty());
    assert_eq!(answer(send().bearer_auth("tok")).await.0, 200);
}

// check: FISK-60
#[tokio::test]
async fn tasks_are_so_many_and_the_oldest_that_is_over_makes_room() {
    let app = App::new();
    let limits = Limits {
        tasks: 2,
        ..Limits::default()
    };
    let agent = Agent::start(app.served().await, limits, None).await;
    let (_, first) = agent.send(asks("fail", json!({}))).await;
    let mut hold = message(asks("hold", json!({})));
    hold["configuration"] = json!({"returnImmediately": true});
    for _ in 0..2 {
        let (status, _) = answer(agent.post("/v1/message:send", &hold)).await;
        assert_eq!(status, 200);
    }
    let (status, _) = agent.look(first["task"]["id"].as_str().unwrap()).await;
    assert_eq!(status, 404);
    let (status, error) = agent.send(asks("fail", json!({}))).await;
    assert_eq!(status, 429);
    assert_eq!(error["error"]["status"], json!("RESOURCE_EXHAUSTED"));
    app.until("hold", 2).await;
    agent.cancel.cancel();
    tokio::time::timeout(PATIENCE, agent.serving.wait())
        .await
        .expect("it ends");
    assert_eq!(app.count("killed"), 2);
}
