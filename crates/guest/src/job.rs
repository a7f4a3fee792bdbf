//! One command from its start to its outcome, with bounded memory.

use crate::reaper::{Child, Reaper};
use fuse_guest_api::{Command, EXIT_TIMEOUT, HeadTail, Merge, Merged};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a command may take to end after SIGTERM.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// How long output is awaited from processes that the command left behind.
const ORPHAN_GRACE: Duration = Duration::from_millis(100);
/// Pipes that are drained for processes left behind, so that their writing does not kill them.
const MAX_LINGERING: usize = 32;

static LINGERING: AtomicUsize = AtomicUsize::new(0);

/// What to run and how much of its output to keep.
#[derive(Debug)]
pub struct Job {
    /// Program and arguments, never empty.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    pub cwd: String,
    /// When it is killed.
    pub timeout: Duration,
    /// What of its output is kept.
    pub keep: Keep,
}

/// What of the output is kept.
#[derive(Debug, Clone, Copy)]
pub enum Keep {
    /// The first bytes of standard output and standard error, apart.
    Heads(usize, usize),
    /// The last bytes of both together.
    Tail(usize),
    /// The first and the last bytes of both together.
    Halves(Merge),
}

/// How a job ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Its exit code.
    pub exit_code: i32,
    /// Whether it was stopped at its timeout.
    pub timed_out: bool,
    /// Whether output was dropped.
    pub truncated: bool,
    /// Standard output, the tail of both, or the first bytes of both.
    pub stdout: Vec<u8>,
    /// Standard error, or the last bytes of both.
    pub stderr: Vec<u8>,
    /// Where first and last bytes were asked for.
    pub merged: Option<Merged>,
    /// How long it took.
    pub duration: Duration,
}

/// A started job.
#[derive(Debug)]
pub struct Running {
    child: Arc<Child>,
    ended: OwnedFd,
    streams: [Stream; 2],
    started: Instant,
    deadline: Instant,
    merge: Option<Merge>,
}

/// What came of a start.
#[derive(Debug)]
pub enum Start {
    /// It runs.
    Running(Box<Running>),
    /// It could not be run, as a shell would report it.
    Failed(Outcome),
    /// The environment is out of processes, memory or descriptors.
    Busy(io::Error),
}

#[derive(Debug)]
struct Stream {
    pipe: Option<File>,
    kept: Vec<u8>,
    cap: usize,
    tail: bool,
    dropped: bool,
    halves: Option<HeadTail>,
}

impl Stream {
    fn new(pipe: Option<OwnedFd>, cap: usize, tail: bool) -> Self {
        Self {
            pipe: pipe.map(File::from),
            kept: Vec::new(),
            cap,
            tail,
            dropped: false,
            halves: None,
        }
    }

    /// Reads once, without blocking.
    fn read(&mut self, buffer: &mut [u8]) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(n) => self.keep(&buffer[..n]),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => self.pipe = None,
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(halves) = &mut self.halves {
            halves.push(bytes);
        } else if self.tail {
            self.kept.extend_from_slice(bytes);
            let excess = self.kept.len().saturating_sub(self.cap);
            self.dropped |= excess > 0;
            self.kept.drain(..excess);
        } else {
            let room = self.cap.saturating_sub(self.kept.len()).min(bytes.len());
            self.dropped |= room < bytes.len();
            self.kept.extend_from_slice(&bytes[..room]);
        }
    }
}

/// The argument list of a command.
pub fn argv(command: &Command) -> Vec<String> {
    let shell =
        |flag: &str, text: &str| vec!["/bin/sh".to_owned(), flag.to_owned(), text.to_owned()];
    match command {
        Command::Argv(argv) => argv.clone(),
        Command::Shell(text) => shell("-c", text),
        Command::LoginShell(text) => shell("-lc", text),
    }
}

/// A command for the process table, not started yet.
pub fn prepare(
    argv: &[String],
    env: &BTreeMap<String, String>,
    cwd: &str,
) -> Option<std::process::Command> {
    let (program, arguments) = argv.split_first()?;
    let mut command = std::process::Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(env)
        .current_dir(cwd)
        .stdin(Stdio::null());
    Some(command)
}

impl Job {
    /// Starts it.
    pub fn start(self, reaper: &Reaper) -> Start {
        let started = Instant::now();
        let Some(mut command) = prepare(&self.argv, &self.env, &self.cwd) else {
            return failed(started, 127, "fused: no program was named\n".to_owned());
        };
        let wired = (|| {
            let (out_read, out_write) = pipe()?;
            let (streams, err_write) = match self.keep {
                Keep::Heads(out, err) => {
                    let (err_read, err_write) = pipe()?;
                    (
                        [
                            Stream::new(Some(out_read), out, false),
                            Stream::new(Some(err_read), err, false),
                        ],
                        err_write,
                    )
                }
                Keep::Tail(cap) => (
                    [
                        Stream::new(Some(out_read), cap, true),
                        Stream::new(None, 0, false),
                    ],
                    out_write.try_clone()?,
                ),
                Keep::Halves(merge) => {
                    let mut both = Stream::new(Some(out_read), 0, false);
                    let half = usize::try_from(merge.half).unwrap_or(0);
                    both.halves = Some(HeadTail::new(half));
                    ([both, Stream::new(None, 0, false)], out_write.try_clone()?)
                }
            };
            command.stdout(out_write).stderr(err_write);
            Ok(streams)
        })();
        let streams = match wired {
            Ok(streams) => streams,
            Err(error) => return Start::Busy(error),
        };
        match reaper.spawn(&mut command) {
            Ok((child, ended)) => Start::Running(Box::new(Running {
                child,
                ended,
                streams,
                started,
                deadline: started + self.timeout,
                merge: match self.keep {
                    Keep::Halves(merge) => Some(merge),
                    Keep::Heads(..) | Keep::Tail(_) => None,
                },
            })),
            Err(error) => refuse(&self, started, error),
        }
    }
}

/// A pipe whose reading end does not block.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    nix::fcntl::fcntl(
        &read,
        nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK),
    )?;
    Ok((read, write))
}

/// Says why nothing was started.
fn refuse(job: &Job, started: Instant, error: io::Error) -> Start {
    if let Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE) = error.raw_os_error() {
        return Start::Busy(error);
    }
    // A missing directory and a missing program give the same error.
    if let Err(error) = std::fs::metadata(&job.cwd).and_then(|m| {
        if m.is_dir() {
            Ok(())
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }) {
        return failed(started, 126, format!("fused: {}: {error}\n", job.cwd));
    }
    let program = job.argv.first().map_or("", String::as_str);
    match error.kind() {
        io::ErrorKind::NotFound if !program.contains('/') => failed(
            started,
            127,
            format!("fused: {program}: command not found\n"),
        ),
        io::ErrorKind::NotFound => failed(
            started,
            127,
            format!("fused: {program}: no such file or directory\n"),
        ),
        _ => failed(started, 126, format!("fused: {program}: {error}\n")),
    }
}

fn failed(started: Instant, exit_code: i32, message: String) -> Start {
    Start::Failed(Outcome {
        exit_code,
        stderr: message.into_bytes(),
        duration: started.elapsed(),
        ..Outcome::default()
    })
}

impl Running {
    /// The process, for signals.
    pub fn child(&self) -> &Arc<Child> {
        &self.child
    }

    /// Waits for its end, reading all it writes.
    ///
    /// Processes that it left behind may still hold its pipes: the second value goes on reading for them.
    pub fn finish(mut self, reaper: &Reaper) -> (Outcome, Option<Lingering>) {
        let mut buffer = vec![0; 64 << 10];
        let mut timed_out = false;
        let mut deadline = self.deadline;
        loop {
            let now = Instant::now();
            if now >= deadline {
                reaper.doom(
                    &self.child,
                    if timed_out {
                        libc::SIGKILL
                    } else {
                        libc::SIGTERM
                    },
                );
                // Dead processes cannot be killed again; what remains is to wait.
                deadline = now
                    + if timed_out {
                        Duration::from_secs(3600)
                    } else {
                        TERM_GRACE
                    };
                timed_out = true;
            }
            if self.step(deadline - now.min(deadline), true, &mut buffer) {
                break;
            }
        }
        let exit_code = self.child.wait();
        let duration = self.started.elapsed();
        let linger = self.merge.map_or(ORPHAN_GRACE, |merge| {
            Duration::from_millis(u64::from(merge.linger_ms))
        });
        let give_up = Instant::now() + linger;
        while self.streams.iter().any(|s| s.pipe.is_some()) {
            let left = give_up.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.step(left, false, &mut buffer);
        }
        if self.merge.is_some() {
            reaper.kill_left(&self.child);
            self.step(Duration::ZERO, false, &mut buffer);
        }
        let [mut out, mut err] = self.streams;
        let mut merged = None;
        if let (Some(merge), Some(halves)) = (self.merge, out.halves.take()) {
            let (head, tail, total) = halves.into_parts();
            out.dropped = total > (head.len() + tail.len()) as u64;
            (out.kept, err.kept) = (head, tail);
            merged = Some(Merged {
                half: merge.half,
                total,
            });
        }
        let outcome = Outcome {
            exit_code: if timed_out { EXIT_TIMEOUT } else { exit_code },
            timed_out,
            truncated: out.dropped || err.dropped,
            stdout: out.kept,
            stderr: err.kept,
            merged,
            duration,
        };
        (outcome, Lingering::new([out.pipe, err.pipe]))
    }

    /// Waits for output (and the end, if asked) and reads what there is; answers whether the process has ended.
    fn step(&mut self, wait: Duration, watch_end: bool, buffer: &mut [u8]) -> bool {
        let mut fds = Vec::with_capacity(3);
        if watch_end {
            fds.push(PollFd::new(self.ended.as_fd(), PollFlags::POLLIN));
        }
        for pipe in self.streams.iter().filter_map(|s| s.pipe.as_ref()) {
            fds.push(PollFd::new(pipe.as_fd(), PollFlags::POLLIN));
        }
        // Rounded up, or the last millisecond would be spent spinning.
        let millis = u16::try_from(wait.as_millis() + 1).unwrap_or(u16::MAX);
        let ready = poll(&mut fds, PollTimeout::from(millis)).unwrap_or(0);
        let ended = watch_end && fds.first().is_some_and(|f| f.any() == Some(true));
        drop(fds);
        if ready > 0 {
            for stream in &mut self.streams {
                stream.read(buffer);
            }
        }
        ended
    }
}

/// Pipes that processes left behind still hold.
#[derive(Debug)]
pub struct Lingering(Vec<File>);

impl Lingering {
    fn new(pipes: [Option<File>; 2]) -> Option<Self> {
        let pipes: Vec<File> = pipes.into_iter().flatten().collect();
        if pipes.is_empty() {
            return None;
        }
        if LINGERING.fetch_add(1, Ordering::SeqCst) >= MAX_LINGERING {
            LINGERING.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        Some(Self(pipes))
    }

    /// Reads and forgets until nobody holds them any more.
    pub fn drain(mut self) {
        let mut buffer = vec![0; 16 << 10];
        while !self.0.is_empty() {
            let mut fds: Vec<PollFd<'_>> = self
                .0
                .iter()
                .map(|p| PollFd::new(p.as_fd(), PollFlags::POLLIN))
                .collect();
            let _ = poll(&mut fds, PollTimeout::NONE);
            drop(fds);
            self.0.retain_mut(|pipe| match pipe.read(&mut buffer) {
                Ok(0) => false,
                Ok(_) => true,
                Err(e) => matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ),
            });
        }
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        LINGERING.fetch_sub(1, Ordering::SeqCst);
    }
}
