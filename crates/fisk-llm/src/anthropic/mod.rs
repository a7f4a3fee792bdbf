//! The Anthropic Messages API.

mod features;
mod reply;
mod request;

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use reqwest::header::{HeaderMap, HeaderValue};
use tokio_util::sync::CancellationToken;

use crate::{
    endpoint::{ConfigError, Endpoint},
    failure::Failure,
    pieces::settle,
    retry::{self, RetryPolicy},
    secret::{Secret, add_headers},
    transport::{Answer, Transport},
    types::{Delta, LlmError, Provider, Reply, Request, Sink},
};
use features::{Features, Remembered};

const VERSION: &str = "2023-06-01";

/// Whether the model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    /// As the model does by itself: recent ones think anyway, older ones do not.
    #[default]
    Unset,
    /// It thinks. Models that decide themselves how much do so; the others get a budget.
    Enabled {
        /// The most tokens for it, where the model takes a budget. It is kept under the request's `max_tokens`, and where fewer than
        /// 1,024 are left the model is asked without thinking.
        budget: u64,
    },
}

/// How the Messages API is reached.
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// Its address, with or without `/v1`: `ANTHROPIC_BASE_URL`.
    pub base_url: String,
    /// `ANTHROPIC_API_KEY`, sent as `x-api-key`.
    pub key: Option<Secret>,
    /// `ANTHROPIC_AUTH_TOKEN`, sent as a bearer token. Both may be set, and at least one has to be.
    pub auth_token: Option<Secret>,
    /// More headers, over the provider's own: `ANTHROPIC_CUSTOM_HEADERS`, by [`parse_headers`](crate::parse_headers).
    pub headers: Vec<(String, Secret)>,
    /// The model.
    pub model: String,
    /// Whether it thinks.
    pub thinking: Thinking,
    /// Whether plain HTTP to another machine is allowed. The key, the conversation and the model's calls are then open to whoever is
    /// on the way.
    pub allow_plain_http: bool,
    /// How failed calls are tried again.
    pub retry: RetryPolicy,
}

impl AnthropicConfig {
    /// The address where `ANTHROPIC_BASE_URL` is not set.
    pub const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

    /// The usual configuration: the public address, no thinking, no further headers.
    pub fn new(model: impl Into<String>, key: Secret) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            key: Some(key),
            auth_token: None,
            headers: Vec::new(),
            model: model.into(),
            thinking: Thinking::default(),
            allow_plain_http: false,
            retry: RetryPolicy::default(),
        }
    }
}

/// A provider that speaks the Messages API.
///
/// It caches the prompt, defers tools above ten where the model can search for them, and learns from a refusal which of thinking's
/// forms and of these features the model lacks.
#[derive(Debug)]
pub struct Anthropic {
    model: String,
    thinking: Thinking,
    transport: Transport,
    retry: RetryPolicy,
    remembered: Remembered,
}

impl Anthropic {
    /// # Errors
    /// Where there is no key, or the address or a header cannot be used.
    pub fn new(config: AnthropicConfig) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::join(
            &config.base_url,
            &["v1", "messages"],
            config.allow_plain_http,
        )?;
        if config.model.trim().is_empty() {
            return Err(ConfigError::new("model", "is empty"));
        }
        let given = |secret: Option<Secret>| secret.filter(|secret| !secret.is_empty());
        let (key, token) = (given(config.key), given(config.auth_token));
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        if let Some(key) = &key {
            headers.insert("x-api-key", key.header("", "key")?);
        }
        if let Some(token) = &token {
            headers.insert("authorization", token.header("Bearer ", "auth_token")?);
        }
        if key.is_none() && token.is_none() {
            return Err(ConfigError::new(
                "key",
                "is missing; set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN",
            ));
        }
        add_headers(&mut headers, &config.headers)?;
        let own = config.headers.into_iter().map(|(_, value)| value);
        let secrets = key.into_iter().chain(token).chain(own).collect();
        Ok(Self {
            remembered: Remembered::new(&config.model, config.thinking),
            model: config.model,
            thinking: config.thinking,
            transport: Transport::new(endpoint, headers, secrets)?,
            retry: config.retry,
        })
    }

    /// One request, repeated without what the model turns out to lack.
    async fn ask(&self, request: &Request<'_>, sink: &dyn Sink) -> Result<Reply, Failure> {
        let mut features = self.remembered.get();
        let mut refusal: Option<LlmError> = None;
        loop {
            match self.once(request, features, sink).await {
                Ok(reply) => {
                    if refusal.is_some() {
                        self.remembered.set(features);
                    }
                    return Ok(reply);
                }
                Err(Failure::Final(error)) => {
                    let lesser = if let LlmError::Refused {
                        status: 400 | 422,
                        message,
                    } = &error
                    {
                        features.without(message)
                    } else {
                        None
                    };
                    match (lesser, &refusal) {
                        (Some(lesser), _) => features = lesser,
                        // The first refusal says what is really wrong; later ones speak of our attempts.
                        (None, Some(first)) if matches!(error, LlmError::Refused { .. }) => {
                            return Err(Failure::Final(first.clone()));
                        }
                        (None, _) => return Err(Failure::Final(error)),
                    }
                    sink.delta(Delta::Retrying {
                        reason: error.to_string(),
                        after: Duration::ZERO,
                    });
                    refusal.get_or_insert(error);
                }
                Err(again) => return Err(again),
            }
        }
    }

    async fn once(
        &self,
        request: &Request<'_>,
        features: Features,
        sink: &dyn Sink,
    ) -> Result<Reply, Failure> {
        let body = request::body(&self.model, request, features, self.thinking);
        let sent = body.len();
        let answer = self.transport.post(Bytes::from(body)).await?;
        let clean = |text| self.transport.clean(text);
        let mut reply = match answer {
            Answer::Stream(events) => reply::stream(events, sink, &clean).await?,
            Answer::Whole(body) => reply::whole(&body, sink, &clean)?,
        };
        settle(&mut reply, request.messages, sent);
        Ok(reply)
    }
}

impl Provider for Anthropic {
    fn complete<'a>(
        &'a self,
        request: Request<'a>,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, LlmError>> {
        async move {
            let timeout = request.timeout;
            let request = &request;
            retry::run(self.retry, timeout, sink, cancel, || {
                self.ask(request, sink)
            })
            .await
        }
        .boxed()
    }
}
