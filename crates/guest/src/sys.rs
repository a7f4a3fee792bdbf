//! The few calls that have no safe wrapper.
#![allow(unsafe_code)]

use std::{
    io,
    os::{
        fd::{FromRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::Command,
};

/// Takes over a descriptor that was handed to this process at its start.
///
/// # Errors
/// It is not open.
pub fn inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD only asks about a number.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and each number is taken once, at start, before anything else opens files.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes sure that no program started later inherits a descriptor above standard error.
pub fn keep_descriptors_private() {
    // SAFETY: sets a flag on this process's own descriptors.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
}

/// Makes the command the leader of its own session, and a likelier victim than `fused` when memory runs out.
pub fn detach(command: &mut Command) {
    // SAFETY: the closure only makes system calls that are safe between fork and exec; it allocates nothing.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::open(
                c"/proc/self/oom_score_adj".as_ptr(),
                libc::O_WRONLY | libc::O_CLOEXEC,
            );
            if fd >= 0 {
                libc::write(fd, c"500".as_ptr().cast(), 3);
                libc::close(fd);
            }
            Ok(())
        })
    };
}

/// A descriptor that becomes readable when the process ends.
pub fn pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = RawFd::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits until some child has ended and names it without reaping it.
pub fn peek_ended_child() -> io::Result<i32> {
    loop {
        // SAFETY: siginfo_t is plain data for which all zeroes is a value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` outlives the call.
        if unsafe { libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOWAIT) } == 0 {
            // SAFETY: waitid succeeded, so the fields of a child's end are set.
            return Ok(unsafe { info.si_pid() });
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Reaps an ended child; its exit code is 128 + n after signal n. `None` when it is gone already.
pub fn reap(pid: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    if unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } != pid {
        return None;
    }
    Some(if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    })
}

/// Sends a signal to a process group.
pub fn kill_group(leader: i32, signal: i32) {
    // SAFETY: the call takes two numbers; a leader over 1 never means "everything".
    if leader > 1 {
        unsafe { libc::kill(-leader, signal) };
    }
}
