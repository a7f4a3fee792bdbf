//! One SQLite file, one server: what a server knows of its file must not change behind its back.

use crate::error::OpenError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the lock is waited for: a server that was killed while it started a program leaves it to that program for a moment.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it is tried.
const PAUSE: Duration = Duration::from_millis(50);

/// The lock of a SQLite file: a file beside it, held for as long as this lives. The kernel gives it back however the process
/// ends. It is not the database's own file, since closing any other descriptor of that one would lose SQLite's locks.
#[derive(Debug)]
pub(crate) struct Single(Mutex<Option<File>>);

impl Single {
    /// Takes the lock, waiting a moment for a server that has just ended.
    ///
    /// # Errors
    /// Another server has it, or the file beside the database cannot be made.
    pub async fn take(database: &Path) -> Result<Self, OpenError> {
        let failed = |error: std::io::Error| OpenError::Database(Box::new(error));
        // Two ways to one file are one file.
        let database = database.canonicalize().map_err(failed)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(beside(&database))
            .map_err(failed)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    // The number only helps to find the other one; without it the refusal stands all the same.
                    let _ = file.take(32).read_to_string(&mut holder);
                    return Err(OpenError::InUse {
                        database,
                        holder: holder.trim().parse().ok(),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        let noted = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        noted.map_err(failed)?;
        Ok(Self(Mutex::new(Some(file))))
    }

    /// Gives the lock back.
    pub fn release(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-lock");
    PathBuf::from(name)
}
