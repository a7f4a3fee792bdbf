//! The configuration, `agent.yaml`: every key, its default and its bounds.

mod check;
mod duration;
mod read;
mod yaml;

use std::{
    fs::File,
    io::{self, Read as _},
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    time::Duration,
};

use fisk_domain::budget::Limits;
use fisk_serve::ConfirmOverMcp;

pub use check::{Problem, Problems};
pub(crate) use duration::show as show_duration;
pub use read::parse;
pub use yaml::Place;

/// The name of the configuration where `--config` gives none.
pub const DEFAULT_FILE: &str = "agent.yaml";

/// What `agent.yaml` says, defaults filled in.
#[derive(Debug, Clone)]
pub struct Config {
    /// `application_path`. A relative path with a slash is relative to the folder of the configuration; a bare name is looked up
    /// in `PATH`.
    pub application: PathBuf,
    /// `identity`.
    pub identity: Option<String>,
    /// `system_prompt`.
    pub system_prompt: Option<String>,
    /// `global_flags`: those of the application that the model may set.
    pub global_flags: Vec<String>,
    /// `include`.
    pub include: Filter,
    /// `exclude`.
    pub exclude: Filter,
    /// `llm`.
    pub llm: Llm,
    /// `harness`.
    pub harness: Harness,
    /// `expose.agent.mcp`; without it nothing is served over MCP.
    pub mcp: Option<Mcp>,
    /// `expose.agent.a2a`; without it nothing is served over A2A.
    pub a2a: Option<A2a>,
}

/// Commands by name or tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// `tools`: regular expressions that search in the name.
    pub tools: Vec<String>,
    /// `tags`.
    pub tags: Vec<String>,
}

/// Which kind of API is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProviderKind {
    /// The Anthropic Messages API.
    #[default]
    Anthropic,
    /// Chat completions, as OpenAI and many local servers speak them.
    OpenAi,
}

impl ProviderKind {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }
}

/// `llm`.
#[derive(Debug, Clone)]
pub struct Llm {
    /// `provider`.
    pub provider: ProviderKind,
    /// `model`. Only a run needs it.
    pub model: Option<String>,
    /// `base_url`.
    pub base_url: Option<String>,
    /// `allow_plain_http`: whether the provider may be another machine without TLS.
    pub allow_plain_http: bool,
    /// `budget.max_tokens` and `budget.max_iterations`.
    pub limits: Limits,
    /// `budget.call_timeout`.
    pub call_timeout: Duration,
    /// `thinking.enabled`.
    pub thinking: bool,
}

/// The model of the provider `anthropic` where none is named.
pub const DEFAULT_MODEL: &str = "claude-sonnet-4-5";

impl Llm {
    /// The model to ask. An OpenAI-compatible server has no model that could be meant by itself.
    pub fn model(&self) -> Option<&str> {
        match (&self.model, self.provider) {
            (Some(model), _) => Some(model),
            (None, ProviderKind::Anthropic) => Some(DEFAULT_MODEL),
            (None, ProviderKind::OpenAi) => None,
        }
    }
}

impl Default for Llm {
    fn default() -> Self {
        Self {
            provider: ProviderKind::default(),
            model: None,
            base_url: None,
            allow_plain_http: false,
            limits: Limits::default(),
            call_timeout: Duration::from_secs(120),
            thinking: false,
        }
    }
}

/// Who answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Operator {
    /// Whoever sits at the terminal.
    #[default]
    Terminal,
    /// People who answer interventions of a Fuse orchestrator.
    Fuse,
}

/// `harness`.
#[derive(Debug, Clone)]
pub struct Harness {
    /// `human_in_the_loop.enabled`.
    pub human_in_the_loop: bool,
    /// `confirm_tags`.
    pub confirm_tags: Vec<String>,
    /// `no_tui`.
    pub no_tui: bool,
    /// `no_bell`.
    pub no_bell: bool,
    /// `sessions.dir`; relative to the folder of the configuration.
    pub sessions_dir: Option<PathBuf>,
    /// `strip_env`.
    pub strip_env: Vec<String>,
    /// `tool_timeout`: the longest that a command of a run may take. Long, since killing one half-way may do harm, but there, since a
    /// command that never ends would hold the run for ever.
    pub tool_timeout: Duration,
    /// `sandbox`.
    pub sandbox: bool,
    /// `operator`.
    pub operator: Operator,
    /// `fuse`.
    pub fuse: Fuse,
}

impl Default for Harness {
    fn default() -> Self {
        Self {
            human_in_the_loop: false,
            confirm_tags: Vec::new(),
            no_tui: false,
            no_bell: false,
            sessions_dir: None,
            strip_env: Vec::new(),
            tool_timeout: Duration::from_secs(15 * 60),
            sandbox: false,
            operator: Operator::default(),
            fuse: Fuse::default(),
        }
    }
}

/// `harness.fuse`.
#[derive(Debug, Clone)]
pub struct Fuse {
    /// `url`; else `FUSE_URL`.
    pub url: Option<String>,
    /// `environment`: the id of the environment on whose behalf people are asked. The operator `fuse` needs it.
    pub environment: Option<String>,
    /// `token_env`: the variable that holds the token.
    pub token_env: String,
    /// `timeout`: how long people have, then it is a denial; without it as long as the environment's policy says.
    pub timeout: Option<Duration>,
}

impl Default for Fuse {
    fn default() -> Self {
        Self {
            url: None,
            environment: None,
            token_env: "FUSE_API_TOKEN".to_owned(),
            timeout: None,
        }
    }
}

/// `expose.agent.mcp`.
#[derive(Debug, Clone)]
pub struct Mcp {
    /// What it has in common with A2A.
    pub surface: Surface,
    /// `confirm_over_mcp`.
    pub confirm: ConfirmOverMcp,
}

/// `expose.agent.a2a`.
#[derive(Debug, Clone)]
pub struct A2a {
    /// What it has in common with MCP.
    pub surface: Surface,
}

/// What every served surface has.
#[derive(Debug, Clone)]
pub struct Surface {
    /// `address`.
    pub address: IpAddr,
    /// `port`; 0 takes a free one.
    pub port: u16,
    /// `max_concurrent_tools`.
    pub max_concurrent_tools: usize,
    /// `tool_timeout`.
    pub tool_timeout: Duration,
    /// `instructions`.
    pub instructions: Option<String>,
    /// `token_env`: the variable that holds the bearer token of clients.
    pub token_env: Option<String>,
}

impl Surface {
    fn on_port(port: u16) -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port,
            max_concurrent_tools: 2,
            tool_timeout: Duration::from_secs(30),
            instructions: None,
            token_env: None,
        }
    }
}

/// Reads a configuration.
///
/// # Errors
/// Text for standard error: the file cannot be read, or everything that is wrong with it. The exit code is 2.
pub fn load(file: &Path) -> Result<Config, String> {
    let name = file.display().to_string();
    let text = text_of(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if file == Path::new(DEFAULT_FILE) => format!(
            "{name}: not found: write one with `fisk init APPLICATION`, or name another with --config"
        ),
        _ => format!("{name}: {error}"),
    })?;
    let folder = file.parent().unwrap_or(Path::new(""));
    parse(&name, folder, &text).map_err(|problems| problems.to_string())
}

fn text_of(file: &Path) -> io::Result<String> {
    let limit = yaml::MAX_BYTES;
    let file = File::open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(io::Error::other(format!(
            "is larger than {limit} bytes, which is the most"
        )));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("is no UTF-8 text"))
}

#[cfg(test)]
mod tests;
