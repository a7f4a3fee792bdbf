#![allow(dead_code, reason = "each test file uses a part of it")]
//! A server that answers each request with the next step of a script, and can drop connections as a real one will not.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fuse_client::{Client, ClientBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const ENV: &str = "fuse-agent";
pub const INT: &str = "int_00000000000000000000000000000001";

pub enum Step {
    /// An answer: its status and body.
    Answer(u16, Value),
    /// An answer that is no JSON, as from a proxy.
    Text(u16, &'static str),
    /// An event stream of these bytes, then closed.
    Events(&'static str),
    /// The connection is closed once the request has been read.
    Drop,
    /// Half of an answer, then the connection is closed.
    Half,
}

#[derive(Clone)]
pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    script: Arc<Mutex<VecDeque<Step>>>,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Method and target.
    pub line: String,
    /// With lower-case names.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Server {
    pub async fn start(script: impl IntoIterator<Item = Step>) -> Self {
        Self::start_at("127.0.0.1:0", script).await
    }

    pub async fn start_at(address: &str, script: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port");
        let server = Self {
            url: format!("http://{}", listener.local_addr().expect("an address")),
            seen: Arc::default(),
            script: Arc::new(Mutex::new(script.into_iter().collect())),
        };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.serve(stream).await;
            }
        });
        server
    }

    pub fn builder(&self) -> ClientBuilder {
        Client::builder(&self.url).token("fuse_sk_test")
    }

    pub fn client(&self) -> Client {
        self.builder().build().expect("a client")
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("a lock").clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }

    /// Every step was taken.
    pub fn is_done(&self) -> bool {
        self.script.lock().expect("a lock").is_empty()
    }

    /// One request for each connection.
    async fn serve(&self, mut stream: TcpStream) {
        let seen = read_request(&mut stream).await;
        self.seen.lock().expect("a lock").push(seen);
        let step = self.script.lock().expect("a lock").pop_front();
        let bytes = match step.expect("a step for every request") {
            Step::Answer(status, body) => answer(status, "application/json", &body.to_string()),
            Step::Text(status, body) => answer(status, "text/html", body),
            Step::Events(body) => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}"
            ),
            Step::Drop => return,
            Step::Half => "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"id\":".to_owned(),
        };
        let _ = stream.write_all(bytes.as_bytes()).await;
    }
}

fn answer(status: u16, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nx-request-id: req-1\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn read_request(stream: &mut TcpStream) -> Seen {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        stream.read_buf(&mut bytes).await.expect("a request");
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).expect("text");
    let mut lines = head.split("\r\n");
    let line = lines.next().expect("a line").trim_end_matches(" HTTP/1.1");
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().expect("a length"));
    while bytes.len() < head_end + 4 + length {
        stream.read_buf(&mut bytes).await.expect("a body");
    }
    Seen {
        line: line.to_owned(),
        body: serde_json::from_slice(&bytes[head_end + 4..]).unwrap_or(Value::Null),
        headers,
    }
}

/// A held or requested intervention in its first state.
pub fn pending(kind: &str) -> Value {
    json!({
        "id": INT, "env_id": ENV, "kind": kind, "state": "pending", "deadline": "2999-01-01T00:00:00Z",
        "created_at": "2026-01-01T00:00:00Z", "resolved_at": null,
        "triggered_by": { "id": "key:ak_x", "source": "key" }, "payload": {}, "payload_hash": "00",
    })
}

/// The same, decided.
pub fn decided(kind: &str, state: &str, outcome: &str, reason: &str) -> Value {
    let mut value = pending(kind);
    value["state"] = state.into();
    value["resolved_at"] = "2026-01-01T00:00:01Z".into();
    value["decision"] = json!({
        "outcome": outcome, "answer": "yes", "reason": reason, "decided_at": "2026-01-01T00:00:01Z",
        "decided_by": { "id": "alice", "source": "pinned" },
    });
    value
}

pub fn held() -> Step {
    Step::Answer(
        202,
        json!({ "intervention_id": INT, "intervention": pending("exec") }),
    )
}

pub fn ok(body: Value) -> Step {
    Step::Answer(200, body)
}

pub fn refused(status: u16, code: &str, details: Value) -> Step {
    let error = json!({ "code": code, "message": "no such luck", "details": details });
    Step::Answer(status, json!({ "error": error }))
}

pub fn ran() -> Value {
    json!({ "exit_code": 7, "stdout": "out", "stderr": "" })
}

/// A test that hangs is a test that fails.
pub async fn soon<T>(future: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future.into_future())
        .await
        .expect("it hangs")
}
