//! The boot: workspace, build steps, startup script, task.

use crate::{
    files,
    job::{self, Job, Keep, Outcome, Start},
    link::Link,
    reaper::lock,
    state::State,
};
use fuse_guest_api::{
    BOOT_TAIL, Boot, BootFailure, BootStage, Command, EnvVars, Phase, Refusal, RefusalCode, Reply,
    TaskState,
};
use std::{
    fs::{DirBuilder, OpenOptions},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// Where the task's output goes.
const TASK_LOG: &str = "/var/log/task.log";

/// How far the boot has come, and who waits for it.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    phase: Phase,
    waiters: Vec<(Arc<Link>, u32)>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            phase: Phase::Waiting,
            waiters: Vec::new(),
        }
    }
}

impl Progress {
    /// How far it has come.
    pub fn phase(&self) -> Phase {
        lock(&self.0).phase.clone()
    }

    fn end(&self, result: Result<(), BootFailure>) {
        let mut inner = lock(&self.0);
        inner.phase = match result {
            Ok(()) => Phase::Ready,
            Err(failure) => Phase::Failed(failure),
        };
        let reply = answer(&inner.phase);
        let waiters = std::mem::take(&mut inner.waiters);
        drop(inner);
        for (link, stream) in waiters {
            link.reply(stream, &reply);
        }
    }
}

fn answer(phase: &Phase) -> Reply {
    match phase {
        Phase::Ready => Reply::Booted,
        Phase::Failed(failure) => Reply::BootFailed(failure.clone()),
        Phase::Waiting | Phase::Booting => Reply::Refused(Refusal::new(
            RefusalCode::NotReady,
            "the boot has not ended",
        )),
    }
}

/// Starts the boot, or waits for the one that was started before.
pub fn boot(state: &Arc<State>, link: &Arc<Link>, stream: u32, boot: Boot) {
    if let Err(refusal) = check(&boot) {
        return link.reply(stream, &Reply::Refused(refusal));
    }
    {
        let mut inner = lock(&state.boot.0);
        match &inner.phase {
            Phase::Ready | Phase::Failed(_) => {
                let reply = answer(&inner.phase);
                drop(inner);
                return link.reply(stream, &reply);
            }
            Phase::Booting => return inner.waiters.push((Arc::clone(link), stream)),
            Phase::Waiting => {
                inner.phase = Phase::Booting;
                inner.waiters.push((Arc::clone(link), stream));
            }
        }
    }
    state.configure(&boot);
    let worker = Arc::clone(state);
    let spawned = thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || worker.boot.end(perform(&worker, &boot)));
    if let Err(error) = spawned {
        state.boot.end(Err(plain(
            BootStage::Workspace,
            format!("no thread could be started: {error}"),
        )));
    }
}

fn perform(state: &Arc<State>, boot: &Boot) -> Result<(), BootFailure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(&boot.workspace)
        .map_err(|e| plain(BootStage::Workspace, format!("{}: {e}", boot.workspace)))?;
    let deadline = Instant::now() + Duration::from_millis(boot.build_timeout_ms);
    for (number, step) in (1..).zip(&boot.build) {
        let left = deadline.saturating_duration_since(Instant::now());
        let command = Command::Shell(step.run.clone());
        run(
            state,
            BootStage::Build(number),
            &command,
            step.workdir.as_deref(),
            left,
        )?;
    }
    if let Some(startup) = &boot.startup {
        let timeout = Duration::from_millis(startup.timeout_ms);
        run(
            state,
            BootStage::Startup,
            &Command::LoginShell(startup.script.clone()),
            None,
            timeout,
        )?;
    }
    if let Some(task) = &boot.run {
        start_task(state, task).map_err(|e| plain(BootStage::Run, e))?;
    }
    Ok(())
}

/// Runs one command to its end; any exit code but 0 is a failure.
fn run(
    state: &State,
    stage: BootStage,
    command: &Command,
    cwd: Option<&str>,
    timeout: Duration,
) -> Result<(), BootFailure> {
    let (env, workspace) = state.env(&EnvVars::default());
    let cwd = cwd.map_or(workspace, str::to_owned);
    let job = Job {
        argv: job::argv(command),
        env,
        cwd,
        timeout,
        keep: Keep::Tail(BOOT_TAIL),
    };
    let outcome = match job.start(&state.reaper) {
        Start::Running(running) => {
            let (outcome, lingering) = running.finish(&state.reaper);
            if let Some(lingering) = lingering {
                // Without a thread to drain it, the pipe closes and its writer learns so.
                let _ = thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn(move || lingering.drain());
            }
            outcome
        }
        Start::Failed(outcome) => Outcome {
            stdout: outcome.stderr.clone(),
            ..outcome
        },
        Start::Busy(error) => {
            return Err(plain(
                stage,
                format!("no process could be started: {error}"),
            ));
        }
    };
    if outcome.exit_code == 0 {
        return Ok(());
    }
    Err(BootFailure {
        stage,
        exit_code: Some(outcome.exit_code),
        timed_out: outcome.timed_out,
        output_tail: String::from_utf8_lossy(&outcome.stdout).into_owned(),
    })
}

/// Starts the task and watches for its end.
fn start_task(state: &Arc<State>, task: &Command) -> Result<(), String> {
    let (env, workspace) = state.env(&EnvVars::default());
    let mut command =
        job::prepare(&job::argv(task), &env, &workspace).ok_or("it names no program")?;
    let _ = DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create("/var/log");
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o644)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(TASK_LOG)
        .map_err(|e| format!("{TASK_LOG}: {e}"))?;
    command
        .stdout(log.try_clone().map_err(|e| format!("{TASK_LOG}: {e}"))?)
        .stderr(log);
    let (child, _ended) = state
        .reaper
        .spawn(&mut command)
        .map_err(|e| e.to_string())?;
    state.set_task(TaskState::Running);
    let watcher = Arc::clone(state);
    thread::Builder::new()
        .stack_size(64 << 10)
        .spawn(move || watcher.set_task(TaskState::Exited(child.wait())))
        .map_err(|e| format!("no thread could be started: {e}"))?;
    Ok(())
}

fn plain(stage: BootStage, output_tail: String) -> BootFailure {
    BootFailure {
        stage,
        exit_code: None,
        timed_out: false,
        output_tail,
    }
}

fn check(boot: &Boot) -> Result<(), Refusal> {
    let bad = |message: String| Err(Refusal::new(RefusalCode::BadRequest, message));
    files::check_path(&boot.workspace)?;
    if let Some((name, problem)) = boot.env.problem() {
        return bad(format!("env {name:?}: {problem}"));
    }
    let scripts = boot
        .build
        .iter()
        .map(|s| &s.run)
        .chain(boot.startup.iter().map(|s| &s.script));
    if scripts.into_iter().any(|text| text.contains('\0')) {
        return bad("a build step or the startup script holds NUL".to_owned());
    }
    if boot
        .build
        .iter()
        .filter_map(|s| s.workdir.as_deref())
        .any(|dir| !dir.starts_with('/') || dir.contains('\0'))
    {
        return bad("a build step's workdir must be an absolute path".to_owned());
    }
    if boot.run.as_ref().is_some_and(|run| {
        let argv = job::argv(run);
        argv.first().is_none_or(String::is_empty) || argv.iter().any(|a| a.contains('\0'))
    }) {
        return bad("run must name a program and hold no NUL".to_owned());
    }
    Ok(())
}
