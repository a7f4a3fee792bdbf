//! What of the machine shows in an environment.

use super::{
    config::StageBind,
    step::{Step, need, problem},
    sys,
};
use crate::{error::BackendError, spec::Bind};
use nix::{
    errno::Errno,
    fcntl::{OFlag, open, openat},
    mount::{MsFlags, mount},
    sys::stat::{Mode, mkdirat},
};
use std::{
    fs,
    os::fd::{AsRawFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

/// Where the environment's own file systems are.
const TAKEN: [&str; 4] = ["proc", "sys", "dev", "fuse"];
const FACILITY: &str = "bind mounts of the machine's files";

/// Checks what is to show. `environments` is where environments are kept, which never shows.
pub fn plan(binds: &[Bind], environments: &Path) -> Result<Vec<StageBind>, BackendError> {
    let environments =
        fs::canonicalize(environments).map_err(BackendError::io("the data directory"))?;
    binds
        .iter()
        .enumerate()
        .map(|(at, bind)| {
            let invalid = |field: &str, problem: String| {
                BackendError::invalid(format!("binds[{at}].{field}"), problem)
            };
            let inside = parts(Path::new(&bind.inside)).ok_or_else(|| {
                invalid(
                    "inside",
                    "must be an absolute clean path other than `/`".to_owned(),
                )
            })?;
            if inside.first().is_some_and(|p| TAKEN.contains(&p.as_str())) {
                let problem = "must not lie in /proc, /sys, /dev or /fuse";
                return Err(invalid("inside", problem.to_owned()));
            }
            if !bind.host.is_absolute() {
                return Err(invalid("host", "must be an absolute path".to_owned()));
            }
            let host = fs::canonicalize(&bind.host).map_err(|e| invalid("host", e.to_string()))?;
            let kind = fs::metadata(&host).map_err(|e| invalid("host", e.to_string()))?;
            if !kind.is_dir() && !kind.is_file() {
                return Err(invalid(
                    "host",
                    "must be a directory or a regular file".to_owned(),
                ));
            }
            if host == Path::new("/") || host.starts_with(&environments) {
                return Err(invalid(
                    "host",
                    "must be neither `/` nor where environments are kept".to_owned(),
                ));
            }
            let hidden = match environments.strip_prefix(&host) {
                Ok(rest) => plain(rest).ok_or_else(|| {
                    invalid(
                        "host",
                        "holds the data directory under a name that is no text".to_owned(),
                    )
                })?,
                Err(_) => Vec::new(),
            };
            Ok(StageBind {
                host,
                inside,
                read_only: bind.read_only,
                hidden,
            })
        })
        .collect()
}

/// The parts of an absolute clean path, at least one.
fn parts(path: &Path) -> Option<Vec<String>> {
    let parts = plain(path.strip_prefix("/").ok()?)?;
    // Anything unclean is lost on the way there and back.
    let clean = format!("/{}", parts.join("/"));
    (!parts.is_empty() && path.to_str() == Some(clean.as_str()) && !clean.contains('\0'))
        .then_some(parts)
}

fn plain(path: &Path) -> Option<Vec<String>> {
    path.components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str().map(str::to_owned),
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => None,
        })
        .collect()
}

/// A bind whose source is held open.
pub struct Opened<'a> {
    bind: &'a StageBind,
    source: OwnedFd,
    directory: bool,
}

/// Opens the sources, in the eyes of whoever runs the backend.
pub fn open_all(binds: &[StageBind]) -> Step<Vec<Opened<'_>>> {
    binds
        .iter()
        .map(|bind| {
            let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let source = need(FACILITY, open(&bind.host, flags, Mode::empty()))?;
            let kind = need(FACILITY, fs::metadata(by_descriptor(&source)))?;
            if !kind.is_dir() && !kind.is_file() {
                return Err(problem(
                    FACILITY,
                    format!("{} has become something else", bind.host.display()),
                ));
            }
            Ok(Opened {
                bind,
                source,
                directory: kind.is_dir(),
            })
        })
        .collect()
}

/// Mounts them under the root in the making.
pub fn mount_all(root: &Path, binds: &[Opened<'_>]) -> Step<()> {
    let none = None::<&str>;
    for opened in binds {
        let bind = opened.bind;
        let shown = || format!("/{}", bind.inside.join("/"));
        let place = need(&shown(), Place::make(root, &bind.inside, opened.directory))?;
        let source = by_descriptor(&opened.source);
        // With what is mounted below it, which the kernel does not let us part from it.
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        need(
            FACILITY,
            mount(
                Some(&source),
                &by_descriptor(&place.target),
                none,
                flags,
                none,
            ),
        )?;
        // The place again, as it is now that something is mounted on it.
        let mounted = need(&shown(), place.again())?;
        need(FACILITY, sys::restrict_mounts(&mounted, bind.read_only))?;
        if !bind.hidden.is_empty() {
            let hidden = need(
                &shown(),
                Place::find(&by_descriptor(&mounted), &bind.hidden),
            )?;
            let flags =
                MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
            need(
                FACILITY,
                mount(
                    Some("tmpfs"),
                    &by_descriptor(&hidden),
                    Some("tmpfs"),
                    flags,
                    Some("mode=555,size=4k"),
                ),
            )?;
        }
    }
    Ok(())
}

/// Something to mount on.
struct Place {
    parent: OwnedFd,
    name: String,
    target: OwnedFd,
}

impl Place {
    /// Makes what is missing. No link is followed: one of the image could lead out of the root in the making.
    fn make(root: &Path, parts: &[String], directory: bool) -> nix::Result<Self> {
        let (name, parents) = parts.split_last().ok_or(Errno::EINVAL)?;
        let mode = Mode::from_bits_truncate(0o755);
        let mut parent = walk_in(None, root)?;
        for part in parents {
            exists(mkdirat(&parent, part.as_str(), mode))?;
            parent = walk_in(Some(&parent), Path::new(part))?;
        }
        if directory {
            exists(mkdirat(&parent, name.as_str(), mode))?;
        } else {
            let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
            exists(openat(&parent, name.as_str(), flags, Mode::S_IRUSR).map(drop))?;
        }
        let mut place = Self {
            target: parent.try_clone().map_err(|_| Errno::EMFILE)?,
            parent,
            name: name.clone(),
        };
        place.target = place.again()?;
        Ok(place)
    }

    /// A directory that is there already.
    fn find(root: &Path, parts: &[String]) -> nix::Result<OwnedFd> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut at = open(root, flags, Mode::empty())?;
        for part in parts {
            at = walk_in(Some(&at), Path::new(part))?;
        }
        Ok(at)
    }

    fn again(&self) -> nix::Result<OwnedFd> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        openat(&self.parent, self.name.as_str(), flags, Mode::empty())
    }
}

fn walk_in(parent: Option<&OwnedFd>, part: &Path) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match parent {
        Some(parent) => openat(parent, part, flags, Mode::empty()),
        None => open(part, flags, Mode::empty()),
    }
}

fn exists(result: nix::Result<()>) -> nix::Result<()> {
    match result {
        Err(Errno::EEXIST) => Ok(()),
        other => other,
    }
}

fn by_descriptor(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}
