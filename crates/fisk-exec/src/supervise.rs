//! One command from its start to its end: reading what it writes, ending it when its time is up.

use std::{
    fs::File,
    future::poll_fn,
    io::{self, Read, pipe},
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    pin::Pin,
    process::{Command, ExitStatus, Stdio},
    task::{Context, Poll},
    time::Duration,
};

use nix::sys::signal::Signal;
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::unix::pipe::Receiver,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use fuse_backend::HeadTail;

use crate::{spawn, spawn::Group, sys};

/// What a command has after it was asked to end, and what others have who keep its pipe open, until the group is killed.
pub const GRACE: Duration = Duration::from_secs(10);
/// How long a killed leader may take to end. It only takes long in the kernel, on a file system that hangs.
const DEATH: Duration = Duration::from_secs(5);
/// What is read at once.
const PIECE: usize = 64 << 10;
/// The most that is read of a pipe after the group was killed: no pipe of an ordinary user holds more.
const LEFT_BEHIND: usize = 1 << 20;

/// Where a stream goes.
#[derive(Debug)]
pub enum Sink {
    /// Its halves are kept.
    Halves(HeadTail),
    /// All of it is kept; the command is killed once it is more than this many bytes.
    Whole(Vec<u8>, usize),
}

/// One pipe of a command.
#[derive(Debug)]
pub struct Output {
    pipe: Option<Receiver>,
    sink: Sink,
    overflowed: bool,
}

impl Output {
    fn new(read: OwnedFd, sink: Sink) -> io::Result<Self> {
        Ok(Self {
            pipe: Some(Receiver::from_owned_fd(read)?),
            sink,
            overflowed: false,
        })
    }

    /// What was kept.
    pub fn into_sink(self) -> Sink {
        self.sink
    }

    fn take(&mut self, bytes: &[u8]) {
        match &mut self.sink {
            Sink::Halves(keep) => keep.push(bytes),
            Sink::Whole(kept, limit) => {
                let room = limit.saturating_sub(kept.len()).min(bytes.len());
                self.overflowed |= room < bytes.len();
                kept.extend_from_slice(&bytes[..room]);
            }
        }
    }

    /// Reads once; ready where something came or the pipe has ended.
    fn poll(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<usize> {
        let Some(pipe) = &mut self.pipe else {
            return Poll::Pending;
        };
        let mut read = ReadBuf::new(buffer);
        match Pin::new(pipe).poll_read(cx, &mut read) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) if !read.filled().is_empty() => {
                let count = read.filled().len();
                self.take(&buffer[..count]);
                Poll::Ready(count)
            }
            // A pipe that cannot be read has ended, for all that can be done about it.
            Poll::Ready(Ok(()) | Err(_)) => {
                self.pipe = None;
                Poll::Ready(0)
            }
        }
    }
}

/// How long a command may take.
#[derive(Debug, Clone, Copy)]
pub struct Allowed {
    /// From its start. `None`: for ever.
    pub time: Option<Duration>,
    /// Between the request to end and the kill of the group.
    pub grace: Duration,
    /// Between the command's own end and the kill of those who keep its pipe open.
    pub linger: Duration,
    /// Whether the time covers waiting for those who keep the pipe open as well.
    pub overall: bool,
}

/// Why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// By itself.
    Itself,
    /// It was cancelled.
    Cancelled,
    /// Its time was up.
    TimedOut,
    /// It wrote more than may be.
    TooMuch,
}

/// A started command.
#[derive(Debug)]
pub struct Running {
    group: Group,
    outputs: Vec<Output>,
    started: Instant,
}

/// Starts `command` with standard output going to the first sink, and standard error to the second, or to the
/// same pipe where there is one alone.
pub async fn start(mut command: Command, sink: Sink, second: Option<Sink>) -> io::Result<Running> {
    command.stdin(Stdio::null());
    let (read, write) = pipe()?;
    let mut outputs = vec![Output::new(read.into(), sink)?];
    match second {
        None => {
            command.stderr(write.try_clone()?);
        }
        Some(sink) => {
            let (read, write) = pipe()?;
            outputs.push(Output::new(read.into(), sink)?);
            command.stderr(write);
        }
    }
    command.stdout(write);
    let started = Instant::now();
    Ok(Running {
        group: spawn::spawn(command).await?,
        outputs,
        started,
    })
}

impl Running {
    /// Waits for its end. `Err`: how it ended cannot be known.
    pub async fn finish(
        mut self,
        allowed: Allowed,
        cancel: &CancellationToken,
    ) -> io::Result<(ExitStatus, Cause, Vec<Output>)> {
        let descriptor = self.group.ended().ok_or(io::ErrorKind::InvalidInput)?;
        let watched = sys::watch(descriptor)?;
        let mut ended = std::pin::pin!(watched.readable());
        let mut cancelled = std::pin::pin!(cancel.cancelled());
        // A time too long to be told has no end.
        let far = self.started + Duration::from_secs(u64::from(u32::MAX));
        let deadline = allowed
            .time
            .and_then(|time| self.started.checked_add(time))
            .unwrap_or(far);
        let mut alarm = std::pin::pin!(sleep_until(deadline));
        let mut buffer = vec![0; PIECE];
        let (mut cause, mut is_over, mut kill_at) = (Cause::Itself, false, None);
        while !is_over || self.outputs.iter().any(|o| o.pipe.is_some()) {
            let asked = cause != Cause::Itself;
            let stop = tokio::select! {
                biased;
                () = &mut cancelled, if !asked => Some(Cause::Cancelled),
                () = &mut alarm => {
                    if kill_at.is_some_and(|at| at == alarm.deadline()) {
                        break;
                    }
                    Some(Cause::TimedOut)
                }
                _ = &mut ended, if !is_over => {
                    is_over = true;
                    None
                }
                () = read_some(&mut self.outputs, &mut buffer) => {
                    let too_much = self.outputs.iter().any(|o| o.overflowed);
                    too_much.then_some(Cause::TooMuch)
                }
            };
            match stop {
                Some(Cause::TooMuch) => {
                    cause = Cause::TooMuch;
                    break;
                }
                Some(why) => {
                    cause = why;
                    self.group.signal(Signal::SIGTERM);
                    sooner(&mut kill_at, Instant::now() + allowed.grace);
                }
                None if is_over && kill_at.is_none() => {
                    let last = if allowed.overall { deadline } else { far };
                    sooner(&mut kill_at, last.min(Instant::now() + allowed.linger));
                }
                None => {}
            }
            if let Some(at) = kill_at
                && alarm.deadline() != at
            {
                alarm.as_mut().reset(at);
            }
        }
        self.group.signal(Signal::SIGKILL);
        if !is_over && timeout(DEATH, &mut ended).await.is_err() {
            return Err(io::Error::other("it was killed and has not ended since"));
        }
        self.drain(&mut buffer);
        let status = self.group.reap()?;
        Ok((status, cause, self.outputs))
    }

    /// Takes what lies in the pipes, without waiting for those who left the group and still hold them.
    fn drain(&mut self, buffer: &mut [u8]) {
        for output in &mut self.outputs {
            // Read directly: the runtime may not have heard yet of what came last.
            let Some(Ok(pipe)) = output.pipe.take().map(Receiver::into_nonblocking_fd) else {
                continue;
            };
            let (mut pipe, mut left) = (File::from(pipe), LEFT_BEHIND);
            while left > 0 {
                match pipe.read(buffer) {
                    Ok(0) => break,
                    Ok(count) => {
                        output.take(&buffer[..count]);
                        left = left.saturating_sub(count);
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
    }
}

/// Moves the time of the kill, only ever forward.
fn sooner(kill_at: &mut Option<Instant>, at: Instant) {
    if kill_at.is_none_or(|before| at < before) {
        *kill_at = Some(at);
    }
}

/// Reads from whichever pipe has something; for ever pending where all have ended.
async fn read_some(outputs: &mut [Output], buffer: &mut [u8]) {
    poll_fn(|cx| {
        let mut ready = false;
        for output in outputs.iter_mut() {
            ready |= output.poll(cx, buffer).is_ready();
        }
        if ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// The exit code as a shell tells it: 128 + n after signal n.
pub fn exit_code(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => -1,
    }
}
