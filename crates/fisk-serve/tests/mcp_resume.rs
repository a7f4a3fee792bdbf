//! A client in a session that loses the stream of a call.

mod common;

use common::{App, Mcp, PATIENCE, prepare};
use fisk_serve::Limits;
use reqwest::{RequestBuilder, Response};
use serde_json::json;

fn headed(request: RequestBuilder) -> RequestBuilder {
    request
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
}

/// Reads until the text is there.
async fn until(answer: &mut Response, what: &str) -> String {
    let mut read = String::new();
    let found = tokio::time::timeout(PATIENCE, async {
        while !read.contains(what) {
            let chunk = answer.chunk().await.unwrap().expect("more of the stream");
            read.push_str(&String::from_utf8_lossy(&chunk));
        }
    });
    assert!(found.await.is_ok(), "no {what:?} in time");
    read
}

// check: FISK-57
#[tokio::test]
async fn it_comes_back_for_the_result_and_the_command_went_on() {
    prepare();
    let app = App::new();
    let mcp = Mcp::start(app.served().await, Limits::default(), None).await;
    let http = reqwest::Client::new();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let greeted = headed(http.post(mcp.url()))
        .body(hello.to_string())
        .send()
        .await
        .unwrap();
    let session = greeted.headers()["mcp-session-id"].clone();
    drop(greeted);

    let hold = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "hold", "arguments": {}}});
    let mut stream = headed(http.post(mcp.url()))
        .header("mcp-session-id", &session)
        .body(hold.to_string())
        .send()
        .await
        .unwrap();
    let first = until(&mut stream, "\n\n").await;
    let id = first
        .lines()
        .find_map(|line| line.strip_prefix("id:"))
        .expect("an event that can be resumed from")
        .trim()
        .to_owned();
    app.until("hold", 1).await;
    drop(stream);

    let mut resumed = headed(http.get(mcp.url()))
        .header("mcp-session-id", &session)
        .header("last-event-id", id)
        .send()
        .await
        .unwrap();
    assert_eq!(resumed.status(), 200);
    app.release();
    let result = until(&mut resumed, "exit_code").await;
    assert!(result.contains("released"), "{result}");
    assert_eq!(app.ran(), ["hold"]);
}
