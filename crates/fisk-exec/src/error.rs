//! Why a command has no outcome.

use std::time::Duration;

use fisk_domain::Outcome;
use thiserror::Error;

/// Why a command has no outcome. No text holds the value of a variable or an argument of a command.
#[derive(Debug, Error)]
pub enum ExecError {
    /// The application, the settings or the machine do not allow to run anything. Says what is wrong with which.
    #[error("{0}")]
    Unusable(String),
    /// The application did not say what it offers. Texts of its own are quoted with every control character escaped.
    #[error("{0}")]
    Introspection(String),
    /// It could not be started.
    #[error("the command could not be started: {0}")]
    NotStarted(String),
    /// The run was cancelled; the command was killed with its group, or not started any more.
    #[error("the command was canceled")]
    Cancelled {
        /// What it had written.
        outcome: Outcome,
    },
    /// The time was up; the command was killed with its group.
    #[error("the command did not end within {after:?}")]
    TimedOut {
        /// The time it had.
        after: Duration,
        /// What it had written.
        outcome: Outcome,
    },
    /// It may have run, but how it ended is not known.
    #[error("the command's end is not known: {0}")]
    Lost(String),
}
