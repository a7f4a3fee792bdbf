//! The two traits that a backend implements.

use crate::{
    error::{BackendError, CallError},
    id::EnvId,
    spec::EnvSpec,
};
use fuse_guest_api::{Command, EnvVars, MAX_OUTPUT, Status};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

/// A boxed future, which keeps the traits object safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes, finds and ends environments. Environments outlive the process that made them.
pub trait Backend: Send + Sync {
    /// Creates an environment and answers once its build steps and startup script have ended and its task was started.
    ///
    /// # Errors
    /// [`BackendError`]; nothing of the environment is left behind then.
    fn create(&self, spec: EnvSpec) -> BoxFuture<'_, Result<Arc<dyn Guest>, BackendError>>;

    /// Finds a running environment again, usually after a restart of the orchestrator. It may still be booting:
    /// [`Guest::status`] tells.
    ///
    /// # Errors
    /// [`BackendError::NotFound`] when there is nothing of that id, [`BackendError::Dead`] when only its remains are
    /// there ([`Backend::destroy`] removes them), [`BackendError::Call`] when it lives but does not answer now.
    fn adopt<'a>(&'a self, id: &'a EnvId) -> BoxFuture<'a, Result<Arc<dyn Guest>, BackendError>>;

    /// Kills everything in the environment and removes its files. Destroying what does not exist is fine.
    ///
    /// # Errors
    /// [`BackendError`] when something could not be removed; calling again goes on with it.
    fn destroy<'a>(&'a self, id: &'a EnvId) -> BoxFuture<'a, Result<(), BackendError>>;

    /// The ids of all environments of which anything is left, running or not.
    ///
    /// # Errors
    /// [`BackendError::Io`].
    fn list(&self) -> BoxFuture<'_, Result<Vec<EnvId>, BackendError>>;
}

/// One environment. Calls may be made concurrently; a broken connection is opened again behind the scenes, and a command
/// that was sent is then asked after by its id, never started a second time.
pub trait Guest: Send + Sync {
    /// Its id.
    fn id(&self) -> &EnvId;

    /// Runs a command with empty input and waits for its end. A second call with the same command id starts
    /// nothing and answers the outcome of the first, for as long as the guest remembers it (an hour). Dropping the
    /// future does not stop the command.
    ///
    /// # Errors
    /// [`CallError::NotSent`]: it surely did not run. [`CallError::Lost`]: it may have. [`CallError::Refused`]: the guest refused to start it.
    fn exec(&self, spec: ExecSpec) -> BoxFuture<'_, Result<ExecOutcome, CallError>>;

    /// Waits for the outcome of a command that was started earlier, maybe by another orchestrator; never starts one. `None` when the
    /// guest does not know the id (any more).
    ///
    /// # Errors
    /// As [`Guest::exec`].
    fn recall<'a>(
        &'a self,
        command_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<ExecOutcome>, CallError>>;

    /// Sends a signal (1 to 64) to the process group of a running command. Fine when it has ended.
    ///
    /// # Errors
    /// [`CallError`].
    fn signal<'a>(
        &'a self,
        command_id: &'a str,
        signal: i32,
    ) -> BoxFuture<'a, Result<(), CallError>>;

    /// Kills the process group of a running command. Fine when it has ended.
    ///
    /// # Errors
    /// [`CallError`].
    fn cancel<'a>(&'a self, command_id: &'a str) -> BoxFuture<'a, Result<(), CallError>>;

    /// Reads a regular file through one descriptor, links resolved inside the environment; nothing under `/fuse`,
    /// `/proc`, `/sys`, `/dev`. `max_bytes` is at most [`fuse_guest_api::MAX_READ`].
    ///
    /// # Errors
    /// [`CallError::Refused`] with the kind of the refusal.
    fn read_file<'a>(
        &'a self,
        path: &'a str,
        max_bytes: u64,
    ) -> BoxFuture<'a, Result<FileContent, CallError>>;

    /// Replaces a file atomically. No link is followed in any part of the path; missing parents get mode
    /// 0700; the file is 0600 until its content is complete.
    ///
    /// # Errors
    /// [`CallError::Refused`] with [`fuse_guest_api::RefusalCode::LinkInPath`] and others; nothing was changed then.
    fn write_file<'a>(
        &'a self,
        path: &'a str,
        mode: u32,
        content: &'a [u8],
    ) -> BoxFuture<'a, Result<(), CallError>>;

    /// Gives later commands more variables. They live in the guest's memory alone.
    ///
    /// # Errors
    /// [`CallError`].
    fn set_env(&self, vars: EnvVars) -> BoxFuture<'_, Result<(), CallError>>;

    /// How it is.
    ///
    /// # Errors
    /// [`CallError`].
    fn status(&self) -> BoxFuture<'_, Result<Status, CallError>>;
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct ExecSpec {
    /// Names the run; unique per environment, at most [`fuse_guest_api::MAX_COMMAND_ID`] bytes.
    pub command_id: String,
    /// What to run.
    pub command: Command,
    /// Set on top of the environment's variables.
    pub env: EnvVars,
    /// Absolute working directory; the workspace when absent.
    pub cwd: Option<String>,
    /// After this time its process group is killed and it reports 124.
    pub timeout: Duration,
    /// Most bytes of standard output to keep.
    pub stdout_cap: usize,
    /// Most bytes of standard error to keep.
    pub stderr_cap: usize,
    /// Takes both outputs as one; the caps do not count then.
    pub merge_output: Option<MergeOutput>,
}

/// Both outputs of a command as one, in the order in which they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeOutput {
    /// How many bytes of the start, and as many of the end, are kept: at most half of [`MAX_OUTPUT`]. In between stands a mark that
    /// counts what is left out.
    pub half: usize,
    /// How long output is awaited from processes that the command left behind. Then what is left of its group is killed.
    pub linger: Duration,
}

impl ExecSpec {
    /// A command with no extra variables, in the workspace, for 60 s, with the largest output caps.
    #[must_use]
    pub fn new(command_id: impl Into<String>, command: Command) -> Self {
        Self {
            command_id: command_id.into(),
            command,
            env: EnvVars::default(),
            cwd: None,
            timeout: Duration::from_secs(60),
            stdout_cap: MAX_OUTPUT,
            stderr_cap: MAX_OUTPUT,
            merge_output: None,
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutcome {
    /// The exit code; 124 at the timeout, 127 for a missing program, 126 for one that cannot be run, 128 + n after signal n.
    pub exit_code: i32,
    /// What it wrote to standard output, up to the cap. Both outputs, as valid UTF-8, where they were asked for as one.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, up to the cap.
    pub stderr: Vec<u8>,
    /// Whether it was stopped at its timeout.
    pub timed_out: bool,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Whether output was dropped.
    pub truncated: bool,
    /// How long it ran.
    pub duration: Duration,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// Where the bytes came from, after links were resolved.
    pub resolved: String,
    /// The bytes, at most as many as asked for.
    pub bytes: Vec<u8>,
    /// The file's size when it was opened, in bytes.
    pub size: u64,
    /// Whether the file holds more than `bytes`.
    pub truncated: bool,
}
