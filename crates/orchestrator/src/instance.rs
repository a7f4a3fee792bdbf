//! Which orchestrator processes are alive.
//!
//! Every process holds an exclusive lock on a file of its own under the data directory for as long as it lives. The kernel lets
//! go of it however the process ends, so "can I lock it?" answers "is it gone?" without clocks or leases.

use fuse_domain::intervention::InstanceId;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// This process's claim to be alive.
pub struct Instance {
    id: InstanceId,
    folder: PathBuf,
    path: PathBuf,
    _lock: File,
}

impl Instance {
    /// Registers this process under the data directory.
    ///
    /// # Errors
    /// The folder or the file cannot be made or locked.
    pub fn register(data_dir: &Path) -> io::Result<Self> {
        let folder = data_dir.join("instances");
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        loop {
            let id = InstanceId(unique());
            let path = file_of(&folder, &id);
            let lock = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            lock.lock()?;
            // Another process's sweep may have removed the file before it was locked; such a lock proves nothing.
            if path.try_exists()? {
                return Ok(Self {
                    id,
                    folder,
                    path,
                    _lock: lock,
                });
            }
        }
    }

    /// This process's id.
    #[must_use]
    pub fn id(&self) -> &InstanceId {
        &self.id
    }

    /// Whether an instance of this data directory still runs. On doubt it does: what it started is then left alone.
    #[must_use]
    pub fn is_alive(&self, other: &InstanceId) -> bool {
        if *other == self.id {
            return true;
        }
        match File::open(file_of(&self.folder, other)) {
            Ok(file) => match file.try_lock() {
                Ok(()) => false,
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
            },
            Err(e) => e.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Removes the files of instances that are gone.
    pub fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path == self.path {
                continue;
            }
            if let Ok(file) = File::open(&path)
                && file.try_lock().is_ok()
            {
                // A leftover file only means that its owner is asked about once more.
                let _ = std::fs::remove_file(&path);
            }
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn file_of(folder: &Path, id: &InstanceId) -> PathBuf {
    // Ids come out of the database: only ours name a file.
    let name: String = id.0.chars().filter(char::is_ascii_hexdigit).collect();
    folder.join(format!("{name}.lock"))
}

/// A name that no other process picks: 64 random bits in hex.
#[must_use]
pub fn unique() -> String {
    hex::encode(rand::random::<[u8; 8]>())
}

/// This data directory's own name for itself, made once.
///
/// # Errors
/// The file cannot be read or made.
pub fn host_id(data_dir: &Path) -> io::Result<String> {
    let path = data_dir.join("host-id");
    if let Some(known) = read_host_id(&path)? {
        return Ok(known);
    }
    let fresh = format!("host-{}", unique());
    let draft = data_dir.join(format!("host-id.{}", std::process::id()));
    let mut file = File::create(&draft)?;
    writeln!(file, "{fresh}")?;
    file.sync_all()?;
    // A link fails where another process was first; its name then counts.
    let linked = std::fs::hard_link(&draft, &path);
    std::fs::remove_file(&draft)?;
    match linked {
        Ok(()) => Ok(fresh),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => read_host_id(&path)?.ok_or(e),
        Err(e) => Err(e),
    }
}

/// The name in the file, if there is one. A file that holds none is refused: under another name this directory's environments
/// would belong to nobody, and under an empty one it would take every other such host's for its own.
fn read_host_id(path: &Path) -> io::Result<Option<String>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let name = text.trim();
    if (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(Some(name.to_owned()));
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "host-id holds no name; write the host_id of this directory's environments into it, or remove it if there are none",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_alive_until_it_is_dropped() {
        let dir = tempfile::tempdir().expect("folder");
        let one = Instance::register(dir.path()).expect("first");
        let two = Instance::register(dir.path()).expect("second");
        let id = two.id().clone();
        assert!(one.is_alive(&id) && one.is_alive(one.id()));
        drop(two);
        assert!(!one.is_alive(&id));
        assert!(!one.is_alive(&InstanceId("never".into())));
    }

    #[test]
    fn an_instance_s_lock_is_its_user_s_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("folder");
        let one = Instance::register(dir.path()).expect("registered");
        let mode = std::fs::metadata(&one.path)
            .expect("the lock")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_data_directory_keeps_its_host_id() {
        let dir = tempfile::tempdir().expect("folder");
        let first = host_id(dir.path()).expect("made");
        assert_eq!(host_id(dir.path()).expect("read"), first);
    }

    #[test]
    fn a_host_id_file_without_a_name_is_refused_and_left_alone() {
        for broken in ["", " \n", "two words", "\0\0"] {
            let dir = tempfile::tempdir().expect("folder");
            let file = dir.path().join("host-id");
            std::fs::write(&file, broken).expect("written");
            let error = host_id(dir.path()).expect_err("no name");
            assert!(error.to_string().contains("host-id"), "{error}");
            assert_eq!(std::fs::read_to_string(&file).expect("read"), broken);
        }
    }
}
