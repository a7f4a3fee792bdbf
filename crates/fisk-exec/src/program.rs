//! Which file the application is.

use std::{
    ffi::OsStr,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nix::unistd::{AccessFlags, access};

/// The application's file, found once.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    shown: String,
    identity: Identity,
}

/// What tells whether a file was replaced or written to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            written: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

impl Program {
    /// Finds what the operator named: a bare name in the absolute folders of `search` (a `PATH`), anything with a slash from the
    /// working folder. Links are followed now and never again.
    ///
    /// # Errors
    /// A sentence with the name: there is no such file, or none that may be executed.
    pub fn find(named: &Path, search: Option<&OsStr>) -> Result<Self, String> {
        let shown = named.display();
        if named.as_os_str().is_empty() {
            return Err("application_path is empty: it must name a program".to_owned());
        }
        let found = if named.as_os_str().as_encoded_bytes().contains(&b'/') {
            fs::canonicalize(named).map_err(|e| format!("application {shown}: {e}"))?
        } else {
            look_up(named, search).ok_or_else(|| {
                format!("application {shown}: no executable of this name is in PATH")
            })?
        };
        let file = fs::metadata(&found).map_err(|e| format!("application {shown}: {e}"))?;
        if file.is_dir() {
            return Err(format!("application {shown}: it is a folder"));
        }
        if !file.is_file() {
            return Err(format!("application {shown}: it is no regular file"));
        }
        access(&found, AccessFlags::X_OK)
            .map_err(|_| format!("application {shown}: it may not be executed"))?;
        // What the operator is shown must be what runs, which a path that is no text cannot be.
        let text = found
            .to_str()
            .ok_or_else(|| format!("application {shown}: its path is not valid UTF-8"))?
            .to_owned();
        Ok(Self {
            identity: Identity::of(&file),
            path: found,
            shown: text,
        })
    }

    /// The absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The absolute path as text.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether it is still the file that was found.
    ///
    /// # Errors
    /// A sentence: it is gone, or is another one.
    pub fn unchanged(&self) -> Result<(), String> {
        let now = fs::metadata(&self.path).map_err(|e| format!("{}: {e}", self.shown))?;
        if Identity::of(&now) == self.identity {
            Ok(())
        } else {
            Err(format!(
                "{} was replaced or changed since its commands were read; start again to read them anew",
                self.shown
            ))
        }
    }

    /// The SHA-256 of the file, in hexadecimal. Reads all of it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn fingerprint(&self) -> io::Result<String> {
        use sha2::{Digest, Sha256};
        let mut file = fs::File::open(&self.path)?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match io::Read::read(&mut file, &mut buffer)? {
                0 => break,
                count => hash.update(&buffer[..count]),
            }
        }
        let digest = hash.finalize();
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Entries of a `PATH` that are not absolute are passed over: what runs must not depend on where Fisk was started.
fn look_up(name: &Path, search: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(search?)
        .filter(|folder| folder.is_absolute())
        .filter_map(|folder| fs::canonicalize(folder.join(name)).ok())
        .find(|file| file.is_file() && access(file, AccessFlags::X_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(folder: &Path, name: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_bare_name_is_looked_up_in_absolute_folders_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "app", 0o755);
        let search = format!(".:relative::{}", folder.path().display());
        let found = Program::find(Path::new("app"), Some(OsStr::new(&search))).unwrap();
        assert_eq!(found.path(), fs::canonicalize(path).unwrap());
        let error = Program::find(Path::new("app"), Some(OsStr::new(".:"))).unwrap_err();
        assert!(error.contains("no executable of this name"), "{error}");
        assert!(Program::find(Path::new("app"), None).is_err());
    }

    #[test]
    fn what_cannot_be_executed_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let plain = script(folder.path(), "plain", 0o644);
        for (path, why) in [
            (folder.path().to_owned(), "it is a folder"),
            (folder.path().join("gone"), "No such file"),
            (plain, "it may not be executed"),
            (PathBuf::from("/dev/null"), "no regular file"),
        ] {
            let error = Program::find(&path, None).unwrap_err();
            assert!(error.contains(why), "{error}");
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }

    // check: FISK-39
    #[test]
    fn a_link_is_followed_once_and_a_replaced_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let first = script(folder.path(), "first", 0o755);
        let link = folder.path().join("app");
        std::os::unix::fs::symlink(&first, &link).unwrap();
        let found = Program::find(&link, None).unwrap();
        fs::remove_file(&link).unwrap();
        assert_eq!(found.path(), fs::canonicalize(&first).unwrap());
        assert_eq!(found.unchanged(), Ok(()));
        let before = found.fingerprint().unwrap();
        fs::write(&first, "#!/bin/sh\nexit 1\n").unwrap();
        assert!(found.unchanged().unwrap_err().contains("was replaced"));
        assert_ne!(found.fingerprint().unwrap(), before);
        fs::remove_file(&first).unwrap();
        assert!(found.unchanged().is_err());
    }
}
