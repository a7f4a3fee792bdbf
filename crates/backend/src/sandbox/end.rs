//! Finding and ending the first process of an environment.

use super::{
    layout::{Meta, Process},
    sys,
};
use nix::{
    fcntl::{OFlag, open},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        socket::{
            AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket,
            sockopt::PeerCredentials,
        },
        stat::Mode,
    },
};
use std::{
    fs::{File, TryLockError},
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

/// How long the kernel may take to end all processes of an environment.
const END: Duration = Duration::from_secs(30);

/// The pid of whoever listens on the guest's socket; `None` when nobody does.
pub fn listener(directory: &Path) -> io::Result<Option<i32>> {
    let held = match open(
        directory,
        OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    ) {
        Ok(held) => held,
        Err(nix::errno::Errno::ENOENT) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let made = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let path = format!("/proc/self/fd/{}/guest.sock", held.as_raw_fd());
    match connect(made.as_raw_fd(), &UnixAddr::new(path.as_str())?) {
        Ok(()) => Ok(Some(getsockopt(&made, PeerCredentials)?.pid())),
        Err(nix::errno::Errno::ECONNREFUSED | nix::errno::Errno::ENOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Whether the first process of an environment lives, or the stage that makes it. It tells even where nothing answers.
///
/// # Errors
/// It cannot be told.
pub fn lives(directory: &Path) -> io::Result<bool> {
    let log = match File::open(directory.join("log")) {
        Ok(log) => log,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    match log.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Kills the first process of an environment, and with it all others, and waits until nothing of it lives.
///
/// Its stage and `fused` hold a lock on its log for as long as they live, whoever started them: an environment that
/// somebody is still making is waited for and ended too.
pub fn kill(directory: &Path, meta: Option<&Meta>) -> io::Result<()> {
    kill_once(directory, meta)?;
    let log = match File::open(directory.join("log")) {
        Ok(log) => log,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let deadline = Instant::now() + END;
    loop {
        match log.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "its processes do not end",
                ));
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(Duration::from_millis(10));
                kill_once(directory, None)?;
            }
        }
    }
}

fn kill_once(directory: &Path, meta: Option<&Meta>) -> io::Result<()> {
    if let Some(process) = meta.and_then(|m| m.process.as_ref())
        && let Some(pidfd) = same(process)?
    {
        return end(&pidfd);
    }
    // Not noted down: the creator died in between. Whoever listens holds the socket open, so a
    // number that listens before and after it was opened is that process's.
    let Ok(Some(pid)) = listener(directory) else {
        return Ok(());
    };
    let Ok(pidfd) = sys::pidfd_open(pid) else {
        return Ok(());
    };
    match listener(directory)? {
        Some(again) if again == pid && pid > 1 => end(&pidfd),
        Some(_) | None => Ok(()),
    }
}

/// A descriptor of the very process that was noted down, if it is still there.
fn same(process: &Process) -> io::Result<Option<OwnedFd>> {
    let pidfd = match sys::pidfd_open(process.pid) {
        Ok(pidfd) => pidfd,
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
        Err(e) => return Err(e),
    };
    // Compared after the opening: the number cannot change hands any more.
    match Process::of(process.pid) {
        Ok(now) if now == *process => Ok(Some(pidfd)),
        Ok(_) => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

fn end(pidfd: &OwnedFd) -> io::Result<()> {
    sys::pidfd_kill(pidfd)?;
    let deadline = Instant::now() + END;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "its processes do not end",
            ));
        }
        let wait = PollTimeout::from(u16::try_from(left.as_millis()).unwrap_or(u16::MAX));
        if poll(&mut [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)], wait)? > 0 {
            return Ok(());
        }
    }
}
