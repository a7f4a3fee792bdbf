//! Raw HTTP: what is sent is what the test says, and what came back is looked at whole.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::Events;

/// Longer than the longest wait of the server.
const TIMEOUT: Duration = Duration::from_secs(90);

/// One credential at one server.
#[derive(Clone)]
pub struct Api {
    http: Client,
    base: String,
    token: Option<String>,
    headers: Vec<(&'static str, Vec<u8>)>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub text: String,
    asked: String,
}

impl Api {
    /// Calls to a server without a credential.
    ///
    /// # Panics
    /// No client can be made.
    #[must_use]
    pub fn new(base: &str) -> Self {
        // Fails where it is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().no_proxy().timeout(TIMEOUT);
        Self {
            http: http.build().expect("a client"),
            base: base.to_owned(),
            token: None,
            headers: Vec::new(),
        }
    }

    /// The same with this credential.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..self.clone()
        }
    }

    /// The same without a credential.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        Self {
            token: None,
            ..self.clone()
        }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(&self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        let mut api = self.clone();
        api.headers.push((name, value.into()));
        api
    }

    /// The same, speaking for a person.
    #[must_use]
    pub fn with_actor(&self, actor: &str) -> Self {
        self.with_header("Fuse-Actor", actor)
    }

    /// Where the server is.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// No whole answer came.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Reply, reqwest::Error> {
        let asked = format!("{method} {path}");
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value.as_slice());
        }
        if let Some(body) = body {
            request = request
                .header("Content-Type", "application/json")
                .body(body);
        }
        let response = request.send().await?;
        Ok(Reply {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await?,
            asked,
        })
    }

    /// Sends bytes as they are.
    ///
    /// # Panics
    /// No whole answer came.
    pub async fn send(&self, method: &str, path: &str, body: Option<Vec<u8>>) -> Reply {
        let sent = self.try_send(method, path, body).await;
        sent.unwrap_or_else(|error| panic!("{method} {path}: {error:?}"))
    }

    /// Reads.
    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, None).await
    }

    /// Sends a body.
    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.send("POST", path, Some(body.to_string().into_bytes()))
            .await
    }

    /// Removes.
    pub async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, None).await
    }

    /// One intervention as it stands.
    pub async fn read(&self, id: &str) -> Value {
        self.get(&format!("/v1/interventions/{id}")).await.ok(200)
    }

    /// One intervention, once it is settled or the wait is over.
    pub async fn wait(&self, id: &str, wait: &str) -> Value {
        let path = format!("/v1/interventions/{id}?wait={wait}");
        self.get(&path).await.ok(200)
    }

    /// Approves.
    pub async fn approve(&self, id: &str, body: Value) -> Reply {
        let path = format!("/v1/interventions/{id}?action=approve");
        self.post(&path, body).await
    }

    /// Rejects.
    pub async fn reject(&self, id: &str, reason: &str) -> Reply {
        let path = format!("/v1/interventions/{id}?action=reject");
        self.post(&path, json!({ "reason": reason })).await
    }

    /// Every entry of a list over all its pages, from `path`, which has a query.
    pub async fn all(&self, path: &str, member: &str) -> Vec<Value> {
        let mut found = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("{path}{cursor}")).await.ok(200);
            found.extend(page[member].as_array().expect("a list").iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return found,
            }
        }
    }

    /// The whole audit log.
    pub async fn audit(&self) -> Vec<Value> {
        self.all("/v1/hitl/audit?limit=200", "entries").await
    }

    /// The audit entries of an environment, as `event` names.
    pub async fn audited(&self, env: &str) -> Vec<String> {
        let path = format!("/v1/hitl/audit?limit=200&env={env}");
        let name = |entry: &Value| entry["event"].as_str().unwrap_or_default().to_owned();
        self.all(&path, "entries").await.iter().map(name).collect()
    }

    /// A full-access key's id and secret.
    pub async fn key(&self, label: &str) -> (String, String) {
        let made = self
            .post("/v1/api-keys", json!({ "label": label }))
            .await
            .ok(201);
        let text = |name: &str| made[name].as_str().expect(name).to_owned();
        (text("id"), text("key"))
    }

    /// The event stream of an environment.
    ///
    /// # Panics
    /// It is refused.
    pub async fn events(&self, env: &str) -> Events {
        let url = format!("{}/v1/environments/{env}/events", self.base);
        let request = self
            .http
            .get(url)
            .bearer_auth(self.token.as_deref().unwrap_or_default());
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status().as_u16(), 200, "the event stream of {env}");
        Events::new(response)
    }
}

impl Reply {
    /// The body.
    ///
    /// # Panics
    /// It is no JSON.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|e| panic!("{}: no JSON ({e}): {}", self.asked, self.text))
    }

    /// The body of an answer with this status.
    ///
    /// # Panics
    /// The status is another.
    #[track_caller]
    pub fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.asked, self.text);
        if self.text.is_empty() {
            Value::Null
        } else {
            self.json()
        }
    }

    /// The error of an answer with this status and code; it has the shape that every error has.
    ///
    /// # Panics
    /// It is another answer.
    // check: HTTP-1
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let body = self.ok(status);
        let members = body.as_object().expect("an object");
        assert_eq!(members.len(), 1, "{}: {body}", self.asked);
        let error = body["error"].clone();
        assert_eq!(error["code"], code, "{}: {body}", self.asked);
        let message = error["message"].as_str().unwrap_or_default();
        assert!(!message.trim().is_empty(), "{}: {body}", self.asked);
        if let Some(details) = error.get("details") {
            let details = details.as_object().expect("details are an object");
            assert!(
                details.values().all(Value::is_string),
                "{}: {body}",
                self.asked
            );
        }
        error
    }

    /// The message of a 400.
    ///
    /// # Panics
    /// It is another answer.
    #[track_caller]
    pub fn invalid(&self) -> String {
        let error = self.refused(400, "invalid_argument");
        error["message"].as_str().unwrap_or_default().to_owned()
    }

    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
