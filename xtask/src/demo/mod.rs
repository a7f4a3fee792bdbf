//! `cargo xtask demo`: the story of an agent, a held command and a person, told with the real binary.

mod person;
mod stage;

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use self::person::Person;
use self::stage::{ENVIRONMENT, Stage};
use crate::proc;
use crate::workspace::cargo_command;

const APP: &str = "/workspace/app";
const ORIGIN: &str = "/workspace/origin.git";
/// A person at the keyboard may change their mind that often.
const TRIES: u32 = 3;
const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Tells the story. True when it came to its good end.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let scripted = match arguments {
        [] => !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()),
        ["--auto"] => true,
        _ => bail!("demo takes --auto and nothing else"),
    };
    step("Building fuse");
    build()?;
    let mut person = if scripted {
        Person::scripted()
    } else {
        Person::at_the_keyboard()
    };

    step("Starting `fuse dev` with a data folder of its own, which goes away at the end");
    let stage = Stage::start()?;
    println!("listening on {}", stage.url());

    step(
        "Bringing up examples/force-push/Fusefile: a sandbox with a git repository and a bare one beside it",
    );
    stage.fuse(&["up"])?;

    step("A harmless command just runs");
    stage.fuse(&[
        "environment",
        "exec",
        ENVIRONMENT,
        "--",
        "git",
        "-C",
        APP,
        "log",
        "--oneline",
    ])?;

    step("`git push --force` is held by the gate `force-push` until a person decides");
    push(&stage, &mut person)?;

    step("The agent asks, and a person answers");
    ask(&stage, &mut person)?;

    step(
        "The agent asks, and nobody answers: the deadline is ten seconds, and the agent carries on",
    );
    unanswered(&stage)?;

    step("Everything that happened is on record");
    stage.fuse(&["hitl", "list", "--env", ENVIRONMENT, "--state", "all"])?;

    step("Destroying the environment");
    stage.fuse(&["environment", "destroy", ENVIRONMENT])?;
    println!("\nThat was all. Nothing of it is left behind.");
    Ok(true)
}

fn build() -> Result<()> {
    for what in [
        &["--package", "fuse-cli", "--bin", "fuse"][..],
        &["--package", "fuse-client", "--example", "ask"],
    ] {
        let mut command = cargo_command(&["build", "--quiet", "--locked"]);
        if !proc::run(command.args(what), BUILD_LIMIT)?.success() {
            bail!("the build failed");
        }
    }
    Ok(())
}

/// The agent pushes until a person lets it, and replans on each rejection.
fn push(stage: &Stage, person: &mut Person) -> Result<()> {
    let before = tip(stage)?;
    for _ in 0..TRIES {
        let command = [
            "environment",
            "exec",
            ENVIRONMENT,
            "--",
            "git",
            "-C",
            APP,
            "push",
            "--force",
            "origin",
            "main",
        ];
        let mut agent = stage.agent(stage.command(&command))?;
        let id = agent.held()?;
        println!();
        stage.fuse(&["hitl", "show", &id])?;
        if tip(stage)? != before {
            bail!("the push ran before anybody decided");
        }
        let approved = match person.decides()? {
            person::Verdict::Approve => {
                stage.fuse(&["hitl", "approve", &id])?;
                true
            }
            person::Verdict::Reject(reason) => {
                stage.fuse(&["hitl", "reject", &id, "--reason", &reason])?;
                false
            }
        };
        let well = agent.ends()?.success();
        if approved {
            let after = tip(stage)?;
            if !well || after == before {
                bail!("the approved push did not run");
            }
            println!("the shared repository was at {before} and is now at {after}");
            return Ok(());
        }
        if well || tip(stage)? != before {
            bail!("a rejected push ran");
        }
        println!("the shared repository is where it was: {before}");
        println!("\nThe agent has read the reason, and tries again.");
    }
    println!("Nobody approved it, so it did not run.");
    Ok(())
}

fn tip(stage: &Stage) -> Result<String> {
    let command = [
        "environment",
        "exec",
        ENVIRONMENT,
        "--",
        "git",
        "-C",
        ORIGIN,
        "rev-parse",
        "--short",
        "main",
    ];
    Ok(proc::capture(&mut stage.command(&command))
        .context("reading the shared repository")?
        .trim()
        .to_owned())
}

fn ask(stage: &Stage, person: &mut Person) -> Result<()> {
    let choices = ["yes", "no"];
    let mut agent =
        stage.agent(stage.asks("Deploy build 812 to production?", None, &choices)?)?;
    let id = agent.raised()?;
    stage.fuse(&["hitl", "show", &id])?;
    let answer = person.answers(&choices)?;
    stage.fuse(&["hitl", "answer", &id, &answer])?;
    if !agent.ends()?.success() {
        bail!("the agent did not get its answer");
    }
    Ok(())
}

fn unanswered(stage: &Stage) -> Result<()> {
    let mut agent =
        stage.agent(stage.asks("Shall I tidy up the old branches too?", Some(10), &[])?)?;
    agent.raised()?;
    if !agent.ends()?.success() {
        bail!("the agent got no outcome");
    }
    Ok(())
}

fn step(text: &str) {
    println!("\n── {text}");
}
