//! One connection to either database, and what a transaction on it needs.

use crate::error::StoreError;
use crate::sql::{Arg, Cells, Map, Stmt};
use fuse_domain::audit::Head;
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Postgres, Sqlite};

/// The channel that the orchestrators of one PostgreSQL wake each other on.
pub(crate) const CHANNEL: &str = "fuse";

/// Rows that go into one SQLite statement: few statements for many rows, and few statement texts to keep prepared.
const SIZES: [usize; 3] = [64, 8, 1];

/// A connection out of a pool.
pub(crate) enum Conn {
    Postgres(PoolConnection<Postgres>),
    Sqlite(PoolConnection<Sqlite>),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    Int,
    Bytes,
}

/// A write of many rows that have the same columns.
pub(crate) struct Bulk {
    pub table: &'static str,
    pub columns: &'static [(&'static str, Type)],
    /// The columns after those, where several bulks share them.
    pub more: &'static [(&'static str, Type)],
    pub verb: Verb,
}

/// What a [`Bulk`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Adds rows.
    Insert,
    /// Changes the row whose `id` is the first column and whose `version` is the second.
    Update,
}

macro_rules! bound {
    ($text:expr, $args:expr, $list:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe($text));
        for arg in $args {
            query = match arg {
                Arg::Text(v) => query.bind(v),
                Arg::Int(v) => query.bind(v),
                Arg::Bytes(v) => query.bind(v),
                Arg::List(v) => query.bind($list(v)),
            };
        }
        query
    }};
}

/// A list as SQLite takes it.
fn json_list(values: Vec<String>) -> String {
    serde_json::Value::from(values).to_string()
}

fn list(values: Vec<String>) -> Vec<String> {
    values
}

impl Conn {
    /// Starts a statement.
    pub fn stmt(&self, text: &str) -> Stmt {
        Stmt {
            text: text.to_owned(),
            args: Vec::new(),
            postgres: matches!(self, Self::Postgres(_)),
        }
    }

    /// Begins a transaction and takes the lock that every writer takes first, so that writers follow one another.
    pub async fn begin(&mut self) -> Result<Head, StoreError> {
        const HEAD: &str = "SELECT seq, hash FROM chain_head WHERE id = 1";
        let map: Map<Head> = |cells| {
            Ok(Head {
                seq: cells.int("seq")?,
                hash: cells.text("hash")?,
            })
        };
        let head = match self {
            Self::Postgres(conn) => {
                let rows = sqlx::raw_sql(
                    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT seq, hash FROM chain_head WHERE id = 1 FOR UPDATE",
                )
                .fetch_all(&mut **conn)
                .await?;
                rows.first().map(|row| map(row)).transpose()?
            }
            Self::Sqlite(conn) => {
                sqlx::query("BEGIN IMMEDIATE").execute(&mut **conn).await?;
                let row = sqlx::query(HEAD).fetch_optional(&mut **conn).await?;
                row.map(|row| map(&row)).transpose()?
            }
        };
        head.ok_or_else(|| StoreError::corrupt("chain_head", "1", "id"))
    }

    pub async fn commit(&mut self) -> Result<(), StoreError> {
        self.run("COMMIT").await
    }

    pub async fn rollback(&mut self) -> Result<(), StoreError> {
        self.run("ROLLBACK").await
    }

    async fn run(&mut self, text: &'static str) -> Result<(), StoreError> {
        match self {
            Self::Postgres(conn) => sqlx::raw_sql(text).execute(&mut **conn).await.map(drop)?,
            Self::Sqlite(conn) => sqlx::query(text).execute(&mut **conn).await.map(drop)?,
        }
        Ok(())
    }

    /// Closes the connection instead of giving it back. An open transaction ends as rolled back.
    pub fn discard(&mut self) {
        match self {
            Self::Postgres(conn) => conn.close_on_drop(),
            Self::Sqlite(conn) => conn.close_on_drop(),
        }
    }

    pub async fn rows<T>(
        &mut self,
        stmt: Stmt,
        map: impl Fn(&dyn Cells) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        match self {
            Self::Postgres(conn) => {
                let query = bound!(stmt.text, stmt.args, list);
                let rows = query.fetch_all(&mut **conn).await?;
                rows.iter().map(|row| map(row)).collect()
            }
            Self::Sqlite(conn) => {
                let query = bound!(stmt.text, stmt.args, json_list);
                let rows = query.fetch_all(&mut **conn).await?;
                rows.iter().map(|row| map(row)).collect()
            }
        }
    }

    /// Runs a statement and tells how many rows it changed.
    pub async fn execute(&mut self, stmt: Stmt) -> Result<u64, StoreError> {
        Ok(match self {
            Self::Postgres(conn) => bound!(stmt.text, stmt.args, list)
                .execute(&mut **conn)
                .await?
                .rows_affected(),
            Self::Sqlite(conn) => bound!(stmt.text, stmt.args, json_list)
                .execute(&mut **conn)
                .await?
                .rows_affected(),
        })
    }

    /// Tells the other orchestrators, once the transaction commits. A SQLite file has none.
    pub async fn announce(&mut self, payloads: Vec<String>) -> Result<(), StoreError> {
        match self {
            Self::Postgres(_) if !payloads.is_empty() => {
                let stmt = self
                    .stmt("SELECT pg_notify(")
                    .bind(CHANNEL)
                    .push(", payload) FROM UNNEST(")
                    .bind(Arg::List(payloads))
                    .push("::text[]) AS payload");
                self.execute(stmt).await.map(drop)
            }
            Self::Postgres(_) | Self::Sqlite(_) => Ok(()),
        }
    }

    /// Writes many rows, and tells how many were written.
    pub async fn bulk(&mut self, bulk: &Bulk, rows: Vec<Vec<Arg>>) -> Result<u64, StoreError> {
        if rows.is_empty() {
            return Ok(0);
        }
        match self {
            Self::Postgres(conn) => {
                let mut query = sqlx::query(AssertSqlSafe(bulk.postgres()));
                for column in columns(bulk, rows) {
                    query = match column {
                        Column::Text(v) => query.bind(v),
                        Column::Int(v) => query.bind(v),
                        Column::Bytes(v) => query.bind(v),
                    };
                }
                Ok(query.execute(&mut **conn).await?.rows_affected())
            }
            Self::Sqlite(conn) => {
                let mut written = 0;
                let mut rows = rows.into_iter();
                for size in SIZES {
                    while rows.len() >= size {
                        let args = rows.by_ref().take(size).flatten();
                        let query = bound!(bulk.sqlite(size), args, json_list);
                        written += query.execute(&mut **conn).await?.rows_affected();
                    }
                }
                Ok(written)
            }
        }
    }
}

/// One column of many rows.
enum Column {
    Text(Vec<Option<String>>),
    Int(Vec<Option<i64>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

/// Turns rows into columns. A value of another type than its column's becomes NULL, which the column then refuses.
fn columns(bulk: &Bulk, rows: Vec<Vec<Arg>>) -> Vec<Column> {
    let mut columns: Vec<Column> = bulk
        .all()
        .map(|(_, kind)| match kind {
            Type::Text => Column::Text(Vec::with_capacity(rows.len())),
            Type::Int => Column::Int(Vec::with_capacity(rows.len())),
            Type::Bytes => Column::Bytes(Vec::with_capacity(rows.len())),
        })
        .collect();
    for row in rows {
        for (column, arg) in columns.iter_mut().zip(row) {
            match (column, arg) {
                (Column::Text(v), Arg::Text(arg)) => v.push(arg),
                (Column::Int(v), Arg::Int(arg)) => v.push(arg),
                (Column::Bytes(v), Arg::Bytes(arg)) => v.push(arg),
                (Column::Text(v), _) => v.push(None),
                (Column::Int(v), _) => v.push(None),
                (Column::Bytes(v), _) => v.push(None),
            }
        }
    }
    columns
}

impl Bulk {
    fn all(&self) -> impl Iterator<Item = (&'static str, Type)> {
        self.columns.iter().chain(self.more).copied()
    }

    fn names(&self) -> Vec<&'static str> {
        self.all().map(|(name, _)| name).collect()
    }

    fn postgres(&self) -> String {
        let arrays: Vec<String> = self
            .all()
            .zip(1..)
            .map(|((_, kind), n)| {
                let kind = match kind {
                    Type::Text => "text",
                    Type::Int => "bigint",
                    Type::Bytes => "bytea",
                };
                format!("${n}::{kind}[]")
            })
            .collect();
        let source = format!("UNNEST({})", arrays.join(", "));
        match self.verb {
            Verb::Insert => format!(
                "INSERT INTO {} ({}) SELECT * FROM {source}",
                self.table,
                self.names().join(", ")
            ),
            Verb::Update => format!(
                "{} FROM {source} AS n ({}){}",
                self.set(),
                self.names().join(", "),
                self.matching()
            ),
        }
    }

    fn sqlite(&self, rows: usize) -> String {
        let row = format!("({})", vec!["?"; self.all().count()].join(", "));
        let values = format!("VALUES {}", vec![row; rows].join(", "));
        let names = self.names().join(", ");
        match self.verb {
            Verb::Insert => format!("INSERT INTO {} ({names}) {values}", self.table),
            Verb::Update => format!(
                "WITH n ({names}) AS ({values}) {} FROM n{}",
                self.set(),
                self.matching()
            ),
        }
    }

    fn set(&self) -> String {
        let set: Vec<String> = self.names()[2..]
            .iter()
            .map(|name| format!("{name} = n.{name}"))
            .collect();
        format!("UPDATE {} AS t SET {}", self.table, set.join(", "))
    }

    fn matching(&self) -> String {
        let [id, expected, ..] = self.names()[..] else {
            unreachable!("an update names its key and its version first")
        };
        format!(" WHERE t.id = n.{id} AND t.version = n.{expected}")
    }
}
