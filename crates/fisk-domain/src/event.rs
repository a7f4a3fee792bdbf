//! What a run tells whoever watches it.

use serde_json::Value;

/// Something that happened in a run. Texts are raw: whoever shows one strips it first.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The model is asked again. Counts from 1.
    TurnStarted {
        /// Which turn.
        turn: u32,
    },
    /// A piece of what the model says.
    Text(String),
    /// A piece of what the model thinks.
    Thinking(String),
    /// A tool was called; its input was checked or not.
    ToolCalled {
        /// The provider's id of the call.
        id: String,
        /// The tool.
        tool: String,
        /// Its input.
        input: Value,
        /// The whole argument vector, program first, where the tool is a command and its input was accepted.
        argv: Option<Vec<String>>,
    },
    /// The operator is being asked about a call.
    Waiting {
        /// The provider's id of the call.
        id: String,
    },
    /// A command starts: nothing is in its way any more.
    Started {
        /// The provider's id of the call.
        id: String,
    },
    /// A tool has its result.
    ToolEnded {
        /// The provider's id of the call.
        id: String,
        /// What the model gets to read.
        result: String,
        /// How it ended.
        ending: Ending,
    },
    /// The provider is asked again after a failure.
    Retrying {
        /// What failed.
        reason: String,
        /// Milliseconds until then.
        after_ms: u64,
    },
    /// Tokens used so far in this run.
    Usage {
        /// Input tokens, cached ones included.
        input: u64,
        /// Output tokens.
        output: u64,
        /// The budget of both together.
        budget: u64,
    },
    /// Something the operator should know.
    Notice(String),
    /// The run is over, with the final answer.
    Answered(String),
    /// The run is over without one.
    Failed(String),
    /// The run waits in its session to be resumed.
    Suspended(String),
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It ran; the exit code where it was a command.
    Ran(Option<i32>),
    /// The gate or the operator said no.
    Denied,
    /// It was rejected or failed.
    Error,
}

/// Whoever watches a run. Must not block.
pub trait Watcher: Send + Sync {
    /// Takes an event.
    fn event(&self, event: Event);
}
