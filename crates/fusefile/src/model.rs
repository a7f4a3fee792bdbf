//! What a Fusefile can say. The types are the grammar: the JSON Schema is generated from them, and the shape of a file is held
//! against that schema.

use std::collections::BTreeMap;

use fuse_api::hitl::{
    Decide, ExecAllow, GateMode, GateOn, NotifyHook, OnTimeout, OneOrMany, Requests,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// A Fusefile: an environment, what runs in it, and what needs a person.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fusefile {
    /// The version of this format: 1.
    #[schemars(extend("const" = 1))]
    pub version: u64,
    /// The environment's task id, a DNS label. Without it the name of the Fusefile's folder is taken.
    #[serde(default)]
    pub name: Option<String>,
    /// `host` (the default), or the name of a root tree on the server.
    #[serde(default)]
    pub image: Option<String>,
    /// Files by their absolute path in the environment.
    #[serde(default)]
    pub files: BTreeMap<String, FileSource>,
    /// Files and folders beside the Fusefile that are copied into the environment.
    #[serde(default)]
    pub copy: Vec<Copy>,
    /// The environment's size, reach and life.
    #[serde(default)]
    pub resources: Resources,
    /// Variables that every command sees, by name.
    #[serde(default)]
    pub env: BTreeMap<String, EnvSource>,
    /// Steps that finish, in order, before the environment counts as created.
    #[serde(default)]
    pub build: Vec<BuildStep>,
    /// The environment's task: a command line for `sh -lc`, or a program and its arguments.
    #[serde(default)]
    pub run: Option<Run>,
    /// The folder that commands run in, `/workspace` by default.
    #[serde(default)]
    pub workspace: Option<String>,
    /// How long the build steps may take together, up to 1h; 10m by default.
    #[serde(default)]
    #[schemars(extend("format" = "go-duration"))]
    pub startup_timeout: Option<String>,
    /// Names of secrets. Each value is given by `fuse up --secret NAME=VALUE`.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// What needs a person.
    #[serde(default)]
    pub hitl: Option<Hitl>,
    /// A virtual display.
    #[serde(default)]
    pub desktop: Option<Desktop>,
}

/// Where a file's content comes from.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FileSource {
    /// The content itself.
    Inline(String),
    /// A file beside the Fusefile.
    Beside(FileBeside),
}

/// A file beside the Fusefile.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileBeside {
    /// Its path, relative to the Fusefile's folder and never outside of it.
    pub from: String,
}

impl std::fmt::Debug for FileSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inline(content) => write!(f, "Inline({} bytes)", content.len()),
            Self::Beside(beside) => write!(f, "Beside({:?})", beside.from),
        }
    }
}

/// A file or folder that is copied.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// Its path, relative to the Fusefile's folder and never outside of it.
    pub from: String,
    /// Its absolute path in the environment. With a slash at its end it names the folder to copy into.
    pub to: String,
}

/// The environment's size, reach and life.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Processors' worth of time; fractions are fine.
    #[serde(default)]
    pub cpus: Option<f64>,
    /// Memory, in MiB.
    #[serde(default)]
    pub ram_mb: Option<u64>,
    /// Written data, in GiB.
    #[serde(default)]
    pub storage_gb: Option<u64>,
    /// Processes and threads together.
    #[serde(default)]
    pub max_processes: Option<u64>,
    /// `none` (the default) or `host`.
    #[serde(default)]
    pub network: Option<Network>,
    /// The environment is removed after so long without activity, `1m` at least.
    #[serde(default)]
    #[schemars(extend("format" = "go-duration"))]
    pub idle_timeout: Option<String>,
    /// The environment is removed after so long.
    #[serde(default)]
    #[schemars(extend("format" = "go-duration"))]
    pub max_runtime: Option<String>,
}

/// What an environment may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Its own loopback and nothing else.
    None,
    /// The machine's own network.
    Host,
}

/// A variable's value.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EnvSource {
    /// The value itself. A number or a boolean is taken as it is spelled.
    Value(#[schemars(extend("type" = ["string", "number", "boolean"]))] String),
    /// The value of a secret.
    Secret(SecretName),
}

impl std::fmt::Debug for EnvSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Value(…)"),
            Self::Secret(secret) => write!(f, "Secret({:?})", secret.secret),
        }
    }
}

/// A reference to a secret.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretName {
    /// A name of the `secrets` list.
    pub secret: String,
}

/// One build step.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BuildStep {
    /// A command line for `sh -lc`, run in the workspace.
    Line(String),
    /// The same with a folder of its own.
    Full(FullStep),
}

/// A build step with its folder.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FullStep {
    /// A command line for `sh -lc`.
    pub run: String,
    /// The absolute path of the folder it runs in; the workspace by default.
    #[serde(default)]
    pub workdir: Option<String>,
}

/// The environment's task.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Run {
    /// A command line for `sh -lc`.
    Line(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

/// A virtual display.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Desktop {
    /// Pixels, 320 to 3840.
    pub width: u32,
    /// Pixels, 320 to 3840.
    pub height: u32,
}

/// What needs a person.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hitl {
    /// Deadline of every intervention, 10s to 24h; 10m by default.
    #[serde(default)]
    #[schemars(extend("format" = "go-duration"))]
    pub timeout: Option<String>,
    /// What an expired intervention resolves to.
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// Whether every decision has to name a person.
    #[serde(default)]
    pub require_actor: bool,
    /// The kinds an agent may raise. A kind is declared by being present, even as `{}`.
    #[serde(default)]
    pub requests: Requests,
    /// Gates and signals, in declaration order.
    #[serde(default)]
    pub gates: Vec<Gate>,
    /// Allowlist mode: what may run, and what happens to the rest.
    #[serde(default)]
    pub exec: Option<ExecAllow>,
    /// Webhooks that hear of every audit event, at most five.
    #[serde(default)]
    pub notify: Vec<NotifyHook>,
}

/// One gate or signal.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// 1 to 64 of `a-z 0-9 - _ .`, unique in the file.
    pub name: String,
    /// What it watches.
    pub on: GateOn,
    /// What has to be true of the action; every field that is set must match.
    #[serde(rename = "match")]
    pub matches: Match,
    /// What happens to a matching action.
    #[serde(default)]
    pub mode: GateMode,
    /// How far an approval reaches by default: `once`, `env`, or `ttl:` and a duration.
    #[serde(default)]
    #[schemars(extend("format" = "grant"))]
    pub grant: Option<String>,
    /// Deadline of this gate, 10s to 24h, instead of the block's.
    #[serde(default)]
    #[schemars(extend("format" = "go-duration"))]
    pub timeout: Option<String>,
    /// Told to the caller on a deny, shown to the person on an ask.
    #[serde(default)]
    pub reason: String,
    /// A webhook that is asked before a person.
    #[serde(default)]
    pub decide: Option<Decide>,
}

/// What has to be true of an action. Which fields may be set depends on the gate's `on`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// exec: basename of the program, any of these.
    #[serde(default)]
    pub program: Option<OneOrMany>,
    /// exec: arguments that appear in this order, not necessarily side by side.
    #[serde(default)]
    pub args: Option<Vec<String>>,
    /// exec: any shell text, which nothing can look into.
    #[serde(default)]
    pub shell: Option<bool>,
    /// lifecycle and computer: names of actions, any of these.
    #[serde(default)]
    pub action: Option<OneOrMany>,
    /// computer: a `type` whose text contains any of these, ignoring case.
    #[serde(default)]
    pub text_contains: Option<Vec<String>>,
    /// stall: this many failed commands in a row, 1 to 100.
    #[serde(default)]
    pub failures: Option<i64>,
    /// stall: no command or computer action for so long, 1m to 24h.
    #[serde(default)]
    #[schemars(extend("format" = "go-duration"))]
    pub quiet: Option<String>,
    /// expiry: so long ahead of the reaper, 1m to 24h.
    #[serde(default)]
    #[schemars(extend("format" = "go-duration"))]
    pub before: Option<String>,
}
