//! A served surface of A2A, and how to speak to it.

use fisk_serve::{Limits, Served, Serving, serve_a2a_within};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{PATIENCE, local, prepare};

pub struct Agent {
    pub serving: Serving,
    pub cancel: CancellationToken,
}

impl Agent {
    pub async fn start(served: Served, limits: Limits, token: Option<&str>) -> Self {
        prepare();
        let cancel = CancellationToken::new();
        let serving = serve_a2a_within(served, local(token), limits, cancel.clone())
            .await
            .unwrap();
        Self { serving, cancel }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.serving.address())
    }

    pub fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        reqwest::Client::new()
            .post(self.url(path))
            .header("content-type", "application/json")
            .header("a2a-version", "1.0")
            .body(body.to_string())
    }

    pub async fn send(&self, part: Value) -> (StatusCode, Value) {
        answer(self.post("/v1/message:send", &message(part))).await
    }

    pub async fn look(&self, id: &str) -> (StatusCode, Value) {
        answer(reqwest::Client::new().get(self.url(&format!("/v1/tasks/{id}")))).await
    }
}

pub fn message(part: Value) -> Value {
    json!({"message": {"messageId": "m1", "contextId": "c1", "role": "ROLE_USER", "parts": [part]}})
}

pub fn asks(tool: &str, input: Value) -> Value {
    json!({"data": {"tool": tool, "input": input}})
}

pub async fn answer(request: RequestBuilder) -> (StatusCode, Value) {
    let answer = tokio::time::timeout(PATIENCE, request.send())
        .await
        .expect("an answer in time")
        .unwrap();
    let status = answer.status();
    (
        status,
        serde_json::from_str(&answer.text().await.unwrap()).unwrap(),
    )
}

pub fn result(task: &Value) -> &Value {
    &task["artifacts"][0]["parts"][0]["data"]
}
