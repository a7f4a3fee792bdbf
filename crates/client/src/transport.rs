//! One call over HTTP.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::backoff::Backoff;
use crate::builder::Client;
use crate::error::{Error, is_passing};

/// The longest that an ordinary answer may take.
const ORDINARY: Duration = Duration::from_secs(60);

/// A call that can be sent, and sent again.
pub(crate) struct Call {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Bytes>,
    timeout: Duration,
    repeatable: bool,
}

impl Call {
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, true)
    }

    /// Repeated only where it never left this machine.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, false)
    }

    /// Repeated only where it never left this machine.
    pub fn post(path: impl Into<String>, body: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::Config(format!("the request is no JSON: {error}")))?;
        let mut call = Self::new(Method::POST, path, false);
        call.body = Some(body.into());
        Ok(call)
    }

    fn new(method: Method, path: impl Into<String>, repeatable: bool) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            body: None,
            timeout: ORDINARY,
            repeatable,
        }
    }

    /// Doing it twice comes to the same as doing it once.
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub fn maybe(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.query(name, value.to_string()),
            None => self,
        }
    }
}

/// A whole answer, whatever it says.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub request_id: Option<String>,
    pub body: Bytes,
}

impl Answer {
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if !self.status.is_success() {
            return Err(self.failure());
        }
        serde_json::from_slice(&self.body).map_err(|error| Error::Protocol(error.to_string()))
    }

    pub fn nothing(&self) -> Result<(), Error> {
        if self.status.is_success() {
            Ok(())
        } else {
            Err(self.failure())
        }
    }

    fn failure(&self) -> Error {
        Error::of(self.status, self.request_id.clone(), &self.body)
    }
}

impl Client {
    /// Sends a call, again where that is safe and may help.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        let mut backoff = Backoff::new();
        let mut left = self.inner.tries;
        loop {
            left -= 1;
            let outcome = self.once(call).await;
            let again = match &outcome {
                Ok(answer) => call.repeatable && is_passing(answer.status.as_u16()),
                Err(error) => error.is_unsent() || call.repeatable && error.is_passing(),
            };
            if !again || left == 0 {
                return outcome;
            }
            backoff.pause().await;
        }
    }

    /// Sends a call once.
    pub(crate) async fn once(&self, call: &Call) -> Result<Answer, Error> {
        let (request, url) = self.request(call)?;
        let failed = |source| Error::Transport { url, source };
        let response = match request.timeout(call.timeout).send().await {
            Ok(response) => response,
            Err(source) => return Err(failed(source.without_url())),
        };
        let status = response.status();
        let request_id = request_id(&response);
        match response.bytes().await {
            Ok(body) => Ok(Answer {
                status,
                request_id,
                body,
            }),
            Err(source) => Err(failed(source.without_url())),
        }
    }

    /// Sends a call whose answer has no end.
    pub(crate) async fn open(&self, call: &Call) -> Result<reqwest::Response, Error> {
        let (request, url) = self.request(call)?;
        let response = request.send().await.map_err(|source| Error::Transport {
            url,
            source: source.without_url(),
        })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let request_id = request_id(&response);
        let body = response.bytes().await.unwrap_or_default();
        Err(Error::of(status, request_id, &body))
    }

    fn request(&self, call: &Call) -> Result<(reqwest::RequestBuilder, String), Error> {
        let mut url = self.url(&call.path);
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let shown = url.to_string();
        let mut request = self.inner.http.request(call.method.clone(), url);
        if let Some(token) = &self.inner.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        if let Some(actor) = &self.actor {
            request = request.header("Fuse-Actor", actor_header("id", &actor.id)?);
            if let Some(name) = &actor.name {
                request = request.header("Fuse-Actor-Name", actor_header("name", name)?);
            }
        }
        if let Some(body) = &call.body {
            request = request
                .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
                .body(body.clone());
        }
        Ok((request, shown))
    }

    /// `path` under the base URL, which may have a path of its own.
    fn url(&self, path: &str) -> Url {
        let mut url = self.inner.base.clone();
        let joined = format!("{}{path}", url.path().trim_end_matches('/'));
        url.set_path(&joined);
        url
    }
}

fn request_id(response: &reqwest::Response) -> Option<String> {
    let value = response.headers().get("x-request-id")?;
    value.to_str().ok().map(str::to_owned)
}

fn actor_header(part: &str, text: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| Error::Config(format!("the actor's {part} holds control characters")))
}
