//! HTTP to a provider: what is sent, and an answer in bounded memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use reqwest::{Client, Response, header::HeaderMap, redirect::Policy};
use sse_stream::{Error as SseError, SseByteStream};

use crate::{
    endpoint::{ConfigError, Endpoint},
    failure::{self, Failure},
    secret::Secret,
};

/// The most bytes of one event.
pub(crate) const MAX_EVENT: usize = 16 << 20;
/// The most bytes of one reply.
pub(crate) const MAX_REPLY: usize = 32 << 20;
/// The most bytes of an error's body that are read; the rest says nothing.
const MAX_ERROR: usize = 64 << 10;
const CONNECT: Duration = Duration::from_secs(10);

/// Bytes of a body; an error says whether to try again.
pub(crate) type Bytestream = BoxStream<'static, Result<Bytes, BodyError>>;
/// The data of each event.
pub(crate) type Events = BoxStream<'static, Result<String, Failure>>;

/// Why a body ended early.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the connection was lost: {0}")]
    Lost(String),
    #[error("{0}")]
    TooLarge(&'static str),
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Lost(_) => Failure::again(error.to_string()),
            BodyError::TooLarge(what) => Failure::protocol(what),
        }
    }
}

/// An answer with a good status.
pub(crate) enum Answer {
    /// Server-sent events.
    Stream(Events),
    /// One JSON document.
    Whole(Vec<u8>),
}

/// A connection pool to one endpoint, with the headers of each request.
#[derive(Debug)]
pub(crate) struct Transport {
    client: Client,
    endpoint: Endpoint,
    headers: HeaderMap,
    /// What no error may show.
    secrets: Vec<Secret>,
}

impl Transport {
    /// `headers` hold `secrets`. An `HTTPS_PROXY` of the environment is honoured, since TLS ends at the provider; plain HTTP never
    /// passes a proxy, which would read all of it.
    pub(crate) fn new(
        endpoint: Endpoint,
        headers: HeaderMap,
        secrets: Vec<Secret>,
    ) -> Result<Self, ConfigError> {
        // Fails only where another part has installed one, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .tcp_keepalive(Duration::from_secs(30))
            .user_agent(concat!("fisk/", env!("CARGO_PKG_VERSION")));
        if endpoint.plain {
            // Without the machine's certificate authorities, which a bare container may lack and plain HTTP does not need.
            client = client.no_proxy().tls_certs_only([]);
        }
        let client = client.build().map_err(|_| {
            ConfigError::new(
                "base_url",
                "no TLS client can be made for it; are certificate authorities installed here?",
            )
        })?;
        Ok(Self {
            client,
            endpoint,
            headers,
            secrets,
        })
    }

    /// Sends one request and reads its answer up to the body.
    pub(crate) async fn post(&self, body: Bytes) -> Result<Answer, Failure> {
        let response = self
            .client
            .post(self.endpoint.url.clone())
            .headers(self.headers.clone())
            .header("content-type", "application/json")
            .header("accept", "text/event-stream, application/json")
            .body(body)
            .send()
            .await
            .map_err(|error| Failure::again(self.clean(failure::describe(error))))?;
        let status = response.status();
        if status.is_success() {
            return answer(response).await;
        }
        let wait = failure::retry_after(response.headers(), SystemTime::now());
        let id = failure::request_id(response.headers());
        let hopeless = response
            .headers()
            .get("x-should-retry")
            .is_some_and(|value| value == "false");
        let body = head(response).await;
        let secrets: Vec<&str> = self.secrets.iter().map(Secret::expose).collect();
        let mut message = failure::message_of(&body, status, &secrets);
        if let Some(id) = id {
            message = failure::redact(format!("{message} (request {id})"), &secrets);
        }
        let failure = Failure::of_status(status, message, wait);
        Err(if hopeless {
            failure.for_good()
        } else {
            failure
        })
    }

    /// A text of the provider that an error may show.
    pub(crate) fn clean(&self, text: String) -> String {
        let secrets: Vec<&str> = self.secrets.iter().map(Secret::expose).collect();
        failure::shorten(&failure::redact(text, &secrets))
    }
}

/// The beginning of an error's body, or what came of it.
async fn head(response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        let room = MAX_ERROR - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == MAX_ERROR {
            break;
        }
    }
    body
}

async fn answer(response: Response) -> Result<Answer, Failure> {
    let kind = response
        .headers()
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let bytes = response
        .bytes_stream()
        .map(|chunk| chunk.map_err(|error| BodyError::Lost(failure::describe(error))));
    let mut bytes = bounded(bytes.boxed());
    if kind.contains("event-stream") {
        return Ok(Answer::Stream(events(bytes)));
    }
    let mut body = Vec::new();
    while let Some(chunk) = bytes.next().await {
        body.extend_from_slice(&chunk?);
        // Some gateways stream without saying so: an event's first line is no JSON.
        let start = body.trim_ascii_start();
        let decided = start.len() >= 6 || start.contains(&b'\n');
        if decided && !start.starts_with(b"{") && is_events(start) {
            let first = Bytes::from(body);
            let rest = stream::once(async move { Ok(first) }).chain(bytes);
            return Ok(Answer::Stream(events(rest.boxed())));
        }
    }
    Ok(Answer::Whole(body))
}

fn is_events(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    [&b"data:"[..], b"event:", b":", b"id:", b"retry:"]
        .iter()
        .any(|field| start.starts_with(field))
}

/// The same bytes, no more than a reply may have.
pub(crate) fn bounded(bytes: Bytestream) -> Bytestream {
    bytes
        .scan(0usize, |total, chunk| {
            *total += chunk.as_ref().map_or(0, Bytes::len);
            let over = *total > MAX_REPLY;
            futures_util::future::ready(Some(if over {
                Err(BodyError::TooLarge("the reply is larger than 32 MiB"))
            } else {
                chunk
            }))
        })
        .boxed()
}

/// The data of each event that has some. The parser holds an unfinished event without a bound, so bytes are counted before it.
pub(crate) fn events(bytes: Bytestream) -> Events {
    let pending = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&pending);
    let counted = bytes.map(move |chunk| {
        let chunk = chunk?;
        let held = counter.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
        if held > MAX_EVENT {
            return Err(BodyError::TooLarge("an event is larger than 16 MiB"));
        }
        Ok(chunk)
    });
    SseByteStream::new(counted)
        .filter_map(move |event| {
            pending.store(0, Ordering::Relaxed);
            futures_util::future::ready(match event {
                Ok(event) => event.data.filter(|data| !data.is_empty()).map(Ok),
                Err(SseError::Body(error)) => Some(Err(match error.downcast::<BodyError>() {
                    Ok(error) => Failure::from(*error),
                    Err(error) => Failure::again(format!("the connection was lost: {error}")),
                })),
                Err(error) => Some(Err(Failure::protocol(error.to_string()))),
            })
        })
        .boxed()
}
