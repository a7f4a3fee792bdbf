//! The tools of an application over MCP, over real HTTP, with both generations of the protocol.

mod common;

use std::time::Duration;

use common::{
    Answer, App, ERAS, Era, Mcp, PATIENCE, Person, call, connect, is_denial, params, read,
};
use fisk_serve::Limits;
use rmcp::{
    model::{CallToolRequest, ClientRequest},
    service::PeerRequestOptions,
};
use serde_json::json;

async fn start(app: &App) -> Mcp {
    Mcp::start(app.served().await, Limits::default(), None).await
}

fn nobody() -> Person {
    Person::who(Answer::Unable)
}

// check: FISK-14
#[tokio::test]
async fn the_commands_are_listed_and_neither_denied_ones_nor_questions_to_the_operator() {
    let app = App::new();
    let mcp = start(&app).await;
    for era in ERAS {
        let client = connect(&mcp.url(), era, nobody()).await;
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["say", "fail", "hold", "purge", "peek"], "{era:?}");
        client.cancel().await.unwrap();
    }
}

// check: FISK-56
#[tokio::test]
async fn a_tool_is_described_with_its_schema_and_honest_hints() {
    let app = App::new();
    let mcp = start(&app).await;
    let client = connect(&mcp.url(), Era::Handshake, nobody()).await;
    let tools = serde_json::to_value(client.list_all_tools().await.unwrap()).unwrap();
    let say = &tools[0];
    assert!(say["description"].as_str().unwrap().contains("Does say"));
    assert_eq!(say["inputSchema"]["required"], json!(["text"]));
    assert_eq!(say["inputSchema"]["additionalProperties"], json!(false));
    assert_eq!(say["annotations"]["readOnlyHint"], json!(true));
    assert_eq!(say["annotations"]["title"], json!("say"));
    assert!(tools[1]["annotations"]["readOnlyHint"].is_null());
    assert_eq!(tools[3]["annotations"]["destructiveHint"], json!(true));
    // It says of itself that it only reads, and needs approval all the same.
    assert_eq!(tools[4]["annotations"]["readOnlyHint"], json!(false));
}

#[tokio::test]
async fn the_server_says_who_it_is() {
    let app = App::new();
    let mcp = start(&app).await;
    let client = connect(&mcp.url(), Era::Handshake, nobody()).await;
    let info = serde_json::to_value(client.peer_info().unwrap()).unwrap();
    assert_eq!(info["serverInfo"]["name"], json!("fixture"));
    assert_eq!(info["instructions"], json!("Be gentle"));
    assert_eq!(info["capabilities"], json!({"tools": {}}));
}

// check: FISK-18
#[tokio::test]
async fn a_result_is_exit_code_output_and_truncated_and_a_failing_command_is_no_error() {
    let app = App::new();
    let mcp = start(&app).await;
    for era in ERAS {
        let client = connect(&mcp.url(), era, nobody()).await;
        let said = call(&client, "say", json!({"text": "--loud; rm -rf /"})).await;
        assert_eq!(
            read(&said),
            json!({"exit_code": 0, "output": "say\n--text=--loud; rm -rf /\n", "truncated": false})
        );
        assert_eq!(said.is_error, Some(false));
        assert_eq!(said.structured_content, Some(read(&said)));
        let failed = call(&client, "fail", json!({})).await;
        assert_eq!(
            read(&failed),
            json!({"exit_code": 3, "output": "oops\n", "truncated": false})
        );
        assert_eq!(failed.is_error, Some(false));
        client.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn the_root_serves_too() {
    let app = App::new();
    let mcp = start(&app).await;
    let url = format!("http://{}/", mcp.serving.address());
    let client = connect(&url, Era::Handshake, nobody()).await;
    assert_eq!(
        read(&call(&client, "fail", json!({})).await)["exit_code"],
        json!(3)
    );
}

// check: FISK-18
#[tokio::test]
async fn a_rejected_call_is_an_error_that_names_the_property_and_what_is_allowed() {
    let app = App::new();
    let mcp = start(&app).await;
    let client = connect(&mcp.url(), Era::Handshake, nobody()).await;
    for (input, named, allowed) in [
        (json!({"text": "x", "volume": 3}), "volume", "tone"),
        (json!({"text": 3}), "text", "string"),
        (json!({}), "text", "required"),
    ] {
        let rejected = call(&client, "say", input.clone()).await;
        let text = read(&rejected);
        let text = text.as_str().unwrap();
        assert_eq!(rejected.is_error, Some(true), "{input}");
        assert!(text.contains(named), "{input}: {text}");
        assert!(text.contains(allowed), "{input}: {text}");
    }
    assert!(app.ran().is_empty());
}

// check: FISK-18
#[tokio::test]
async fn an_unknown_tool_is_named_with_those_that_there_are() {
    let app = App::new();
    let mcp = start(&app).await;
    let client = connect(&mcp.url(), Era::Handshake, nobody()).await;
    for unknown in ["destroy", "ask_human_confirm", "Say", ""] {
        let rejected = call(&client, unknown, json!({})).await;
        assert_eq!(rejected.is_error, Some(true));
        let text = read(&rejected);
        let text = text.as_str().unwrap();
        assert!(text.contains(&format!("{unknown:?}")), "{text}");
        assert!(text.contains("say, fail, hold, purge, peek"), "{text}");
    }
    assert!(app.ran().is_empty());
}

// check: FISK-57
#[tokio::test]
async fn so_many_commands_run_at_once_and_the_next_waits_its_turn() {
    let app = App::new();
    let mcp = start(&app).await;
    let client = connect(&mcp.url(), Era::Handshake, nobody()).await;
    let hold = || {
        let peer = client.peer().clone();
        tokio::spawn(async move { peer.call_tool(params("hold", json!({}))).await })
    };
    let first = [hold(), hold()];
    app.until("hold", 2).await;
    let third = hold();
    let other = connect(&mcp.url(), Era::Stateless, nobody()).await;
    // A rejected call needs no slot, and its answer shows that the third had its chance.
    call(&other, "nothing", json!({})).await;
    let fourth = tokio::spawn({
        let peer = other.peer().clone();
        async move { peer.call_tool(params("fail", json!({}))).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(app.ran(), ["hold", "hold"]);
    app.release();
    for held in first {
        let held = held.await.unwrap().unwrap();
        assert_eq!(read(&held)["output"], json!("released\n"));
    }
    third.await.unwrap().unwrap();
    fourth.await.unwrap().unwrap();
    assert_eq!(app.count("hold"), 3);
}

// check: FISK-57
#[tokio::test]
async fn a_command_past_its_time_is_killed_and_the_result_says_so() {
    let app = App::new();
    let mut served = app.served().await;
    served.tool_timeout = Duration::from_millis(500);
    let mcp = Mcp::start(served, Limits::default(), None).await;
    let client = connect(&mcp.url(), Era::Handshake, nobody()).await;
    let result = call(&client, "hold", json!({})).await;
    assert_eq!(result.is_error, Some(true));
    let value = read(&result);
    assert!(
        value["error"]
            .as_str()
            .unwrap()
            .contains("did not end within 500ms and was killed")
    );
    assert_eq!(app.ran(), ["hold", "killed"]);
}

// check: FISK-57
#[tokio::test]
async fn a_call_that_is_taken_back_is_killed_and_leaves_its_slot() {
    let app = App::new();
    let mut served = app.served().await;
    served.max_concurrent_tools = 1;
    let mcp = Mcp::start(served, Limits::default(), None).await;
    let client = connect(&mcp.url(), Era::Handshake, nobody()).await;
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params("hold", json!({}))));
    let held = client
        .send_cancellable_request(request.clone(), PeerRequestOptions::no_options())
        .await
        .unwrap();
    app.until("hold", 1).await;
    let queued = client
        .send_cancellable_request(request, PeerRequestOptions::no_options())
        .await
        .unwrap();
    queued.cancel(None).await.unwrap();
    held.cancel(Some("enough".into())).await.unwrap();
    app.until("killed", 1).await;
    let next = call(&client, "fail", json!({})).await;
    assert_eq!(read(&next)["exit_code"], json!(3));
    assert_eq!(app.ran(), ["hold", "killed", "fail"]);
}

// check: FISK-57
#[tokio::test]
async fn a_client_without_a_session_that_goes_away_takes_its_call_back() {
    let app = App::new();
    let mcp = start(&app).await;
    let client = connect(&mcp.url(), Era::Stateless, nobody()).await;
    let peer = client.peer().clone();
    let held = tokio::spawn(async move { peer.call_tool(params("hold", json!({}))).await });
    app.until("hold", 1).await;
    held.abort();
    client.cancel().await.unwrap();
    app.until("killed", 1).await;
}

// check: FISK-57
#[tokio::test]
async fn the_end_of_a_session_kills_what_it_runs() {
    let app = App::new();
    let mcp = start(&app).await;
    let client = connect(&mcp.url(), Era::Handshake, nobody()).await;
    let peer = client.peer().clone();
    let held = tokio::spawn(async move { peer.call_tool(params("hold", json!({}))).await });
    app.until("hold", 1).await;
    // The client deletes its session.
    client.cancel().await.unwrap();
    app.until("killed", 1).await;
    let _ = held.await;
}

// check: FISK-57
#[tokio::test]
async fn the_server_ends_only_once_its_commands_are_dead() {
    let app = App::new();
    let mcp = start(&app).await;
    let client = connect(&mcp.url(), Era::Handshake, nobody()).await;
    let peer = client.peer().clone();
    let held = tokio::spawn(async move { peer.call_tool(params("hold", json!({}))).await });
    app.until("hold", 1).await;
    mcp.cancel.cancel();
    tokio::time::timeout(PATIENCE, mcp.serving.wait())
        .await
        .expect("it ends");
    assert_eq!(app.ran(), ["hold", "killed"]);
    held.abort();
}

// check: FISK-57
#[tokio::test]
async fn calls_beyond_the_bound_are_told_so_instead_of_piling_up() {
    let app = App::new();
    let mut served = app.served().await;
    served.max_concurrent_tools = 1;
    let limits = Limits {
        calls: 1,
        ..Limits::default()
    };
    let mcp = Mcp::start(served, limits, None).await;
    let client = connect(&mcp.url(), Era::Handshake, nobody()).await;
    let peer = client.peer().clone();
    let held = tokio::spawn(async move { peer.call_tool(params("hold", json!({}))).await });
    app.until("hold", 1).await;
    let refused = call(&client, "fail", json!({})).await;
    assert_eq!(refused.is_error, Some(true));
    assert!(!is_denial(&read(&refused)));
    app.release();
    held.await.unwrap().unwrap();
}
