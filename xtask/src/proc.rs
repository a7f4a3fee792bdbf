//! Child processes that never outlive the task: each runs in a group of its own, is stopped at its limit or when the
//! person presses Ctrl-C, and a service is stopped when its handle goes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;

/// For steps that a person started alone and can stop.
pub const NO_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
const POLL: Duration = Duration::from_millis(50);
const GRACE: Duration = Duration::from_secs(10);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

fn caught() -> SigSet {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGHUP);
    signals
}

/// Turns Ctrl-C and a termination into a flag, so that whatever was started is stopped on the way out.
pub fn catch_interrupts() {
    let signals = caught();
    if signals.thread_block().is_err() {
        return;
    }
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            INTERRUPTED.store(true, Ordering::SeqCst);
        }
    });
}

/// Whether somebody asked this process to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Sleeps, and fails as soon as the task is interrupted.
pub fn pause(time: Duration) -> Result<()> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if interrupted() {
            bail!("interrupted");
        }
        std::thread::sleep(POLL.min(time));
    }
    Ok(())
}

/// A process group that is killed when this goes.
struct Group {
    child: Child,
    stop: Signal,
}

impl Group {
    fn spawn(command: &mut Command, stop: Signal) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        // Children inherit the mask, and one with these signals blocked could not be told to end.
        let own = SigSet::thread_get_mask()?;
        caught().thread_unblock()?;
        let spawned = command.process_group(0).spawn();
        own.thread_set_mask()?;
        let child = spawned.with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child, stop })
    }

    fn signal(&self, signal: Signal) {
        if let Ok(id) = i32::try_from(self.child.id()) {
            // It fails where the whole group is gone already, which is what is wanted.
            let _ = killpg(Pid::from_raw(id), signal);
        }
    }

    fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if interrupted() {
                bail!("interrupted");
            }
            if Instant::now() >= until {
                bail!("stopped: it ran for more than {} s", limit.as_secs());
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(self.stop);
            let until = Instant::now() + GRACE;
            while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(POLL);
            }
        }
        // What the leader left behind goes with it.
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Runs a command to its end with its output on this terminal.
pub fn run(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    command.stdin(Stdio::null());
    Group::spawn(command, Signal::SIGTERM)?.wait(limit)
}

/// Runs a command in this terminal's own group, so that it may read from the keyboard.
pub fn run_interactive(command: &mut Command) -> Result<ExitStatus> {
    command
        .status()
        .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))
}

/// Runs a command, and gives each line of its standard output to `line` as it comes.
pub fn run_lines(
    command: &mut Command,
    limit: Duration,
    mut line: impl FnMut(&str),
) -> Result<ExitStatus> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut group = Group::spawn(command, Signal::SIGTERM)?;
    let output = group.child.stdout.take().context("the output is piped")?;
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for text in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender
                .send(String::from_utf8_lossy(&text).into_owned())
                .is_err()
            {
                return;
            }
        }
    });
    let until = Instant::now() + limit;
    loop {
        match lines.recv_timeout(POLL) {
            Ok(text) => line(&text),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) if interrupted() => bail!("interrupted"),
            Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() >= until => {
                bail!("stopped: it ran for more than {} s", limit.as_secs());
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
    group.wait(GRACE)
}

/// Runs a command and returns its standard output; a failure is an error that carries its standard error.
pub fn capture(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!(
            "{name} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name} printed what is not UTF-8"))
}

/// A background process, stopped when its handle goes.
pub struct Service {
    group: Group,
}

impl Service {
    /// Starts `command`; `stop` is the signal that ends it in good order.
    pub fn start(command: &mut Command, stop: Signal) -> Result<Self> {
        command.stdin(Stdio::null());
        Ok(Self {
            group: Group::spawn(command, stop)?,
        })
    }

    /// The child, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.group.child
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.group.child.try_wait().ok().flatten()
    }

    /// Waits for its own end.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.group.wait(limit)
    }
}

/// A command that runs beside others: what it writes is kept, and is read whole at its end.
pub struct Beside {
    group: Group,
    output: File,
    begun: Instant,
    limit: Duration,
}

/// How a command beside others ended.
pub struct Ended {
    /// Its status; none where it was stopped at its limit.
    pub status: Option<ExitStatus>,
    /// What it wrote, standard output and standard error in the order they came.
    pub output: String,
    /// How long it ran.
    pub took: Duration,
}

impl Beside {
    /// Starts `command`.
    pub fn start(command: &mut Command, limit: Duration) -> Result<Self> {
        let output = tempfile::tempfile().context("a file for what a command writes")?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?);
        Ok(Self {
            group: Group::spawn(command, Signal::SIGTERM)?,
            output,
            begun: Instant::now(),
            limit,
        })
    }

    /// Whether it is over: it ended, or its time is up.
    pub fn is_over(&mut self) -> Result<bool> {
        Ok(self.group.child.try_wait()?.is_some() || self.begun.elapsed() >= self.limit)
    }

    /// Asks it to end, without waiting, so that many can be asked at once.
    pub fn ask_to_end(&self) {
        self.group.signal(Signal::SIGTERM);
    }

    /// Stops what still runs of it, and gives what it left.
    pub fn close(mut self) -> Result<Ended> {
        let status = self.group.child.try_wait()?;
        let took = self.begun.elapsed();
        drop(self.group);
        let mut bytes = Vec::new();
        self.output.rewind()?;
        self.output.read_to_end(&mut bytes)?;
        Ok(Ended {
            status,
            output: String::from_utf8_lossy(&bytes).into_owned(),
            took,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_over_its_limit_is_stopped_with_its_children() {
        let begun = Instant::now();
        let ended = run(
            Command::new("sh").args(["-c", "sleep 60 & sleep 60"]),
            Duration::from_millis(200),
        );
        assert!(ended.is_err_and(|error| error.to_string().contains("more than")));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn lines_arrive_whole_and_the_status_is_kept() {
        let mut lines = Vec::new();
        let status = run_lines(
            Command::new("sh").args(["-c", "printf 'a\\nb'; exit 3"]),
            GRACE,
            |line| {
                lines.push(line.to_owned());
            },
        );
        assert_eq!(lines, ["a", "b"]);
        assert_eq!(status.ok().and_then(|status| status.code()), Some(3));
    }

    fn to_its_end(script: &str, limit: Duration) -> Ended {
        let mut beside = Beside::start(Command::new("sh").args(["-c", script]), limit).unwrap();
        while !beside.is_over().unwrap() {
            std::thread::sleep(POLL);
        }
        beside.close().unwrap()
    }

    #[test]
    fn a_command_beside_others_leaves_all_it_wrote_in_order() {
        let ended = to_its_end("echo a; echo b >&2; echo c; exit 3", GRACE);
        assert_eq!(ended.output, "a\nb\nc\n");
        assert_eq!(ended.status.and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn a_command_beside_others_is_stopped_at_its_limit_and_what_it_wrote_is_kept() {
        let ended = to_its_end("echo a; sleep 60 & sleep 60", Duration::from_millis(500));
        assert_eq!(ended.output, "a\n");
        assert!(ended.status.is_none());
        assert!(ended.took < Duration::from_secs(20));
    }
}
