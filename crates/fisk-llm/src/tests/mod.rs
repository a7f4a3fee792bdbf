//! Both providers over real HTTP against the stand-in.

mod hostile;
mod learning;
mod retries;
mod wire;

use std::{sync::Mutex, time::Duration};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    Anthropic, Block, Delta, LlmError, Message, OpenAi, Provider, Reply, Request, Role, Sink,
    ToolSpec, standin::Server,
};

const MODEL: &str = "claude-sonnet-5";
const LONG: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Heard(Mutex<Vec<Delta>>);

impl Sink for Heard {
    fn delta(&self, delta: Delta) {
        self.0.lock().unwrap().push(delta);
    }
}

impl Heard {
    fn all(&self) -> Vec<Delta> {
        self.0.lock().unwrap().clone()
    }

    fn retries(&self) -> usize {
        let is = |delta: &&Delta| matches!(delta, Delta::Retrying { .. });
        self.all().iter().filter(is).count()
    }
}

fn anthropic(server: &Server) -> Anthropic {
    Anthropic::new(server.anthropic(MODEL)).unwrap()
}

fn openai(server: &Server) -> OpenAi {
    OpenAi::new(server.openai("local")).unwrap()
}

/// Both, so that a test holds for both.
fn both(server: &Server) -> [Box<dyn Provider>; 2] {
    [Box::new(anthropic(server)), Box::new(openai(server))]
}

fn tools(count: usize) -> Vec<ToolSpec> {
    (0..count)
        .map(|n| ToolSpec {
            name: format!("tool_{n}"),
            description: "does it".to_owned(),
            input_schema: json!({"type": "object", "properties": {}}),
            deferrable: true,
        })
        .collect()
}

async fn ask_with(
    provider: &dyn Provider,
    tools: &[ToolSpec],
    timeout: Duration,
    sink: &Heard,
    cancel: &CancellationToken,
) -> Result<Reply, LlmError> {
    let messages = [Message {
        role: Role::User,
        content: vec![text("list the streams")],
    }];
    let request = Request {
        system: "be careful",
        messages: &messages,
        tools,
        max_tokens: 4_096,
        timeout,
    };
    provider.complete(request, sink, cancel).await
}

async fn ask(provider: &dyn Provider) -> Result<Reply, LlmError> {
    ask_with(
        provider,
        &[],
        LONG,
        &Heard::default(),
        &CancellationToken::new(),
    )
    .await
}

fn text(text: &str) -> Block {
    Block::Text {
        text: text.to_owned(),
    }
}
