//! The root file system of an environment.

use super::{
    config::{HOST_TREES, StageConfig},
    etc,
    remount::{bind_read_only, restrict},
    step::{Step, need},
};
use nix::{
    fcntl::{OFlag, open},
    mount::{MntFlags, MsFlags, mount, umount2},
    sys::stat::{Mode, umask},
    unistd::{fchdir, pivot_root},
};
use std::{
    fs::{self, DirBuilder},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

/// Where the root is put together. Only this process's mount namespace sees it.
const STAGING: &str = "/tmp";
/// The root in the making.
pub const ROOT: &str = "/tmp/root";

/// Directories whose upper copy belongs to the environment, so that new files may be put into them: where
/// the machine's own directory shows, its owner has no id inside.
const WRITABLE: [&str; 20] = [
    "bin",
    "sbin",
    "lib",
    "share",
    "include",
    "games",
    "src",
    "local",
    "local/bin",
    "local/sbin",
    "local/lib",
    "local/share",
    "local/etc",
    "local/include",
    "local/games",
    "local/src",
    "share/man",
    "lib/python3",
    "local/share/man",
    "local/share/ca-certificates",
];

/// Files of `/proc` that say or do too much.
const MASKED_FILES: [&str; 8] = [
    "kcore",
    "keys",
    "key-users",
    "sysrq-trigger",
    "timer_list",
    "latency_stats",
    "sched_debug",
    "kmsg",
];
/// Directories of `/proc` that say too much.
const MASKED_DIRECTORIES: [&str; 3] = ["acpi", "scsi", "driver"];
/// Directories of `/proc` that may be read only.
const READ_ONLY: [&str; 4] = ["sys", "bus", "irq", "fs"];

/// The directories that the root is made of, held open.
pub struct Layers {
    own: OwnedFd,
    overlays: Vec<Overlay>,
}

struct Overlay {
    name: String,
    lower: OwnedFd,
    upper: OwnedFd,
    work: OwnedFd,
}

impl Layers {
    /// Opens the layers, which lie in `base`.
    pub fn open(config: &StageConfig, base: &Path) -> Step<Self> {
        let mut overlays = Vec::new();
        let trees: Vec<(String, PathBuf)> = match &config.image {
            Some(image) => vec![("root".to_owned(), image.clone())],
            None => HOST_TREES
                .iter()
                .map(|name| ((*name).to_owned(), Path::new("/").join(name)))
                .filter(|(_, path)| path.is_dir() && !path.is_symlink())
                .collect(),
        };
        for (name, lower) in trees {
            overlays.push(Overlay {
                lower: need("the image's tree", hold(&lower))?,
                upper: need(
                    "the environment's layer",
                    hold(&base.join("upper").join(&name)),
                )?,
                work: need(
                    "the environment's layer",
                    hold(&base.join("work").join(&name)),
                )?,
                name,
            });
        }
        Ok(Self {
            own: need("the environment's layer", hold(&base.join("upper/root")))?,
            overlays,
        })
    }
}

fn hold(path: &Path) -> nix::Result<OwnedFd> {
    open(
        path,
        OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
}

fn by_descriptor(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Puts the root together, all but `/proc`.
pub fn build(config: &StageConfig, layers: &Layers) -> Step<()> {
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    let none = None::<&str>;
    need(
        "private mounts",
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none),
    )?;
    let options = Some("mode=700,size=64k");
    need(
        "tmpfs",
        mount(
            Some("tmpfs"),
            STAGING,
            Some("tmpfs"),
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
            options,
        ),
    )?;
    need("the root", fs::create_dir(ROOT))?;
    if config.image.is_some() {
        for overlay in &layers.overlays {
            mount_overlay(overlay, Path::new(ROOT))?;
        }
    } else {
        let flags = MsFlags::MS_BIND;
        need(
            "bind mounts",
            mount(
                Some(by_descriptor(&layers.own).as_str()),
                ROOT,
                none,
                flags,
                none,
            ),
        )?;
        restrict(Path::new(ROOT), MsFlags::empty())?;
        need(
            "the environment's layer",
            fs::set_permissions(ROOT, fs::Permissions::from_mode(0o755)),
        )?;
        host_trees(layers)?;
    }
    own_directories(config.image.is_none())?;
    etc::fill(Path::new(ROOT), config)?;
    devices(config)?;
    let sys = Path::new(ROOT).join("sys");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
    need(
        "an empty /sys",
        mount(
            Some("tmpfs"),
            &sys,
            Some("tmpfs"),
            flags,
            Some("mode=555,size=4k"),
        ),
    )
}

/// The machine's programs, each tree under a layer of the environment.
fn host_trees(layers: &Layers) -> Step<()> {
    for name in HOST_TREES {
        let (source, target) = (Path::new("/").join(name), Path::new(ROOT).join(name));
        if let Ok(link) = fs::read_link(&source) {
            need("the image `host`", symlink(link, target))?;
        }
    }
    for overlay in &layers.overlays {
        let target = Path::new(ROOT).join(&overlay.name);
        need("the image `host`", ensure_directory(&target, 0o755))?;
        mount_overlay(overlay, &target)?;
    }
    Ok(())
}

fn mount_overlay(overlay: &Overlay, target: &Path) -> Step<()> {
    let upper = PathBuf::from(by_descriptor(&overlay.upper));
    let lower = PathBuf::from(by_descriptor(&overlay.lower));
    let named = overlay.name == "root";
    let places: Vec<String> = if named {
        let usr = WRITABLE.iter().map(|w| format!("usr/{w}"));
        [
            "etc",
            "usr",
            "var",
            "var/lib",
            "var/log",
            "var/cache",
            "opt",
            "srv",
            "bin",
            "sbin",
            "lib",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain(usr)
        .collect()
    } else {
        WRITABLE.map(str::to_owned).into()
    };
    for place in places {
        // Only where the image has a real directory: anything else there must keep showing.
        let known = lower
            .join(&place)
            .symlink_metadata()
            .is_ok_and(|m| m.is_dir());
        if known && !upper.join(&place).exists() {
            let parent = Path::new(&place).parent().map(|p| upper.join(p));
            if parent.is_some_and(|p| p.is_dir()) {
                need(
                    "the environment's layer",
                    ensure_directory(&upper.join(&place), 0o755),
                )?;
            }
        }
    }
    need(
        "the environment's layer",
        fs::set_permissions(&upper, fs::Permissions::from_mode(0o755)),
    )?;
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr",
        lower.display(),
        upper.display(),
        by_descriptor(&overlay.work)
    );
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    need(
        "overlay file systems in a user namespace",
        mount(
            Some("overlay"),
            target,
            Some("overlay"),
            flags,
            Some(options.as_str()),
        ),
    )
}

/// Directories of the environment's own.
fn own_directories(host: bool) -> Step<()> {
    let root = Path::new(ROOT);
    let directories = [
        ("dev", 0o755),
        ("proc", 0o555),
        ("sys", 0o555),
        ("fuse", 0o555),
        ("etc", 0o755),
        ("tmp", 0o1777),
        ("run", 0o755),
        ("root", 0o700),
        ("home", 0o755),
        ("mnt", 0o755),
        ("opt", 0o755),
        ("srv", 0o755),
        ("var", 0o755),
        ("var/tmp", 0o1777),
        ("var/log", 0o755),
        ("var/lib", 0o755),
        ("var/cache", 0o755),
        ("workspace", 0o755),
    ];
    for (name, mode) in directories {
        let path = root.join(name);
        if path.is_symlink() {
            continue;
        }
        need("the environment's layer", ensure_directory(&path, mode))?;
    }
    if host && !root.join("var/run").is_symlink() {
        need(
            "the environment's layer",
            symlink("/run", root.join("var/run")),
        )?;
    }
    Ok(())
}

fn ensure_directory(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(path) {
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}

/// A private `/dev` with what programs cannot do without.
fn devices(config: &StageConfig) -> Step<()> {
    let none = None::<&str>;
    let dev = Path::new(ROOT).join("dev");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    need(
        "/dev",
        mount(
            Some("tmpfs"),
            &dev,
            Some("tmpfs"),
            flags,
            Some("mode=755,size=64k"),
        ),
    )?;
    for name in ["null", "zero", "full", "random", "urandom", "tty"] {
        let target = dev.join(name);
        need("/dev", fs::write(&target, ""))?;
        let source = Path::new("/dev").join(name);
        need(
            &format!("/dev/{name}"),
            mount(Some(&source), &target, none, MsFlags::MS_BIND, none),
        )?;
    }
    for name in ["pts", "shm"] {
        need("/dev", fs::create_dir(dev.join(name)))?;
    }
    let options = Some("newinstance,ptmxmode=0666,mode=620");
    need(
        "terminals",
        mount(
            Some("devpts"),
            &dev.join("pts"),
            Some("devpts"),
            flags,
            options,
        ),
    )?;
    let options = format!("mode=1777,size={}", config.rlimits.shm);
    let flags = flags | MsFlags::MS_NODEV;
    need(
        "/dev/shm",
        mount(
            Some("tmpfs"),
            &dev.join("shm"),
            Some("tmpfs"),
            flags,
            Some(options.as_str()),
        ),
    )?;
    let links = [
        ("pts/ptmx", "ptmx"),
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
    ];
    for (to, name) in links {
        need("/dev", symlink(to, dev.join(name)))?;
    }
    need(
        "/dev",
        fs::set_permissions(&dev, fs::Permissions::from_mode(0o755)),
    )
}

/// Mounts `/proc` for the new pid namespace and makes the root the only thing there is.
pub fn enter() -> Step<()> {
    let none = None::<&str>;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let proc = Path::new(ROOT).join("proc");
    need(
        "a /proc of its own",
        mount(Some("proc"), &proc, Some("proc"), flags, none),
    )?;
    for name in MASKED_FILES {
        let target = proc.join(name);
        if target.exists() {
            let null = Path::new(ROOT).join("dev/null");
            need(
                "masking /proc",
                mount(Some(&null), &target, none, MsFlags::MS_BIND, none),
            )?;
        }
    }
    for name in MASKED_DIRECTORIES {
        let target = proc.join(name);
        if target.exists() {
            let flags = flags | MsFlags::MS_RDONLY;
            need(
                "masking /proc",
                mount(
                    Some("tmpfs"),
                    &target,
                    Some("tmpfs"),
                    flags,
                    Some("mode=555,size=4k"),
                ),
            )?;
        }
    }
    for name in READ_ONLY {
        let target = proc.join(name);
        if target.exists() {
            bind_read_only(&target, &target)?;
        }
    }
    let root = need("the root", hold(Path::new(ROOT)))?;
    need("the root", fchdir(&root))?;
    // Stacks the old root on the new one, whence it is taken away: no directory for it is needed.
    need("pivot_root", pivot_root(".", "."))?;
    need("leaving the old root", umount2(".", MntFlags::MNT_DETACH))?;
    need("the root", std::env::set_current_dir("/"))
}
