//! Mounts that show less than they could.

use super::step::{Step, need};
use nix::{
    mount::{MsFlags, mount},
    sys::statvfs::{FsFlags, statvfs},
};
use std::path::Path;

/// Shows a directory or file read-only at another place.
pub fn bind_read_only(source: &Path, target: &Path) -> Step<()> {
    let none = None::<&str>;
    need(
        "bind mounts",
        mount(Some(source), target, none, MsFlags::MS_BIND, none),
    )?;
    restrict(target, MsFlags::MS_RDONLY)
}

/// Adds restrictions to a bind mount. Those that it has must be named again, or the kernel refuses.
pub fn restrict(target: &Path, more: MsFlags) -> Step<()> {
    let now = need("bind mounts", statvfs(target))?.flags();
    let mut flags =
        MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | more;
    for (has, keep) in [
        (FsFlags::ST_RDONLY, MsFlags::MS_RDONLY),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ] {
        if now.contains(has) {
            flags |= keep;
        }
    }
    let none = None::<&str>;
    need("bind mounts", mount(none, target, none, flags, none))
}
