//! What can go wrong in the store.

use crate::cursor::CursorError;
use std::sync::Arc;

/// Why an operation of the store did not succeed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or does not answer in time. Nothing was written; trying again may help.
    #[error("the database is unavailable")]
    Unavailable(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The connection was lost while a commit was under way, and the database could not be asked since: it was written or
    /// it was not. Read again.
    #[error("it is not known whether the database took the change")]
    Ambiguous,
    /// A stored value does not open or cannot be read: it was altered, or sealed with another key.
    #[error("stored value cannot be read: table {table}, row {row}, column {column}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The row's id.
        row: String,
        /// The column.
        column: &'static str,
    },
    /// A cursor does not fit the list it was handed to.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The database refused a statement that it should take: a fault of this program.
    #[error("the database refused a statement")]
    Internal(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    pub(crate) fn corrupt(table: &'static str, row: &str, column: &'static str) -> Self {
        Self::Corrupt {
            table,
            row: row.to_owned(),
            column,
        }
    }

    pub(crate) fn slow(what: &'static str) -> Self {
        Self::Unavailable(Arc::new(Slow(what)))
    }

    pub(crate) fn stopped() -> Self {
        Self::Unavailable(Arc::new(Stopped))
    }
}

/// An operation did not end within its bound.
#[derive(Debug, thiserror::Error)]
#[error("{0} did not end in time")]
pub(crate) struct Slow(&'static str);

#[derive(Debug, thiserror::Error)]
#[error("the store is closed")]
struct Stopped;

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        if is_passing(&error) {
            Self::Unavailable(Arc::new(error))
        } else {
            Self::Internal(Arc::new(error))
        }
    }
}

/// Whether the same statement may succeed later.
fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(e) => e.code().is_some_and(|code| is_passing_code(&code)),
        _ => false,
    }
}

fn is_passing_code(code: &str) -> bool {
    // PostgreSQL: connection, resources, operator intervention, lock and serialization trouble, cancelled or read-only.
    const CLASSES: [&str; 4] = ["08", "53", "57", "40"];
    const CODES: [&str; 3] = ["55P03", "25P03", "25006"];
    if code.len() == 5 {
        return CODES.contains(&code) || CLASSES.iter().any(|class| code.starts_with(class));
    }
    // SQLite: the low byte of an extended code is BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN or PROTOCOL.
    code.parse::<u32>()
        .is_ok_and(|code| [5, 6, 8, 10, 13, 14, 15].contains(&(code & 0xff)))
}

/// Why a store does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL names no database that this store knows.
    #[error("DATABASE_URL must be postgres://… or sqlite:PATH")]
    Url,
    /// The database cannot be opened or prepared.
    #[error("cannot open the database: {0}")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another server has this SQLite file.
    #[error("{} is in use by another server{}; one file serves one server at a time, several need PostgreSQL", .database.display(), .holder.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    InUse {
        /// The file.
        database: std::path::PathBuf,
        /// The process that has it, where it said so.
        holder: Option<u32>,
    },
    /// A newer release has changed the database's shape.
    #[error(
        "the database was written by a newer release (migration {0}); run that release, or restore a backup"
    )]
    NewerRelease(i64),
    /// Content is sealed and no key is given.
    #[error("the database's content is sealed with key {stored}: set TOKEN_ENCRYPTION_KEY")]
    KeyMissing {
        /// The id of the key that it is sealed with.
        stored: String,
    },
    /// Content is sealed with another key.
    #[error(
        "TOKEN_ENCRYPTION_KEY is not the key of this database: its content is sealed with key {stored}, the given one is {given}"
    )]
    KeyWrong {
        /// The id of the key that it is sealed with.
        stored: String,
        /// The id of the key that was given.
        given: String,
    },
    /// The row that tells the key was altered.
    #[error("the database's sealing canary does not open with its own key: it was altered")]
    Canary,
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(Box::new(error))
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Database(Box::new(error))
    }
}
