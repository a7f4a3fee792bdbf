//! Tasks of this workspace: `cargo xtask TASK`.

mod demo;
mod fixtures;
mod generated;
mod proc;
mod test;
mod tidy;
mod workspace;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::workspace::{cargo_command, target_dir};

const USAGE: &str = "\
usage: cargo xtask TASK

  demo [--auto]        the story of a held command, on the terminal; --auto lets a scripted person decide
  test [--fast]        everything that CI checks; --fast leaves out the Python and schema runs
  test --only ARGS     `cargo test ARGS` beside a PostgreSQL of its own
  test --services      that PostgreSQL and the Python environment alone, until Ctrl-C
  fixtures             build the applications that Fisk's tests run, into target/go-fixtures
  tidy                 the house rules: specification checks, layers, file lengths, generated files
  regenerate           write openapi/ and docs/fusefile.schema.json anew from the code
  build                a release build of `fuse` and `fisk`
  bench [ARGS]         the benchmarks of bench/
  fuzz [SECONDS]       every fuzz target for that long, 60 by default (needs cargo-fuzz)
";

fn main() -> ExitCode {
    proc::catch_interrupts();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["demo", rest @ ..] => demo::run(rest),
        ["test", rest @ ..] => test::run(rest),
        ["fixtures"] => fixtures::ensure().map(|()| true),
        ["tidy"] => tidy::run(None),
        ["regenerate"] => generated::write(),
        ["build"] => cargo(&[
            "build",
            "--release",
            "--locked",
            "--package",
            "fuse-cli",
            "--package",
            "fisk",
        ]),
        ["bench", rest @ ..] => bench(rest),
        ["fuzz", rest @ ..] => fuzz(rest),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(true)
        }
        [other, ..] => {
            eprint!("unknown task or arguments: {other}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn cargo(args: &[&str]) -> Result<bool> {
    let status = proc::run(&mut cargo_command(args), proc::NO_LIMIT)?;
    Ok(status.success())
}

fn bench(args: &[&str]) -> Result<bool> {
    // Figures of a debug build would say nothing. The server is the binary that is deployed, so it is built too.
    let packages = ["--package", "fuse-cli", "--package", "fuse-bench"];
    let built = cargo(&[&["build", "--release", "--locked"], &packages[..]].concat())?;
    if !built {
        return Ok(false);
    }
    let mut command = Command::new(target_dir().join("release/fuse-bench"));
    Ok(proc::run(command.args(args), proc::NO_LIMIT)?.success())
}

fn fuzz(args: &[&str]) -> Result<bool> {
    let seconds: u64 = match args {
        [] => 60,
        [seconds] => seconds
            .parse()
            .with_context(|| format!("not a number of seconds: {seconds}"))?,
        _ => bail!("fuzz takes one number of seconds"),
    };
    let listed = proc::capture(&mut cargo_command(&["fuzz", "list"]))
        .context("cargo-fuzz is needed: cargo install --locked cargo-fuzz")?;
    let mut all_well = true;
    for target in listed
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        println!("== {target}");
        // Without a sanitizer the targets build on the stable toolchain too.
        let limit = format!("-max_total_time={seconds}");
        all_well &= cargo(&["fuzz", "run", "-s", "none", target, "--", &limit])?;
    }
    Ok(all_well)
}
