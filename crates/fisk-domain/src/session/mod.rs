//! Sessions: what a run puts on record, and what can be told from the record alone.
//!
//! A run and its resume are the same machine: each event becomes a [`Record`], is written down, and then moves a [`Replay`]. So a
//! resumed run stands where the record ends, and nowhere else.

mod fingerprint;
mod replay;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::Tokens;

pub use fingerprint::{Fingerprint, ToolPrint};
pub use replay::{Broken, Finish, Next, PendingCall, Replay};

/// The version of the records. Another one is refused.
pub const FORMAT: u32 = 1;

/// How often one tool call is started at most: once, and once more where the run ended while it ran.
pub const MAX_STARTS: u32 = 2;

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Record {
    /// The session begins.
    Started {
        /// [`FORMAT`].
        format: u32,
        /// The session's name.
        session: String,
        /// What a resume has to find unchanged.
        fingerprint: Box<Fingerprint>,
        /// What the operator wants.
        prompt: String,
    },
    /// The model replied.
    Reply {
        /// Its blocks, as they go back to it.
        content: Vec<Value>,
        /// Why it stopped.
        stop: Stop,
        /// What the call cost.
        tokens: Tokens,
    },
    /// A tool call is about to have its effect.
    ToolStarted {
        /// The id of the call.
        call: String,
    },
    /// A tool call has its result.
    ToolResult {
        /// The id of the call.
        call: String,
        /// What the model reads.
        content: String,
        /// Whether the call was rejected or failed.
        is_error: bool,
    },
    /// The run stopped before its end, on its own terms.
    Suspended {
        /// Why.
        why: String,
    },
    /// Somebody resumed it.
    Resumed,
    /// The run is over.
    Ended {
        /// How.
        finish: Finish,
    },
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It has said what it wanted.
    EndTurn,
    /// It waits for the results of its calls.
    ToolUse,
    /// It ran into the most that it may write.
    MaxTokens,
    /// The provider paused it; it goes on when it is asked again.
    Pause,
    /// It refused.
    Refusal,
    /// Anything else, by the provider's name.
    Other(String),
}

/// The most characters of a session's name: those of a DNS label.
pub const MAX_NAME: usize = 63;

/// Whether a name can be a session's: a DNS label, so that it is a file name everywhere and never a path.
pub fn is_session_name(name: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}
