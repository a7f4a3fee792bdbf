//! `fisk`, as a library, so that its parts can be tested; the binary calls [`main`].

pub mod agent;
pub mod cli;
pub mod commands;
pub mod config;
pub mod failure;
pub mod output;
pub mod progress;
pub mod secrets;
pub mod session;
pub mod setup;

use std::{path::Path, process::ExitCode, time::Duration};

use clap::{CommandFactory as _, Parser as _};

use crate::{
    cli::{Cli, Command},
    commands::{info, init, run, serve, session as sessions},
    config::Config,
    failure::{Done, Failure},
    secrets::Secrets,
};

/// The whole program.
// Broken pipes are errors that are looked at, not signals: the signal would also end a run whose reader went away.
pub fn main() -> ExitCode {
    fuse_backend::maybe_run_stage();
    if fisk_exec::maybe_watch() {
        return ExitCode::SUCCESS;
    }
    // Fails where it is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = match Cli::try_parse() {
        Ok(cli) => dispatch(cli.command),
        Err(error) => {
            // Nobody is left to tell where this fails.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.code())
        }
    }
}

fn dispatch(command: Command) -> Done {
    match command {
        Command::Run(args) => {
            let config = load(&args.config.config)?;
            let secrets = Secrets::hide(Some(&config))?;
            wait_for(run::run(args, &config, &secrets))
        }
        Command::Info(args) => {
            let config = load(&args.config.config)?;
            Secrets::hide(Some(&config))?;
            wait_for(info::run(&args, &config))
        }
        Command::Init(args) => {
            Secrets::hide(None)?;
            wait_for(init::run(&args))
        }
        Command::Mcp(args) => {
            let config = load(&args.config.config)?;
            let secrets = Secrets::hide(Some(&config))?;
            log();
            wait_for(serve::mcp(&args, &config, &secrets))
        }
        Command::A2a(args) => {
            let config = load(&args.config)?;
            let secrets = Secrets::hide(Some(&config))?;
            log();
            wait_for(serve::a2a(&args, &config, &secrets))
        }
        Command::Session(command) => sessions::run(command),
        Command::Version => {
            output::data(&format!("fisk {}\n", env!("CARGO_PKG_VERSION")))?;
            Ok(0)
        }
        Command::Completion { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fisk", &mut text);
            output::data(&String::from_utf8_lossy(&text))?;
            Ok(0)
        }
        Command::Man => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut text)?;
            output::data(&String::from_utf8_lossy(&text))?;
            Ok(0)
        }
    }
}

fn load(file: &Path) -> Result<Config, Failure> {
    config::load(file).map_err(Failure::Config)
}

/// What servers have to say goes to standard error.
fn log() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // Fails where a test has set one already, which is as good.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::stderr_is_terminal())
        .try_init();
}

/// How long what a command left behind may take to end. Commands of the application are killed well within it.
const LEFT_BEHIND: Duration = Duration::from_secs(2);

fn wait_for(command: impl Future<Output = Done>) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::said(format!("cannot start: {error}")))?;
    let done = runtime.block_on(command);
    // A thread that writes to a terminal that takes nothing would hold up the end for ever.
    runtime.shutdown_timeout(LEFT_BEHIND);
    done
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    // check: FISK-66
    #[test]
    fn a_thread_that_is_stuck_does_not_hold_up_the_end() {
        let began = Instant::now();
        let done = wait_for(async {
            let (stuck, never) = std::sync::mpsc::channel::<()>();
            drop(tokio::task::spawn_blocking(move || never.recv()));
            std::mem::forget(stuck);
            Ok(7)
        });
        assert_eq!(done, Ok(7));
        assert!(began.elapsed() < LEFT_BEHIND + Duration::from_secs(10));
    }
}
