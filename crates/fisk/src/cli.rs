//! The commands and their options.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::config::DEFAULT_FILE;

const ENVIRONMENT: &str = "\
Environment:
  ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN   the key of the provider anthropic
  ANTHROPIC_BASE_URL, OPENAI_BASE_URL       where the provider is, where llm.base_url says nothing
  OPENAI_API_KEY                            the key of the provider openai
  FISK_SESSIONS_DIR                         the folder of the sessions
  NO_COLOR                                  no colour

Exit codes: 0; 1 for a refusal, an error or a spent budget; 2 for bad usage or configuration; 3 for a run that was suspended;
130 and 143 for a run that a signal ended.";

/// A command-line application becomes a safe agent.
///
/// Its commands are the model's only tools. They run without a shell and without credentials, and a tagged one waits for you. The
/// final answer goes to standard output, everything else to standard error.
#[derive(Debug, Parser)]
#[command(name = "fisk", version, propagate_version = true, max_term_width = 100, after_long_help = ENVIRONMENT)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Let the model work on a prompt.
    Run(RunArgs),
    /// Show what the model may call, what is gated, and what looks wrong.
    Info(InfoArgs),
    /// Write a first agent.yaml for an application.
    Init(InitArgs),
    /// Serve the commands over MCP.
    Mcp(McpArgs),
    /// Serve the commands over A2A.
    A2a(ConfigArgs),
    /// Sessions of runs with --checkpoint.
    #[command(subcommand)]
    Session(SessionCommand),
    /// Print the version.
    Version,
    /// Print the completions for a shell.
    #[command(alias = "completions")]
    Completion {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page.
    Man,
}

/// Where the configuration is.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// The configuration.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    pub config: PathBuf,
}

/// `fisk run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Lines instead of the full screen.
    #[arg(long)]
    pub no_tui: bool,
    /// Keep a journal, so that the run can be suspended and resumed.
    #[arg(long, conflicts_with = "resume")]
    pub checkpoint: bool,
    /// The name of the session; without it one is made up.
    #[arg(long, value_name = "NAME", requires = "checkpoint", value_parser = session_name)]
    pub name: Option<String>,
    /// Go on with a session.
    #[arg(long, value_name = "ID", conflicts_with = "prompt")]
    pub resume: Option<String>,
    /// What you want. `-` reads it from standard input, and then nobody can be asked on the terminal.
    #[arg(required_unless_present = "resume")]
    pub prompt: Option<String>,
}

/// `fisk info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// JSON for programs.
    #[arg(long)]
    pub json: bool,
}

/// `fisk init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The application's executable.
    pub application: PathBuf,
    /// Where to write.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    pub config: PathBuf,
}

/// `fisk mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Speak over standard input and output instead of HTTP.
    #[arg(long)]
    pub stdio: bool,
}

/// `fisk session`.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List them, the last written first.
    Ls(SessionsArgs),
    /// Show what happened in one.
    Show {
        /// The session.
        id: String,
        /// The folder.
        #[command(flatten)]
        sessions: SessionsArgs,
    },
    /// Remove some.
    Rm {
        /// The sessions.
        #[arg(required = true)]
        ids: Vec<String>,
        /// The configuration, for harness.sessions.dir.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// Where sessions are, and how they are printed.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// The configuration, for harness.sessions.dir; without it agent.yaml, where there is one.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// JSON for programs.
    #[arg(long)]
    pub json: bool,
}

fn session_name(name: &str) -> Result<String, String> {
    crate::session::checked_name(name).map(|()| name.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_commands_are_consistent() {
        Cli::command().debug_assert();
    }

    // check: FISK-23
    #[test]
    fn a_prompt_beside_a_resume_is_a_usage_error() {
        for bad in [
            &["fisk", "run", "--resume", "one", "go"][..],
            &["fisk", "run", "--resume", "one", "--checkpoint"],
            &["fisk", "run", "--name", "one", "go"],
            &["fisk", "run", "--checkpoint", "--name", "Not_One", "go"],
            &["fisk", "run"],
        ] {
            let error = Cli::try_parse_from(bad).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{bad:?}");
        }
        Cli::try_parse_from(["fisk", "run", "--resume", "one"]).unwrap();
    }
}
