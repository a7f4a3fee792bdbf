//! The commands and the options that all of them have.

use clap::{Args, Parser, Subcommand, ValueEnum};
use fuse_api::time::parse_go_duration;
use fuse_client::{ActorLabel, Client};
use std::time::Duration;

use crate::{
    apikeys, connect, context, docs, environment, failure::Failure, fusefile, hitl, serve,
};

const ENVIRONMENT: &str = "\
Environment:
  FUSE_URL, FUSE_TOKEN   the server and what opens it, in place of the active context
  XDG_CONFIG_HOME        contexts are in fuse/config.yaml below it
  NO_COLOR               no colour
  PAGER                  for long content on a terminal (less)
  VISUAL, EDITOR         for `hitl approve --edit` (vi)";

/// An AI agent on a leash that never jams: sandboxed environments, gates, and people who decide.
///
/// Data goes to standard output, everything else to standard error. Exit codes: 0, 1 for a refusal or an error, 2 for bad usage or
/// configuration; `environment exec` exits with the command's own code.
#[derive(Parser)]
#[command(
    name = "fuse",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_long_help = ENVIRONMENT
)]
pub struct Cli {
    #[command(flatten)]
    pub face: Face,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command knows about its caller.
#[derive(Args, Clone)]
pub struct Face {
    /// A table for people, or the API's JSON for programs.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table, help_heading = "Global options")]
    pub output: Format,
    /// The saved context to use; wins over FUSE_URL and FUSE_TOKEN.
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help_heading = "Global options"
    )]
    pub context: Option<String>,
}

impl Face {
    /// A client for the server that the caller means.
    pub fn client(&self) -> Result<Client, Failure> {
        context::resolve(self.context.as_deref())
    }

    /// Whether programs read the output.
    pub fn is_json(&self) -> bool {
        self.output == Format::Json
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

#[derive(Subcommand)]
pub enum Command {
    /// Start a server for this machine, ready to use: token, key, database and context in one go.
    Dev(serve::DevArgs),
    /// Run the orchestrator.
    Serve(serve::ServeArgs),
    /// Save where a server is, and make it the one to talk to.
    Connect(connect::ConnectArgs),
    /// Write an example Fusefile.
    Init(fusefile::InitArgs),
    /// Check a Fusefile, as the server would.
    Validate(fusefile::FileArgs),
    /// Print the create request that a Fusefile stands for; secrets as null.
    Compile(fusefile::FileArgs),
    /// Create the environment of a Fusefile, and print its id once it runs.
    Up(fusefile::UpArgs),
    /// Environments: make, look at, use, remove.
    #[command(subcommand, visible_alias = "env")]
    Environment(environment::Command),
    /// What waits for a person, and decisions on it.
    #[command(subcommand)]
    Hitl(hitl::Command),
    /// API keys.
    #[command(subcommand)]
    Apikeys(apikeys::Command),
    /// Print the completions for a shell.
    Completions(docs::CompletionsArgs),
    /// Print the manual page, or write all of them into a folder.
    Man(docs::ManArgs),
    /// Print the OpenAPI document.
    #[command(hide = true)]
    Openapi,
    /// Print the JSON Schema of the Fusefile.
    #[command(hide = true)]
    Schema,
}

/// Who a decision is recorded for.
#[derive(Args)]
pub struct ActorArgs {
    /// The person who decides, as an id; needs the master token or a key with act-as.
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// What people call that person.
    #[arg(long, value_name = "NAME", requires = "actor")]
    actor_name: Option<String>,
}

impl ActorArgs {
    /// The client, speaking for that person if there is one.
    pub fn client(self, face: &Face) -> Result<Client, Failure> {
        let client = face.client()?;
        Ok(match self.actor {
            None => client,
            Some(id) => client.with_actor(ActorLabel {
                id,
                name: self.actor_name,
            }),
        })
    }
}

/// A duration in Go's syntax, not negative.
pub fn duration(text: &str) -> Result<Duration, String> {
    let nanos = parse_go_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(nanos)
        .map(Duration::from_nanos)
        .map_err(|_| "must not be negative".to_owned())
}

/// A duration of whole seconds.
pub fn seconds(text: &str) -> Result<u64, String> {
    let duration = duration(text)?;
    if duration.subsec_nanos() != 0 {
        return Err("must be whole seconds, like 90s or 1h30m".to_owned());
    }
    Ok(duration.as_secs())
}

/// `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_commands_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn seconds_are_whole_and_not_negative() {
        assert_eq!(seconds("1h30m"), Ok(5400));
        assert!(seconds("1500ms").is_err());
        assert!(seconds("-1s").is_err());
        assert!(seconds("5").is_err());
    }

    #[test]
    fn a_pair_needs_a_name_and_keeps_later_equal_signs() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(pair("=x").is_err() && pair("x").is_err());
    }
}
