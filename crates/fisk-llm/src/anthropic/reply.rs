//! A reply of the Messages API, streamed or whole.

use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    failure::{Failure, error_text},
    pieces::{MAX_BLOCKS, tool_input},
    transport::Events,
    types::{Block, Delta, Reply, Sink, StopReason, Usage},
};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: u64,
        content_block: Value,
    },
    ContentBlockDelta {
        index: u64,
        delta: Piece,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        #[serde(default)]
        delta: End,
        #[serde(default)]
        usage: Option<Told>,
    },
    MessageStop,
    Error {
        #[serde(default)]
        error: Value,
    },
    // `ping`, and what a later version adds.
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    usage: Option<Told>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize, Default)]
struct End {
    #[serde(default)]
    stop_reason: Option<String>,
}

/// Usage as told so far; a later number replaces an earlier one.
#[derive(Deserialize, Default, Clone, Copy)]
struct Told {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Told {
    fn update(&self, usage: &mut Usage) {
        let set = |to: &mut u64, told: Option<u64>| *to = told.unwrap_or(*to);
        set(&mut usage.input, self.input_tokens);
        set(&mut usage.cache_write, self.cache_creation_input_tokens);
        set(&mut usage.cache_read, self.cache_read_input_tokens);
        set(&mut usage.output, self.output_tokens);
    }
}

/// A whole reply.
#[derive(Deserialize)]
struct Whole {
    content: Vec<Value>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<Told>,
}

/// A block that is being written.
struct Open {
    index: u64,
    block: Block,
    /// The input of a call, or of a provider's own call.
    input: String,
    closed: bool,
}

impl Open {
    fn new(index: u64, start: Value) -> Result<Self, Failure> {
        Ok(Self {
            index,
            block: block(start)?,
            input: String::new(),
            closed: false,
        })
    }

    fn close(&mut self) {
        self.closed = true;
        let text = std::mem::take(&mut self.input);
        if text.is_empty() {
            return;
        }
        let (object, raw) = tool_input(text);
        match &mut self.block {
            Block::ToolUse {
                input, malformed, ..
            } => (*input, *malformed) = (object, raw),
            Block::Provider { value } if raw.is_none() => value["input"] = Value::Object(object),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::ToolResult { .. }
            | Block::Provider { .. } => {}
        }
    }
}

/// Takes off one block as the API writes it; what it has no name for here stays as it is.
fn block(mut value: Value) -> Result<Block, Failure> {
    let text = |value: &mut Value, name: &str| match value.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let Some(kind) = value.get("type").and_then(Value::as_str) else {
        return Err(Failure::protocol("a block has no type"));
    };
    match kind {
        "text" => Ok(Block::Text {
            text: text(&mut value, "text"),
        }),
        "thinking" => Ok(Block::Thinking {
            thinking: text(&mut value, "thinking"),
            signature: text(&mut value, "signature"),
        }),
        "tool_use" => {
            let name = text(&mut value, "name");
            if name.is_empty() {
                return Err(Failure::protocol("a call of a tool has no name"));
            }
            let (input, malformed) = match value.get_mut("input").map(Value::take) {
                Some(Value::Object(input)) => (input, None),
                None | Some(Value::Null) => (serde_json::Map::new(), None),
                Some(Value::String(raw)) => (serde_json::Map::new(), Some(raw)),
                Some(other) => (serde_json::Map::new(), Some(other.to_string())),
            };
            Ok(Block::ToolUse {
                id: text(&mut value, "id"),
                name,
                input,
                malformed,
            })
        }
        _ => Ok(Block::Provider { value }),
    }
}

/// Makes a provider's text fit for an error.
pub(super) type Clean<'a> = &'a (dyn Fn(String) -> String + Sync);

/// A reply as it grows.
#[derive(Default)]
struct Building {
    blocks: Vec<Open>,
    stop: Option<String>,
    usage: Usage,
}

impl Building {
    /// Takes one event; `true` ends the reply.
    fn take(&mut self, event: Event, sink: &dyn Sink, clean: Clean<'_>) -> Result<bool, Failure> {
        match event {
            Event::MessageStart { message } => {
                if let Some(told) = message.usage {
                    told.update(&mut self.usage);
                }
            }
            Event::ContentBlockStart {
                index,
                content_block,
            } => {
                if self.blocks.iter().any(|open| open.index == index) {
                    return Err(Failure::protocol("a block begins twice"));
                }
                if self.blocks.len() == MAX_BLOCKS {
                    return Err(Failure::protocol("the reply has too many blocks"));
                }
                let open = Open::new(index, content_block)?;
                announce(&open.block, sink);
                self.blocks.push(open);
            }
            Event::ContentBlockDelta { index, delta } => self.grow(index, delta, sink)?,
            Event::ContentBlockStop { index } => self.open(index)?.close(),
            Event::MessageDelta { delta, usage } => {
                if let Some(told) = usage {
                    told.update(&mut self.usage);
                }
                self.stop = delta.stop_reason.or(self.stop.take());
            }
            Event::MessageStop => return Ok(true),
            Event::Error { error } => {
                let kind = error
                    .get("type")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let text =
                    error_text(&error).unwrap_or_else(|| "an error without a message".into());
                return Err(Failure::of_type(kind, clean(text), self.usage));
            }
            Event::Unknown => {}
        }
        Ok(false)
    }

    fn open(&mut self, index: u64) -> Result<&mut Open, Failure> {
        self.blocks
            .iter_mut()
            .rev()
            .find(|open| open.index == index && !open.closed)
            .ok_or_else(|| Failure::protocol("an event is of a block that is not open"))
    }

    fn grow(&mut self, index: u64, delta: Piece, sink: &dyn Sink) -> Result<(), Failure> {
        let open = self.open(index)?;
        match (&mut open.block, delta) {
            (Block::Text { text }, Piece::TextDelta { text: more }) => {
                text.push_str(&more);
                sink.delta(Delta::Text(more));
            }
            (Block::Thinking { thinking, .. }, Piece::ThinkingDelta { thinking: more }) => {
                thinking.push_str(&more);
                sink.delta(Delta::Thinking(more));
            }
            (Block::Thinking { signature, .. }, Piece::SignatureDelta { signature: more }) => {
                signature.push_str(&more);
            }
            (
                Block::ToolUse { .. } | Block::Provider { .. },
                Piece::InputJsonDelta { partial_json },
            ) => open.input.push_str(&partial_json),
            // Citations, and what a later version adds.
            (_, Piece::Unknown) => {}
            (Block::Provider { .. }, _) => {}
            (
                Block::Text { .. }
                | Block::Thinking { .. }
                | Block::ToolUse { .. }
                | Block::ToolResult { .. },
                _,
            ) => {
                return Err(Failure::protocol("a piece does not fit its block"));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Reply, Failure> {
        let Some(stop) = self.stop else {
            return Err(Failure::again("the reply broke off").costing(self.usage));
        };
        for open in self.blocks.iter_mut().filter(|open| !open.closed) {
            open.close();
        }
        Ok(Reply {
            content: self.blocks.into_iter().map(|open| open.block).collect(),
            stop: stop_reason(stop),
            usage: self.usage,
        })
    }
}

/// Shows what a block begins with.
fn announce(block: &Block, sink: &dyn Sink) {
    match block {
        Block::Text { text } if !text.is_empty() => sink.delta(Delta::Text(text.clone())),
        Block::Thinking { thinking, .. } if !thinking.is_empty() => {
            sink.delta(Delta::Thinking(thinking.clone()));
        }
        Block::Text { .. }
        | Block::Thinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Provider { .. } => {}
    }
}

fn stop_reason(name: String) -> StopReason {
    match name.as_str() {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "pause_turn" => StopReason::Pause,
        "refusal" => StopReason::Refusal,
        _ => StopReason::Other(crate::failure::shorten(&name)),
    }
}

/// Reads a stream to its end.
pub(super) async fn stream(
    mut events: Events,
    sink: &dyn Sink,
    clean: Clean<'_>,
) -> Result<Reply, Failure> {
    let mut building = Building::default();
    while let Some(data) = events.next().await {
        let data = data.map_err(|failure| failure.costing(building.usage))?;
        let event =
            serde_json::from_str(&data).map_err(|error| Failure::unreadable("an event", &error))?;
        if building.take(event, sink, clean)? {
            break;
        }
    }
    building.finish()
}

/// Reads a reply that came in one piece.
pub(super) fn whole(body: &[u8], sink: &dyn Sink, clean: Clean<'_>) -> Result<Reply, Failure> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|_| Failure::protocol("it is neither an event stream nor JSON"))?;
    if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
        let kind = error
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let text = error_text(&value).unwrap_or_else(|| "an error without a message".into());
        return Err(Failure::of_type(kind, clean(text), Usage::default()));
    }
    let whole: Whole = serde_json::from_value(value)
        .map_err(|error| Failure::unreadable("the message", &error))?;
    if whole.content.len() > MAX_BLOCKS {
        return Err(Failure::protocol("the reply has too many blocks"));
    }
    let mut usage = Usage::default();
    if let Some(told) = whole.usage {
        told.update(&mut usage);
    }
    let content = whole
        .content
        .into_iter()
        .map(block)
        .collect::<Result<Vec<_>, _>>()?;
    content.iter().for_each(|block| announce(block, sink));
    Ok(Reply {
        content,
        stop: stop_reason(whole.stop_reason.unwrap_or_else(|| "end_turn".to_owned())),
        usage,
    })
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
