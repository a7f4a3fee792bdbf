//! Runs the commands of an application: no shell, no credentials, no standard input, bounded memory.

use std::{path::PathBuf, time::Duration};

use fisk_domain::{Call, Outcome};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// How commands run.
#[derive(Debug, Clone)]
pub struct ExecConfig {
    /// The application, as the operator named it. It is resolved to an absolute path once.
    pub application: PathBuf,
    /// More variables that no child gets: names and `*` patterns, in any case.
    pub strip_env: Vec<String>,
    /// Whether each command runs in a sandbox, with the working folder bound in.
    pub sandbox: bool,
}

/// Why a command has no outcome.
#[derive(Debug, Error)]
pub enum ExecError {
    /// It could not be started.
    #[error("the command could not be started: {0}")]
    NotStarted(String),
    /// The run was cancelled; the command was killed with its group.
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

/// Starts commands of one application. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Executor {
    config: ExecConfig,
}

impl Executor {
    /// # Errors
    /// Where the application is no executable file, or the sandbox cannot be had.
    pub async fn new(config: ExecConfig) -> Result<Self, ExecError> {
        Ok(Self { config })
    }

    /// What `--fisk-introspect` prints: at most 16 MiB within 30 s, with the same environment as every command.
    ///
    /// # Errors
    /// Where it fails, takes too long or prints too much.
    pub async fn introspect(&self) -> Result<Vec<u8>, ExecError> {
        Err(ExecError::NotStarted(
            self.config.application.display().to_string(),
        ))
    }

    /// The whole argument vector that [`run`](Self::run) starts, program first: this is what the operator is shown.
    pub fn argv(&self, call: &Call) -> Vec<String> {
        let mut argv = vec![self.config.application.display().to_string()];
        argv.extend_from_slice(call.argv());
        argv
    }

    /// Runs a command to its end. `timeout` counts from its start.
    ///
    /// # Errors
    /// [`ExecError`].
    pub async fn run(
        &self,
        call: &Call,
        timeout: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, ExecError> {
        let _ = (call, timeout, cancel);
        Err(ExecError::NotStarted(String::new()))
    }
}
