//! How a command ended.

use serde::{Deserialize, Serialize};

/// The most bytes of a child's output that are kept, without the marker.
pub const MAX_OUTPUT: usize = 64 * 1024;

/// How a command ended. As JSON it is the tool's result; an exit code other than 0 is not an error of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The exit code; 128 + n after signal n.
    pub exit_code: i32,
    /// Standard output and standard error in the order they were written: the first and the last half of [`MAX_OUTPUT`] around
    /// a marker where there was more.
    pub output: String,
    /// Whether something is left out of the output.
    pub truncated: bool,
}
