//! Runs the commands of an application: no shell, no credentials, no standard input, bounded memory.
//!
//! [`Executor`] starts what a checked [`Call`] says and nothing else. [`harden_process`] is for `main`: it takes
//! the harness' own secrets out of reach of the commands.

mod environment;
mod error;
mod introspect;
mod program;
mod sandbox;
mod secret;
mod spawn;
mod supervise;
mod sys;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use fisk_domain::{Call, MAX_OUTPUT, Outcome};
use tokio_util::sync::CancellationToken;

pub use environment::HARNESS_SECRETS;
pub use error::ExecError;
pub use secret::{HardenError, HarnessSecrets, Secret, harden_process};
pub use supervise::GRACE;
pub use watch::maybe_watch;

use environment::Names;
use fuse_backend::HeadTail;
use program::Program;
use sandbox::Cage;
use supervise::{Allowed, Cause, Output, Sink};

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

/// Starts commands of one application. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Executor {
    program: Program,
    environment: Vec<(OsString, OsString)>,
    cage: Option<Cage>,
}

impl Executor {
    /// Finds the application and takes the environment as it is now, without what is stripped of it.
    ///
    /// A bare name is looked up in the absolute folders of `PATH`; a name with a slash counts from the working folder.
    ///
    /// # Errors
    /// [`ExecError::Unusable`] where the application is no executable file, an entry of `strip_env` names no variable, or the
    /// sandbox cannot be had.
    pub async fn new(config: ExecConfig) -> Result<Self, ExecError> {
        let stripped = Names::secrets_and(&config.strip_env).map_err(ExecError::Unusable)?;
        let search = std::env::var_os("PATH");
        let program =
            Program::find(&config.application, search.as_deref()).map_err(ExecError::Unusable)?;
        let environment = environment::for_children(std::env::vars_os(), &stripped);
        let cage = match config.sandbox {
            true => Some(Cage::new(&program, &environment).await?),
            false => None,
        };
        Ok(Self {
            program,
            environment,
            cage,
        })
    }

    /// The application's file, absolute and with all links followed.
    pub fn application(&self) -> &Path {
        self.program.path()
    }

    /// The SHA-256 of the application's file, in hexadecimal. Reads all of it.
    ///
    /// # Errors
    /// [`ExecError::Unusable`] where it cannot be read.
    pub async fn fingerprint(&self) -> Result<String, ExecError> {
        let program = self.program.clone();
        let shown = program.shown().to_owned();
        match tokio::task::spawn_blocking(move || program.fingerprint()).await {
            Ok(Ok(hash)) => Ok(hash),
            Ok(Err(error)) => Err(ExecError::Unusable(format!("{shown}: {error}"))),
            Err(error) => Err(ExecError::Unusable(format!("{shown}: {error}"))),
        }
    }

    /// What `--fisk-introspect` prints, a JSON object: at most 16 MiB within 30 s, with the same environment as every command.
    /// Dropping the future kills the application.
    ///
    /// # Errors
    /// [`ExecError::Introspection`], naming the application, where it fails, takes too long, prints too much or prints no
    /// JSON; [`ExecError::Unusable`] where its file was changed.
    pub async fn introspect(&self) -> Result<Vec<u8>, ExecError> {
        self.program.unchanged().map_err(ExecError::Unusable)?;
        let command = self.command(&[introspect::FLAG.to_owned()]);
        introspect::introspect(command, self.program.shown(), introspect::Bounds::default()).await
    }

    /// The whole argument vector that [`run`](Self::run) starts, program first: this is what the operator is shown.
    pub fn argv(&self, call: &Call) -> Vec<String> {
        let mut argv = vec![self.program.shown().to_owned()];
        argv.extend_from_slice(call.argv());
        argv
    }

    /// Runs a command to its end. `timeout` counts from its start.
    ///
    /// When it is cancelled or its time is up, its process group is asked to end (SIGTERM) and is killed as a whole [`GRACE`] later, or
    /// as soon as the command has ended. Where it ends by itself while others keep its output open, they have [`GRACE`], and what is
    /// there is the outcome; whoever is left in its group is killed. Dropping the future kills the group at once. The end of this
    /// process, however it comes, kills the command; only in a sandbox does that take all that it started along.
    ///
    /// # Errors
    /// [`ExecError`]; never for an exit code.
    pub async fn run(
        &self,
        call: &Call,
        timeout: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, ExecError> {
        self.run_argv(call.argv(), timeout, cancel).await
    }

    /// Ends the sandbox, where there is one, and whatever runs in it. Dropping the executor does the same, and blocks for it.
    ///
    /// # Errors
    /// [`ExecError::Unusable`] where something of it could not be removed; the next start with a sandbox tries again.
    pub async fn close(&self) -> Result<(), ExecError> {
        match &self.cage {
            Some(cage) => cage.close().await,
            None => Ok(()),
        }
    }

    async fn run_argv(
        &self,
        arguments: &[String],
        timeout: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, ExecError> {
        if cancel.is_cancelled() {
            return Err(ExecError::Cancelled {
                outcome: Outcome {
                    exit_code: 128 + libc::SIGTERM,
                    output: String::new(),
                    truncated: false,
                },
            });
        }
        self.program.unchanged().map_err(ExecError::NotStarted)?;
        if let Some(cage) = &self.cage {
            let mut argv = vec![self.program.shown().to_owned()];
            argv.extend_from_slice(arguments);
            return cage.run(argv, timeout, cancel).await;
        }
        let sink = Sink::Halves(HeadTail::new(MAX_OUTPUT / 2));
        let running = supervise::start(self.command(arguments), sink, None)
            .await
            .map_err(|e| ExecError::NotStarted(format!("{}: {e}", self.program.shown())))?;
        let allowed = Allowed {
            time: timeout,
            grace: GRACE,
            linger: GRACE,
            overall: false,
        };
        let (status, cause, outputs) = running
            .finish(allowed, cancel)
            .await
            .map_err(|e| ExecError::Lost(e.to_string()))?;
        let (output, truncated) = outputs
            .into_iter()
            .map(Output::into_sink)
            .find_map(|sink| match sink {
                Sink::Halves(keep) => Some(keep.finish()),
                Sink::Whole(..) => None,
            })
            .unwrap_or_default();
        let outcome = Outcome {
            exit_code: supervise::exit_code(status),
            output,
            truncated,
        };
        match (cause, timeout) {
            (Cause::Cancelled, _) => Err(ExecError::Cancelled { outcome }),
            (Cause::TimedOut, Some(after)) => Err(ExecError::TimedOut { after, outcome }),
            (Cause::Itself | Cause::TimedOut | Cause::TooMuch, _) => Ok(outcome),
        }
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(self.program.path());
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(n, v)| (n, v)));
        command
    }
}
