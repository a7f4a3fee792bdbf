//! A sparse disk image: the sum of all files and their number are bounded, whoever writes them inside.

use super::{Disk, sys};
use nix::{
    mount::{MsFlags, mount},
    unistd::geteuid,
};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

/// The image, in the environment's directory.
const FILE: &str = "disk.img";
/// Where it is mounted, in the environment's directory and its mount namespace alone.
pub const MOUNTED: &str = "disk";
/// The format of the templates; another one gets another number.
const FORMAT: u32 = 1;
/// Bytes of the disk for each file that it can hold.
const BYTES_PER_FILE: &str = "16384";
/// How often a loop device is asked for: another process may take the free one first.
const ATTEMPTS: u32 = 256;
/// Where Debian and others keep the program that formats.
const PROGRAMS: [&str; 2] = ["/sbin/mke2fs", "/usr/sbin/mke2fs"];

/// Clones a formatted template for each environment.
pub struct Image {
    templates: PathBuf,
    program: &'static str,
}

impl Image {
    /// Where this machine lets us have loop devices and can format; `None` else.
    pub fn offered(templates: &Path) -> Option<Self> {
        let program = PROGRAMS.into_iter().find(|p| Path::new(p).is_file())?;
        if !may_mount() || control().is_err() {
            return None;
        }
        Some(Self {
            templates: templates.to_owned(),
            program,
        })
    }

    /// The empty disk of a size, formatted when it is first needed.
    fn template(&self, gib: u64) -> io::Result<File> {
        let path = self.templates.join(format!("ext4-{FORMAT}-{gib}.img"));
        match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.templates)?;
        // Others may format the same size now. Each has a file of its own, and the last rename wins.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let making = path.with_extension(format!("new-{}-{number}", std::process::id()));
        let made = self.format(&making, gib).and_then(|()| {
            fs::rename(&making, &path)?;
            File::open(&path)
        });
        if made.is_err() {
            // Whether it is there at all is not known.
            let _ = fs::remove_file(&making);
        }
        made
    }

    fn format(&self, path: &Path, gib: u64) -> io::Result<()> {
        let bytes = gib
            .checked_mul(1 << 30)
            .ok_or(io::ErrorKind::FileTooLarge)?;
        new_file(path)?.set_len(bytes)?;
        // A new sparse file reads as zeroes, so nothing has to be cleared now or later. The small journal lets the disk be mounted
        // again after the machine itself has died.
        let output = Command::new(self.program)
            .args(["-q", "-F", "-t", "ext4", "-m", "0", "-J", "size=4"])
            .args(["-i", BYTES_PER_FILE])
            .args(["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"])
            .arg(path)
            .env_clear()
            .stdin(Stdio::null())
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{} failed ({}): {}",
            self.program,
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )))
    }
}

impl Disk for Image {
    fn create(&self, directory: &Path, gib: u64) -> io::Result<()> {
        let template = self.template(gib)?;
        let file = new_file(&directory.join(FILE))?;
        if sys::clone_file(&template, &file).is_err() {
            // This file system shares no blocks between files.
            copy_sparse(&template, &file)?;
        }
        Ok(())
    }

    fn is_image(&self) -> bool {
        true
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Copies what is not a hole.
fn copy_sparse(from: &File, to: &File) -> io::Result<()> {
    let length = from.metadata()?.len();
    to.set_len(length)?;
    let mut buffer = vec![0; 256 << 10];
    let mut position = 0;
    while let Some((start, end)) = sys::next_data(from, position)? {
        position = start;
        while position < end {
            let want = usize::try_from(end - position)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let part = buffer.get_mut(..want).unwrap_or_default();
            from.read_exact_at(part, position)?;
            to.write_all_at(part, position)?;
            position += u64::try_from(want).unwrap_or(u64::MAX);
        }
    }
    Ok(())
}

/// Whether this process may mount disks: with the capability for it, and in the first user namespace. Root of any other one has
/// all capabilities and may open the same devices, but the kernel lets it mount no disk.
fn may_mount() -> bool {
    const SYS_ADMIN: u32 = 21;
    let first = fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_ascii_whitespace().eq(["0", "0", "4294967295"]));
    let capable = fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))
            .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
            .is_some_and(|set| set >> SYS_ADMIN & 1 == 1)
    });
    first && capable && geteuid().is_root()
}

fn control() -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/loop-control")
}

/// Mounts the image of the current directory, for this mount namespace alone.
///
/// The loop device is freed by the kernel when the last mount of it goes, whoever is killed before.
pub fn mount_here() -> io::Result<()> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    DirBuilder::new().mode(0o700).create(MOUNTED)?;
    let image = OpenOptions::new().read(true).write(true).open(FILE)?;
    let (_device, path) = attach(&image)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOATIME;
    // `discard` gives the machine back what is deleted inside.
    let options = Some("noinit_itable,discard,errors=remount-ro");
    mount(Some(path.as_str()), MOUNTED, Some("ext4"), flags, options)?;
    Ok(())
}

/// A loop device with a file behind it. It must be held open until it is mounted.
fn attach(image: &File) -> io::Result<(OwnedFd, String)> {
    let control = control()?;
    for _ in 0..ATTEMPTS {
        let path = format!("/dev/loop{}", sys::free_loop(&control)?);
        let device = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(device) => device,
            // Gone again, or being taken.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENXIO | libc::EBUSY)) => continue,
            Err(e) => return Err(e),
        };
        match sys::configure_loop(&device, image) {
            Ok(()) => return Ok((device.into(), path)),
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        "others take every loop device first",
    ))
}
