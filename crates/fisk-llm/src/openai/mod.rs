//! Any server with OpenAI's chat completions: local models, gateways, OpenAI itself.

mod reply;
mod request;

use std::{
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use reqwest::header::HeaderMap;
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

/// How an OpenAI-compatible server is reached.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// Its address up to `/v1`, e.g. `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// `OPENAI_API_KEY`, sent as a bearer token. Local servers mostly need none.
    pub key: Option<Secret>,
    /// More headers, over the provider's own.
    pub headers: Vec<(String, Secret)>,
    /// The model.
    pub model: String,
    /// Whether plain HTTP to another machine is allowed. The key, the conversation and the model's calls are then open to whoever is
    /// on the way.
    pub allow_plain_http: bool,
    /// How failed calls are tried again.
    pub retry: RetryPolicy,
}

impl OpenAiConfig {
    /// OpenAI's own address.
    pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

    /// The usual configuration: the public address, no key, no further headers.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            base_url: Self::DEFAULT_BASE_URL.to_owned(),
            key: None,
            headers: Vec::new(),
            model: model.into(),
            allow_plain_http: false,
            retry: RetryPolicy::default(),
        }
    }
}

/// What a request asks of the server; servers differ in what they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Features {
    /// Whether usage is asked for at the end of a stream.
    usage: bool,
    /// Whether the limit is called `max_completion_tokens`, as OpenAI's own recent models demand.
    completion: bool,
    /// Whether the limit's name has been changed already.
    renamed: bool,
}

impl Features {
    /// The same without what a refusal names; `None` where it names nothing that is asked for.
    fn without(self, refusal: &str) -> Option<Self> {
        let text = refusal.to_ascii_lowercase();
        if self.usage && (text.contains("stream_options") || text.contains("include_usage")) {
            return Some(Self {
                usage: false,
                ..self
            });
        }
        // Naming the other name is what such a refusal has in common; one about the number names ours alone.
        if !self.renamed && text.contains("max_completion_tokens") {
            return Some(Self {
                completion: !self.completion,
                renamed: true,
                ..self
            });
        }
        None
    }

    fn bits(self) -> u8 {
        u8::from(self.usage) | u8::from(self.completion) << 1 | u8::from(self.renamed) << 2
    }

    fn from_bits(bits: u8) -> Self {
        Self {
            usage: bits & 1 != 0,
            completion: bits & 2 != 0,
            renamed: bits & 4 != 0,
        }
    }
}

/// A provider that speaks chat completions.
#[derive(Debug)]
pub struct OpenAi {
    model: String,
    transport: Transport,
    retry: RetryPolicy,
    /// [`Features`] of the last good request.
    remembered: AtomicU8,
}

impl OpenAi {
    /// # Errors
    /// Where the address, the key or a header cannot be used.
    pub fn new(config: OpenAiConfig) -> Result<Self, ConfigError> {
        let path = ["chat", "completions"];
        let endpoint = Endpoint::join(&config.base_url, &path, config.allow_plain_http)?;
        if config.model.trim().is_empty() {
            return Err(ConfigError::new("model", "is empty"));
        }
        let mut headers = HeaderMap::new();
        let key = config.key.filter(|key| !key.is_empty());
        if let Some(key) = &key {
            headers.insert("authorization", key.header("Bearer ", "key")?);
        }
        add_headers(&mut headers, &config.headers)?;
        let own = config.headers.into_iter().map(|(_, value)| value);
        let features = Features {
            usage: true,
            completion: endpoint.url.host_str() == Some("api.openai.com"),
            renamed: false,
        };
        Ok(Self {
            model: config.model,
            transport: Transport::new(endpoint, headers, key.into_iter().chain(own).collect())?,
            retry: config.retry,
            remembered: AtomicU8::new(features.bits()),
        })
    }

    /// One request, repeated without what the server turns out to lack.
    async fn ask(&self, request: &Request<'_>, sink: &dyn Sink) -> Result<Reply, Failure> {
        let mut features = Features::from_bits(self.remembered.load(Ordering::Relaxed));
        loop {
            match self.once(request, features, sink).await {
                Ok(reply) => {
                    self.remembered.store(features.bits(), Ordering::Relaxed);
                    return Ok(reply);
                }
                Err(Failure::Final(LlmError::Refused {
                    status: status @ (400 | 422),
                    message,
                })) => {
                    let error = LlmError::Refused { status, message };
                    match features.without(&error.to_string()) {
                        Some(lesser) => features = lesser,
                        None => return Err(Failure::Final(error)),
                    }
                    sink.delta(Delta::Retrying {
                        reason: error.to_string(),
                        after: Duration::ZERO,
                    });
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn once(
        &self,
        request: &Request<'_>,
        features: Features,
        sink: &dyn Sink,
    ) -> Result<Reply, Failure> {
        let body = request::body(&self.model, request, features.usage, features.completion);
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

impl Provider for OpenAi {
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
