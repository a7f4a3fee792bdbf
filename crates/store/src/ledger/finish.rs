//! What follows a commit: records are opened, waiters woken, callers answered. It runs beside the next transaction, in order.

use super::Reply;
use super::plan::{Applied, Done};
use crate::error::StoreError;
use crate::interventions;
use crate::notice::{Notice, Notifier};
use crate::row::Row;
use crate::seal::Sealer;
use crate::sql::Db;
use fuse_domain::intervention::Record;
use fuse_domain::transition::Committed;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Transactions that may wait to be finished; beyond it the ledger waits, so that memory stays bounded.
const WAITING: usize = 16;

pub(super) type Outcomes = Result<Vec<Result<Applied, StoreError>>, StoreError>;

type Finished = (Vec<(bool, Reply)>, Outcomes);

pub(super) struct Finisher {
    queue: mpsc::Sender<Finished>,
    task: JoinHandle<()>,
}

pub(super) fn start(db: Db, sealer: Sealer, notifier: Notifier) -> Finisher {
    let (queue, mut finished) = mpsc::channel::<Finished>(WAITING);
    let task = tokio::spawn(async move {
        let desk = Desk {
            db,
            sealer,
            notifier,
        };
        while let Some((replies, outcomes)) = finished.recv().await {
            desk.finish(replies, outcomes).await;
        }
    });
    Finisher { queue, task }
}

impl Finisher {
    pub async fn take(&self, replies: Vec<(bool, Reply)>, outcomes: Outcomes) {
        // The task ends only after this sender is gone.
        let _ = self.queue.send((replies, outcomes)).await;
    }

    pub async fn close(self) {
        drop(self.queue);
        let _ = self.task.await;
    }
}

struct Desk {
    db: Db,
    sealer: Sealer,
    notifier: Notifier,
}

impl Desk {
    async fn finish(&self, replies: Vec<(bool, Reply)>, outcomes: Outcomes) {
        match outcomes {
            Ok(outcomes) => {
                for ((whole, reply), outcome) in replies.into_iter().zip(outcomes) {
                    let answer = match outcome {
                        Ok(Applied::Done(done)) => self.done(done, whole).await,
                        Ok(Applied::Conflict) => Ok(Committed::Conflict),
                        Ok(Applied::EnvironmentGone) => Ok(Committed::EnvironmentGone),
                        Ok(Applied::TooManyPending) => Ok(Committed::TooManyPending),
                        Err(error) => Err(error),
                    };
                    // The caller may be gone; what it asked for is on record all the same.
                    let _ = reply.send(answer);
                }
            }
            Err(error) => {
                if matches!(error, StoreError::Ambiguous) {
                    self.notifier.send(Notice::Resync);
                }
                for (_, reply) in replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }

    async fn done(&self, done: Done, whole: bool) -> Result<Committed, StoreError> {
        let mut records = Vec::new();
        let mut failed = None;
        for record in done.raised {
            self.notifier.send(Notice::Changed(Arc::clone(&record)));
            records.push(record);
        }
        for row in done.changed {
            match self.show(row, whole).await {
                Ok(record) => records.extend(record),
                Err(error) => failed = Some(error),
            }
        }
        for row in done.cancelled {
            // A destroy does not fail over content that nobody asked it for.
            if let Ok(record) = self.show(row, false).await {
                records.extend(record);
            }
        }
        if let Some((uid, id, state)) = done.environment {
            self.notifier.send(Notice::Environment { uid, id, state });
        }
        failed.map_or(Ok(Committed::Done(records)), Err)
    }

    /// Opens a row and wakes who waits for it. Large content is fetched only where the caller wants it.
    async fn show(&self, mut row: Row, whole: bool) -> Result<Option<Arc<Record>>, StoreError> {
        if row.payload.is_none() && whole {
            row.payload = interventions::payload(&self.db, &row.id)
                .await
                .unwrap_or(None);
        }
        let loaded = row.payload.is_some();
        let opened = loaded.then(|| Arc::new(row.open(&self.sealer)));
        self.notifier.send(match &opened {
            Some(record) => Notice::Changed(Arc::clone(record)),
            None => Notice::Remote(row.id),
        });
        match opened {
            // It is on record, but cannot be shown just now.
            None if whole => Err(StoreError::Ambiguous),
            opened => Ok(opened),
        }
    }
}
