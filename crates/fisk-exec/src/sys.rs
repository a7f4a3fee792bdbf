//! The few calls that have no safe wrapper.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, OsString},
    io,
    os::{
        fd::{FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStringExt, process::CommandExt},
    },
    process::Command,
};

use tokio::io::{Interest, unix::AsyncFd};

/// Signals whose effect a child must not inherit: a harness that was started by `nohup` ignores some of them.
const DEFAULTS: [libc::c_int; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGCHLD,
    libc::SIGPIPE,
];

/// Confines what the command starts: a session, hence a group, of its own without a terminal; no new privileges; no way into
/// other processes' memory or to type into their terminals; none of our descriptors; and it ends with the thread that starts it.
pub fn confine(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: the closure makes only system calls that are safe between fork and exec, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            for signal in DEFAULTS {
                libc::signal(signal, libc::SIG_DFL);
            }
            check(libc::setsid())?;
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            if libc::getppid().cast_unsigned() != parent {
                return Err(io::Error::from_raw_os_error(libc::ECANCELED));
            }
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            give_up_tracing();
            leave_terminals()?;
            let above = 3;
            check(libc::syscall(
                libc::SYS_close_range,
                above,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            ))?;
            Ok(())
        })
    };
}

fn check<T: Into<i64>>(result: T) -> io::Result<()> {
    if result.into() < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Where the harness runs as root, takes from the child what would let it read the harness' memory all the same. An ordinary user
/// has nothing to give up, so that failures are fine.
fn give_up_tracing() {
    const CAP_SYS_PTRACE: u32 = 19;
    const VERSION_3: u32 = 0x2008_0522;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: libc::c_int,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let mut data = [Data {
        effective: 0,
        permitted: 0,
        inheritable: 0,
    }; 2];
    // SAFETY: numbers, and two structures in the kernel's layout that outlive the calls.
    unsafe {
        libc::prctl(
            libc::PR_CAPBSET_DROP,
            libc::c_ulong::from(CAP_SYS_PTRACE),
            0,
            0,
            0,
        );
        if libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) == 0 {
            data[0].inheritable &= !(1 << CAP_SYS_PTRACE);
            libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr());
        }
    }
}

/// Refuses the calls by which a process types into a terminal that is not its own, as one of root may: it would answer the operator's
/// questions. For everybody else the kernel refuses them.
fn leave_terminals() -> io::Result<()> {
    const TIOCSTI: u32 = 0x5412;
    const TIOCLINUX: u32 = 0x541c;
    #[cfg(target_arch = "x86_64")]
    const NATIVE: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const NATIVE: u32 = 0xc000_00b7;
    // The call's number with 32-bit programs, and in the second set of numbers that x86-64 has.
    const IOCTL_32: u32 = 54;
    const IOCTL_X32: u32 = 514;
    const LOAD: u16 = 0x20;
    const AND: u16 = 0x54;
    const EQUALS: u16 = 0x15;
    const END: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const EPERM: u32 = 0x0005_0000 | libc::EPERM as u32;
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        op(LOAD, 0, 0, 4), // the architecture
        op(EQUALS, 0, 4, NATIVE),
        op(LOAD, 0, 0, 0), // the call's number
        op(AND, 0, 0, 0xbfff_ffff),
        op(EQUALS, 3, 0, libc::SYS_ioctl as u32),
        op(EQUALS, 2, 5, IOCTL_X32),
        op(LOAD, 0, 0, 0),
        op(EQUALS, 0, 3, IOCTL_32),
        op(LOAD, 0, 0, 24), // the low half of the second argument
        op(EQUALS, 2, 0, TIOCSTI),
        op(EQUALS, 1, 0, TIOCLINUX),
        op(END, 0, 0, ALLOW),
        op(END, 0, 0, EPERM),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program lies in this frame and outlives the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const program,
        )
    };
    check(done)
}

/// Makes sure that ended children wait to be asked how they ended, even if whoever started this process ignored SIGCHLD.
pub fn keep_ended_children() {
    // SAFETY: sigaction is plain data for which all zeroes is a value; both outlive the calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut action) == 0
            && (action.sa_sigaction == libc::SIG_IGN || action.sa_flags & libc::SA_NOCLDWAIT != 0)
        {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// A descriptor that becomes readable when the process, a child not reaped yet, ends.
pub fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = RawFd::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits for a descriptor in the runtime.
pub fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: it owns its descriptor, which stays open for as long as it is watched.
    unsafe { Ok(AsyncFd::register_with_interest(fd, Interest::READABLE)?) }
}

/// Removes the variables that `chosen` picks and overwrites them where they lie, in the memory that the kernel shows as
/// `/proc/PID/environ` too. Gives what they held.
///
/// The caller makes sure that no other thread exists.
pub fn take_variables(chosen: &dyn Fn(&OsString) -> bool) -> Vec<(OsString, OsString)> {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
    }
    let taken: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| chosen(name))
        .collect();
    let is_taken = |entry: &[u8]| {
        let name = entry.split(|b| *b == b'=').next().unwrap_or_default();
        chosen(&OsString::from_vec(name.to_vec()))
    };
    let mut places = Vec::new();
    // SAFETY: there is one thread, so `environ` is not changed meanwhile; it ends with a null pointer, and its entries are C strings.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            let length = CStr::from_ptr(*at).count_bytes();
            if is_taken(std::slice::from_raw_parts((*at).cast::<u8>(), length)) {
                places.push(((*at).cast::<u8>(), length));
            }
            at = at.add(1);
        }
    }
    for (name, _) in &taken {
        #[expect(
            clippy::disallowed_methods,
            reason = "there is one thread; taking variables away is what this is for"
        )]
        // SAFETY: there is one thread.
        unsafe {
            std::env::remove_var(name)
        };
    }
    for (place, length) in places {
        // SAFETY: the entry is writable memory that `environ` no longer leads to, as its variable was removed.
        unsafe { wipe(place, length) };
    }
    // What an earlier change of the environment has already replaced lies in the initial block still.
    if let Some((start, end)) = initial_block() {
        let mut at = start;
        while at < end {
            // SAFETY: the kernel says that this range of our own memory holds the initial environment, which nothing unmaps.
            let rest = unsafe { std::slice::from_raw_parts(at as *const u8, end - at) };
            let length = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
            if length > 0 && is_taken(&rest[..length]) {
                // SAFETY: as above; the stack is writable.
                unsafe { wipe(at as *mut u8, length) };
            }
            at += length + 1;
        }
    }
    taken
}

/// # Safety
/// `place` leads to `length` writable bytes that nobody else uses.
unsafe fn wipe(place: *mut u8, length: usize) {
    for at in 0..length {
        // SAFETY: within the range that the caller vouches for. Volatile, as nobody reads it again.
        unsafe { place.add(at).write_volatile(0) };
    }
}

/// Where the kernel put the environment when this program started.
fn initial_block() -> Option<(usize, usize)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field, the program's name, may hold blanks and parentheses. `env_start` is field 50.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    let start: usize = fields.nth(47)?.parse().ok()?;
    let end: usize = fields.next()?.parse().ok()?;
    (start != 0 && start < end).then_some((start, end))
}
