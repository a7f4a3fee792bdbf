//! What a create request means once it has been found valid: decoded, typed, defaults filled in.

use crate::policy::Policy;
use fuse_api::environment::{Desktop, SecretText, Spec};
use fuse_api::hitl::HitlBlock;
use fuse_api::ids::TaskId;
use std::collections::BTreeMap;
use std::fmt;

/// What the rules need to know about the server that will serve the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// Whether `TOKEN_ENCRYPTION_KEY` is set. Secret requests need it.
    pub sealed: bool,
    /// The only host there is; `None` where that is not known, as it is offline.
    pub host_id: Option<String>,
}

impl ServerFacts {
    /// The facts of a well-configured server that nobody asked.
    #[must_use]
    pub const fn offline() -> Self {
        Self {
            sealed: true,
            host_id: None,
        }
    }
}

/// What an environment may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// Its own loopback and nothing else.
    #[default]
    None,
    /// The machine's own network.
    Host,
}

impl Network {
    /// The wire's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Host => "host",
        }
    }
}

/// What an environment may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Processors' worth of time; fractions are fine.
    pub cpus: f64,
    /// Memory, in MiB.
    pub ram_mb: u64,
    /// Written data, in GiB.
    pub storage_gb: u64,
    /// Processes and threads together.
    pub max_processes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpus: 1.0,
            ram_mb: 512,
            storage_gb: 5,
            max_processes: 512,
        }
    }
}

/// A variable that every command sees. Its `Debug` does not show the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, a secret's already put in.
    pub value: SecretText,
}

/// A file that exists before anything runs. Its `Debug` does not show the content.
#[derive(Clone, PartialEq, Eq)]
pub struct InitialFile {
    /// Absolute clean path.
    pub path: String,
    /// Its content.
    pub content: Vec<u8>,
}

impl fmt::Debug for InitialFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InitialFile")
            .field("path", &self.path)
            .field("bytes", &self.content.len())
            .finish()
    }
}

/// One build step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildStep {
    /// A command line for `sh -lc`.
    pub run: String,
    /// Absolute clean path of the folder it runs in.
    pub workdir: String,
}

/// A script that ends before the create answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartupScript {
    /// Text for `sh -lc`.
    pub script: String,
    /// How long it may run.
    pub timeout_seconds: u64,
}

/// What the environment is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// A command line for `sh -lc`.
    Shell(String),
    /// Program and arguments; there is a program.
    Argv(Vec<String>),
}

/// A request that keeps every rule.
#[derive(Debug, Clone)]
pub struct ValidEnvironment {
    /// The caller's name for the environment.
    pub task_id: TaskId,
    /// The spec as asked for, with the server's defaults filled in.
    pub spec: Spec,
    /// `host`, or the name of a root tree.
    pub image: String,
    /// What it may use.
    pub limits: Limits,
    /// What it may reach.
    pub network: Network,
    /// Seconds without activity after which it is reaped.
    pub idle_timeout_seconds: Option<u64>,
    /// Seconds after which it is reaped.
    pub max_runtime_seconds: Option<u64>,
    /// Secret values by name.
    pub secrets: BTreeMap<String, SecretText>,
    /// Variables of every command, in the order of their names.
    pub env: Vec<Variable>,
    /// Files that are written first, in the order of their paths.
    pub files: Vec<InitialFile>,
    /// Steps that run in order before the create answers.
    pub build: Vec<BuildStep>,
    /// Seconds that all build steps may take together.
    pub build_timeout_seconds: u64,
    /// Runs after the build.
    pub startup: Option<StartupScript>,
    /// The environment's task.
    pub run: Option<Task>,
    /// Where commands start, absolute and clean.
    pub workspace: String,
    /// A virtual display.
    pub desktop: Option<Desktop>,
    /// The block as it was asked for.
    pub hitl: Option<HitlBlock>,
    /// The block compiled. There is one exactly where there is a block.
    pub policy: Option<Policy>,
}
