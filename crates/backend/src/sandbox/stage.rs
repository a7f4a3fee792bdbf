//! The stage: a process with a single thread that becomes an environment.
//!
//! It is the embedding program started anew. It makes the namespaces, has its ids mapped, builds the root, and
//! forks the process that becomes `fused`. It knows no tokio and ends within milliseconds.

use super::{
    bind,
    config::{BASE_ID, ID_COUNT, STAGE, StageConfig, StageError},
    confine, root,
    step::{Step, need},
    sys::{self, Fork},
};
use crate::disk::{folder::make_layers, image};
use nix::{
    sched::{CloneFlags, unshare},
    sys::{
        socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket},
        wait::{WaitStatus, waitpid},
    },
    unistd::{
        Gid, Pid, Uid, chown, getegid, geteuid, setgroups, sethostname, setresgid, setresuid,
        setsid,
    },
};
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::Command,
};

/// `fused`, built by the build script.
static FUSED: &[u8] = include_bytes!(env!("FUSED_PATH"));

/// Runs the stage and ends the process, when this process was started as one.
pub fn maybe_run() {
    if std::env::args_os().next().is_none_or(|name| name != STAGE) {
        return;
    }
    // A mask is inherited down to the last command inside, which would then survive signals that ought to end it. Setting an
    // empty one cannot fail.
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
    let report = match sys::duplicate_above(1, 10) {
        Ok(report) => report,
        Err(_) => sys::end(1),
    };
    // The log takes the place of standard output; nothing but the report may reach the pipe.
    let code = match sys::duplicate_above(2, 10).and_then(|log| sys::replace_standard(&log, 1)) {
        Ok(()) => match run(&report) {
            Ok(()) => 0,
            Err(error) => {
                tell(&report, &error);
                1
            }
        },
        Err(_) => 1,
    };
    sys::end(code);
}

fn tell(report: &OwnedFd, error: &StageError) {
    if let (Ok(mut pipe), Ok(json)) = (
        report.try_clone().map(File::from),
        serde_json::to_vec(error),
    ) {
        let _ = pipe.write_all(&json);
    }
}

fn run(report: &OwnedFd) -> Step<()> {
    let mut json = Vec::new();
    need(
        "the stage's configuration",
        io::stdin().take(1 << 20).read_to_end(&mut json),
    )?;
    let config: StageConfig = need("the stage's configuration", serde_json::from_slice(&json))?;
    let null = need("/dev/null", File::open("/dev/null"))?;
    need("standard input", sys::replace_standard(&null.into(), 0))?;
    // Away from the terminal and its signals: environments outlive whoever made them.
    need("a session", setsid())?;
    need(
        "the environment's directory",
        std::env::set_current_dir(&config.directory),
    )?;
    // A socket address holds 108 bytes only, hence the relative path.
    let listener = need("the guest's socket", bind_socket())?;
    for procs in &config.cgroups {
        need("control groups", fs::write(procs, "0"))?;
    }
    let as_root = geteuid().is_root();
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let base = if config.disk_image {
        mount_disk(&config.layers)?
    } else {
        Path::new(".")
    };
    let mapper = if as_root && !config.own_ids {
        Some(start_mapper(base)?)
    } else {
        None
    };
    need("user namespaces", unshare(CloneFlags::CLONE_NEWUSER))?;
    let mapped = match mapper {
        Some(mapper) => mapper.map()?,
        None => false,
    };
    if !mapped {
        need(
            "a user namespace's setgroups",
            fs::write("/proc/self/setgroups", "deny"),
        )?;
        need(
            "a user namespace's uid_map",
            fs::write("/proc/self/uid_map", format!("0 {uid} 1\n")),
        )?;
        need(
            "a user namespace's gid_map",
            fs::write("/proc/self/gid_map", format!("0 {gid} 1\n")),
        )?;
    }
    let spaces = [
        ("mount namespaces", CloneFlags::CLONE_NEWNS),
        ("pid namespaces", CloneFlags::CLONE_NEWPID),
        ("ipc namespaces", CloneFlags::CLONE_NEWIPC),
        ("uts namespaces", CloneFlags::CLONE_NEWUTS),
    ];
    for (name, flag) in spaces {
        need(name, unshare(flag))?;
    }
    if Path::new("/proc/self/ns/cgroup").exists() {
        need("cgroup namespaces", unshare(CloneFlags::CLONE_NEWCGROUP))?;
    }
    if !config.host_network {
        need("network namespaces", unshare(CloneFlags::CLONE_NEWNET))?;
        need("the loopback interface", sys::loopback_up())?;
    }
    // Opened while this process still owns them in the host's eyes, used once it no longer does.
    let layers = root::Layers::open(&config, base)?;
    let binds = bind::open_all(&config.binds)?;
    if mapped {
        need("dropping groups", setgroups(&[]))?;
    }
    need(
        "user 0 of the namespace",
        setresgid(Gid::from_raw(0), Gid::from_raw(0), Gid::from_raw(0)),
    )?;
    need(
        "user 0 of the namespace",
        setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)),
    )?;
    need("a host name", sethostname(&config.hostname))?;
    root::build(&config, &layers)?;
    drop(layers);
    bind::mount_all(Path::new(root::ROOT), &binds)?;
    drop(binds);
    let program = need("a program in memory", load_fused())?;
    let identity = need("the guest's identity", identity_pipe(&config))?;
    match need("processes", sys::fork())? {
        Fork::Parent(_) => Ok(()),
        Fork::Child => {
            let error = match become_fused(&config, &program, [&listener, &identity, report]) {
                Ok(never) => match never {},
                Err(error) => error,
            };
            tell(report, &error);
            sys::end(1);
        }
    }
}

/// The last steps, in the process that is the first of the new pid namespace.
fn become_fused(
    config: &StageConfig,
    program: &OwnedFd,
    handed: [&OwnedFd; 3],
) -> Step<std::convert::Infallible> {
    need("a session", setsid())?;
    root::enter()?;
    confine::limits(&config.rlimits)?;
    need("descriptors", sys::place_from_three(&handed))?;
    sys::close_on_exec_from(6);
    let path = format!("/proc/self/fd/{}", program.as_raw_fd());
    confine::capabilities();
    confine::system_calls()?;
    let error = Command::new(path)
        .arg0("fused")
        .env_clear()
        .current_dir("/")
        .exec();
    need("starting fused", Err(error))
}

/// Binds the guest's socket in the current directory, above the numbers that `fused` expects it at.
fn bind_socket() -> io::Result<OwnedFd> {
    let made = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    bind(made.as_raw_fd(), &UnixAddr::new("guest.sock")?)?;
    sys::duplicate_above(made.as_raw_fd(), 10)
}

/// A sealed copy of `fused` that no file of any machine or environment leads to.
fn load_fused() -> io::Result<OwnedFd> {
    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    let file = sys::duplicate_above(sys::executable_memory_file()?.as_raw_fd(), 10)?;
    File::from(file.try_clone()?).write_all(FUSED)?;
    let seals = SealFlag::F_SEAL_SEAL
        | SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_WRITE;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file)
}

/// The identity, in a pipe: unlike arguments and variables it is nowhere to be read inside.
fn identity_pipe(config: &StageConfig) -> io::Result<OwnedFd> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // Far smaller than what a pipe holds, so that this never blocks.
    File::from(write).write_all(&serde_json::to_vec(&config.identity)?)?;
    sys::duplicate_above(read.as_raw_fd(), 10)
}

/// Mounts the disk image while this process is still the machine's root: no user namespace may mount one. The namespaces that
/// follow inherit the mount, and it goes with the last of them.
fn mount_disk(layers: &[String]) -> Step<&'static Path> {
    need("mount namespaces", unshare(CloneFlags::CLONE_NEWNS))?;
    need("disk images on loop devices", image::mount_here())?;
    let base = Path::new(image::MOUNTED);
    let names: Vec<&str> = layers.iter().map(String::as_str).collect();
    need("the environment's layer", make_layers(base, &names))?;
    Ok(base)
}

/// A child that stays outside the user namespace, where it may map a range of ids into it.
struct Mapper {
    pid: i32,
    go: File,
}

/// Starts it while this process is still outside as well.
fn start_mapper(base: &Path) -> Step<Mapper> {
    let (wait, go) = need("pipes", nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC))?;
    let target = std::process::id();
    match need("processes", sys::fork())? {
        Fork::Parent(pid) => Ok(Mapper {
            pid,
            go: File::from(go),
        }),
        Fork::Child => {
            drop(go);
            let told = File::from(wait).read_exact(&mut [0]).is_ok();
            sys::end(if told && map_range(target, base).is_ok() {
                0
            } else {
                1
            });
        }
    }
}

/// Maps a range of ids into the namespace of `target` and gives that range's first id the layers.
fn map_range(target: u32, base: &Path) -> io::Result<()> {
    let map = format!("0 {BASE_ID} {ID_COUNT}\n");
    fs::write(format!("/proc/{target}/gid_map"), &map)?;
    fs::write(format!("/proc/{target}/uid_map"), &map)?;
    for parent in ["upper", "work"] {
        for layer in fs::read_dir(base.join(parent))? {
            chown(
                &layer?.path(),
                Some(Uid::from_raw(BASE_ID)),
                Some(Gid::from_raw(BASE_ID)),
            )?;
        }
    }
    Ok(())
}

impl Mapper {
    /// Whether a range was mapped. It is not where this machine's root is itself confined to few ids.
    fn map(mut self) -> Step<bool> {
        need("pipes", self.go.write_all(b"."))?;
        let status = need("processes", waitpid(Pid::from_raw(self.pid), None))?;
        let done = matches!(status, WaitStatus::Exited(_, 0));
        let map = need(
            "/proc/self/uid_map",
            fs::read_to_string("/proc/self/uid_map"),
        )?;
        if !done && !map.trim().is_empty() {
            return Err(StageError {
                facility: "giving the environment's layers to its own ids".to_owned(),
                detail: "the ids were mapped, but the layers could not be given to them".to_owned(),
            });
        }
        Ok(done)
    }
}
