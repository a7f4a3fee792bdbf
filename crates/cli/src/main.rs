//! `fuse`: the command line, and the server as `fuse serve`.

mod apikeys;
mod args;
mod commands;
mod connect;
mod context;
mod docs;
mod environment;
mod failure;
mod fusefile;
mod hitl;
mod input;
mod output;
mod pager;
mod progress;
mod serve;
mod table;
mod time;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::commands::{Cli, Command};
use crate::failure::{Done, Failure};

/// A server answers thousands of small calls a second, each with dozens of short-lived allocations, from several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// Broken pipes are errors that are looked at, not signals: the signal would also end a server whose client hung up.
fn main() -> ExitCode {
    fuse_backend::maybe_run_stage();
    // Fails where it is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(error) => {
            // Nobody is left to tell where this fails.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output::failure(&failure);
            ExitCode::from(failure.code())
        }
    }
}

fn run(cli: Cli) -> Done {
    let face = cli.face;
    match cli.command {
        Command::Serve(args) => serve::serve(args),
        Command::Dev(args) => serve::dev(args),
        Command::Init(args) => fusefile::init(&args),
        Command::Validate(args) => fusefile::validate(&args, &face),
        Command::Compile(args) => fusefile::compile(&args),
        Command::Completions(args) => docs::completions(&args, Cli::command()),
        Command::Man(args) => docs::man(&args, Cli::command()),
        Command::Openapi => docs::openapi(),
        Command::Schema => docs::schema(),
        Command::Connect(args) => wait_for(connect::connect(args)),
        Command::Up(args) => wait_for(fusefile::up(args, &face)),
        Command::Environment(command) => wait_for(environment::run(command, &face)),
        Command::Hitl(command) => wait_for(hitl::run(command, &face)),
        Command::Apikeys(command) => wait_for(apikeys::run(command, &face)),
    }
}

/// Runs what talks to a server. One thread is enough for one call.
fn wait_for(command: impl Future<Output = Done>) -> Done {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::said(format!("cannot start: {error}")))?
        .block_on(command)
}
