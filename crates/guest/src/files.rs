//! Reading and writing files for the orchestrator, against whatever links and special files the environment has laid out.

use fuse_guest_api::{FileInfo, MAX_READ, Refusal, RefusalCode};
use nix::{
    errno::Errno,
    fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2, renameat},
    sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat},
    unistd::{UnlinkatFlags, unlinkat},
};
use std::{
    ffi::OsStr,
    fs::File,
    io::{Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path},
    sync::atomic::{AtomicU64, Ordering},
};

/// Trees in which nothing is read or written.
const FORBIDDEN: [&str; 4] = ["/fuse", "/proc", "/sys", "/dev"];
/// Longest path, in bytes.
const MAX_PATH: usize = 4096;

type Answer<T> = Result<T, Refusal>;

/// Reads at most `max` bytes of a regular file. What is answered was read through one descriptor.
pub fn read(path: &str, max: u64) -> Answer<(FileInfo, Vec<u8>)> {
    check_path(path)?;
    if max > MAX_READ {
        return Err(Refusal::new(
            RefusalCode::BadRequest,
            format!("max_bytes must be at most {MAX_READ}"),
        ));
    }
    // O_PATH opens nothing yet: no FIFO blocks and no device is touched.
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let found = openat2(nix::fcntl::AT_FDCWD, path, how).map_err(|e| refuse(path, e))?;
    let stat = fstat(&found).map_err(|e| refuse(path, e))?;
    let resolved = resolve(&found, path, &stat)?;
    if kind(&stat) != SFlag::S_IFREG {
        return Err(not_regular(&resolved, &stat));
    }
    // The same inode by its descriptor: the path is not walked a second time.
    let mut file = open_again(&found).map_err(|e| refuse(path, e))?;
    let opened = fstat(&file).map_err(|e| refuse(path, e))?;
    if (opened.st_dev, opened.st_ino) != (stat.st_dev, stat.st_ino) {
        return Err(Refusal::new(
            RefusalCode::Io,
            format!("{path}: it changed while it was opened"),
        ));
    }
    let mut bytes = Vec::new();
    Read::by_ref(&mut file)
        .take(max)
        .read_to_end(&mut bytes)
        .map_err(|e| refuse(path, errno(&e)))?;
    // One byte more tells a file that is longer from one that ends here, whatever its size claims.
    let truncated = file.read(&mut [0]).map_err(|e| refuse(path, errno(&e)))? > 0;
    let info = FileInfo {
        resolved,
        size: u64::try_from(opened.st_size).unwrap_or(0),
        truncated,
        len: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
    };
    Ok((info, bytes))
}

/// Replaces a file atomically, following no link.
pub fn write(path: &str, mode: u32, content: &[u8]) -> Answer<()> {
    check_path(path)?;
    let parts: Vec<&OsStr> = Path::new(path)
        .components()
        .filter_map(|c| {
            if let Component::Normal(part) = c {
                Some(part)
            } else {
                None
            }
        })
        .collect();
    let Some((name, parents)) = parts.split_last() else {
        return Err(Refusal::new(
            RefusalCode::NotRegular,
            "/: it is a directory",
        ));
    };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut directory =
        openat(nix::fcntl::AT_FDCWD, "/", flags, Mode::empty()).map_err(|e| refuse(path, e))?;
    for part in parents {
        directory = enter(&directory, part, flags).map_err(|e| match e {
            Enter::Link => link_in_path(path, part),
            Enter::Failed(e) => refuse(path, e),
        })?;
    }
    match fstatat(&directory, *name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) if kind(&stat) == SFlag::S_IFLNK => return Err(link_in_path(path, name)),
        Ok(stat) if kind(&stat) != SFlag::S_IFREG => return Err(not_regular(path, &stat)),
        Ok(_) | Err(Errno::ENOENT) => {}
        Err(e) => return Err(refuse(path, e)),
    }
    replace(&directory, name, mode, content).map_err(|e| refuse(path, e))
}

fn replace(directory: &OwnedFd, name: &OsStr, mode: u32, content: &[u8]) -> Result<(), Errno> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let temporary = format!(".fused-{}", COUNTER.fetch_add(1, Ordering::Relaxed));
    let temporary = temporary.as_str();
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    // A leftover of a write that was cut off by a kill.
    let _ = unlinkat(directory, temporary, UnlinkatFlags::NoRemoveDir);
    let mut file = File::from(openat(
        directory,
        temporary,
        flags,
        Mode::S_IRUSR | Mode::S_IWUSR,
    )?);
    let written = file
        .write_all(content)
        .map_err(|e| errno(&e))
        .and_then(|()| fchmod(&file, Mode::from_bits_truncate(mode & 0o7777)))
        .and_then(|()| renameat(directory, temporary, directory, name));
    if written.is_err() {
        let _ = unlinkat(directory, temporary, UnlinkatFlags::NoRemoveDir);
    }
    written
}

enum Enter {
    Link,
    Failed(Errno),
}

/// Opens a directory below another, making it where it is missing.
fn enter(directory: &OwnedFd, part: &OsStr, flags: OFlag) -> Result<OwnedFd, Enter> {
    let open = || openat(directory, part, flags, Mode::empty());
    match open() {
        Ok(fd) => Ok(fd),
        Err(Errno::ENOENT) => {
            match mkdirat(directory, part, Mode::S_IRWXU) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(e) => return Err(Enter::Failed(e)),
            }
            open().map_err(|e| explain(directory, part, e))
        }
        Err(e) => Err(explain(directory, part, e)),
    }
}

/// The kernel answers "not a directory" for a link; look which it is.
fn explain(directory: &OwnedFd, part: &OsStr, error: Errno) -> Enter {
    match fstatat(directory, part, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) if kind(&stat) == SFlag::S_IFLNK => Enter::Link,
        Ok(_) | Err(_) => Enter::Failed(error),
    }
}

/// Refuses a path that is not absolute and clean, or lies in a forbidden tree by its spelling.
pub fn check_path(path: &str) -> Answer<()> {
    let bad = |why: &str| {
        Err(Refusal::new(
            RefusalCode::BadPath,
            format!("the path {path:?} {why}"),
        ))
    };
    if path.len() > MAX_PATH {
        return Err(Refusal::new(
            RefusalCode::BadPath,
            format!("the path is longer than {MAX_PATH} bytes"),
        ));
    }
    let Some(rest) = path.strip_prefix('/') else {
        return bad("is not absolute");
    };
    if path.contains('\0') {
        return bad("holds NUL");
    }
    if !rest.is_empty() && rest.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return bad("is not clean: it has an empty part, `.` or `..`");
    }
    if is_forbidden(path.as_bytes()) {
        Err(forbidden(path))
    } else {
        Ok(())
    }
}

/// Where a descriptor really is, refused in a forbidden tree.
fn resolve(found: &OwnedFd, path: &str, stat: &FileStat) -> Answer<String> {
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    let resolved = std::fs::read_link(link).map_err(|e| refuse(path, errno(&e)))?;
    let bytes = resolved.as_os_str().as_bytes();
    if stat.st_nlink == 0 || !bytes.starts_with(b"/") {
        return Err(refuse(path, Errno::ENOENT));
    }
    if is_forbidden(bytes) {
        return Err(forbidden(path));
    }
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn open_again(found: &OwnedFd) -> Result<File, Errno> {
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    Ok(File::from(openat(
        nix::fcntl::AT_FDCWD,
        link.as_str(),
        flags,
        Mode::empty(),
    )?))
}

fn is_forbidden(path: &[u8]) -> bool {
    FORBIDDEN.iter().any(|tree| {
        path.strip_prefix(tree.as_bytes())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

fn forbidden(path: &str) -> Refusal {
    Refusal::new(
        RefusalCode::Forbidden,
        format!("{path}: nothing under /fuse, /proc, /sys or /dev is read or written"),
    )
}

fn link_in_path(path: &str, part: &OsStr) -> Refusal {
    Refusal::new(
        RefusalCode::LinkInPath,
        format!("{path}: {part:?} is a symbolic link, which is not followed"),
    )
}

fn not_regular(path: &str, stat: &FileStat) -> Refusal {
    let what = match kind(stat) {
        SFlag::S_IFDIR => "a directory",
        SFlag::S_IFIFO => "a FIFO",
        SFlag::S_IFSOCK => "a socket",
        SFlag::S_IFCHR | SFlag::S_IFBLK => "a device",
        _ => "no regular file",
    };
    Refusal::new(
        RefusalCode::NotRegular,
        format!("{path}: it is {what}, not a regular file"),
    )
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

fn refuse(path: &str, error: Errno) -> Refusal {
    let (code, what) = match error {
        Errno::ENOENT => (RefusalCode::NotFound, "there is no such file"),
        Errno::ENOTDIR => (
            RefusalCode::NotDirectory,
            "a part of the path is no directory",
        ),
        Errno::ELOOP => (
            RefusalCode::TooManyLinks,
            "its links lead too far, in a circle or into /proc",
        ),
        Errno::EACCES | Errno::EPERM | Errno::EROFS => {
            (RefusalCode::Permission, "permission denied")
        }
        Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG => {
            (RefusalCode::NoSpace, "no space is left for it")
        }
        Errno::ENAMETOOLONG => (RefusalCode::BadPath, "a part of the path is too long"),
        other => return Refusal::new(RefusalCode::Io, format!("{path}: {}", other.desc())),
    };
    Refusal::new(code, format!("{path}: {what}"))
}
