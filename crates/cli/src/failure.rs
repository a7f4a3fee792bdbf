//! Why a command failed, how that is said, and the exit code.

use std::io;

use fuse_client::Error;
use fuse_terminal::{ColourChoice, Style, strip};

use crate::output::note;

/// What a command comes to: an exit code, or the reason why not.
pub type Done = Result<u8, Failure>;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Bad usage or configuration: 2.
    Usage(String),
    /// A refusal or an error: 1.
    Said(String),
    /// Everything was said already: 1.
    Silent,
    /// The server, or the way to it: 1.
    Client(Box<Error>),
    /// Nobody reads the output any more: 0, without a word.
    Closed,
}

impl Failure {
    /// A failure in a sentence of our own.
    pub fn said(sentence: impl Into<String>) -> Self {
        Self::Said(sentence.into())
    }

    /// The exit code of this failure.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Said(_) | Self::Silent | Self::Client(_) => 1,
            Self::Closed => 0,
        }
    }

    /// Says it on standard error.
    pub fn print(&self) {
        match self {
            Self::Usage(text) | Self::Said(text) => error(text),
            Self::Silent | Self::Closed => {}
            Self::Client(failed) => client(failed),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Client(Box::new(error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::Closed
        } else {
            Self::Said(error.to_string())
        }
    }
}

/// `error: …` in one line.
pub fn error(text: &str) {
    let mark = ColourChoice::of_process(crate::output::stderr_is_terminal())
        .paint(Style::Red, "error:")
        .into_owned();
    note(&format!("{mark} {}", strip(text)));
}

fn client(failed: &Error) {
    match failed {
        // The words that the agent's side of the contract names.
        Error::InterventionRejected { reason, .. } => note(&format!("rejected: {}", strip(reason))),
        Error::Api {
            message,
            details,
            request_id,
            ..
        } => {
            error(message);
            for (name, value) in details {
                note(&format!("  {}: {}", strip(name), strip(value)));
            }
            if let Some(id) = request_id {
                note(&format!("  request: {}", strip(id)));
            }
        }
        Error::Locked {
            intervention_id,
            kind,
            message,
        } => {
            error(message);
            note(&format!("  {}: {intervention_id}", strip(kind)));
        }
        Error::Transport { source, .. } => {
            let mut text = failed.to_string();
            let mut cause = std::error::Error::source(failed);
            while let Some(inner) = cause {
                text = format!("{text}: {inner}");
                cause = inner.source();
            }
            error(&text);
            if !source.is_connect() {
                note(
                    "  the server was reached: it is not known whether it did what it was asked to",
                );
            }
        }
        other => error(&other.to_string()),
    }
}
