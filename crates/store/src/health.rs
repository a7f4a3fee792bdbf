//! Whether commits go through. A database that answers reads may still take no write: its disk is full, it is read-only, or it is
//! out of connections.

use crate::error::StoreError;
use crate::sql::{Arg, Db, WRITE};
use fuse_api::time::Timestamp;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::timeout;

/// What a probe writes: more than most commits, so that it does not fit where they do not. It does not compress.
const FILLER: usize = 128 * 1024;

/// Commits fail, and have not gone through since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// When the first of them failed.
    pub since: Timestamp,
    /// How many have failed.
    pub count: u64,
}

/// What the last commits came to.
#[derive(Default)]
pub(crate) struct Health(Mutex<Option<Failing>>);

impl Health {
    /// A commit failed or went through. The log names the first cause, and says when it is over.
    pub fn note<T>(&self, outcome: &Result<T, StoreError>) {
        match outcome {
            Ok(_) => self.went_through(),
            Err(error @ (StoreError::Unavailable(_) | StoreError::Ambiguous)) => self.failed(error),
            // A fault of one change says nothing of the others.
            Err(StoreError::Corrupt { .. } | StoreError::Cursor(_) | StoreError::Internal(_)) => {}
        }
    }

    fn failed(&self, error: &StoreError) {
        let mut failing = self.lock();
        match &mut *failing {
            Some(failing) => failing.count += 1,
            None => {
                *failing = Some(Failing {
                    since: crate::now(),
                    count: 1,
                });
                drop(failing);
                let error = chain(error);
                tracing::error!(%error, "commits fail; what follows is counted until one goes through");
            }
        }
    }

    fn went_through(&self) {
        let over = self.lock().take();
        if let Some(Failing { since, count }) = over {
            tracing::info!(%since, failed = count, "commits go through again");
        }
    }

    pub fn failing(&self) -> Option<Failing> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Failing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Writes a row of the ledger's own, to see whether commits go through again.
pub(crate) async fn probe(db: &Db, ledger: &str) -> Result<(), StoreError> {
    let filler: Vec<u8> = (0..FILLER / 8)
        .flat_map(|_| rand::random::<[u8; 8]>())
        .collect();
    let mut conn = db.writer().await?;
    let work = async {
        conn.begin().await?;
        let old = conn.stmt("DELETE FROM probes WHERE ledger = ").bind(ledger);
        conn.execute(old).await?;
        let new = conn
            .stmt("INSERT INTO probes (ledger, filler) VALUES (")
            .bind(ledger)
            .push(", ")
            .bind(Arg::Bytes(Some(filler)))
            .push(")");
        conn.execute(new).await?;
        conn.commit().await
    };
    let done = timeout(WRITE, work)
        .await
        .unwrap_or_else(|_| Err(StoreError::slow("a probe")));
    done.inspect_err(|_| conn.discard())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_from_the_first_until_a_commit_goes_through() {
        let health = Health::default();
        let fails = |error| health.note(&Err::<(), _>(error));
        assert_eq!(health.failing(), None);
        fails(StoreError::slow("a commit"));
        let first = health.failing().expect("it fails");
        fails(StoreError::Ambiguous);
        fails(StoreError::corrupt("t", "r", "c"));
        let later = health.failing().expect("it fails");
        assert_eq!((later.since, later.count), (first.since, 2));
        health.note(&Ok(()));
        assert_eq!(health.failing(), None);
    }
}
