//! Secrets in memory and in files of their own.

use super::ConfigError;
use rand::Rng;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// A text that no log, error or debug output shows, and that is wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a secret.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

/// Longer files hold no secret of ours.
const MAX_FILE: u64 = 4096;

/// A new master token.
pub fn fresh_token() -> Secret {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    rand::rng().fill_bytes(&mut bytes[..]);
    Secret::new(format!("fuse_mt_{}", hex::encode(&bytes[..])))
}

/// A new key to seal contents with.
#[must_use]
pub fn fresh_key() -> Secret {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    rand::rng().fill_bytes(&mut bytes[..]);
    Secret::new(hex::encode(&bytes[..]))
}

/// Reads a secret from its file, or makes both. Of several processes that do so at once, one makes it and the others read it.
///
/// # Errors
/// The file or its folder cannot be made or read, is open to other users, or is empty.
pub fn load_or_create(path: &Path, fresh: impl FnOnce() -> Secret) -> Result<Secret, ConfigError> {
    let name = path.display().to_string();
    let failed =
        |what: &str, e: &std::io::Error| ConfigError::new(&name, format!("cannot be {what}: {e}"));
    match load(path) {
        Ok(Some(secret)) => return Ok(secret),
        Ok(None) => {}
        Err(error) => return Err(error),
    }
    if let Some(folder) = path.parent() {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(folder);
        made.map_err(|e| failed("written", &e))?;
    }
    create(path, &fresh()).map_err(|e| failed("written", &e))?;
    load(path)?.ok_or_else(|| ConfigError::new(&name, "vanished while it was read"))
}

/// Written beside and linked into place, so that the file is whole whenever it is there, and the first one wins.
fn create(path: &Path, secret: &Secret) -> std::io::Result<()> {
    let beside = path.with_extension(format!("{}.new", uuid::Uuid::now_v7().simple()));
    let linked = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        writeln!(file, "{}", secret.expose())?;
        file.sync_all()?;
        fs::hard_link(&beside, path)
    })();
    let _ = fs::remove_file(&beside);
    match linked {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn load(path: &Path) -> Result<Option<Secret>, ConfigError> {
    let refuse = |message: String| ConfigError::new(path.display().to_string(), message);
    let cannot = |e: std::io::Error| refuse(format!("cannot be read: {e}"));
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(cannot(e)),
        Ok(found) if !found.is_file() => return Err(refuse("is no regular file".to_owned())),
        Ok(_) => {}
    }
    let file = File::open(path).map_err(cannot)?;
    let mode = file.metadata().map_err(cannot)?.mode();
    if mode & 0o077 != 0 {
        return Err(refuse(format!(
            "is open to other users (mode {:04o}); set it to 0600",
            mode & 0o7777
        )));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_FILE)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    let text = text.trim();
    if text.is_empty() {
        return Err(refuse(
            "is empty; remove it to have a new one made".to_owned(),
        ));
    }
    Ok(Some(Secret::new(text.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn secret() -> Secret {
        Secret::new("a-secret-of-some-length".to_owned())
    }

    // check: CLI-15
    #[test]
    fn a_made_secret_is_for_its_owner_alone_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("sub/master-token");
        load_or_create(&path, secret).expect("made");
        let mode = fs::metadata(&path).expect("file").mode() & 0o777;
        assert_eq!(mode, 0o600);
        let folder = path.parent().expect("folder");
        assert_eq!(fs::metadata(folder).expect("folder").mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(folder).expect("folder").count(), 1);
    }

    #[test]
    fn an_open_empty_or_irregular_file_is_refused() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("token");
        fs::write(&path, "a-secret-of-some-length").expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("chmod");
        let error = load_or_create(&path, secret).expect_err("open to others");
        assert!(error.to_string().contains("mode 0640"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
        fs::write(&path, " \n").expect("write");
        assert!(load_or_create(&path, secret).is_err(), "empty");
        assert!(load_or_create(dir.path(), secret).is_err(), "a folder");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("token", &link).expect("link");
        assert!(load_or_create(&link, secret).is_err(), "a link");
    }

    #[test]
    fn the_first_of_several_makers_wins() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("token");
        let all: Vec<_> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| load_or_create(&path, fresh_token).expect("a token")))
                .collect();
            makers
                .into_iter()
                .map(|m| m.join().expect("maker"))
                .collect()
        });
        assert!(all.iter().all(|s| s.expose() == all[0].expose()));
    }
}
