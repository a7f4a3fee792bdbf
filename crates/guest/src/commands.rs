//! Commands by their ids: running ones with who waits for them, finished ones for a replay.

use crate::{
    job::{self, Job, Keep, Outcome, Start},
    link::Link,
    reaper::{Child, lock},
    state::State,
};
use fuse_guest_api::{Exec, MAX_COMMAND_ID, MAX_OUTPUT, Refusal, RefusalCode, Reply};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// Commands that may run at once.
const MAX_RUNNING: usize = 128;
/// Finished commands that are remembered.
const MAX_REMEMBERED: usize = 1024;
/// Bytes of output that are remembered.
const MAX_REMEMBERED_BYTES: usize = 32 << 20;
/// How long a finished command is remembered.
const REMEMBER: Duration = Duration::from_secs(3600);
/// Longest time that a command may be given.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Stack of a thread that waits for a command.
const STACK: usize = 256 << 10;

/// Somebody who waits for an outcome.
type Waiter = (Arc<Link>, u32);

/// All commands of this guest.
#[derive(Debug, Default)]
pub struct Commands {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<String, Entry>,
    /// Finished ids, oldest first.
    finished: VecDeque<(Instant, String)>,
    bytes: usize,
    running: usize,
}

#[derive(Debug)]
enum Entry {
    Running {
        child: Option<Arc<Child>>,
        cancelled: bool,
        waiters: Vec<Waiter>,
    },
    Finished(Arc<Outcome>, bool),
}

impl Commands {
    /// How many run.
    pub fn running(&self) -> u32 {
        u32::try_from(lock(&self.table).running).unwrap_or(u32::MAX)
    }

    /// Starts a command, or joins the waiters of the one with this id.
    pub fn exec(state: &Arc<State>, link: &Arc<Link>, stream: u32, exec: Exec) {
        if let Err(refusal) = check(&exec) {
            return link.reply(stream, &Reply::Refused(refusal));
        }
        let id = exec.command_id.clone();
        {
            let mut table = lock(&state.commands.table);
            table.forget();
            if let Some(entry) = table.entries.get_mut(&id) {
                let ready = entry.join(link, stream);
                drop(table);
                return deliver(ready, link, stream);
            }
            if !state.is_ready() {
                drop(table);
                return link.refuse(
                    stream,
                    RefusalCode::NotReady,
                    "the environment has not finished its boot",
                );
            }
            if table.running >= MAX_RUNNING {
                drop(table);
                return link.refuse(
                    stream,
                    RefusalCode::Busy,
                    format!("{MAX_RUNNING} commands run already"),
                );
            }
            table.running += 1;
            let waiters = vec![(Arc::clone(link), stream)];
            table.entries.insert(
                id.clone(),
                Entry::Running {
                    child: None,
                    cancelled: false,
                    waiters,
                },
            );
        }
        let worker = Arc::clone(state);
        let spawned = thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || run(&worker, exec));
        if spawned.is_err() {
            state.commands.abandon(
                &id,
                &Refusal::new(RefusalCode::Busy, "the environment is out of processes"),
            );
        }
    }

    /// Joins the waiters of a command without ever starting one.
    pub fn recall(&self, link: &Arc<Link>, stream: u32, id: &str) {
        let mut table = lock(&self.table);
        table.forget();
        let Some(entry) = table.entries.get_mut(id) else {
            drop(table);
            return link.reply(stream, &Reply::UnknownCommand);
        };
        let ready = entry.join(link, stream);
        drop(table);
        deliver(ready, link, stream);
    }

    /// Kills a running command and its group.
    pub fn cancel(&self, state: &State, id: &str) {
        let mut table = lock(&self.table);
        if let Some(Entry::Running {
            child, cancelled, ..
        }) = table.entries.get_mut(id)
        {
            *cancelled = true;
            let child = child.clone();
            drop(table);
            // Without a child yet, the worker sees the mark once it has started one.
            if let Some(child) = child {
                state.reaper.doom(&child, libc::SIGKILL);
                // It may have ended and left others, for whose output is waited.
                state.reaper.kill_left(&child);
            }
        }
    }

    /// Sends a signal to a running command's group.
    pub fn signal(&self, state: &State, id: &str, signal: i32) {
        let child = match lock(&self.table).entries.get(id) {
            Some(Entry::Running {
                child: Some(child), ..
            }) => Arc::clone(child),
            Some(Entry::Running { child: None, .. } | Entry::Finished(..)) | None => return,
        };
        state.reaper.signal(&child, signal);
    }

    /// Notes the process of a command; answers whether it was cancelled meanwhile.
    fn started(&self, id: &str, started: &Arc<Child>) -> bool {
        match lock(&self.table).entries.get_mut(id) {
            Some(Entry::Running {
                child, cancelled, ..
            }) => {
                *child = Some(Arc::clone(started));
                *cancelled
            }
            Some(Entry::Finished(..)) | None => false,
        }
    }

    fn finish(&self, id: &str, outcome: Outcome) {
        let outcome = Arc::new(outcome);
        let mut table = lock(&self.table);
        let Some(Entry::Running {
            cancelled, waiters, ..
        }) = table.entries.remove(id)
        else {
            return;
        };
        table.running -= 1;
        table.bytes += size(&outcome);
        table.finished.push_back((Instant::now(), id.to_owned()));
        table.entries.insert(
            id.to_owned(),
            Entry::Finished(Arc::clone(&outcome), cancelled),
        );
        table.forget();
        drop(table);
        for (link, stream) in waiters {
            link.outcome(stream, &outcome, cancelled);
        }
    }

    /// Forgets a command that never started.
    fn abandon(&self, id: &str, refusal: &Refusal) {
        let mut table = lock(&self.table);
        let Some(Entry::Running { waiters, .. }) = table.entries.remove(id) else {
            return;
        };
        table.running -= 1;
        drop(table);
        for (link, stream) in waiters {
            link.reply(stream, &Reply::Refused(refusal.clone()));
        }
    }
}

impl Table {
    /// Drops what is too old or too much.
    fn forget(&mut self) {
        while let Some((at, _)) = self.finished.front() {
            let too_much =
                self.finished.len() > MAX_REMEMBERED || self.bytes > MAX_REMEMBERED_BYTES;
            if !too_much && at.elapsed() < REMEMBER {
                return;
            }
            let Some((_, id)) = self.finished.pop_front() else {
                return;
            };
            if let Some(Entry::Finished(outcome, _)) = self.entries.remove(&id) {
                self.bytes = self.bytes.saturating_sub(size(&outcome));
            }
        }
    }
}

impl Entry {
    /// The outcome, or a place among the waiters.
    fn join(&mut self, link: &Arc<Link>, stream: u32) -> Option<(Arc<Outcome>, bool)> {
        match self {
            Entry::Finished(outcome, cancelled) => Some((Arc::clone(outcome), *cancelled)),
            Entry::Running { waiters, .. } => {
                waiters.push((Arc::clone(link), stream));
                None
            }
        }
    }
}

fn deliver(ready: Option<(Arc<Outcome>, bool)>, link: &Link, stream: u32) {
    if let Some((outcome, cancelled)) = ready {
        link.outcome(stream, &outcome, cancelled);
    }
}

fn size(outcome: &Outcome) -> usize {
    outcome.stdout.len() + outcome.stderr.len() + 256
}

fn run(state: &State, exec: Exec) {
    let id = exec.command_id;
    let (env, workspace) = state.env(&exec.env);
    let cap = |cap: u32| usize::try_from(cap).unwrap_or(MAX_OUTPUT).min(MAX_OUTPUT);
    let job = Job {
        argv: job::argv(&exec.command),
        env,
        cwd: exec.cwd.unwrap_or(workspace),
        timeout: Duration::from_millis(exec.timeout_ms).min(MAX_TIMEOUT),
        keep: match exec.merge {
            None => Keep::Heads(cap(exec.stdout_cap), cap(exec.stderr_cap)),
            Some(merge) => Keep::Halves(merge),
        },
    };
    match job.start(&state.reaper) {
        Start::Running(running) => {
            if state.commands.started(&id, running.child()) {
                state.reaper.doom(running.child(), libc::SIGKILL);
            }
            let (outcome, lingering) = running.finish(&state.reaper);
            state.commands.finish(&id, outcome);
            if let Some(lingering) = lingering {
                lingering.drain();
            }
        }
        Start::Failed(outcome) => state.commands.finish(&id, outcome),
        Start::Busy(error) => {
            let message = format!("no process could be started: {error}");
            state
                .commands
                .abandon(&id, &Refusal::new(RefusalCode::Busy, message));
        }
    }
}

/// Refuses what no program could be started with.
fn check(exec: &Exec) -> Result<(), Refusal> {
    let bad = |message: String| Err(Refusal::new(RefusalCode::BadRequest, message));
    if exec.command_id.is_empty() || exec.command_id.len() > MAX_COMMAND_ID {
        return bad(format!("command_id must have 1 to {MAX_COMMAND_ID} bytes"));
    }
    let argv = job::argv(&exec.command);
    if argv.first().is_none_or(String::is_empty) {
        return bad("the command names no program".to_owned());
    }
    if argv.iter().any(|a| a.contains('\0')) {
        return bad("an argument holds NUL".to_owned());
    }
    if let Some((name, problem)) = exec.env.problem() {
        return bad(format!("env {name:?}: {problem}"));
    }
    let most = u32::try_from(MAX_OUTPUT / 2).unwrap_or(u32::MAX);
    if exec.merge.is_some_and(|merge| merge.half > most) {
        return bad(format!("merge.half must be at most {most}"));
    }
    if exec
        .cwd
        .as_deref()
        .is_some_and(|cwd| !cwd.starts_with('/') || cwd.contains('\0'))
    {
        return bad("cwd must be an absolute path".to_owned());
    }
    Ok(())
}
