//! A database of a test's own.

use fuse_store::{Notices, OpenError, Sealer, Store, StoreConfig};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Executor, PgPool, Row, SqlitePool};

/// The databases of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
}

/// Makes two tests of each function: one per database.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let bed = crate::bed::Bed::new(crate::bed::Kind::Sqlite).await;
                super::$name(&bed).await;
                bed.remove().await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let bed = crate::bed::Bed::new(crate::bed::Kind::Postgres).await;
                super::$name(&bed).await;
                bed.remove().await;
            })+
        }
    };
}

/// Makes a test of each function on the database that several stores may share.
macro_rules! shared {
    ($($name:ident),+ $(,)?) => {
        mod shared_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let bed = crate::bed::Bed::new(crate::bed::Kind::Postgres).await;
                super::$name(&bed).await;
                bed.remove().await;
            })+
        }
    };
}

pub enum Raw {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// A fresh database, and a way around the store to look at it and to alter it.
pub struct Bed {
    pub kind: Kind,
    pub url: String,
    pub raw: Raw,
    name: String,
    _folder: tempfile::TempDir,
}

/// The server that the tests' PostgreSQL databases are made on.
fn server() -> String {
    std::env::var("FUSE_TEST_POSTGRES").expect(
        "FUSE_TEST_POSTGRES is not set: run the tests with `cargo xtask test`, or set it to the URL of a PostgreSQL \
         maintenance database",
    )
}

impl Bed {
    pub async fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!("fuse_store_{}", uuid::Uuid::now_v7().simple());
        let (url, raw) = match kind {
            Kind::Sqlite => {
                let path = folder.path().join("fuse.db");
                let options = SqliteConnectOptions::new().filename(&path);
                let pool = SqlitePoolOptions::new()
                    .max_connections(1)
                    .connect_lazy_with(options);
                (format!("sqlite:{}", path.display()), Raw::Sqlite(pool))
            }
            Kind::Postgres => {
                let server = server();
                let (base, _) = server.rsplit_once('/').expect("a URL with a database");
                let url = format!("{base}/{name}");
                admin(&format!("CREATE DATABASE {name}")).await;
                let pool = PgPoolOptions::new()
                    .max_connections(2)
                    .connect_lazy(&url)
                    .expect("a URL");
                (url, Raw::Postgres(pool))
            }
        };
        Self {
            kind,
            url,
            raw,
            name,
            _folder: folder,
        }
    }

    pub async fn remove(self) {
        if let Raw::Postgres(pool) = &self.raw {
            pool.close().await;
            admin(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
        }
    }

    pub async fn try_open(&self, sealer: Sealer) -> Result<(Store, Notices), OpenError> {
        Store::open(&StoreConfig {
            database_url: self.url.clone(),
            sealer,
        })
        .await
    }

    pub async fn open_with_notices(&self) -> (Store, Notices) {
        self.try_open(key(1)).await.expect("opens")
    }

    pub async fn open(&self) -> Store {
        self.open_with_notices().await.0
    }

    /// Runs statements around the store.
    pub async fn alter(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        match &self.raw {
            Raw::Sqlite(pool) => pool.execute(sqlx::raw_sql(sql)).await.map(drop),
            Raw::Postgres(pool) => pool.execute(sqlx::raw_sql(sql)).await.map(drop),
        }
        .expect("the statement runs");
    }

    /// The one number that a query gives.
    pub async fn number(&self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        match &self.raw {
            Raw::Sqlite(pool) => sqlx::query_scalar(sql).fetch_one(pool).await,
            Raw::Postgres(pool) => sqlx::query_scalar(sql).fetch_one(pool).await,
        }
        .expect("a number")
    }

    /// The bytes of one column, row by row.
    pub async fn bytes(&self, sql: &str) -> Vec<Vec<u8>> {
        let sql = AssertSqlSafe(sql.to_owned());
        match &self.raw {
            Raw::Sqlite(pool) => sqlx::query(sql)
                .fetch_all(pool)
                .await
                .expect("rows")
                .iter()
                .map(|row| row.get(0))
                .collect(),
            Raw::Postgres(pool) => sqlx::query(sql)
                .fetch_all(pool)
                .await
                .expect("rows")
                .iter()
                .map(|row| row.get(0))
                .collect(),
        }
    }
}

/// A key that differs by its number.
pub fn key(n: u8) -> Sealer {
    Sealer::from_text(&hex::encode([n; 32])).expect("a key")
}

async fn admin(sql: &str) {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect(&server())
        .await
        .expect("the PostgreSQL of FUSE_TEST_POSTGRES answers");
    pool.execute(AssertSqlSafe(sql.to_owned()))
        .await
        .expect("the maintenance statement runs");
    pool.close().await;
}
