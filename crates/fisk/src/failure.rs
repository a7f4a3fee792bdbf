//! Why a command failed, and the exit code.

use std::io;

use fuse_terminal::{ColourChoice, Style, strip};

use crate::output;

/// A run that waits in its session to be resumed.
pub const SUSPENDED: u8 = 3;

/// What a command comes to: an exit code, or the reason why not.
pub type Done = Result<u8, Failure>;

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Bad usage: 2.
    Usage(String),
    /// A configuration that is refused: 2. Its lines begin with their places, and are told as they are.
    Config(String),
    /// A refusal or an error: 1.
    Said(String),
    /// Nobody reads the output any more: 0, without a word.
    Closed,
}

impl Failure {
    /// A failure in a sentence of our own.
    pub fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Config(_) => 2,
            Self::Said(_) => 1,
            Self::Closed => 0,
        }
    }

    /// Says it on standard error.
    pub fn print(&self) {
        match self {
            Self::Usage(text) | Self::Said(text) => error(text),
            Self::Config(text) => {
                for line in text.lines() {
                    output::note(&strip(line));
                }
            }
            Self::Closed => {}
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Said(error.to_string()),
        }
    }
}

/// `error: …` in one line.
pub fn error(text: &str) {
    let colour = ColourChoice::of_process(output::stderr_is_terminal());
    let mark = colour.paint(Style::Red, "error:");
    output::note(&format!("{mark} {}", strip(text)));
}

/// `warning: …` in one line.
pub fn warning(text: &str) {
    let colour = ColourChoice::of_process(output::stderr_is_terminal());
    let mark = colour.paint(Style::Yellow, "warning:");
    output::note(&format!("{mark} {}", strip(text)));
}
