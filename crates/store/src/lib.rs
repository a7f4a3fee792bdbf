//! The ledger, queries and sealing on PostgreSQL and SQLite.
//!
//! - [`Store::commit`] is the only way to change what people decide: a transition of the domain goes in, and all of it is on
//!   record, its audit entries in the chain, or nothing is. Transitions that wait share one transaction.
//! - Reads are one indexed query each, and open nothing but what they show.
//! - What changes is told to this process as [`Notice`]s, also when another orchestrator on the same PostgreSQL changed it. A
//!   SQLite file takes one process at a time.
//!
//! Every operation is bounded in time: on a database that does not answer it fails within seconds, and the store recovers by
//! itself once the database is back.

mod activity;
mod audit;
mod conn;
mod cursor;
mod environments;
mod error;
mod health;
mod interventions;
mod keys;
mod ledger;
mod notice;
mod row;
mod schema;
mod seal;
mod single;
mod sql;
mod unreadable;
mod wake;

pub use audit::AuditFilter;
pub use cursor::{CursorError, Page};
pub use environments::{EnvironmentChange, EnvironmentFilter, EnvironmentRow, Inserted};
pub use error::{OpenError, StoreError};
pub use health::Failing;
pub use interventions::InterventionFilter;
pub use keys::KeyRow;
pub use notice::{Notice, Notices};
pub use seal::{KeyError, Sealer};
pub use unreadable::unreadable_met;

use activity::Activity;
use fuse_api::time::Timestamp;
use fuse_domain::transition::{Committed, Transition};
use ledger::Ledger;
use notice::Notifier;
use single::Single;
use sql::{ACQUIRE, Db, Pools};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinHandle;

/// What opens a store.
#[derive(Clone)]
pub struct StoreConfig {
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: String,
    /// What content is sealed with.
    pub sealer: Sealer,
}

/// An open store. One process opens one.
pub struct Store {
    db: Db,
    sealer: Sealer,
    notifier: Notifier,
    ledger: Ledger,
    /// Names this store among those of the database.
    ledger_id: String,
    activity: Arc<Activity>,
    tasks: Vec<JoinHandle<()>>,
    /// Of a SQLite file.
    single: Option<Single>,
}

impl Store {
    /// Opens a database, creating it where it is a SQLite file that is not there, and brings it into shape.
    ///
    /// A database whose content is sealed opens with its own key alone. One that was written in the clear takes a key: it is
    /// sealed from then on, and what was written before stays readable.
    ///
    /// # Errors
    /// The URL, the database or the key do not fit, or another process has the SQLite file; see [`OpenError`].
    pub async fn open(config: &StoreConfig) -> Result<(Self, Notices), OpenError> {
        let StoreConfig {
            database_url,
            sealer,
        } = config;
        let (pools, single) = connect(database_url).await?;
        let db = Db {
            pools,
            health: Arc::default(),
        };
        schema::migrate(&db).await?;
        schema::check_key(&db, sealer).await?;
        let ledger_id = hex::encode(rand::random::<[u8; 8]>());
        schema::enter(&db, &ledger_id, now().as_micros()).await?;

        let (notifier, notices) = Notifier::new();
        let activity = Arc::new(Activity::default());
        let mut tasks = vec![tokio::spawn(flush(Arc::clone(&activity), db.clone()))];
        match &db.pools {
            Pools::Postgres { read, .. } => tasks.push(tokio::spawn(wake::postgres(
                read.clone(),
                ledger_id.clone(),
                notifier.clone(),
            ))),
            // Nobody else writes to it, so that nothing can be missed.
            Pools::Sqlite { .. } => notifier.listens(),
        }
        let sealer = sealer.clone();
        let ledger = Ledger::start(
            db.clone(),
            sealer.clone(),
            ledger_id.clone(),
            notifier.clone(),
        );
        let store = Self {
            db,
            sealer,
            notifier,
            ledger,
            ledger_id,
            activity,
            tasks,
            single,
        };
        Ok((store, notices))
    }

    /// Puts a transition on record, with all that waits beside it in one transaction. Whoever drops this future before it
    /// ends does not take the transition back.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: nothing was written. [`StoreError::Ambiguous`]: read again to see.
    pub async fn commit(&self, transition: Transition) -> Result<Committed, StoreError> {
        self.ledger.commit(transition).await
    }

    /// Puts many transitions on record, each for itself; the answers come in their order. Records whose payload is large are
    /// left out of the answers.
    pub async fn commit_all(
        &self,
        transitions: Vec<Transition>,
    ) -> Vec<Result<Committed, StoreError>> {
        self.ledger.commit_all(transitions).await
    }

    /// The spell in which every change by another orchestrator is heard of within moments; zero while that is not so. A later
    /// spell begins with a [`Notice::Resync`], and what is known from an earlier one may be out of date.
    #[must_use]
    pub fn hearing(&self) -> u64 {
        self.notifier.hearing()
    }

    /// Whether the database answers and the ledger takes transitions.
    ///
    /// # Errors
    /// One of them does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        if !self.ledger.is_open() {
            return Err(StoreError::stopped());
        }
        let stmt = self.db.stmt("SELECT 1 AS one");
        self.db.row(stmt, |_| Ok(())).await.map(drop)
    }

    /// Since when commits fail, if the last ones did.
    pub fn failing(&self) -> Option<Failing> {
        self.db.health.failing()
    }

    /// Whether calls can be served: the database answers, the ledger takes transitions, and commits go through. While they do
    /// not, this tries one, so that an idle store notices the end of it.
    ///
    /// # Errors
    /// One of them does not.
    pub async fn ready(&self) -> Result<(), StoreError> {
        self.ping().await?;
        if self.failing().is_some() {
            let probed = health::probe(&self.db, &self.ledger_id).await;
            self.db.health.note(&probed);
            probed?;
        }
        Ok(())
    }

    /// Commits what waits, writes the noted activity and closes the connections. What is asked of the store afterwards fails
    /// as unavailable.
    pub async fn close(&self) {
        self.ledger.close().await;
        for task in &self.tasks {
            task.abort();
        }
        if let Err(error) = self.activity.flush(&self.db).await {
            tracing::warn!(%error, "the last activity could not be written");
        }
        match &self.db.pools {
            Pools::Postgres { read, write } => {
                read.close().await;
                write.close().await;
            }
            Pools::Sqlite { read, write } => {
                read.close().await;
                write.close().await;
            }
        }
        if let Some(single) = &self.single {
            single.release();
        }
    }
}

async fn flush(activity: Arc<Activity>, db: Db) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if let Err(error) = activity.flush(&db).await {
            tracing::warn!(%error, "activity could not be written; trying again");
        }
    }
}

/// The store's own clock: for its marks in the database alone. Every time on record is the caller's.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

async fn connect(url: &str) -> Result<(Pools, Option<Single>), OpenError> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let options: PgConnectOptions = url.parse()?;
        let options = options.application_name("fuse").options([
            ("statement_timeout", "10s"),
            ("lock_timeout", "8s"),
            // A stopped orchestrator must not keep the chain's lock from the others.
            ("idle_in_transaction_session_timeout", "10s"),
        ]);
        // The ledger's statements name rows by key. A plan that reads a table through, made while it was small, must not
        // outlive its growth.
        let by_key = options.clone().options([("enable_seqscan", "off")]);
        let pool = || PgPoolOptions::new().acquire_timeout(ACQUIRE);
        let pools = Pools::Postgres {
            read: pool().max_connections(12).connect_with(options).await?,
            write: pool().max_connections(4).connect_with(by_key).await?,
        };
        return Ok((pools, None));
    }
    let path = url.strip_prefix("sqlite:").ok_or(OpenError::Url)?;
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() || path.starts_with(':') || path.contains('?') {
        return Err(OpenError::Url);
    }
    make_private(path)?;
    let single = Single::take(std::path::Path::new(path)).await?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // An approved action must be on record after a power cut too, so every commit waits for the disk.
        .synchronous(SqliteSynchronous::Full)
        // A sweep reads thousands of rows; each time this fills up, two threads have to wake each other.
        .row_buffer_size(2_048)
        .busy_timeout(Duration::from_secs(5));
    let write = SqlitePoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(Duration::from_secs(5))
        .connect_with(options.clone())
        .await?;
    let read = SqlitePoolOptions::new()
        .max_connections(4)
        // A file answers or fails; a burst of readers only queues.
        .acquire_timeout(Duration::from_secs(10))
        .connect_with(options.pragma("query_only", "on"))
        .await?;
    Ok((Pools::Sqlite { read, write }, Some(single)))
}

/// Creates the database's file where it is missing, for its owner alone; what SQLite puts beside it gets the same mode.
fn make_private(path: &str) -> Result<(), OpenError> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(|error| OpenError::Database(Box::new(error)))
}
