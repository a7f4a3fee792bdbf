//! The few calls that have no safe wrapper.
#![allow(unsafe_code)]

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

/// Ends this process at once: a stage, or a child of one, has nothing to tidy up and must not return into a caller's `main`.
pub fn end(code: i32) -> ! {
    // SAFETY: never returns, so that nothing can observe what it leaves.
    unsafe { libc::_exit(code) }
}

/// What a fork gives.
pub enum Fork {
    /// In the parent: the child's pid.
    Parent(i32),
    /// In the child.
    Child,
}

/// Forks a process that has a single thread.
pub fn fork() -> io::Result<Fork> {
    // SAFETY: the stage has one thread, so the child may do whatever the parent may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Removes a capability from what any later program can get. Unknown numbers are fine.
pub fn drop_from_bounding_set(capability: u32) {
    // SAFETY: takes numbers only.
    unsafe {
        libc::prctl(
            libc::PR_CAPBSET_DROP,
            libc::c_ulong::from(capability),
            0,
            0,
            0,
        )
    };
}

/// Empties the ambient set.
pub fn clear_ambient() {
    // SAFETY: takes numbers only.
    unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        )
    };
}

/// Brings the loopback interface of the current network namespace up.
pub fn loopback_up() -> io::Result<()> {
    // SAFETY: takes numbers and gives a descriptor that only we own.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: ifreq is plain data for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or(0);
    // SAFETY: `request` is a whole ifreq and outlives the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Puts descriptors at 3, 4, 5, … for the next program. They must lie above that range.
pub fn place_from_three(fds: &[&OwnedFd]) -> io::Result<()> {
    for (target, fd) in (3..).zip(fds) {
        // SAFETY: at this point nothing but the stage's own code owns descriptors, and it uses none below `fds`.
        if unsafe { libc::dup2(fd.as_raw_fd(), target) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Puts a descriptor in place of standard input, output or error.
pub fn replace_standard(fd: &OwnedFd, target: RawFd) -> io::Result<()> {
    // SAFETY: replaces a descriptor that stays open; nobody owns 0 to 2 as a value.
    if unsafe { libc::dup2(fd.as_raw_fd(), target) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A copy of a descriptor with a number of at least `floor`, closed on exec.
pub fn duplicate_above(fd: RawFd, floor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers and gives a descriptor that only we own.
    unsafe {
        let copy = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, floor);
        if copy < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(OwnedFd::from_raw_fd(copy))
        }
    }
}

/// Marks every descriptor from `first` on as closed on exec.
pub fn close_on_exec_from(first: u32) {
    // SAFETY: sets a flag on this process's own descriptors.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
}

/// A descriptor for a process.
pub fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers and gives a descriptor that only we own.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        match RawFd::try_from(fd) {
            Ok(fd) if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            Ok(_) | Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

/// Kills the process behind a descriptor. Fine when it has ended.
pub fn pidfd_kill(pidfd: &OwnedFd) -> io::Result<()> {
    let info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed and means the same as kill().
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            libc::SIGKILL,
            info,
            0,
        )
    };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ESRCH) {
        Ok(())
    } else {
        Err(error)
    }
}

/// A file in memory that may be executed, even where that must be asked for.
pub fn executable_memory_file() -> io::Result<OwnedFd> {
    const MFD_EXEC: libc::c_uint = 0x10;
    let base = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    for flags in [base | MFD_EXEC, base] {
        // SAFETY: the name is a C string; the descriptor that comes back is ours alone.
        unsafe {
            let fd = libc::memfd_create(c"fused".as_ptr(), flags);
            if fd >= 0 {
                return Ok(OwnedFd::from_raw_fd(fd));
            }
        }
    }
    Err(io::Error::last_os_error())
}

/// Takes device files and set-user-id from everything mounted at a place and below it, and writing where that is asked for.
pub fn restrict_mounts(place: &OwnedFd, read_only: bool) -> io::Result<()> {
    let read_only = if read_only {
        libc::MOUNT_ATTR_RDONLY
    } else {
        0
    };
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | read_only,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path is an empty C string, and the attributes outlive the call, which gets their size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            place.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
