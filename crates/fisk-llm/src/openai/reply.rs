//! A reply of chat completions, streamed or whole.

use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    failure::{Failure, error_text, shorten},
    pieces::{MAX_BLOCKS, tool_input},
    transport::Events,
    types::{Block, Delta, Reply, Sink, StopReason, Usage},
};

/// A chunk of a stream, or a whole reply: the two differ in `delta` and `message`.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Told>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default, alias = "message")]
    delta: Option<Piece>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Piece {
    /// A text, or a list of parts with texts.
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Option<Value>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallPiece>>,
    /// The form before `tool_calls`.
    #[serde(default)]
    function_call: Option<Function>,
}

#[derive(Deserialize)]
struct CallPiece {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Deserialize, Default)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    /// A text to be continued, or with some servers an object.
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

impl Told {
    fn usage(&self) -> Usage {
        let cached = self
            .prompt_tokens_details
            .as_ref()
            .and_then(|d| d.cached_tokens);
        let cached = cached.unwrap_or(0);
        Usage {
            input: self.prompt_tokens.unwrap_or(0).saturating_sub(cached),
            cache_write: 0,
            cache_read: cached,
            output: self.completion_tokens.unwrap_or(0),
        }
    }
}

/// Makes a provider's text fit for an error.
pub(super) type Clean<'a> = &'a (dyn Fn(String) -> String + Sync);

/// A call as it grows.
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Default)]
struct Building {
    thinking: String,
    text: String,
    refused: bool,
    calls: Vec<Call>,
    finish: Option<String>,
    usage: Usage,
}

impl Building {
    fn take(&mut self, chunk: Chunk, sink: &dyn Sink, clean: Clean<'_>) -> Result<(), Failure> {
        if let Some(told) = chunk.usage {
            self.usage = told.usage();
        }
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(self.fail(&error, clean));
        }
        // Only one choice is asked for.
        let Some(choice) = chunk.choices.unwrap_or_default().into_iter().next() else {
            return Ok(());
        };
        if let Some(piece) = choice.delta {
            self.grow(piece, sink)?;
        }
        self.finish = choice.finish_reason.or(self.finish.take());
        Ok(())
    }

    fn fail(&self, error: &Value, clean: Clean<'_>) -> Failure {
        let name = |field| error.get(field).and_then(Value::as_str);
        let text = error_text(error).unwrap_or_else(|| "an error without a message".into());
        let text = clean(text);
        let status = error
            .get("code")
            .or_else(|| error.get("status"))
            .and_then(Value::as_u64)
            .and_then(|code| u16::try_from(code).ok())
            .and_then(|code| reqwest::StatusCode::from_u16(code).ok())
            .filter(|status| status.is_client_error() || status.is_server_error());
        match status {
            Some(status) => Failure::of_status(status, text, None).costing(self.usage),
            None => {
                let kind = name("type").or_else(|| name("code")).unwrap_or_default();
                Failure::of_type(kind, text, self.usage)
            }
        }
    }

    fn grow(&mut self, piece: Piece, sink: &dyn Sink) -> Result<(), Failure> {
        // A server that fills both says the same in both.
        let reasoning = piece
            .reasoning_content
            .or_else(|| piece.reasoning.as_ref().map(text_of))
            .filter(|text| !text.is_empty());
        if let Some(more) = reasoning {
            self.thinking.push_str(&more);
            sink.delta(Delta::Thinking(more));
        }
        let content = piece.content.as_ref().map(text_of);
        self.refused |= piece.refusal.as_ref().is_some_and(|text| !text.is_empty());
        for more in [content, piece.refusal].into_iter().flatten() {
            if !more.is_empty() {
                self.text.push_str(&more);
                sink.delta(Delta::Text(more));
            }
        }
        for call in piece.tool_calls.unwrap_or_default() {
            self.grow_call(call)?;
        }
        if let Some(function) = piece.function_call {
            self.grow_call(CallPiece {
                index: Some(0),
                id: None,
                function: Some(function),
            })?;
        }
        Ok(())
    }

    /// A piece is of the call with its index, unless it begins another: some servers send whole calls that all have index 0, or none.
    fn grow_call(&mut self, piece: CallPiece) -> Result<(), Failure> {
        let function = piece.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let id = piece.id.unwrap_or_default();
        let known = match piece.index {
            Some(_) => self
                .calls
                .iter()
                .rposition(|call| call.index == piece.index),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        let known = known.filter(|at| {
            let other =
                !id.is_empty() && !self.calls[*at].id.is_empty() && self.calls[*at].id != id;
            !other || name.is_empty()
        });
        let at = match known {
            Some(at) => at,
            None if self.calls.len() == MAX_BLOCKS => {
                return Err(Failure::protocol("the reply has too many calls"));
            }
            None => {
                self.calls.push(Call {
                    index: piece.index,
                    id: String::new(),
                    name: String::new(),
                    arguments: String::new(),
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        match function.arguments {
            None | Some(Value::Null) => {}
            Some(Value::String(more)) => call.arguments.push_str(&more),
            Some(whole) => call.arguments = whole.to_string(),
        }
        Ok(())
    }

    fn finish(self) -> Result<Reply, Failure> {
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            content.push(Block::Thinking {
                thinking: self.thinking,
                signature: String::new(),
            });
        }
        if !self.text.is_empty() {
            content.push(Block::Text { text: self.text });
        }
        for call in self.calls {
            if call.name.is_empty() {
                return Err(Failure::protocol("a call of a tool has no name"));
            }
            let (input, malformed) = arguments(call.arguments);
            content.push(Block::ToolUse {
                id: call.id,
                name: call.name,
                input,
                malformed,
            });
        }
        let stop = match self.finish.as_deref() {
            _ if self.refused => StopReason::Refusal,
            None | Some("stop" | "eos" | "end_turn") => StopReason::EndTurn,
            Some("tool_calls" | "function_call") => StopReason::ToolUse,
            Some("length") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            Some(other) => StopReason::Other(shorten(other)),
        };
        Ok(Reply {
            content,
            stop,
            usage: self.usage,
        })
    }
}

/// Some models write `null` for a call without arguments.
fn arguments(text: String) -> (Map<String, Value>, Option<String>) {
    if text.trim() == "null" {
        return (Map::new(), None);
    }
    tool_input(text)
}

/// A text, or the texts of a list of parts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Reads a stream to its end.
pub(super) async fn stream(
    mut events: Events,
    sink: &dyn Sink,
    clean: Clean<'_>,
) -> Result<Reply, Failure> {
    let mut building = Building::default();
    let mut done = false;
    while let Some(data) = events.next().await {
        let data = data.map_err(|failure| failure.costing(building.usage))?;
        if data.trim() == "[DONE]" {
            done = true;
            break;
        }
        let chunk =
            serde_json::from_str(&data).map_err(|error| Failure::unreadable("a chunk", &error))?;
        building.take(chunk, sink, clean)?;
    }
    if !done && building.finish.is_none() {
        return Err(Failure::again("the reply broke off").costing(building.usage));
    }
    building.finish()
}

/// Reads a reply that came in one piece.
pub(super) fn whole(body: &[u8], sink: &dyn Sink, clean: Clean<'_>) -> Result<Reply, Failure> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|_| Failure::protocol("it is neither an event stream nor JSON"))?;
    let chunk: Chunk = serde_json::from_value(value)
        .map_err(|error| Failure::unreadable("the completion", &error))?;
    if chunk.error.is_none() && chunk.choices.as_ref().is_none_or(Vec::is_empty) {
        return Err(Failure::protocol("the completion has no choice"));
    }
    let mut building = Building::default();
    building.take(chunk, sink, clean)?;
    building.finish()
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
