//! Bringing a database into shape: migrations, the canary that tells a wrong key, and this ledger's mark.

use crate::conn::Conn;
use crate::error::{OpenError, StoreError};
use crate::seal::{Place, Sealer, key_id_of};
use crate::sql::{Arg, Db, Pools};
use sqlx::SqlStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use std::time::Duration;

const CONTENT: &[u8] = b"fuse content is sealed with this key";
const PLACE: Place<'static> = Place {
    table: "sealing",
    row: "content",
    column: "canary",
};
/// Marks of ledgers that were opened longer ago than this are dropped: 30 days, in microseconds.
const STALE: i64 = 30 * 24 * 3_600 * 1_000_000;

fn migrator() -> Migrator {
    let migration = |version, name: &'static str, text| {
        Migration::new(
            version,
            name.into(),
            MigrationType::Simple,
            SqlStr::from_static(text),
            false,
        )
    };
    Migrator::with_migrations(vec![
        migration(1, "init", include_str!("../migrations/0001_init.sql")),
        migration(2, "probes", include_str!("../migrations/0002_probes.sql")),
    ])
}

/// Runs the migrations that the database lacks. Of several processes that start at once, one runs them.
pub(crate) async fn migrate(db: &Db) -> Result<(), OpenError> {
    let mut attempts = 0;
    loop {
        let done = match &db.pools {
            Pools::Postgres { write, .. } => migrator().run(write).await,
            Pools::Sqlite { write, .. } => migrator().run(write).await,
        };
        match done {
            Ok(()) => return Ok(()),
            Err(MigrateError::VersionMissing(version)) => {
                return Err(OpenError::NewerRelease(version));
            }
            // PostgreSQL makes the others wait. SQLite makes them fail; they find the work done on a later try.
            Err(MigrateError::Execute(_) | MigrateError::ExecuteMigration(..))
                if !db.is_postgres() && attempts < 20 =>
            {
                attempts += 1;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => return Err(OpenError::Database(Box::new(error))),
        }
    }
}

/// Holds the given key against the one that the content is sealed with (spec: "Where the content lives").
pub(crate) async fn check_key(db: &Db, sealer: &Sealer) -> Result<(), OpenError> {
    if !sealer.is_plain() {
        let canary = sealer.seal(PLACE, CONTENT)?;
        let stmt = db
            .stmt("INSERT INTO sealing (name, canary) VALUES (")
            .bind(PLACE.row)
            .push(", ")
            .bind(Arg::Bytes(Some(canary)))
            .push(") ON CONFLICT DO NOTHING RETURNING name");
        db.change(stmt, |cells| cells.text("name"), |_| Vec::new())
            .await?;
    }
    let stmt = db
        .stmt("SELECT canary FROM sealing WHERE name = ")
        .bind(PLACE.row);
    let Some(Some(canary)) = db.row(stmt, |cells| cells.bytes_opt("canary")).await? else {
        return Ok(());
    };
    let stored = key_id_of(&canary).ok_or(OpenError::Canary)?;
    match sealer.key_id() {
        None => Err(OpenError::KeyMissing { stored }),
        Some(given) if given != stored => Err(OpenError::KeyWrong { stored, given }),
        Some(_) => match sealer.open(PLACE, &canary) {
            Ok(content) if content == CONTENT => Ok(()),
            Ok(_) | Err(_) => Err(OpenError::Canary),
        },
    }
}

/// Puts this ledger's mark into the database, and the chain's head behind the log's last row where it lags: on a database
/// that somebody altered, the log goes on from what is there rather than refuse every write.
pub(crate) async fn enter(db: &Db, ledger: &str, now: i64) -> Result<(), StoreError> {
    let mut conn = db.writer().await?;
    let done = enter_in(&mut conn, ledger, now).await;
    if done.is_err() {
        conn.discard();
    }
    done
}

async fn enter_in(conn: &mut Conn, ledger: &str, now: i64) -> Result<(), StoreError> {
    let head = conn.begin().await?;
    let mark = conn
        .stmt("INSERT INTO ledgers (id, last_batch, at) VALUES (")
        .bind(ledger)
        .push(", 0, ")
        .bind(now)
        .push(")");
    conn.execute(mark).await?;
    let stale = conn
        .stmt("DELETE FROM ledgers WHERE at < ")
        .bind(now - STALE);
    conn.execute(stale).await?;
    let last = conn.stmt("SELECT seq, hash FROM audit_log ORDER BY seq DESC LIMIT 1");
    let last = conn
        .rows(last, |cells| Ok((cells.int("seq")?, cells.text("hash")?)))
        .await?
        .pop();
    if let Some((seq, hash)) = last
        && seq > head.seq
    {
        tracing::error!(
            seq,
            noted = head.seq,
            "the audit log is ahead of its noted head"
        );
        let repair = conn
            .stmt("UPDATE chain_head SET seq = ")
            .bind(seq)
            .push(", hash = ")
            .bind(hash.as_str())
            .push(" WHERE id = 1");
        conn.execute(repair).await?;
    }
    conn.commit().await
}
