//! The thin layer over the two databases: one SQL text, two drivers, every operation bounded in time.

use crate::conn::Conn;
use crate::error::StoreError;
use crate::health::Health;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{PgPool, Row, SqlitePool};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long an operation waits for a connection.
pub(crate) const ACQUIRE: Duration = Duration::from_secs(2);
/// How long a read may take, the wait for a connection included.
const READ: Duration = Duration::from_secs(5);
/// How long a transaction may take once it has its connection.
pub(crate) const WRITE: Duration = Duration::from_secs(10);

/// An open database.
#[derive(Clone)]
pub(crate) struct Db {
    pub pools: Pools,
    pub health: Arc<Health>,
}

/// Its connections. Writes have some of their own, so that readers cannot keep them waiting.
#[derive(Clone)]
pub(crate) enum Pools {
    Postgres {
        read: PgPool,
        write: PgPool,
    },
    /// `write` is one connection: SQLite has one writer anyway.
    Sqlite {
        read: SqlitePool,
        write: SqlitePool,
    },
}

/// A value bound to a statement.
#[derive(Debug, Clone)]
pub(crate) enum Arg {
    Text(Option<String>),
    Int(Option<i64>),
    Bytes(Option<Vec<u8>>),
    List(Vec<String>),
}

impl From<&str> for Arg {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}
impl From<i64> for Arg {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}
impl From<Option<String>> for Arg {
    fn from(value: Option<String>) -> Self {
        Self::Text(value)
    }
}
impl From<Option<&str>> for Arg {
    fn from(value: Option<&str>) -> Self {
        Self::Text(value.map(ToOwned::to_owned))
    }
}
impl From<Option<i64>> for Arg {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}
impl From<Option<Vec<u8>>> for Arg {
    fn from(value: Option<Vec<u8>>) -> Self {
        Self::Bytes(value)
    }
}

/// A statement under construction. Text comes from this crate alone; everything else is bound.
#[derive(Debug, Clone)]
pub(crate) struct Stmt {
    pub text: String,
    pub args: Vec<Arg>,
    pub postgres: bool,
}

impl Stmt {
    /// Adds text.
    pub fn push(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    /// Adds a bound value.
    pub fn bind(mut self, arg: impl Into<Arg>) -> Self {
        self.args.push(arg.into());
        self.text.push_str(&format!("${}", self.args.len()));
        self
    }

    /// Adds `column is one of values`.
    pub fn any(mut self, column: &str, values: Vec<String>) -> Self {
        self.args.push(Arg::List(values));
        let n = self.args.len();
        self.text.push_str(&if self.postgres {
            format!("{column} = ANY(${n})")
        } else {
            format!("{column} IN (SELECT value FROM json_each(${n}))")
        });
        self
    }

    /// Adds ` AND column = value` where there is a value.
    pub fn and(self, column: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.push(" AND ").push(column).push(" = ").bind(value),
            None => self,
        }
    }
}

/// The cells of a row of either database.
pub(crate) trait Cells {
    fn text(&self, column: &str) -> Result<String, StoreError>;
    fn text_opt(&self, column: &str) -> Result<Option<String>, StoreError>;
    fn int(&self, column: &str) -> Result<i64, StoreError>;
    fn int_opt(&self, column: &str) -> Result<Option<i64>, StoreError>;
    fn bytes_opt(&self, column: &str) -> Result<Option<Vec<u8>>, StoreError>;
}

macro_rules! cells {
    ($row:ty) => {
        impl Cells for $row {
            fn text(&self, column: &str) -> Result<String, StoreError> {
                Ok(self.try_get(column)?)
            }
            fn text_opt(&self, column: &str) -> Result<Option<String>, StoreError> {
                Ok(self.try_get(column)?)
            }
            fn int(&self, column: &str) -> Result<i64, StoreError> {
                Ok(self.try_get(column)?)
            }
            fn int_opt(&self, column: &str) -> Result<Option<i64>, StoreError> {
                Ok(self.try_get(column)?)
            }
            fn bytes_opt(&self, column: &str) -> Result<Option<Vec<u8>>, StoreError> {
                Ok(self.try_get(column)?)
            }
        }
    };
}
cells!(PgRow);
cells!(SqliteRow);

pub(crate) type Map<T> = fn(&dyn Cells) -> Result<T, StoreError>;

impl Db {
    pub const fn is_postgres(&self) -> bool {
        match self.pools {
            Pools::Postgres { .. } => true,
            Pools::Sqlite { .. } => false,
        }
    }

    /// Starts a statement.
    pub fn stmt(&self, text: &str) -> Stmt {
        Stmt {
            text: text.to_owned(),
            args: Vec::new(),
            postgres: self.is_postgres(),
        }
    }

    async fn reader(&self) -> Result<Conn, StoreError> {
        Ok(match &self.pools {
            Pools::Postgres { read, .. } => Conn::Postgres(read.acquire().await?),
            Pools::Sqlite { read, .. } => Conn::Sqlite(read.acquire().await?),
        })
    }

    /// A connection to write with.
    pub async fn writer(&self) -> Result<Conn, StoreError> {
        let writer = async {
            Ok(match &self.pools {
                Pools::Postgres { write, .. } => Conn::Postgres(write.acquire().await?),
                Pools::Sqlite { write, .. } => Conn::Sqlite(write.acquire().await?),
            })
        };
        timeout(READ, writer)
            .await
            .unwrap_or_else(|_| Err(StoreError::slow("getting a connection")))
    }

    /// Runs a query.
    pub async fn rows<T>(
        &self,
        stmt: Stmt,
        map: impl Fn(&dyn Cells) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut conn = timeout(READ, self.reader())
            .await
            .unwrap_or_else(|_| Err(StoreError::slow("getting a connection")))?;
        let rows = timeout(READ, conn.rows(stmt, map)).await;
        rows.unwrap_or_else(|_| {
            // The answer may still come, and must not be taken for the next query's.
            conn.discard();
            Err(StoreError::slow("a query"))
        })
    }

    /// Runs a query over many rows that are looked after together: one that cannot be read is left out, so that it does not
    /// keep the others from that.
    pub async fn readable_rows<T>(
        &self,
        stmt: Stmt,
        map: impl Fn(&dyn Cells) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.rows(stmt, |cells| Ok(map(cells))).await?;
        Ok(readable(rows))
    }

    /// Runs a query that gives one row at most.
    pub async fn row<T>(&self, stmt: Stmt, map: Map<T>) -> Result<Option<T>, StoreError> {
        Ok(self.rows(stmt, map).await?.pop())
    }

    /// Changes rows outside the ledger, in order with its transactions. Gives the rows that the statement returns; `wake`
    /// makes of them what the other orchestrators are told.
    pub async fn change<T>(
        &self,
        stmt: Stmt,
        map: Map<T>,
        wake: impl FnOnce(&[T]) -> Vec<String>,
    ) -> Result<Vec<T>, StoreError> {
        let changed = self.try_change(stmt, map, wake).await;
        // Only the ledger's commits and probes show that all is well: a small change may still fit where they do not.
        if changed.is_err() {
            self.health.note(&changed);
        }
        changed
    }

    async fn try_change<T>(
        &self,
        stmt: Stmt,
        map: Map<T>,
        wake: impl FnOnce(&[T]) -> Vec<String>,
    ) -> Result<Vec<T>, StoreError> {
        let mut conn = self.writer().await?;
        let mut committing = false;
        let work = async {
            conn.begin().await?;
            let rows = conn.rows(stmt, map).await?;
            conn.announce(wake(&rows)).await?;
            committing = true;
            conn.commit().await?;
            Ok(rows)
        };
        let done = timeout(WRITE, work)
            .await
            .unwrap_or_else(|_| Err(StoreError::slow("a change")));
        done.map_err(|error| {
            conn.discard();
            lost(committing, error)
        })
    }
}

/// Leaves out what could not be read, and says so.
pub(crate) fn readable<T>(rows: Vec<Result<T, StoreError>>) -> Vec<T> {
    let said = |row: Result<T, StoreError>| row.inspect_err(crate::unreadable::note).ok();
    rows.into_iter().filter_map(said).collect()
}

/// Tells an error that left nothing behind from one that may have come after the commit.
pub(crate) fn lost(committing: bool, error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(source) | StoreError::Internal(source)
            if committing && !was_refused(&*source) =>
        {
            StoreError::Ambiguous
        }
        other => other,
    }
}

/// Whether the database itself said that it did not commit.
fn was_refused(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    match error.downcast_ref::<sqlx::Error>() {
        // A server that shuts down (57P..), and a disk that fails (IOERR), may say so after the commit was written.
        Some(sqlx::Error::Database(e)) => e.code().is_some_and(|code| match code.len() {
            5 => !code.starts_with("57P"),
            _ => code.parse::<u32>().is_ok_and(|n| n & 0xff != 10),
        }),
        Some(_) | None => false,
    }
}
