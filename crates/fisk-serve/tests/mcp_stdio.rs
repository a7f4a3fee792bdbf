//! MCP over a pair of pipes.

mod common;

use common::{Answer, App, PATIENCE, Person, call, is_denial, params, read};
use fisk_serve::{Limits, ServeError, serve_mcp_io};
use rmcp::ServiceExt;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

type Ends = JoinHandle<Result<(), ServeError>>;

/// The client's ends of the pipes: what it writes, what it reads.
async fn start(app: &App, cancel: CancellationToken) -> (DuplexStream, DuplexStream, Ends) {
    let (write, input) = duplex(64 * 1024);
    let (output, read) = duplex(64 * 1024);
    let served = app.served().await;
    let limits = Limits {
        body: 64 * 1024,
        ..Limits::default()
    };
    let server = tokio::spawn(serve_mcp_io(served, input, output, limits, cancel));
    (write, read, server)
}

async fn ends(server: Ends) -> Result<(), ServeError> {
    tokio::time::timeout(PATIENCE, server)
        .await
        .expect("it ends")
        .unwrap()
}

#[tokio::test]
async fn a_client_lists_calls_and_is_asked() {
    let app = App::new();
    let (write, from, server) = start(&app, CancellationToken::new()).await;
    let person = Person::who(Answer::yes());
    let client = person.clone().serve((from, write)).await.unwrap();
    assert_eq!(client.list_all_tools().await.unwrap().len(), 5);
    assert_eq!(
        read(&call(&client, "purge", json!({})).await)["exit_code"],
        json!(0)
    );
    assert_eq!(person.asked.lock().unwrap().len(), 1);
    client.cancel().await.unwrap();
    ends(server).await.unwrap();
}

// check: FISK-15
#[tokio::test]
async fn a_client_that_cannot_ask_is_refused() {
    let app = App::new();
    let (write, from, _server) = start(&app, CancellationToken::new()).await;
    let client = Person::who(Answer::Unable)
        .serve((from, write))
        .await
        .unwrap();
    assert!(is_denial(&read(&call(&client, "purge", json!({})).await)));
    assert!(app.ran().is_empty());
}

// check: FISK-61
#[tokio::test]
async fn the_end_of_the_input_kills_what_runs_and_ends_the_server() {
    let app = App::new();
    let (write, from, server) = start(&app, CancellationToken::new()).await;
    let client = Person::who(Answer::Unable)
        .serve((from, write))
        .await
        .unwrap();
    let peer = client.peer().clone();
    let held = tokio::spawn(async move { peer.call_tool(params("hold", json!({}))).await });
    app.until("hold", 1).await;
    client.cancel().await.unwrap();
    ends(server).await.unwrap();
    assert_eq!(app.ran(), ["hold", "killed"]);
    held.abort();
}

// check: FISK-61
#[tokio::test]
async fn a_cancelled_server_ends_although_its_client_stays() {
    let app = App::new();
    let cancel = CancellationToken::new();
    let (write, from, server) = start(&app, cancel.clone()).await;
    let client = Person::who(Answer::Unable)
        .serve((from, write))
        .await
        .unwrap();
    let peer = client.peer().clone();
    let held = tokio::spawn(async move { peer.call_tool(params("hold", json!({}))).await });
    app.until("hold", 1).await;
    cancel.cancel();
    ends(server).await.unwrap();
    assert_eq!(app.ran(), ["hold", "killed"]);
    held.abort();
}

// check: FISK-61
#[tokio::test]
async fn everything_on_the_output_is_the_protocol_whatever_comes_in() {
    let app = App::new();
    let (mut write, from, server) = start(&app, CancellationToken::new()).await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let flood = "x".repeat(200_000);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "fail", "arguments": {}}});
    let mut lines = BufReader::new(from).lines();
    let mut next = async || -> Value {
        let line = tokio::time::timeout(PATIENCE, lines.next_line());
        let line = line.await.expect("a line in time").unwrap().unwrap();
        serde_json::from_str(&line).expect("JSON on the output")
    };
    write
        .write_all(format!("{hello}\n").as_bytes())
        .await
        .unwrap();
    assert_eq!(next().await["id"], json!(1));
    write
        .write_all(format!("not json\n{flood}\n{call}\n").as_bytes())
        .await
        .unwrap();
    // Errors about the garbage may come first.
    let answer = loop {
        let answer = next().await;
        assert_eq!(answer["jsonrpc"], json!("2.0"));
        if answer["id"] == json!(2) {
            break answer;
        }
    };
    assert_eq!(answer["result"]["structuredContent"]["exit_code"], json!(3));
    drop(write);
    ends(server).await.unwrap();
}

// check: FISK-61
#[tokio::test]
async fn an_input_that_ends_at_once_is_no_failure() {
    let app = App::new();
    let (write, _from, server) = start(&app, CancellationToken::new()).await;
    drop(write);
    ends(server).await.unwrap();
}

// check: FISK-61
#[tokio::test]
async fn a_client_that_reads_nothing_does_not_hold_up_the_end() {
    for by_input in [true, false] {
        let app = App::new();
        let cancel = CancellationToken::new();
        let (mut write, _unread, server) = start(&app, cancel.clone()).await;
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        // Lists until the pipe of the answers is full and no more is taken.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), async {
            write
                .write_all(format!("{hello}\n").as_bytes())
                .await
                .unwrap();
            loop {
                write
                    .write_all(format!("{list}\n").as_bytes())
                    .await
                    .unwrap();
            }
        })
        .await;
        let open = match by_input {
            true => {
                drop(write);
                None
            }
            false => {
                cancel.cancel();
                Some(write)
            }
        };
        ends(server).await.unwrap();
        drop(open);
    }
}

// check: FISK-18
#[tokio::test]
async fn a_call_that_is_none_is_told_what_a_call_is() {
    let app = App::new();
    let (mut write, from, server) = start(&app, CancellationToken::new()).await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let mut lines = BufReader::new(from).lines();
    for (params, named) in [
        (json!({"name": "fail", "arguments": "{}"}), "arguments"),
        (json!({"name": "fail", "arguments": [1]}), "arguments"),
        (json!({"name": 5, "arguments": {}}), "name"),
        (json!({"arguments": {}}), "name"),
        (json!(null), "name"),
        (
            json!({"name": "fail", "inputResponses": "yes"}),
            "inputResponses",
        ),
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        write
            .write_all(format!("{hello}\n{call}\n").as_bytes())
            .await
            .unwrap();
        let answer = loop {
            let line = tokio::time::timeout(PATIENCE, lines.next_line());
            let line = line.await.expect("a line in time").unwrap().unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == json!(2) {
                break answer;
            }
        };
        assert_eq!(answer["error"]["code"], json!(-32602), "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(named), "{message}");
        assert!(message.contains("allowed"), "{message}");
    }
    assert!(app.ran().is_empty());
    drop(write);
    ends(server).await.unwrap();
}
