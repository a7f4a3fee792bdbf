//! A command that Fisk runs, beside a bare spawn of the same, and what a flood of output costs.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use fisk_domain::{Call, Selection, Toolset};
use fisk_exec::{ExecConfig, Executor};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::report::{Aim, Report};
use crate::stats::{median, ms};

const ROUNDS: usize = 7;
const CALLS: usize = 60;
const FLOOD: u64 = 1 << 30;

/// Its commands have an empty body and a body that floods; neither starts another process before it has to.
const APPLICATION: &str = r#"#!/bin/sh
case $1 in
--fisk-introspect)
  echo '{"name":"app","help":"For figures","commands":[{"name":"nothing","help":"Nothing"},{"name":"flood","help":"Much"}]}';;
nothing) ;;
flood) exec head -c 1073741824 /dev/zero;;
esac
"#;

pub async fn measure(report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir().context("no folder")?;
    let path = folder.path().join("app");
    // Written by another process: one that is forked meanwhile would hold it open for writing while it is started.
    let made = Command::new("/bin/sh")
        .args(["-c", "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\""])
        .arg(&path)
        .arg(APPLICATION)
        .status()?;
    if !made.success() {
        bail!("the application could not be written");
    }
    let plain = Fisk::new(&path, false).await?;
    let nothing = plain.call("nothing")?;
    let (mut bare, mut ours, mut over) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (mut b, mut o) = (Vec::new(), Vec::new());
        for _ in 0..CALLS {
            b.push(bare_spawn(plain.executor.application(), nothing.argv())?);
            o.push(plain.time(&nothing).await?);
        }
        bare.push(median(&b));
        ours.push(median(&o));
        over.push(median(&o) - median(&b));
    }
    report.repeated("bare spawn of an empty script", "ms", &bare, None);
    report.repeated("the same as a tool call", "ms", &ours, None);
    let aim = Some(Aim::AtMost(1.0));
    report.repeated("tool call over bare spawn", "ms", &over, aim);
    match Fisk::new(&path, true).await {
        Ok(caged) => {
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                let mut o = Vec::new();
                for _ in 0..CALLS / 2 {
                    o.push(caged.time(&nothing).await?);
                }
                times.push(median(&o));
            }
            report.repeated("tool call in a sandbox", "ms", &times, None);
            caged.executor.close().await?;
        }
        Err(error) => report.note(format!("no sandbox for commands: {error:#}")),
    }
    flood(&plain, report).await
}

async fn flood(fisk: &Fisk, report: &mut Report) -> Result<()> {
    let call = fisk.call("flood")?;
    fisk.time(&call).await?;
    let (mut grown, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let before = memory("VmRSS:")?;
        fs::write("/proc/self/clear_refs", "5").context("the peak cannot be reset")?;
        let took = fisk.time(&call).await?;
        grown.push(memory("VmHWM:")?.saturating_sub(before) as f64);
        rates.push(FLOOD as f64 / (1 << 20) as f64 / (took / 1_000.0));
    }
    let aim = Some(Aim::AtMost(1024.0));
    report.repeated("memory while a command writes 1 GiB", "KiB", &grown, aim);
    report.repeated("output taken in", "MiB/s", &rates, None);
    Ok(())
}

/// Fork, exec, output through a pipe, wait: the least that a tool call could do.
fn bare_spawn(program: &Path, arguments: &[String]) -> Result<f64> {
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut output = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut output)?;
    }
    child.wait()?;
    Ok(ms(begun.elapsed()))
}

struct Fisk {
    executor: Executor,
    tools: Toolset,
}

impl Fisk {
    async fn new(application: &Path, sandbox: bool) -> Result<Self> {
        let executor = Executor::new(ExecConfig {
            application: application.to_owned(),
            strip_env: Vec::new(),
            sandbox,
        })
        .await?;
        let model = executor.introspect().await?;
        let (tools, _) = Toolset::from_introspection(&model, &Selection::default())?;
        Ok(Self { executor, tools })
    }

    fn call(&self, name: &str) -> Result<Call> {
        let tool = self.tools.get(name).context("no such command")?;
        let input = json!({}).as_object().cloned().unwrap_or_default();
        Ok(tool.args_from_json(&input)?)
    }

    async fn time(&self, call: &Call) -> Result<f64> {
        let begun = Instant::now();
        let outcome = self
            .executor
            .run(call, None, &CancellationToken::new())
            .await?;
        let took = ms(begun.elapsed());
        if outcome.exit_code != 0 {
            bail!("the command ended with {}", outcome.exit_code);
        }
        Ok(took)
    }
}

/// A value of this process, in KiB.
fn memory(name: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(value.context("no such value")?.parse()?)
}
