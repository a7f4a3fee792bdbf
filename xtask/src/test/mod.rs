//! `cargo xtask test`: everything that a change must pass, from a machine on which nothing runs.
//!
//! One build makes every program and every test. Then the test programs run side by side, and the linters, the
//! documentation and its tests beside them, in what the tests leave of the machine.

mod binaries;
mod pool;
mod postgres;
mod provision;
mod python;
mod report;
mod tally;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use self::binaries::Binary;
use self::pool::{Counts, Job};
use self::postgres::Postgres;
use self::report::Report;
use crate::workspace::{cargo_command, root, target_dir, without_own_package};
use crate::{fixtures, proc};

/// The longest that a step may take: ten times what the longest of them takes on two idle cores.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// What runs longest or loads the machine, in the order in which it begins, and how many slots it takes.
const FIRST: [(&str, usize); 1] = [("fuse-e2e suite", 2)];

/// Runs all of it. True when nothing failed; the last line says how much passed and failed.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let mut report = Report::begin();
    let ran = match arguments {
        [] => all(true, &mut report),
        ["--fast"] => all(false, &mut report),
        ["--only", cargo_arguments @ ..] => only(cargo_arguments, &mut report),
        ["--services"] => return services(),
        _ => bail!(
            "test takes nothing, --fast, --services, or --only and the arguments of cargo test"
        ),
    };
    if let Err(error) = &ran {
        eprintln!("error: {error:#}");
        report.tally.fail(if proc::interrupted() {
            "interrupted"
        } else {
            "setting up"
        });
    }
    Ok(report.close())
}

fn all(with_python: bool, report: &mut Report) -> Result<()> {
    report.timed("packages", provision::ensure)?;
    report.timed("fixtures", fixtures::ensure)?;
    if with_python {
        report.timed("Python environment", python::ensure)?;
    }
    let format = cargo_command(&["fmt", "--all", "--check"]);
    alone(step("format", format), report)?;
    let built = report.timed("build", || binaries::build(LIMIT))?;
    report.tally.check("build", built.is_some());
    let Some(built) = built else {
        return pool::run(VecDeque::new(), checks(), 1, report);
    };
    let fuse = fuse();
    let tidy = report.timed("tidy", || crate::tidy::run(Some(&fuse)))?;
    report.tally.check("tidy", tidy);
    let server = report.timed("PostgreSQL", Postgres::start)?;
    let mut jobs = rust_tests(&built, &server)?;
    if with_python {
        let command = with_services(python::tests(&python::folder()), &server);
        jobs.insert(1, tests("Python tests", command, 1));
    }
    let mut chain = checks();
    let documented = ["test", "--workspace", "--doc", "--locked", "--no-fail-fast"];
    let documented = with_services(in_the_background(&documented), &server);
    chain.push_front(tests("documentation's tests", documented, 1));
    pool::run(jobs.into(), chain, slots(), report)
}

fn only(arguments: &[&str], report: &mut Report) -> Result<()> {
    report.timed("packages", provision::ensure)?;
    report.timed("fixtures", fixtures::ensure)?;
    let server = report.timed("PostgreSQL", Postgres::start)?;
    let mut command = cargo_command(&["test", "--locked", "--no-fail-fast"]);
    command.args(arguments);
    followed("Rust tests", with_services(command, &server), report)
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

/// What the compiler and others say of the code, one after the other, since cargo builds one thing at a time.
fn checks() -> VecDeque<Job> {
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
    let mut documents =
        in_the_background(&["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    documents.env("RUSTDOCFLAGS", "-D warnings");
    let mut checks = VecDeque::from([
        step("clippy", in_the_background(&lint)),
        step("documents", documents),
    ]);
    if provision::succeeds("cargo", &["deny", "--version"]) {
        let deny = ["deny", "check", "licenses", "bans", "sources"];
        checks.push_back(step("dependencies", in_the_background(&deny)));
    } else {
        println!("== dependencies: not checked, cargo-deny is not installed");
    }
    checks
}

/// A cargo command that takes what others leave of the machine.
fn in_the_background(arguments: &[&str]) -> Command {
    let cargo = cargo_command(arguments);
    let mut command = Command::new("nice");
    command
        .args(["-n", "10"])
        .arg(cargo.get_program())
        .args(cargo.get_args())
        .current_dir(root());
    without_own_package(&mut command);
    command
}

/// The test programs in the order in which they begin: those that take long first, so that none of them is left at the end.
fn rust_tests(built: &[Binary], server: &Postgres) -> Result<Vec<Job>> {
    let place = |binary: &&Binary| {
        FIRST
            .iter()
            .position(|(name, _)| *name == binary.name)
            .unwrap_or(FIRST.len())
    };
    let mut ordered: Vec<&Binary> = built.iter().collect();
    ordered.sort_by_key(place);
    ordered
        .into_iter()
        .map(|binary| {
            let weight = FIRST.get(place(&binary)).map_or(1, |(_, weight)| *weight);
            let command = with_services(binary.command()?, server);
            Ok(tests(&binary.name, command, weight))
        })
        .collect()
}

/// How many tests run at once: most of them wait.
fn slots() -> usize {
    2 * std::thread::available_parallelism().map_or(2, usize::from)
}

fn fuse() -> PathBuf {
    target_dir().join("debug/fuse")
}

fn with_services(mut command: Command, server: &Postgres) -> Command {
    command.env("FUSE_TEST_POSTGRES", server.url());
    command.env("FUSE_TEST_VENV", python::folder());
    command.env("FISK_TEST_FIXTURES", fixtures::folder());
    command.env("FUSE_TEST_BIN", fuse());
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
fn step(name: &str, command: Command) -> Job {
    Job {
        name: name.to_owned(),
        command,
        weight: 1,
        counts: Counts::AsOne,
        limit: LIMIT,
    }
}

/// A step that tells how many tests passed and failed.
fn tests(name: &str, command: Command, weight: usize) -> Job {
    Job {
        weight,
        counts: Counts::ItsTests,
        ..step(name, command)
    }
}

fn alone(job: Job, report: &mut Report) -> Result<()> {
    pool::run(VecDeque::from([job]), VecDeque::new(), 1, report)
}

/// Runs tests with their output on this terminal as it comes.
fn followed(name: &str, mut command: Command, report: &mut Report) -> Result<()> {
    let tally = &mut report.tally;
    let failed_before = tally.failed();
    let ended = proc::run_lines(&mut command, LIMIT, |line| {
        println!("{line}");
        tally.line(name, line);
    });
    let well = match ended {
        Ok(status) => status.success(),
        Err(error) if proc::interrupted() => return Err(error),
        Err(error) => {
            eprintln!("{name}: {error:#}");
            false
        }
    };
    // A runner that broke before it counted is a failure too.
    if !well && tally.failed() == failed_before {
        tally.fail(name);
    }
    Ok(())
}
