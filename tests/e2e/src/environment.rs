//! An environment that goes with its test.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Api, Reply, Server};

/// A running environment. It is destroyed when this goes, as far as its gates allow; its server's end takes the rest.
pub struct Env {
    /// Its id.
    pub id: String,
    /// Calls with the master token.
    pub api: Api,
    address: String,
    token: String,
}

impl Server {
    /// A running environment with this `hitl` block; none with `null`.
    pub async fn env(&self, hitl: Value) -> Env {
        self.env_of(json!({ "hitl": hitl })).await
    }

    /// A running environment from a whole create request, whose `task_id` is filled in.
    pub async fn env_of(&self, mut request: Value) -> Env {
        if request.get("task_id").is_none() {
            request["task_id"] = json!(crate::unique("e2e"));
        }
        let api = self.api();
        let made = api.post("/v1/environments", request).await.ok(201);
        Env {
            id: made["id"].as_str().expect("an id").to_owned(),
            api,
            address: self.address(),
            token: self.token().to_owned(),
        }
    }
}

impl Env {
    /// The environment as the server shows it.
    pub async fn get(&self) -> Reply {
        self.api.get(&format!("/v1/environments/{}", self.id)).await
    }

    /// Asks for one of its actions.
    pub async fn act(&self, action: &str, body: Value) -> Reply {
        self.act_as(&self.api, action, body).await
    }

    /// Asks for one of its actions with another credential.
    pub async fn act_as(&self, api: &Api, action: &str, body: Value) -> Reply {
        let path = format!("/v1/environments/{}?action={action}", self.id);
        api.post(&path, body).await
    }

    /// Asks for a command.
    pub async fn exec(&self, argv: &[&str]) -> Reply {
        self.act("exec", json!({ "cmd": argv })).await
    }

    /// Runs a command that no gate concerns, and gives its result.
    pub async fn run(&self, argv: &[&str]) -> Value {
        self.exec(argv).await.ok(200)
    }

    /// Runs shell text that no gate concerns, and gives what it printed.
    ///
    /// # Panics
    /// It fails.
    pub async fn sh(&self, text: &str) -> String {
        let ran = self.run(&["sh", "-c", text]).await;
        assert_eq!(ran["exit_code"], 0, "{text}: {ran}");
        ran["stdout"].as_str().unwrap_or_default().to_owned()
    }

    /// Asks for a command that is held, and gives the intervention.
    pub async fn hold(&self, argv: &[&str]) -> Value {
        held(&self.exec(argv).await)
    }

    /// Raises a request.
    pub async fn request(&self, body: Value) -> Reply {
        self.act("request", body).await
    }

    /// Raises a question, and gives the intervention's id.
    pub async fn ask(&self, question: &str) -> String {
        let body = json!({ "kind": "ask", "question": question });
        let raised = self.request(body).await.ok(201);
        raised["id"].as_str().expect("an id").to_owned()
    }

    /// Every intervention, newest first.
    pub async fn interventions(&self) -> Vec<Value> {
        let path = format!("/v1/interventions?state=all&limit=200&env={}", self.id);
        self.api.all(&path, "interventions").await
    }

    /// Asks for its end.
    pub async fn destroy(&self) -> Reply {
        self.api
            .delete(&format!("/v1/environments/{}", self.id))
            .await
    }
}

/// The intervention of a 202.
///
/// # Panics
/// It is another answer.
#[track_caller]
pub(crate) fn held(reply: &Reply) -> Value {
    let body = reply.ok(202);
    let members: Vec<&String> = body.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["intervention", "intervention_id"]);
    assert_eq!(body["intervention_id"], body["intervention"]["id"]);
    assert_eq!(body["intervention"]["state"], "pending", "{body}");
    body["intervention"].clone()
}

impl Reply {
    /// The intervention of a 202.
    ///
    /// # Panics
    /// It is another answer.
    #[track_caller]
    pub fn held(&self) -> Value {
        held(self)
    }
}

impl Drop for Env {
    fn drop(&mut self) {
        // By hand, since a runtime need not be there any more. A server that is gone ends its environments itself, later.
        let Ok(mut stream) = TcpStream::connect(&self.address) else {
            return;
        };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
        let request = format!(
            "DELETE /v1/environments/{} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.id, self.address, self.token
        );
        if stream.write_all(request.as_bytes()).is_ok() {
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
}
