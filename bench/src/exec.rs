//! A command's round trip, beside a sandbox that is made for one command.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use fuse_backend::{Backend, EnvId, EnvSpec, ExecSpec, Sandbox};

use crate::report::{Aim, Report};
use crate::stats::{median, ms, percentile};
use crate::stores::{Bed, Kind};

const ROUNDS: usize = 7;
const CALLS: usize = 60;

/// Times in milliseconds: of all calls, and the median of each round.
#[derive(Default)]
struct Times {
    all: Vec<f64>,
    rounds: Vec<f64>,
}

impl Times {
    fn round(&mut self, times: Vec<f64>) {
        self.rounds.push(median(&times));
        self.all.extend(times);
    }

    fn tell(&self, name: &str, report: &mut Report) {
        report.repeated(format!("exec of true {name}"), "ms", &self.rounds, None);
        report.single(
            format!("exec of true {name}, p95"),
            "ms",
            percentile(&self.all, 0.95),
            None,
        );
    }
}

/// Measures, and reports.
pub async fn measure(bed: &Bed, report: &mut Report) -> Result<()> {
    provide_bwrap()?;
    let server = bed.serve(&bed.place(Kind::Sqlite, "exec")?).await?;
    let env = server.environment("agent").await?;
    let path = format!("/v1/environments/{env}?action=exec");
    let mut connection = server.connect().await?;

    let sandbox = Sandbox::new(bed.data("exec-alone"))?;
    let id = EnvId::new("agent")?;
    let guest = sandbox.create(EnvSpec::new(id.clone())).await?;

    let (mut api, mut alone, mut bwrap) = (Times::default(), Times::default(), Times::default());
    for round in 0..ROUNDS {
        let mut times = Vec::with_capacity(CALLS);
        for _ in 0..CALLS {
            let begun = Instant::now();
            let answer = connection
                .call("POST", &path, r#"{"cmd":["true"]}"#)
                .await?
                .ok(200)?;
            times.push(ms(begun.elapsed()));
            if !answer.holds(r#""exit_code":0"#) {
                bail!("true failed: {}", String::from_utf8_lossy(&answer.body));
            }
        }
        api.round(times);

        let mut times = Vec::with_capacity(CALLS);
        for call in 0..CALLS {
            let command = fuse_backend::Command::Argv(vec!["true".to_owned()]);
            let spec = ExecSpec::new(format!("c-{round}-{call}"), command);
            let begun = Instant::now();
            let outcome = guest.exec(spec).await?;
            times.push(ms(begun.elapsed()));
            if outcome.exit_code != 0 {
                bail!("true failed: {outcome:?}");
            }
        }
        alone.round(times);
        bwrap.round(tokio::task::spawn_blocking(run_bwrap).await??);
    }
    sandbox.destroy(&id).await?;

    api.tell("over the API", report);
    alone.tell("in the backend alone", report);
    bwrap.tell("in a bwrap of its own", report);
    let ratio = |ours: &Times| -> Vec<f64> {
        ours.rounds
            .iter()
            .zip(&bwrap.rounds)
            .map(|(ours, theirs)| ours / theirs)
            .collect()
    };
    report.repeated(
        "ratio exec over the API to bwrap",
        "x",
        &ratio(&api),
        Some(Aim::AtMost(1.0)),
    );
    report.repeated(
        "ratio exec in the backend to bwrap",
        "x",
        &ratio(&alone),
        Some(Aim::AtMost(1.0)),
    );
    Ok(())
}

fn run_bwrap() -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let mut command = Command::new("bwrap");
        command
            .args(["--unshare-all", "--ro-bind", "/", "/", "true"])
            .stdin(Stdio::null());
        let begun = Instant::now();
        let status = command.status().context("cannot start bwrap")?;
        times.push(ms(begun.elapsed()));
        if !status.success() {
            bail!("bwrap failed ({status})");
        }
    }
    Ok(times)
}

/// Installs bubblewrap where it is missing.
fn provide_bwrap() -> Result<()> {
    let is_there = || {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join("bwrap").is_file())
    };
    if is_there() {
        return Ok(());
    }
    let by_hand = "apt-get install bubblewrap";
    if !nix::unistd::geteuid().is_root() || !Path::new("/usr/bin/apt-get").is_file() {
        bail!("bwrap is missing; run this as root, then try again: {by_hand}");
    }
    eprintln!("installing bubblewrap, which commands are compared with");
    let script = "apt-get update -q && apt-get install -q -y --no-install-recommends bubblewrap";
    let status = Command::new("sh")
        .args(["-c", script])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    if !status.success() || !is_there() {
        bail!("bubblewrap could not be installed; run this as root: {by_hand}");
    }
    Ok(())
}
