//! What an environment leaves on the disk: `<data>/environments/<id>/{guest.sock,meta.json,log}` and
//! there its disk: `disk.img`, or `upper` and `work` where that is not possible.

use super::config::HOST_TREES;
use crate::{
    error::BackendError,
    id::{EnvId, is_plain_name},
};
use fuse_guest_api::Identity;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The data directory of a sandbox backend.
#[derive(Debug, Clone)]
pub struct DataDir {
    base: PathBuf,
}

/// What must be known to find an environment again. Holds no secret but the boot token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Meta {
    /// Who its guest is.
    pub identity: Identity,
    /// Its control groups.
    pub groups: Vec<PathBuf>,
    /// Its first process, once that is known.
    pub process: Option<Process>,
}

/// A process, told apart from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number on this machine.
    pub pid: i32,
    /// When it started, in clock ticks since the machine's boot.
    pub start: u64,
    /// The machine's boot.
    pub boot: String,
}

impl DataDir {
    /// Uses a directory, making it where it is missing.
    pub fn open(base: PathBuf) -> Result<Self, BackendError> {
        let absolute =
            std::path::absolute(&base).map_err(BackendError::io("the data directory"))?;
        let this = Self { base: absolute };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(this.environments())
            .map_err(BackendError::io(format!(
                "making {}",
                this.environments().display()
            )))?;
        Ok(this)
    }

    /// Where all environments are.
    pub fn environments(&self) -> PathBuf {
        self.base.join("environments")
    }

    /// Where formatted disks are kept that environments get a copy of.
    pub fn templates(&self) -> PathBuf {
        self.base.join("disks")
    }

    /// Where one environment is.
    pub fn environment(&self, id: &EnvId) -> PathBuf {
        self.environments().join(id.as_str())
    }

    /// The root tree of an image; `None` for `host`.
    pub fn image(&self, name: &str) -> Result<Option<PathBuf>, BackendError> {
        if name == "host" {
            return Ok(None);
        }
        if !is_plain_name(name) {
            let problem = "must be `host` or 1 to 63 letters, digits, `.`, `_` or `-`, starting with a letter or a digit";
            return Err(BackendError::invalid("image", problem));
        }
        let path = self.base.join("images").join(name);
        if path.is_dir() {
            Ok(Some(path))
        } else {
            Err(BackendError::NoSuchImage(name.to_owned()))
        }
    }

    /// Claims an id and makes its empty directory.
    pub fn claim(&self, id: &EnvId) -> Result<PathBuf, BackendError> {
        let path = self.environment(id);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => BackendError::Exists(id.clone()),
                _ => BackendError::io(format!("making {}", path.display()))(e),
            })?;
        Ok(path)
    }

    /// The ids of all environments of which anything is left.
    pub fn list(&self) -> Result<Vec<EnvId>, BackendError> {
        let what = || format!("reading {}", self.environments().display());
        let mut ids = Vec::new();
        for entry in fs::read_dir(self.environments()).map_err(BackendError::io(what()))? {
            let name = entry.map_err(BackendError::io(what()))?.file_name();
            // Names that are no ids are what a removal has not finished with.
            if let Some(id) = name.to_str().and_then(|n| EnvId::new(n).ok()) {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }
}

impl Meta {
    /// Of the environment in a directory; `None` when it has none (yet).
    pub fn load(directory: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(directory.join("meta.json")) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut json = Vec::new();
        file.take(1 << 20).read_to_end(&mut json)?;
        serde_json::from_slice(&json)
            .map(Some)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }

    /// Replaces it atomically, readable by its owner alone.
    pub fn save(&self, directory: &Path) -> io::Result<()> {
        let temporary = directory.join("meta.json.new");
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(temporary, directory.join("meta.json"))
    }
}

impl Process {
    /// The process that has this number now.
    pub fn of(pid: i32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name, in parentheses, may itself hold anything.
        let start = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(19))
            .and_then(|ticks| ticks.parse().ok())
            .ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat is malformed")
            })?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?
            .trim()
            .to_owned();
        Ok(Self { pid, start, boot })
    }
}

/// The layers of an environment.
pub fn layers(named_image: bool) -> Vec<&'static str> {
    if named_image {
        vec!["root"]
    } else {
        ["root"].into_iter().chain(HOST_TREES).collect()
    }
}

/// Random text that nobody guesses: 32 hexadecimal digits.
pub fn random_text() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// How names of what is being removed start; no id starts like that.
pub const REMOVED: &str = ".removed-";

impl DataDir {
    /// Goes on with removals that were cut off. Somebody else may be at the same ones.
    pub fn sweep(&self) {
        let Ok(entries) = fs::read_dir(self.environments()) else {
            return;
        };
        for entry in entries.flatten() {
            if entry
                .file_name()
                .to_str()
                .is_some_and(|n| n.starts_with(REMOVED))
            {
                // The next start tries again.
                let _ = remove_tree(&entry.path());
            }
        }
    }
}

/// Removes a tree that nobody uses any more, however deep it is and whatever modes its directories have.
///
/// Subdirectories are moved up next to the top one at a time, so that neither the stack nor the number of open files grows with
/// the depth that somebody inside has chosen. What somebody else has removed meanwhile is fine.
pub fn remove_tree(top: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let open_up = |path: &Path| gone(fs::set_permissions(path, fs::Permissions::from_mode(0o700)));
    let mut counter = 0_u64;
    let mut flat = vec![top.to_owned()];
    while let Some(directory) = flat.pop() {
        open_up(&directory)?;
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open_up(&entry.path())?;
                let moved = loop {
                    counter += 1;
                    let name = top.with_extension(format!("flat-{counter}"));
                    if !name.exists() {
                        break name;
                    }
                };
                gone(fs::rename(entry.path(), &moved))?;
                flat.push(moved);
            } else {
                gone(fs::remove_file(entry.path()))?;
            }
        }
        gone(fs::remove_dir(&directory))?;
    }
    Ok(())
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
