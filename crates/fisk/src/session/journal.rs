//! The file of one session.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fisk_domain::session::{Record, Replay};
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use serde::{Deserialize, Serialize};

/// The largest journal that is read.
const MAX_BYTES: u64 = 512 * 1024 * 1024;

/// A line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Milliseconds since 1970.
    pub at: u64,
    /// What happened.
    pub record: Record,
}

/// A journal as it was read.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its lines.
    pub entries: Vec<Entry>,
    /// Where they lead.
    pub replay: Replay,
    /// The last record was torn, and is left out.
    pub warning: Option<Warning>,
    /// The bytes of the whole lines.
    good: u64,
}

/// Something to tell about a journal that is good otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning(pub String);

/// The journal of a run, open and locked for it alone.
#[derive(Debug)]
pub struct Journal {
    name: String,
    file: File,
    /// A record could not be written. Whatever followed would stand behind a part of it, and the session could never be read again.
    failed: bool,
}

impl Journal {
    /// Makes the file. It is an error where there is one.
    pub(super) fn create(path: &Path, name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(O_NOFOLLOW)
            .open(path)?;
        lock(&file)?;
        Ok(Self {
            name: name.to_owned(),
            file,
            failed: false,
        })
    }

    /// Opens the file of a session for a run. A torn record at its end is cut off.
    pub(super) fn resume(path: &Path, name: &str) -> io::Result<(Self, Recorded)> {
        let mut file = open(OpenOptions::new().read(true).append(true), path)?;
        lock(&file)?;
        let recorded = read(&mut file)?;
        if recorded.warning.is_some() {
            file.set_len(recorded.good)?;
            file.sync_all()?;
        }
        let journal = Self {
            name: name.to_owned(),
            file,
            failed: false,
        };
        Ok((journal, recorded))
    }

    /// On a file of any kind.
    #[cfg(test)]
    pub(crate) fn on(name: &str, file: File) -> Self {
        Self {
            name: name.to_owned(),
            file,
            failed: false,
        }
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes a record; it is on the disk when this returns.
    ///
    /// # Errors
    /// Where that fails: what follows on the record must not happen then, and no other record is taken any more.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = since.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
        let entry = Entry {
            at,
            record: record.clone(),
        };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        if self.failed {
            return Err(io::Error::other("an earlier record could not be written"));
        }
        let before = self.file.metadata()?.len();
        let written = self
            .file
            .write_all(&line)
            .and_then(|()| self.file.sync_data());
        if written.is_err() {
            self.failed = true;
            // A part of the record that stays is taken for torn by whoever reads it.
            let _ = self.file.set_len(before);
        }
        written
    }
}

/// Whether somebody runs the session.
pub(super) fn is_locked(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => {
            // It is closed in a moment in any case.
            let _ = file.unlock();
            false
        }
        Err(_) => true,
    }
}

/// How often, and in what steps, it is tried to take a session: whoever only looks at one holds it for a moment.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Takes the session for this process.
pub(super) fn lock(file: &File) -> io::Result<()> {
    let mut left = TRIES;
    loop {
        left -= 1;
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if left > 0 => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                let text = "is in use: another run holds it";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    match file.metadata()?.nlink() {
        0 => Err(io::ErrorKind::NotFound.into()),
        _ => Ok(()),
    }
}

/// Opens the file of a session to look at it.
pub(super) fn look(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path)
}

/// Opens a journal that is there. A folder that was once open to others may hold what they put into it: nothing of it is waited for,
/// followed or believed.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path)?;
    let about = file.metadata()?;
    let why = if !about.is_file() {
        "is no regular file"
    } else if about.uid() != nix::unistd::geteuid().as_raw() {
        "belongs to another user"
    } else if about.mode() & 0o022 != 0 {
        "may be written by others than its owner"
    } else {
        return Ok(file);
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Reads the whole lines of a journal.
pub(super) fn read(file: &mut File) -> io::Result<Recorded> {
    let bad = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(bad(format!("is larger than {MAX_BYTES} bytes")));
    }
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let mut recorded = Recorded {
        entries: Vec::new(),
        replay: Replay::default(),
        warning: None,
        good: whole as u64,
    };
    let mut lines = bytes[..whole]
        .split_inclusive(|byte| *byte == b'\n')
        .peekable();
    let mut number = 0;
    while let Some(line) = lines.next() {
        number += 1;
        let is_last = lines.peek().is_none() && whole == bytes.len();
        let entry: Entry = match serde_json::from_slice(line) {
            Ok(entry) => entry,
            // What a power failure leaves of a line may end like one.
            Err(error) if is_last && !error.is_data() => {
                recorded.good -= line.len() as u64;
                recorded.warning = Some(torn());
                break;
            }
            Err(error) => {
                return Err(bad(format!("record {number} is broken: {error}")));
            }
        };
        recorded
            .replay
            .apply(entry.record.clone())
            .map_err(|error| bad(format!("record {number} is broken: {error}")))?;
        recorded.entries.push(entry);
    }
    if whole < bytes.len() {
        recorded.warning = Some(torn());
    }
    if recorded.entries.is_empty() {
        return Err(bad("holds no whole record".to_owned()));
    }
    Ok(recorded)
}

fn torn() -> Warning {
    Warning("its last record is torn and was dropped".to_owned())
}
