//! Control groups, version 1 and 2, where this process may make them.

use crate::spec::Limits;
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Period of processor quotas, in microseconds.
const PERIOD: u64 = 100_000;

/// The groups of one environment and what they enforce.
#[derive(Debug, Default)]
pub struct Groups {
    /// Directories, each holding `cgroup.procs`.
    pub directories: Vec<PathBuf>,
    /// Whether memory is limited.
    pub memory: bool,
    /// Whether processes are limited.
    pub pids: bool,
    /// Whether processor time is limited.
    pub cpu: bool,
}

/// Where groups of one hierarchy can be made.
#[derive(Debug)]
struct Hierarchy {
    parent: PathBuf,
    version: Version,
    controllers: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Groups {
    /// Makes what can be made; what cannot is left to other limits.
    pub fn create(name: &str, limits: &Limits) -> Self {
        let mut groups = Self::default();
        for hierarchy in hierarchies() {
            let directory = hierarchy.parent.join(name);
            if fs::create_dir(&directory).is_err() {
                continue;
            }
            let mut used = false;
            for controller in &hierarchy.controllers {
                let done = match *controller {
                    "memory" => {
                        !groups.memory && memory(&directory, hierarchy.version, limits).is_ok()
                    }
                    "pids" => {
                        !groups.pids
                            && fs::write(directory.join("pids.max"), limits.pids.to_string())
                                .is_ok()
                    }
                    _ => !groups.cpu && cpu(&directory, hierarchy.version, limits).is_ok(),
                };
                match *controller {
                    "memory" => groups.memory |= done,
                    "pids" => groups.pids |= done,
                    _ => groups.cpu |= done,
                }
                used |= done;
            }
            if used {
                groups.directories.push(directory);
            } else {
                let _ = fs::remove_dir(&directory);
            }
        }
        groups
    }

    /// The files that a process enters the groups by.
    pub fn procs(&self) -> Vec<PathBuf> {
        self.directories
            .iter()
            .map(|d| d.join("cgroup.procs"))
            .collect()
    }
}

/// Takes the limit on processor time off groups, where they have one.
pub fn unthrottle(directories: &[PathBuf]) {
    for directory in directories {
        for (file, none) in [("cpu.cfs_quota_us", "-1"), ("cpu.max", "max")] {
            // A group without the file has no such limit.
            if let Ok(mut file) = fs::OpenOptions::new()
                .write(true)
                .open(directory.join(file))
            {
                let _ = file.write_all(none.as_bytes());
            }
        }
    }
}

/// Removes groups whose processes have ended.
///
/// # Errors
/// Something still runs in one.
pub fn remove(directories: &[PathBuf]) -> io::Result<()> {
    for directory in directories {
        // The kernel may take a moment longer than the last process's end.
        let mut tries = 0;
        loop {
            match fs::remove_dir(directory) {
                Ok(()) => break,
                Err(e) if e.kind() == io::ErrorKind::NotFound => break,
                Err(e) if tries >= 100 => return Err(e),
                Err(_) => {
                    tries += 1;
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
            }
        }
    }
    Ok(())
}

fn memory(directory: &Path, version: Version, limits: &Limits) -> io::Result<()> {
    let bytes = limits.ram_mb.saturating_mul(1 << 20).to_string();
    match version {
        Version::One => {
            fs::write(directory.join("memory.limit_in_bytes"), &bytes)?;
            // Absent without swap accounting; then swap counts nowhere.
            let _ = fs::write(directory.join("memory.memsw.limit_in_bytes"), &bytes);
        }
        Version::Two => {
            fs::write(directory.join("memory.max"), &bytes)?;
            let _ = fs::write(directory.join("memory.swap.max"), "0");
        }
    }
    Ok(())
}

fn cpu(directory: &Path, version: Version, limits: &Limits) -> io::Result<()> {
    let thousandths = (limits.cpus * 1000.0).clamp(10.0, 1_000_000.0);
    // In range by the clamp; the kernel wants whole microseconds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let quota = thousandths as u64 * PERIOD / 1000;
    match version {
        Version::One => {
            fs::write(directory.join("cpu.cfs_period_us"), PERIOD.to_string())?;
            fs::write(directory.join("cpu.cfs_quota_us"), quota.to_string())
        }
        Version::Two => fs::write(directory.join("cpu.max"), format!("{quota} {PERIOD}")),
    }
}

const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];

fn hierarchies() -> Vec<Hierarchy> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
        .into_iter()
        .filter_map(|(version, parent, controllers)| match version {
            Version::One => Some(Hierarchy {
                parent,
                version,
                controllers,
            }),
            Version::Two => version_two(&parent),
        })
        .collect()
}

/// The directory of this process's own group in each hierarchy that has a controller of ours.
fn parse(mountinfo: &str, own: &str) -> Vec<(Version, PathBuf, Vec<&'static str>)> {
    let mut found = Vec::new();
    for line in mountinfo.lines() {
        let Some((left, right)) = line.split_once(" - ") else {
            continue;
        };
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let (Some(root), Some(mount), Some(kind)) = (left.get(3), left.get(4), right.first())
        else {
            continue;
        };
        let options = right.get(2).copied().unwrap_or_default();
        let (version, controllers) = match *kind {
            "cgroup" => (
                Version::One,
                CONTROLLERS
                    .into_iter()
                    .filter(|c| options.split(',').any(|o| o == *c))
                    .collect(),
            ),
            "cgroup2" => (Version::Two, CONTROLLERS.to_vec()),
            _ => continue,
        };
        let mine = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (id, names, path) = (parts.next()?, parts.next()?, parts.next()?);
            let matches = match version {
                Version::One => controllers
                    .first()
                    .is_some_and(|c: &&str| names.split(',').any(|n| n == *c)),
                Version::Two => id == "0" && names.is_empty(),
            };
            matches.then_some(path)
        });
        if let Some(mine) = mine {
            let below = Path::new(mine).strip_prefix(root).unwrap_or(Path::new(""));
            found.push((version, Path::new(mount).join(below), controllers));
        }
    }
    found
}

/// Version 2 forbids processes beside groups with controllers, but for the very root: so groups are made below the
/// root, or beside our own group where its parent hands controllers on.
fn version_two(own: &Path) -> Option<Hierarchy> {
    let is_root = !own.join("cgroup.type").exists();
    let parent = if is_root {
        own.to_owned()
    } else {
        own.parent()?.to_owned()
    };
    if is_root {
        for controller in CONTROLLERS {
            let _ = fs::write(
                parent.join("cgroup.subtree_control"),
                format!("+{controller}"),
            );
        }
    }
    let handed_on = fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
    let controllers: Vec<&str> = CONTROLLERS
        .into_iter()
        .filter(|c| handed_on.split_whitespace().any(|h| h == *c))
        .collect();
    (!controllers.is_empty()).then_some(Hierarchy {
        parent,
        version: Version::Two,
        controllers,
    })
}

#[cfg(test)]
mod tests {
    use super::{Version, parse};
    use std::path::PathBuf;

    #[test]
    fn own_groups_are_found_below_the_mounted_part_of_a_hierarchy() {
        let mounts = "31 24 0:27 /pod /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      32 24 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                      33 24 0:29 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n\
                      34 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = "5:memory:/pod/a\n4:cpu,cpuacct:/\n3:freezer:/f\n0::/user.slice\n";
        let found = parse(mounts, own);
        let expected = vec![
            (
                Version::One,
                PathBuf::from("/sys/fs/cgroup/memory/a"),
                vec!["memory"],
            ),
            (
                Version::One,
                PathBuf::from("/sys/fs/cgroup/cpu/"),
                vec!["cpu"],
            ),
            (
                Version::Two,
                PathBuf::from("/sys/fs/cgroup/unified/user.slice"),
                vec!["memory", "pids", "cpu"],
            ),
        ];
        assert_eq!(found, expected);
    }
}
