//! What a hostile peer meets at the port: raw requests, without a client's good manners.

mod common;

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use common::{
    Answer, App, ERAS, Era, Mcp, PATIENCE, Person, call, connect, connect_with, local, prepare,
    read,
};
use fisk_serve::{Limits, Listen, ServeError, serve_a2a, serve_mcp_http};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

async fn start(app: &App, limits: Limits, token: Option<&str>) -> Mcp {
    prepare();
    Mcp::start(app.served().await, limits, token).await
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}})
}

fn post(mcp: &Mcp) -> RequestBuilder {
    post_as(mcp, "application/json")
}

fn post_as(mcp: &Mcp, kind: &str) -> RequestBuilder {
    reqwest::Client::new()
        .post(mcp.url())
        .header("accept", "application/json, text/event-stream")
        .header("content-type", kind)
        .body(hello().to_string())
}

async fn status(request: RequestBuilder) -> StatusCode {
    tokio::time::timeout(PATIENCE, request.send())
        .await
        .expect("an answer in time")
        .unwrap()
        .status()
}

// check: FISK-17
#[tokio::test]
async fn a_foreign_host_is_forbidden() {
    let app = App::new();
    let mcp = start(&app, Limits::default(), None).await;
    let port = mcp.serving.address().port();
    assert_eq!(status(post(&mcp)).await, StatusCode::OK);
    for host in [
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
    ] {
        assert_eq!(
            status(post(&mcp).header("host", &host)).await,
            200,
            "{host}"
        );
    }
    for host in [
        format!("evil.example:{port}"),
        "localhost".to_owned(),
        format!("localhost:{}", port.wrapping_add(1)),
        format!("192.0.2.1:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
    ] {
        assert_eq!(
            status(post(&mcp).header("host", &host)).await,
            403,
            "{host}"
        );
    }
}

// check: FISK-17
#[tokio::test]
async fn a_foreign_origin_is_forbidden() {
    let app = App::new();
    let mcp = start(&app, Limits::default(), None).await;
    let port = mcp.serving.address().port();
    let with = |origin: String| status(post(&mcp).header("origin", origin));
    assert_eq!(with(format!("http://localhost:{port}")).await, 200);
    for origin in [
        "null".to_owned(),
        String::new(),
        "https://evil.example".to_owned(),
        format!("http://evil.example:{port}"),
        format!("https://localhost:{port}"),
        "http://localhost:1".to_owned(),
        "http://localhost".to_owned(),
        format!("http://localhost:{port}.evil.example"),
    ] {
        assert_eq!(with(origin.clone()).await, 403, "{origin:?}");
    }
}

// check: FISK-17
#[tokio::test]
async fn two_hosts_or_none_or_a_foreign_target_are_refused() {
    let app = App::new();
    let mcp = start(&app, Limits::default(), None).await;
    let port = mcp.serving.address().port();
    for (head, refused) in [
        ("GET /mcp HTTP/1.1\r\n".to_owned(), "400"),
        (
            format!("GET /mcp HTTP/1.1\r\nhost: localhost:{port}\r\nhost: evil.example\r\n"),
            "400",
        ),
        (
            format!("GET http://evil.example/mcp HTTP/1.1\r\nhost: localhost:{port}\r\n"),
            "403",
        ),
        (
            format!(
                "GET /mcp HTTP/1.1\r\nhost: localhost:{port}\r\norigin: http://localhost:{port}\r\norigin: http://evil.example\r\n"
            ),
            "403",
        ),
    ] {
        let answer = raw(&mcp, &format!("{head}connection: close\r\n\r\n")).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {refused}")),
            "{head}: {answer}"
        );
    }
}

// check: FISK-59
#[tokio::test]
async fn with_a_token_nothing_is_served_without_it() {
    let app = App::new();
    let mcp = start(&app, Limits::default(), Some("s3cret-token")).await;
    for wrong in [
        None,
        Some("Bearer"),
        Some("Bearer "),
        Some("Bearer s3cret-toke"),
        Some("Bearer s3cret-tokens"),
        Some("Bearer S3CRET-TOKEN"),
        Some("Basic s3cret-token"),
        Some("s3cret-token"),
    ] {
        let mut request = post(&mcp);
        if let Some(wrong) = wrong {
            request = request.header("authorization", wrong);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 401, "{wrong:?}");
        assert_eq!(answer.headers()["www-authenticate"], "Bearer");
        let text = answer.text().await.unwrap();
        assert!(!text.contains("s3cret"), "{text}");
    }
    // Whoever comes from a foreign page does not even learn that there is a token.
    let foreign = post(&mcp).header("origin", "http://evil.example");
    assert_eq!(status(foreign).await, 403);
    let twice = post(&mcp)
        .header("authorization", "Bearer s3cret-token")
        .header("authorization", "Bearer other");
    assert_eq!(status(twice).await, 401);
    let right = post(&mcp).header("authorization", "bearer s3cret-token");
    assert_eq!(status(right).await, 200);
    for era in ERAS {
        let person = Person::who(Answer::Unable);
        let client = connect_with(&mcp.url(), era, person.clone(), Some("s3cret-token"))
            .await
            .unwrap();
        let result = call(&client, "fail", json!({})).await;
        assert_eq!(read(&result)["exit_code"], json!(3));
        assert!(
            connect_with(&mcp.url(), era, person, Some("other"))
                .await
                .is_err()
        );
    }
}

// check: FISK-59
#[tokio::test]
async fn an_address_that_others_reach_needs_a_token() {
    let app = App::new();
    let served = app.served().await;
    let open = |token: Option<&str>| Listen {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        ..local(token)
    };
    let cancel = CancellationToken::new();
    let refused = serve_mcp_http(served.clone(), open(None), cancel.clone()).await;
    assert!(matches!(refused, Err(ServeError::NoToken(_))));
    let refused = serve_a2a(served.clone(), open(None), cancel.clone()).await;
    assert!(matches!(refused, Err(ServeError::NoToken(_))));
    for bad in ["", "with blank", "new\nline", "ünicode"] {
        let refused = serve_mcp_http(served.clone(), open(Some(bad)), cancel.clone()).await;
        assert!(matches!(refused, Err(ServeError::BadToken)), "{bad:?}");
    }
    let serving = serve_mcp_http(served, open(Some("token")), cancel.clone())
        .await
        .unwrap();
    cancel.cancel();
    serving.wait().await;
}

#[tokio::test]
async fn a_taken_port_is_told() {
    let app = App::new();
    let mcp = start(&app, Limits::default(), None).await;
    let listen = Listen {
        port: mcp.serving.address().port(),
        ..local(None)
    };
    let taken = serve_mcp_http(app.served().await, listen, CancellationToken::new()).await;
    assert!(matches!(taken, Err(ServeError::Bind { .. })));
}

// check: FISK-60
#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let app = App::new();
    let mcp = start(&app, Limits::default(), None).await;
    let large = post(&mcp).body(vec![b' '; 1024 * 1024 + 1]);
    // The server may close before all of it is sent.
    match large.send().await {
        Ok(answer) => assert_eq!(answer.status(), 413),
        Err(error) => assert!(error.is_request() || error.is_body(), "{error}"),
    }
    let fits = post(&mcp).body(format!("{}{}", " ".repeat(1_000_000), hello()));
    assert_eq!(status(fits).await, 200);
}

// check: FISK-60
#[tokio::test]
async fn garbage_is_refused_and_the_server_goes_on() {
    let app = App::new();
    let mcp = start(&app, Limits::default(), None).await;
    let nested = "[".repeat(200_000);
    for body in [
        "",
        "{",
        "null",
        "[]",
        "{\"jsonrpc\":\"2.0\"}",
        "\u{0}",
        &nested,
    ] {
        let answer = status(post(&mcp).body(body.to_owned())).await;
        assert!(answer.is_client_error(), "{answer}");
    }
    for method in [Method::PUT, Method::PATCH, Method::OPTIONS, Method::HEAD] {
        let request = reqwest::Client::new().request(method.clone(), mcp.url());
        assert_eq!(status(request).await, 405, "{method}");
    }
    // A foreign page could send these without being asked first.
    for simple in ["text/plain", "application/x-www-form-urlencoded"] {
        assert_eq!(status(post_as(&mcp, simple)).await, 415);
    }
    assert_eq!(status(post(&mcp)).await, 200);
    let elsewhere = format!("http://{}/other", mcp.serving.address());
    assert_eq!(status(reqwest::Client::new().get(elsewhere)).await, 404);
    assert!(app.ran().is_empty());
}

// check: FISK-60
#[tokio::test]
async fn a_head_or_a_body_that_does_not_come_is_not_waited_for() {
    let app = App::new();
    let limits = Limits {
        head_time: Duration::from_millis(300),
        body_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let mcp = start(&app, limits, None).await;
    let port = mcp.serving.address().port();
    for silent in ["", "POST /mcp HTTP/1.1\r\nhost: local"] {
        raw(&mcp, silent).await;
    }
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    let answer = raw(&mcp, &head).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

// check: FISK-60
#[tokio::test]
async fn sessions_are_so_many_and_no_more_and_end_with_their_time() {
    let app = App::new();
    let limits = Limits {
        sessions: 2,
        session_age: Duration::from_millis(1_500),
        ..Limits::default()
    };
    let mcp = start(&app, limits, None).await;
    let opened = std::time::Instant::now();
    let first = connect(&mcp.url(), Era::Handshake, Person::who(Answer::Unable)).await;
    let peer = first.peer().clone();
    let held = tokio::spawn(async move { peer.call_tool(common::params("hold", json!({}))).await });
    app.until("hold", 1).await;
    assert_eq!(status(post(&mcp)).await, 200);
    if opened.elapsed() < Duration::from_millis(1_000) {
        assert!(status(post(&mcp)).await.is_server_error());
    }
    // What an old session runs ends with it.
    app.until("killed", 1).await;
    let room = tokio::time::timeout(PATIENCE, async {
        while status(post(&mcp)).await != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(room.await.is_ok());
    held.abort();
}

// check: FISK-60
#[tokio::test]
async fn somebody_elses_session_is_not_found() {
    let app = App::new();
    let mcp = start(&app, Limits::default(), None).await;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string();
    let unknown = post(&mcp)
        .header("mcp-session-id", "11111111-1111-1111-1111-111111111111")
        .body(list.clone());
    assert_eq!(status(unknown).await, 404);
    assert!(status(post(&mcp).body(list)).await.is_client_error());
}

/// Sends text as it is, and reads until the server closes.
async fn raw(mcp: &Mcp, text: &str) -> String {
    let mut stream = TcpStream::connect(mcp.serving.address()).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let closed = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    assert!(closed.is_ok(), "the server keeps a silent connection");
    String::from_utf8_lossy(&answer).into_owned()
}
