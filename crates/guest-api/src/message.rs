//! What the two sides say to each other.

use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Environment variables. `Debug` shows the names alone, since a value may be a secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EnvVars(pub BTreeMap<String, String>);

impl fmt::Debug for EnvVars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl EnvVars {
    /// The first name that is no variable name or whose value holds a NUL, and what is wrong with it.
    #[must_use]
    pub fn problem(&self) -> Option<(&str, &'static str)> {
        self.0.iter().find_map(|(name, value)| {
            if name.is_empty() {
                Some((name.as_str(), "a variable's name must not be empty"))
            } else if name.contains(['=', '\0']) {
                Some((name.as_str(), "a variable's name must not hold `=` or NUL"))
            } else if value.contains('\0') {
                Some((name.as_str(), "a variable's value must not hold NUL"))
            } else {
                None
            }
        })
    }
}

/// Who a guest is; handed to `fused` when it starts and proven in every hello.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The environment's id.
    pub env_id: String,
    /// A random token of this boot, which both sides know. Not shown by `Debug`.
    pub token: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("env_id", &self.env_id)
            .finish_non_exhaustive()
    }
}

/// The orchestrator's first words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`crate::PROTOCOL_VERSION`] of the orchestrator.
    pub version: u32,
    /// The guest that it means to talk to.
    pub identity: Identity,
}

/// The guest's first words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloReply {
    /// [`crate::PROTOCOL_VERSION`] of the guest.
    pub version: u32,
    /// Who it is.
    pub identity: Identity,
    /// Version of the guest program, for people.
    pub build: String,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A program and its arguments; the program is searched in `PATH` when it has no slash.
    Argv(Vec<String>),
    /// Text for `sh -c`.
    Shell(String),
    /// Text for `sh -lc`, a login shell.
    LoginShell(String),
}

/// Runs a command with empty input and answers with [`Reply::Exit`], after its output as data frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// Names this run, at most [`crate::MAX_COMMAND_ID`] bytes. A second exec with an id that the guest remembers
    /// starts nothing and waits for the first one's outcome.
    pub command_id: String,
    /// What to run.
    pub command: Command,
    /// Set on top of the environment's own variables.
    #[serde(default)]
    pub env: EnvVars,
    /// Absolute working directory; the workspace when absent.
    #[serde(default)]
    pub cwd: Option<String>,
    /// After this time, in milliseconds, the command's process group is killed.
    pub timeout_ms: u64,
    /// Most bytes of standard output to keep, up to [`crate::MAX_OUTPUT`].
    pub stdout_cap: u32,
    /// Most bytes of standard error to keep, up to [`crate::MAX_OUTPUT`].
    pub stderr_cap: u32,
    /// Takes both outputs as one, in the order in which they were written. The caps do not count then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
}

/// Both outputs of a command as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// How many bytes of the start, and as many of the end, are kept; up to half of [`crate::MAX_OUTPUT`].
    pub half: u32,
    /// How long output is awaited, in milliseconds, from processes that the command left behind. Then what is left of its group is killed.
    pub linger_ms: u32,
}

/// About a merged output: its first bytes came as standard output, its last as standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merged {
    /// As in [`Merge`].
    pub half: u32,
    /// How many bytes were written in all.
    pub total: u64,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code; 124 at the timeout, 127 for a missing program, 126 for one that cannot be run, 128 + n after signal n.
    pub exit_code: i32,
    /// Whether it was stopped at its timeout.
    pub timed_out: bool,
    /// Whether it was stopped by [`Request::Cancel`].
    #[serde(default)]
    pub cancelled: bool,
    /// Whether output was dropped over a cap.
    pub truncated: bool,
    /// Bytes of standard output that come before this message.
    pub stdout_len: u32,
    /// Bytes of standard error that come before this message.
    pub stderr_len: u32,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// Of an output that was asked for as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
}

/// One build step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildStep {
    /// Text for `sh -c`.
    pub run: String,
    /// Absolute working directory; the workspace when absent.
    #[serde(default)]
    pub workdir: Option<String>,
}

/// A script that must end well before the environment counts as running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Startup {
    /// Text for `sh -lc`.
    pub script: String,
    /// Its limit, in milliseconds.
    pub timeout_ms: u64,
}

/// Everything that a guest needs to become an environment. Files are written before it with [`Request::WriteFile`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// The environment's variables.
    pub env: EnvVars,
    /// The directory that commands start in; it is created.
    pub workspace: String,
    /// Steps that run in order, the first failure ends the boot.
    pub build: Vec<BuildStep>,
    /// Limit for all build steps together, in milliseconds.
    pub build_timeout_ms: u64,
    /// Runs after the build.
    pub startup: Option<Startup>,
    /// The environment's task, started last; its end is reported in [`Status`].
    pub run: Option<Command>,
}

/// Where a boot failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootStage {
    /// Creating the workspace.
    Workspace,
    /// A build step, counted from 1.
    Build(u32),
    /// The startup script.
    Startup,
    /// Starting the task.
    Run,
}

/// Why a boot failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootFailure {
    /// What failed.
    pub stage: BootStage,
    /// The step's exit code, where a command failed.
    pub exit_code: Option<i32>,
    /// Whether it was stopped at its timeout.
    pub timed_out: bool,
    /// The end of what it wrote, at most [`crate::BOOT_TAIL`] bytes.
    pub output_tail: String,
}

/// How far a guest has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// No [`Request::Boot`] came yet.
    Waiting,
    /// The boot is under way.
    Booting,
    /// It runs.
    Ready,
    /// The boot failed.
    Failed(BootFailure),
}

/// State of the environment's task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It has none.
    None,
    /// It runs.
    Running,
    /// It ended with this exit code (128 + n after signal n).
    Exited(i32),
}

/// Answer to [`Request::Status`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// How far it has come.
    pub phase: Phase,
    /// Its task.
    pub task: TaskState,
    /// Time since `fused` started, in milliseconds.
    pub uptime_ms: u64,
    /// Commands that run at the moment.
    pub running_commands: u32,
    /// Processes in the environment, `fused` included.
    pub processes: u32,
}

/// From the orchestrator to the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Request {
    /// Opens the connection; anything else before it is refused.
    Hello(Hello),
    /// Answered with [`Reply::Booted`] or [`Reply::BootFailed`]. A second one waits for the first.
    Boot(Boot),
    /// Answered with [`Reply::Exit`].
    Exec(Exec),
    /// Waits for the outcome of a command without ever starting one: [`Reply::Exit`], or
    /// [`Reply::UnknownCommand`] when the guest does not know the id (any more).
    Recall {
        /// The command's id.
        command_id: String,
    },
    /// Kills the process group of a running command; answered with [`Reply::Done`], the
    /// command's own stream gets its exit as usual.
    Cancel {
        /// The command's id.
        command_id: String,
    },
    /// Sends a signal to the process group of a running command; answered with [`Reply::Done`].
    Signal {
        /// The command's id.
        command_id: String,
        /// The signal's number.
        signal: i32,
    },
    /// Reads a regular file: data frames, then [`Reply::File`].
    ReadFile {
        /// Absolute clean path; links in it are followed inside the guest.
        path: String,
        /// Most bytes to answer with, up to [`crate::MAX_READ`].
        max_bytes: u64,
    },
    /// Replaces a file atomically; `size` bytes of data frames follow. No link is followed in any part of the path
    /// and missing parents are made with mode 0700. Answered with [`Reply::Done`].
    WriteFile {
        /// Absolute clean path.
        path: String,
        /// Mode of the finished file; it is 0600 until its content is complete.
        mode: u32,
        /// Bytes that follow, up to [`crate::MAX_WRITE`].
        size: u64,
    },
    /// Adds variables that later commands see (a person's answer to a request for a secret). They live in the
    /// guest's memory alone. Answered with [`Reply::Done`].
    SetEnv {
        /// The variables.
        vars: EnvVars,
    },
    /// Answered with [`Reply::Status`].
    Status,
}

/// About a file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// Where the bytes came from, after links were resolved.
    pub resolved: String,
    /// The file's size when it was opened, in bytes.
    pub size: u64,
    /// Whether the file holds more than what was sent.
    pub truncated: bool,
    /// Bytes that come before this message.
    pub len: u64,
}

/// What kind of refusal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The request makes no sense or breaks a limit.
    BadRequest,
    /// The guest does not know this message.
    Unsupported,
    /// The two sides speak different versions.
    Version,
    /// The hello was not for this guest.
    WrongGuest,
    /// The guest is not booted yet, or its boot failed.
    NotReady,
    /// Too many commands run at once.
    Busy,
    /// The path is not absolute and clean.
    BadPath,
    /// Nothing is there.
    NotFound,
    /// It is no regular file.
    NotRegular,
    /// It lies where nothing may be read or written: `/fuse`, `/proc`, `/sys`, `/dev`.
    Forbidden,
    /// The guest's kernel refused.
    Permission,
    /// Links lead in a circle or too far.
    TooManyLinks,
    /// A part of a path that must have no links is one.
    LinkInPath,
    /// A parent is no directory.
    NotDirectory,
    /// No space, or over a limit on size.
    NoSpace,
    /// Any other failure of input or output.
    Io,
    /// A code of a newer guest.
    #[serde(other)]
    Other,
}

/// Why a request was not done. Nothing happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The kind.
    pub code: RefusalCode,
    /// One sentence for people.
    pub message: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// From the guest to the orchestrator; exactly one ends each stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello(HelloReply),
    /// The environment runs.
    Booted,
    /// The boot failed.
    BootFailed(BootFailure),
    /// A command ended.
    Exit(Exit),
    /// The guest does not know this command (any more).
    UnknownCommand,
    /// A file was read.
    File(FileInfo),
    /// It is done.
    Done,
    /// To [`Request::Status`].
    Status(Status),
    /// It was refused.
    Refused(Refusal),
}
