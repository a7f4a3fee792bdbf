//! `cargo xtask test`: everything that a change must pass, from a machine on which nothing runs.

mod postgres;
mod provision;
mod python;
mod tally;

use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use self::postgres::Postgres;
use self::tally::Tally;
use crate::{cargo_command, fixtures, proc, target_dir};

const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Runs all of it. True when nothing failed; the last line says how much passed and failed.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let begun = Instant::now();
    let mut tally = Tally::default();
    let ran = match arguments {
        [] => all(&mut tally),
        ["--fast"] => fast(&mut tally),
        ["--only", cargo_arguments @ ..] => only(cargo_arguments, &mut tally),
        ["--services"] => return services(),
        _ => bail!(
            "test takes nothing, --fast, --services, or --only and the arguments of cargo test"
        ),
    };
    if let Err(error) = &ran {
        eprintln!("error: {error:#}");
        tally.fail("setting up");
    }
    for failure in tally.failures() {
        println!("failed: {failure}");
    }
    println!("took {} s", begun.elapsed().as_secs());
    println!("{} passed, {} failed", tally.passed(), tally.failed());
    Ok(tally.failed() == 0)
}

fn all(tally: &mut Tally) -> Result<()> {
    provision::ensure()?;
    fixtures::ensure()?;
    let venv = python::ensure()?;
    checks(tally)?;
    let server = Postgres::start()?;
    rust_tests(&["--workspace"], &server, tally)?;
    let tests = with_services(python::tests(&venv), &server);
    counted(tally, "Python tests", tests)
}

fn fast(tally: &mut Tally) -> Result<()> {
    provision::ensure()?;
    fixtures::ensure()?;
    checks(tally)?;
    rust_tests(&["--workspace"], &Postgres::start()?, tally)
}

fn only(arguments: &[&str], tally: &mut Tally) -> Result<()> {
    provision::ensure()?;
    fixtures::ensure()?;
    rust_tests(arguments, &Postgres::start()?, tally)
}

/// Keeps the services up until it is interrupted, for whoever runs single tests by hand.
fn services() -> Result<bool> {
    provision::ensure()?;
    fixtures::ensure()?;
    let venv = python::ensure()?;
    let server = Postgres::start()?;
    println!("export FUSE_TEST_POSTGRES={}", server.url());
    println!("export FUSE_TEST_VENV={}", venv.display());
    println!("# up until Ctrl-C");
    while !proc::interrupted() {
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(true)
}

fn checks(tally: &mut Tally) -> Result<()> {
    check(tally, "format", cargo_command(&["fmt", "--all", "--check"]))?;
    let lint = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ];
    check(tally, "clippy", cargo_command(&lint))?;
    check(
        tally,
        "build",
        cargo_command(&["build", "--workspace", "--locked", "--quiet"]),
    )?;
    let mut documents = cargo_command(&["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    documents.env("RUSTDOCFLAGS", "-D warnings");
    check(tally, "documents", documents)?;
    heading("tidy");
    tally.check("tidy", crate::tidy::run()?);
    if provision::succeeds("cargo", &["deny", "--version"]) {
        let deny = ["deny", "check", "licenses", "bans", "sources"];
        check(tally, "dependencies", cargo_command(&deny))?;
    } else {
        println!("== dependencies: not checked, cargo-deny is not installed");
    }
    Ok(())
}

fn rust_tests(arguments: &[&str], server: &Postgres, tally: &mut Tally) -> Result<()> {
    let mut command = cargo_command(&["test", "--locked", "--no-fail-fast"]);
    command.args(arguments);
    counted(tally, "Rust tests", with_services(command, server))
}

fn with_services(mut command: Command, server: &Postgres) -> Command {
    command.env("FUSE_TEST_POSTGRES", server.url());
    command.env("FUSE_TEST_VENV", python::folder());
    command.env("FISK_TEST_FIXTURES", fixtures::folder());
    command.env("FUSE_TEST_BIN", target_dir().join("debug/fuse"));
    command.env("FISK_TEST_BIN", target_dir().join("debug/fisk"));
    // What a person's shell points the CLI at is no part of a test.
    for name in [
        "FUSE_URL",
        "FUSE_TOKEN",
        "DATABASE_URL",
        "ORCH_AUTH_TOKEN",
        "TOKEN_ENCRYPTION_KEY",
    ] {
        command.env_remove(name);
    }
    command
}

/// A step that passes or fails as one.
fn check(tally: &mut Tally, name: &'static str, mut command: Command) -> Result<()> {
    heading(name);
    let begun = Instant::now();
    let outcome = proc::run(&mut command, LIMIT);
    let well = settle(name, outcome)?.is_some_and(|status| status.success());
    println!(
        "   {} after {} s",
        if well { "ok" } else { "failed" },
        begun.elapsed().as_secs()
    );
    tally.check(name, well);
    Ok(())
}

/// A step that runs tests and says how many.
fn counted(tally: &mut Tally, name: &'static str, mut command: Command) -> Result<()> {
    heading(name);
    let failed_before = tally.failed();
    let outcome = proc::run_lines(&mut command, LIMIT, |line| {
        println!("{line}");
        tally.line(line);
    });
    let well = settle(name, outcome)?.is_some_and(|status| status.success());
    // A runner that broke before it counted is a failure too.
    if !well && tally.failed() == failed_before {
        tally.fail(name);
    }
    Ok(())
}

/// A step over its limit fails alone; an interruption ends the run.
fn settle(name: &str, outcome: Result<ExitStatus>) -> Result<Option<ExitStatus>> {
    match outcome {
        Ok(status) => Ok(Some(status)),
        Err(error) if proc::interrupted() => Err(error),
        Err(error) => {
            eprintln!("{name}: {error:#}");
            Ok(None)
        }
    }
}

fn heading(name: &str) {
    println!("== {name}");
}
