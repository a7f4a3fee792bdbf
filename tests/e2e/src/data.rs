//! What outlives a server's process: its folder, its database, its environments.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuse_backend::{Backend, Sandbox};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::{blocking, unique};

/// The two databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Embedded.
    Sqlite,
    /// A database of its own on the server of `FUSE_TEST_POSTGRES`.
    Postgres,
}

/// A data folder and a database. Both go, with all environments in them, when the last holder does.
pub struct Data {
    store: Store,
    folder: tempfile::TempDir,
    url: String,
    database: Option<String>,
}

/// The server that the tests' databases are made on.
fn maintenance() -> String {
    std::env::var("FUSE_TEST_POSTGRES").expect(
        "FUSE_TEST_POSTGRES is not set: run the tests with `cargo xtask test`, or set it to the URL of a PostgreSQL \
         maintenance database",
    )
}

async fn administer(sql: String) -> Result<(), sqlx::Error> {
    let mut server = PgConnection::connect(&maintenance()).await?;
    server.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await?;
    server.close().await
}

impl Data {
    /// A fresh folder and a fresh database.
    ///
    /// # Panics
    /// They cannot be made.
    #[must_use]
    pub fn new(store: Store) -> Arc<Self> {
        let folder = tempfile::Builder::new()
            .prefix("fuse-e2e-")
            .tempdir()
            .expect("a folder");
        let (url, database) = match store {
            Store::Sqlite => (format!("sqlite:{}/fuse.db", folder.path().display()), None),
            Store::Postgres => {
                let name = unique("fuse_e2e").replace('-', "_");
                let server = maintenance();
                let (base, _) = server.rsplit_once('/').expect("a URL with a database");
                blocking(administer(format!("CREATE DATABASE {name}"))).expect("a database");
                (format!("{base}/{name}"), Some(name))
            }
        };
        Arc::new(Self {
            store,
            folder,
            url,
            database,
        })
    }

    /// Which database it is.
    #[must_use]
    pub fn store(&self) -> Store {
        self.store
    }

    /// The data folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The database's URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL that reaches the same database by another port of this machine.
    ///
    /// # Panics
    /// The database is none of PostgreSQL.
    #[must_use]
    pub fn rerouted(&self, port: u16) -> String {
        let address = self.address();
        self.url.replacen(&address, &format!("127.0.0.1:{port}"), 1)
    }

    /// Where PostgreSQL listens.
    ///
    /// # Panics
    /// The database is none of PostgreSQL.
    #[must_use]
    pub fn address(&self) -> String {
        assert_eq!(self.store, Store::Postgres, "SQLite has no address");
        let after = self.url.split_once("://").expect("a URL").1;
        let authority = after.split('/').next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        host.to_owned()
    }

    /// A way around the server to look at the database and to alter it.
    #[must_use]
    pub fn raw(&self) -> Raw {
        match self.store {
            Store::Sqlite => {
                let options = SqliteConnectOptions::new().filename(self.folder().join("fuse.db"));
                Raw::Sqlite(
                    SqlitePoolOptions::new()
                        .max_connections(1)
                        .connect_lazy_with(options),
                )
            }
            Store::Postgres => Raw::Postgres(
                PgPoolOptions::new()
                    .max_connections(1)
                    .connect_lazy(&self.url)
                    .expect("a URL"),
            ),
        }
    }

    /// The folders of the environments that are there.
    #[must_use]
    pub fn environment_folders(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.folder().join("environments")) else {
            return Vec::new();
        };
        entries.flatten().map(|entry| entry.path()).collect()
    }

    /// Ends whatever still runs in the folder. Guests are no children of their server, and outlive it.
    fn end_environments(&self) {
        let Ok(sandbox) = Sandbox::new(self.folder()) else {
            return;
        };
        blocking(async {
            for id in sandbox.list().await.unwrap_or_default() {
                if let Err(error) = sandbox.destroy(&id).await {
                    eprintln!("environment {id} of a test is left behind: {error}");
                }
            }
        });
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        self.end_environments();
        if let Some(name) = &self.database {
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            if let Err(error) = blocking(administer(drop)) {
                eprintln!("database {name} of a test is left behind: {error}");
            }
        }
    }
}

/// A connection of the test's own to the database.
pub enum Raw {
    /// To the file.
    Sqlite(sqlx::SqlitePool),
    /// To the server.
    Postgres(sqlx::PgPool),
}

impl Raw {
    /// Runs statements.
    ///
    /// # Panics
    /// The database refuses them.
    pub async fn run(&self, sql: &str) {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Sqlite(pool) => pool.execute(sql).await.map(drop),
            Self::Postgres(pool) => pool.execute(sql).await.map(drop),
        }
        .expect("statements that the database takes");
    }

    /// The first column of a query's rows, which has to be text.
    ///
    /// # Panics
    /// The database refuses it.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(pool) => sqlx::query_scalar(sql).fetch_all(pool).await,
            Self::Postgres(pool) => sqlx::query_scalar(sql).fetch_all(pool).await,
        }
        .expect("rows of text")
    }

    /// Whether any row of any table holds this text, in whatever form the database prints a row.
    ///
    /// # Panics
    /// The database refuses to be read.
    pub async fn holds(&self, text: &str) -> bool {
        let tables = match self {
            Self::Sqlite(_) => "SELECT name FROM sqlite_master WHERE type = 'table'",
            Self::Postgres(_) => {
                "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'"
            }
        };
        let hex = hex::encode(text);
        for table in self.texts(tables).await {
            let rows = match self {
                // Blobs print as hexadecimal digits in the one and the other.
                Self::Sqlite(_) => self.rows_of_sqlite(&table).await,
                Self::Postgres(_) => self.texts(&format!("SELECT t::text FROM {table} t")).await,
            };
            let found = |row: &String| row.contains(text) || row.to_lowercase().contains(&hex);
            if rows.iter().any(found) {
                return true;
            }
        }
        false
    }

    async fn rows_of_sqlite(&self, table: &str) -> Vec<String> {
        let columns = format!("SELECT name FROM pragma_table_info('{table}')");
        let mut printed = Vec::new();
        for column in self.texts(&columns).await {
            let cells = format!("SELECT coalesce(quote(\"{column}\"), '') FROM \"{table}\"");
            printed.extend(self.texts(&cells).await);
        }
        printed
    }
}
