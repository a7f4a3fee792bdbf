//! A scripted stand-in of a provider on the loopback interface: real HTTP, real streams, no network. For tests and benches.
//!
//! ```no_run
//! # async fn example() {
//! use fisk_llm::{Anthropic, standin::{Server, Turn}};
//!
//! let server = Server::start(vec![
//!     Turn::error(529, "overloaded_error", "busy"),
//!     Turn::tool_use("t1", "stream_ls", serde_json::json!({})),
//!     Turn::text("done"),
//! ])
//! .await;
//! let provider = Anthropic::new(server.anthropic("claude-sonnet-5")).unwrap();
//! // … run the loop, then look at what it has sent:
//! assert_eq!(server.requests().len(), 3);
//! # }
//! ```

mod render;
mod turn;

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::Response,
};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{AnthropicConfig, OpenAiConfig, RetryPolicy, Secret};
pub use turn::Turn;

/// The key that the ready-made configurations send.
pub const KEY: &str = "standin-key-0123456789";

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Where to.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body; null where it was no JSON.
    pub body: Value,
}

impl Recorded {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(present, _)| present == name)
            .map(|(_, value)| value.as_str())
    }
}

type Script = Box<dyn FnMut(&Recorded) -> Turn + Send>;

struct Shared {
    script: Mutex<Script>,
    requests: Mutex<Vec<Recorded>>,
}

/// A stand-in that runs until it is dropped. `…/v1/messages` answers as Anthropic does, `…/chat/completions` as OpenAI does.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Server {
    /// Answers with these turns, one per request; every further request is refused with a 400.
    ///
    /// # Panics
    /// Where no port of the loopback interface can be had.
    pub async fn start(turns: Vec<Turn>) -> Self {
        let mut turns = VecDeque::from(turns);
        Self::answering(move |_| {
            turns.pop_front().unwrap_or_else(|| {
                Turn::error(
                    400,
                    "invalid_request_error",
                    "the script has no further turn",
                )
            })
        })
        .await
    }

    /// Answers each request with what a function makes of it.
    ///
    /// # Panics
    /// Where no port of the loopback interface can be had.
    pub async fn answering(script: impl FnMut(&Recorded) -> Turn + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port of the loopback interface");
        let address = listener.local_addr().expect("the address just bound");
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            requests: Mutex::default(),
        });
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            // It runs until the task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Self {
            address,
            shared,
            task,
        }
    }

    /// `http://127.0.0.1:port`, which serves as `ANTHROPIC_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        let requests = self.shared.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A configuration that reaches this server and retries without noticeable waits.
    pub fn anthropic(&self, model: &str) -> AnthropicConfig {
        AnthropicConfig {
            base_url: self.base_url(),
            retry: quick(),
            ..AnthropicConfig::new(model, Secret::new(KEY.to_owned()))
        }
    }

    /// The same for the other provider.
    pub fn openai(&self, model: &str) -> OpenAiConfig {
        OpenAiConfig {
            base_url: format!("{}/v1", self.base_url()),
            key: Some(Secret::new(KEY.to_owned())),
            retry: quick(),
            ..OpenAiConfig::new(model)
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn quick() -> RetryPolicy {
    RetryPolicy {
        min_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(4),
        ..RetryPolicy::default()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 64 << 20).await.unwrap_or_default();
    let recorded = Recorded {
        path: head.uri.path().to_owned(),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                (name.as_str().to_owned(), value.into_owned())
            })
            .collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let turn = {
        let mut script = shared.script.lock().unwrap_or_else(PoisonError::into_inner);
        script(&recorded)
    };
    let openai = recorded.path.ends_with("/chat/completions");
    let requests = shared.requests.lock();
    requests
        .unwrap_or_else(PoisonError::into_inner)
        .push(recorded);
    turn.respond(openai).await
}
