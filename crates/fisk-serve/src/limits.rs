//! What one client may cost.

use std::time::Duration;

/// Bounds of a served surface. The defaults are what the `fisk` command uses.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long the user of an MCP client may take to answer about a gated command. It counts neither towards the command's own
    /// time nor as one that runs.
    pub answer: Duration,
    /// The same for the operator over A2A. The operator's way of being asked has a deadline of its own; this is for one that
    /// has none.
    pub operator: Duration,
    /// The most questions that wait for an answer at once.
    pub questions: usize,
    /// The most calls that are under way at once, those that wait for their turn included.
    pub calls: usize,
    /// The largest body of a request, and the longest line on standard input, in bytes.
    pub body: usize,
    /// How long a request's head may take, and how long an idle connection stays open.
    pub head_time: Duration,
    /// How long a request's body may take.
    pub body_time: Duration,
    /// The most open connections.
    pub connections: usize,
    /// The most MCP sessions.
    pub sessions: usize,
    /// How long an MCP session lives without a message.
    pub session_idle: Duration,
    /// How long an MCP session lives at all.
    pub session_age: Duration,
    /// The most A2A tasks that are remembered, running ones included.
    pub tasks: usize,
    /// How long an A2A task that is over is remembered.
    pub task_age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(5 * 60),
            operator: Duration::from_secs(24 * 60 * 60),
            questions: 64,
            calls: 256,
            body: 1024 * 1024,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            connections: 512,
            sessions: 256,
            session_idle: Duration::from_secs(30 * 60),
            session_age: Duration::from_secs(24 * 60 * 60),
            tasks: 256,
            task_age: Duration::from_secs(15 * 60),
        }
    }
}
