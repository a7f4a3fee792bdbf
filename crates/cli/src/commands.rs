//! The table of commands.

use clap::{Parser, Subcommand};

use crate::args::Face;
use crate::{apikeys, connect, docs, environment, fusefile, hitl, serve};

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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_commands_are_consistent() {
        Cli::command().debug_assert();
    }
}
