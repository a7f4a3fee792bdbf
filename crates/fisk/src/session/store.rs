//! The folder of the sessions.

use std::{
    env, fs,
    fs::{DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use fisk_domain::session::{Record, is_session_name};
use uuid::Uuid;

use super::journal::{self, Journal, Recorded};

const SUFFIX: &str = ".jsonl";

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A run holds it.
    Running,
    /// It was suspended and can be resumed.
    Suspended,
    /// Its run ended without a word, and it can be resumed.
    Interrupted,
    /// Its run is over.
    Completed,
    /// Its journal cannot be read.
    Broken,
}

impl State {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Interrupted => "interrupted",
            Self::Completed => "completed",
            Self::Broken => "broken",
        }
    }
}

/// A line of the list of sessions.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub state: State,
    /// Replies of the model.
    pub turns: u32,
    /// When its journal was written last.
    pub updated: SystemTime,
    /// What is wrong with its journal.
    pub trouble: Option<String>,
}

/// The folder of the sessions.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// The folder: `configured`, else `FISK_SESSIONS_DIR`, else `fisk/sessions` in `XDG_STATE_HOME` (`~/.local/state`).
    ///
    /// # Errors
    /// Where none of them says where it is.
    pub fn locate(configured: Option<&Path>) -> Result<Self, String> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let dir = match (configured, variable("FISK_SESSIONS_DIR")) {
            (Some(dir), _) => dir.to_owned(),
            (None, Some(dir)) => PathBuf::from(dir),
            (None, None) => variable("XDG_STATE_HOME")
                .map(PathBuf::from)
                .filter(|dir| dir.is_absolute())
                .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state")))
                .ok_or("cannot tell where sessions are: set FISK_SESSIONS_DIR or HOME")?
                .join("fisk/sessions"),
        };
        Ok(Self { dir })
    }

    /// Makes a session, locked for this process, with its first record. Without a name it gets one.
    ///
    /// # Errors
    /// The name is none or is taken, or the disk fails.
    pub fn create(
        &self,
        name: Option<&str>,
        first: impl FnOnce(&str) -> Record,
    ) -> Result<(Journal, Record), String> {
        if let Some(name) = name {
            checked_name(name)?;
        }
        self.prepare()?;
        let name = name.map_or_else(generated, str::to_owned);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => format!(
                "the session {name:?} exists: choose another name, or go on with it: fisk run --resume {name}"
            ),
            _ => format!("session {name:?}: {error}"),
        };
        let mut journal = Journal::create(&self.path(&name), &name).map_err(failed)?;
        let record = first(&name);
        journal.append(&record).map_err(failed)?;
        File::open(&self.dir)
            .and_then(|dir| dir.sync_all())
            .map_err(failed)?;
        Ok((journal, record))
    }

    /// Opens a session for a run.
    ///
    /// # Errors
    /// There is none of that name, it is in use, it is over, or its journal is broken.
    pub fn resume(&self, name: &str) -> Result<(Journal, Recorded), String> {
        checked_name(name)?;
        let (journal, recorded) =
            Journal::resume(&self.path(name), name).map_err(|error| failed(name, &error))?;
        if recorded.replay.is_over() {
            return Err(format!(
                "the session {name:?} is completed and cannot be resumed; `fisk session show {name}` shows it"
            ));
        }
        Ok((journal, recorded))
    }

    /// Reads a session.
    ///
    /// # Errors
    /// There is none of that name, or its journal is broken.
    pub fn read(&self, name: &str) -> Result<(Recorded, State), String> {
        checked_name(name)?;
        let mut file = journal::look(&self.path(name)).map_err(|error| failed(name, &error))?;
        let running = journal::is_locked(&file);
        let recorded = journal::read(&mut file).map_err(|error| failed(name, &error))?;
        let state = state(&recorded, running);
        Ok((recorded, state))
    }

    /// Removes a session.
    ///
    /// # Errors
    /// There is none of that name, or a run holds it.
    pub fn remove(&self, name: &str) -> Result<(), String> {
        checked_name(name)?;
        let path = self.path(name);
        let gone = || -> io::Result<()> {
            let file = journal::look(&path)?;
            journal::lock(&file)?;
            fs::remove_file(&path)
        };
        gone().map_err(|error| failed(name, &error))
    }

    /// All sessions, the last written first.
    ///
    /// # Errors
    /// The folder cannot be read. No folder is no sessions.
    pub fn list(&self) -> Result<Vec<Summary>, String> {
        let failed = |error: io::Error| format!("{}: {error}", self.dir.display());
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let file = entry.file_name();
            let Some(name) = file.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else {
                continue;
            };
            if !is_session_name(name) {
                continue;
            }
            let updated = entry.metadata().and_then(|data| data.modified());
            let updated = updated.unwrap_or(SystemTime::UNIX_EPOCH);
            let (state, turns, trouble) = match self.read(name) {
                Ok((recorded, state)) => (state, recorded.replay.spent().iterations, None),
                Err(trouble) => (State::Broken, 0, Some(trouble)),
            };
            found.push(Summary {
                name: name.to_owned(),
                state,
                turns,
                updated,
                trouble,
            });
        }
        found.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.name.cmp(&b.name)));
        Ok(found)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}{SUFFIX}"))
    }

    /// Makes the folder, and sees to it that it is this user's alone: journals hold whatever commands printed.
    fn prepare(&self) -> Result<(), String> {
        let failed = |error: io::Error| format!("{}: {error}", self.dir.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(failed)?;
        let data = fs::metadata(&self.dir).map_err(failed)?;
        if data.uid() != nix::unistd::geteuid().as_raw() {
            return Err(format!(
                "{}: belongs to another user: sessions need a folder of their own",
                self.dir.display()
            ));
        }
        if data.mode() & 0o077 != 0 {
            fs::set_permissions(&self.dir, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        Ok(())
    }
}

fn state(recorded: &Recorded, running: bool) -> State {
    match (
        running,
        recorded.replay.is_over(),
        recorded.replay.suspended(),
    ) {
        (true, _, _) => State::Running,
        (false, true, _) => State::Completed,
        (false, false, Some(_)) => State::Suspended,
        (false, false, None) => State::Interrupted,
    }
}

/// # Errors
/// It is no name of a session.
pub fn checked_name(name: &str) -> Result<(), String> {
    match is_session_name(name) {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is no name of a session: 1 to 63 lower-case letters, digits and hyphens, no hyphen at either end"
        )),
    }
}

fn failed(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no session {name:?}"),
        _ => format!("the session {name:?} {error}"),
    }
}

/// `run-` and eight hexadecimal digits by chance.
fn generated() -> String {
    let id = Uuid::now_v7().simple().to_string();
    format!("run-{}", &id[id.len() - 8..])
}
