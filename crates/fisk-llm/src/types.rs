//! What is said to a model and what it says, independent of the provider. These types are also what a session's journal holds.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The operator's prompt and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// It.
        text: String,
    },
    /// What the model thought; goes back to it unchanged.
    Thinking {
        /// It.
        thinking: String,
        /// The provider's seal on it.
        signature: String,
    },
    /// A call of a tool.
    ToolUse {
        /// The provider's id of the call.
        id: String,
        /// The tool.
        name: String,
        /// The input; what the model wrote where it was no JSON object is in `malformed`.
        input: Map<String, Value>,
        /// The raw text of an input that is no JSON object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        malformed: Option<String>,
    },
    /// What a tool answered.
    ToolResult {
        /// The id of the call.
        tool_use_id: String,
        /// What the model reads.
        content: String,
        /// Whether the call was rejected or failed.
        is_error: bool,
    },
    /// A block of the provider's own (redacted thinking, a tool search and its result), which goes back to it unchanged.
    Provider {
        /// It, as the provider wrote it.
        value: Value,
    },
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What.
    pub content: Vec<Block>,
}

/// A tool, as the model reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its input.
    pub input_schema: Value,
    /// Whether the model may have to search for it, where it can search. Tools that ask the operator are never deferred.
    pub deferrable: bool,
}

/// One question to the model.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// The conversation so far.
    pub messages: &'a [Message],
    /// What it may call.
    pub tools: &'a [ToolSpec],
    /// The most tokens it may write.
    pub max_tokens: u64,
    /// The whole call, retries included, ends by then.
    pub timeout: Duration,
}

/// What a call cost, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Read, without what came from a cache or went into it.
    pub input: u64,
    /// Written into the cache.
    pub cache_write: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written by the model.
    pub output: u64,
}

impl Usage {
    /// Everything that counts towards a budget.
    pub fn total(self) -> u64 {
        self.input
            .saturating_add(self.cache_write)
            .saturating_add(self.cache_read)
            .saturating_add(self.output)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            output: self.output.saturating_add(other.output),
        }
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It has said what it wanted.
    EndTurn,
    /// It waits for the results of its calls.
    ToolUse,
    /// It ran into `max_tokens`.
    MaxTokens,
    /// The provider paused a long turn: send the conversation again to go on.
    Pause,
    /// It refused.
    Refusal,
    /// Anything else, by the provider's name.
    Other(String),
}

/// What the model said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Its blocks.
    pub content: Vec<Block>,
    /// Why it stopped.
    pub stop: StopReason,
    /// What it cost, tries that failed on the way included as far as they told. Where the provider tells nothing it is estimated from
    /// the bytes, on the high side, so that a budget still binds.
    pub usage: Usage,
}

/// A piece of a reply that is still being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// The provider is asked again, after a failure or without something that it turned out to lack; what it has said in this call so
    /// far does not count.
    Retrying {
        /// What failed.
        reason: String,
        /// How long until then.
        after: Duration,
    },
}

/// Takes pieces as they come. Must not block.
pub trait Sink: Send + Sync {
    /// Takes one.
    fn delta(&self, delta: Delta);
}

/// Why there is no reply. No variant holds a key or a header.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LlmError {
    /// The run was cancelled.
    #[error("the call was canceled")]
    Cancelled,
    /// The time was up.
    #[error("the model did not answer within {0:?}")]
    Timeout(Duration),
    /// The key was refused.
    #[error("the provider refused the key: {0}")]
    Unauthorized(String),
    /// The provider refused the request.
    #[error("the provider refused the request ({status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// It is overloaded or unreachable, and stayed so over all tries.
    #[error("the provider is not available: {0}")]
    Unavailable(String),
    /// It answered something that is no reply.
    #[error("the provider's answer cannot be read: {0}")]
    Protocol(String),
}

/// A provider of a language model.
pub trait Provider: Send + Sync {
    /// Asks the model. Pieces of the reply go to `sink` as they come. A reply that ends with a call of a tool stops with
    /// [`StopReason::ToolUse`], and only such a one does; ids of calls differ within a reply.
    ///
    /// # Errors
    /// [`LlmError`]. The texts in it are the provider's: strip them before they reach a terminal.
    fn complete<'a>(
        &'a self,
        request: Request<'a>,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, LlmError>>;
}
