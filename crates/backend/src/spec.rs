//! What an environment is to be.

use crate::{error::BackendError, id::EnvId};
use fuse_guest_api::{BuildStep, Command, EnvVars};
use std::{fmt, path::PathBuf, time::Duration};

impl EnvId {
    /// Checks the text.
    ///
    /// # Errors
    /// [`BackendError::Invalid`] naming what is allowed.
    pub fn new(text: impl Into<String>) -> Result<Self, BackendError> {
        Self::checked(text.into()).ok_or_else(|| {
            BackendError::invalid(
                "id",
                "must be 1 to 63 letters, digits, `.`, `_` or `-`, starting with a letter or a digit",
            )
        })
    }
}

/// What the environment may use of the machine's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// Its own loopback and nothing else.
    #[default]
    None,
    /// The machine's own network, loopback included.
    Host,
}

/// What an environment may use. How each is enforced depends on the backend and the machine; see `docs/backends.md`.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Processors' worth of time; fractions are fine.
    pub cpus: f64,
    /// Memory, in MiB.
    pub ram_mb: u64,
    /// Written data, in GiB.
    pub storage_gb: u64,
    /// Processes and threads together, `fused` included.
    pub pids: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpus: 1.0,
            ram_mb: 512,
            storage_gb: 5,
            pids: 512,
        }
    }
}

/// A file that exists before the first build step.
#[derive(Clone, PartialEq, Eq)]
pub struct InitialFile {
    /// Absolute clean path in the environment.
    pub path: String,
    /// Its content, at most [`fuse_guest_api::MAX_WRITE`] bytes. Not shown by `Debug`.
    pub content: Vec<u8>,
    /// Its mode.
    pub mode: u32,
}

impl fmt::Debug for InitialFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InitialFile")
            .field("path", &self.path)
            .field("bytes", &self.content.len())
            .field("mode", &format_args!("{:o}", self.mode))
            .finish()
    }
}

/// A script that must end well before an environment counts as created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartupScript {
    /// Text for `sh -lc`.
    pub script: String,
    /// It is killed after this time, and the create fails.
    pub timeout: Duration,
}

/// Something of the machine that shows in the environment, without its device files and without set-user-id programs.
///
/// It is the thing itself: what is written there is written on the machine, by whoever [`Ids`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// A directory or regular file of the machine, absolute. Links in the path are followed once, when the environment is made.
    pub host: PathBuf,
    /// Where it shows: absolute and clean, no part of it a link, neither `/` nor in `/proc`, `/sys`, `/dev` or `/fuse`.
    pub inside: String,
    /// Whether it may only be read.
    pub read_only: bool,
}

/// Who the users inside are on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ids {
    /// A range that nobody else has, where root runs the backend; one's own id otherwise.
    #[default]
    Apart,
    /// One's own id alone, root's too: what is written to a [`Bind`] belongs to whoever runs the backend. Inside it is user 0, and the
    /// only one.
    Own,
}

/// What an environment is to be.
#[derive(Debug, Clone)]
pub struct EnvSpec {
    /// Its id; no other environment of the backend may have it.
    pub id: EnvId,
    /// The image: `host`, or the name of a root tree under the data directory's `images`.
    pub image: String,
    /// What it may use.
    pub limits: Limits,
    /// What it may reach.
    pub network: Network,
    /// Variables of every command. They reach the guest's memory and never a disk.
    pub env: EnvVars,
    /// Files that are written first.
    pub files: Vec<InitialFile>,
    /// Steps that run in order before the create answers.
    pub build: Vec<BuildStep>,
    /// Limit for all build steps together.
    pub build_timeout: Duration,
    /// Runs after the build.
    pub startup: Option<StartupScript>,
    /// The environment's task, which outlives the create.
    pub run: Option<Command>,
    /// Where commands start, absolute and clean.
    pub workspace: String,
    /// What of the machine shows in it, mounted in this order.
    pub binds: Vec<Bind>,
    /// Who its users are on the machine.
    pub ids: Ids,
}

impl EnvSpec {
    /// The smallest environment: image `host`, default limits, no network, no build, workspace `/workspace`.
    #[must_use]
    pub fn new(id: EnvId) -> Self {
        Self {
            id,
            image: "host".to_owned(),
            limits: Limits::default(),
            network: Network::None,
            env: EnvVars::default(),
            files: Vec::new(),
            build: Vec::new(),
            build_timeout: Duration::from_secs(600),
            startup: None,
            run: None,
            workspace: "/workspace".to_owned(),
            binds: Vec::new(),
            ids: Ids::Apart,
        }
    }
}
