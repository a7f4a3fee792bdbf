//! The ledger: the only writer of interventions, grants and the audit log.
//!
//! Whatever waits when a commit starts goes into one transaction, in order; a lone transition waits for nothing. Correctness
//! does not rest on there being one writer: every transaction first takes the lock of the chain's head, which is in the
//! database, and every change names the version that it was computed from.

mod finish;
mod plan;
mod write;

use crate::error::StoreError;
use crate::notice::Notifier;
use crate::seal::Sealer;
use crate::sql::{self, Db};
use fuse_domain::transition::{Committed, Transition};
use plan::{Plan, Sealed};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Transitions that share one transaction at most.
const BATCH: usize = 2_000;
/// Content that one transaction takes at most, beyond its first transition.
const BATCH_BYTES: usize = 16 * 1024 * 1024;
/// How long the outcome of a commit whose answer was lost is asked for.
const CONFIRM: Duration = Duration::from_secs(5);

type Reply = oneshot::Sender<Result<Committed, StoreError>>;

/// A transition that waits for its commit.
struct Job {
    sealed: Sealed,
    /// Whether large content is wanted in the answer.
    whole: bool,
    reply: Reply,
}

/// The entrance to the ledger.
pub(crate) struct Ledger {
    /// None once it is closed.
    open: Mutex<Option<Open>>,
    sealer: Sealer,
}

struct Open {
    queue: mpsc::Sender<Job>,
    writer: JoinHandle<()>,
}

impl Ledger {
    /// Starts the writer. `id` names this ledger in the database.
    pub fn start(db: Db, sealer: Sealer, id: String, notifier: Notifier) -> Self {
        let (queue, jobs) = mpsc::channel(BATCH * 4);
        let writer = Writer {
            db: db.clone(),
            sealer: sealer.clone(),
            id,
            number: 0,
            finisher: finish::start(db, sealer.clone(), notifier),
        };
        let writer = tokio::spawn(writer.run(jobs));
        Self {
            open: Mutex::new(Some(Open { queue, writer })),
            sealer,
        }
    }

    /// Hands a transition to the writer.
    async fn submit(
        &self,
        transition: Transition,
        whole: bool,
    ) -> Result<oneshot::Receiver<Result<Committed, StoreError>>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Job {
            sealed: Sealed::new(&self.sealer, transition)?,
            whole,
            reply,
        };
        let queue = self.lock().as_ref().map(|open| open.queue.clone());
        let queue = queue.ok_or_else(StoreError::stopped)?;
        queue.send(job).await.map_err(|_| StoreError::stopped())?;
        Ok(answer)
    }

    pub async fn commit(&self, transition: Transition) -> Result<Committed, StoreError> {
        answer(self.submit(transition, true).await).await
    }

    pub async fn commit_all(
        &self,
        transitions: Vec<Transition>,
    ) -> Vec<Result<Committed, StoreError>> {
        let mut answers = Vec::with_capacity(transitions.len());
        for transition in transitions {
            answers.push(self.submit(transition, false).await);
        }
        let mut done = Vec::with_capacity(answers.len());
        for submitted in answers {
            done.push(answer(submitted).await);
        }
        done
    }

    /// Whether its writer is there.
    pub fn is_open(&self) -> bool {
        let open = self.lock();
        open.as_ref().is_some_and(|open| !open.writer.is_finished())
    }

    /// Takes nothing new, commits what waits, and ends.
    pub async fn close(&self) {
        let open = self.lock().take();
        if let Some(Open { queue, writer }) = open {
            drop(queue);
            if let Err(error) = writer.await {
                tracing::error!(%error, "the ledger's writer failed");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(
    submitted: Result<oneshot::Receiver<Result<Committed, StoreError>>, StoreError>,
) -> Result<Committed, StoreError> {
    submitted?.await.unwrap_or(Err(StoreError::Ambiguous))
}

struct Writer {
    db: Db,
    sealer: Sealer,
    id: String,
    /// Of the last transaction that was tried.
    number: i64,
    finisher: finish::Finisher,
}

impl Writer {
    async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut waiting = VecDeque::new();
        let mut fresh = Vec::new();
        loop {
            if waiting.is_empty() && jobs.recv_many(&mut fresh, BATCH).await == 0 {
                break;
            }
            while waiting.len() + fresh.len() < BATCH
                && let Ok(job) = jobs.try_recv()
            {
                fresh.push(job);
            }
            waiting.extend(fresh.drain(..));
            let batch = take(&mut waiting);
            self.commit(batch).await;
        }
        self.finisher.close().await;
    }

    /// Commits a batch. Where the database refuses it, its transitions are tried one by one, so that one that no database
    /// takes fails alone.
    async fn commit(&mut self, batch: Vec<Job>) {
        let retry = batch.len() > 1;
        let (sealed, replies): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .map(|job| (job.sealed, (job.whole, job.reply)))
            .unzip();
        let committed = self.transaction(&sealed).await;
        if committed.is_err() {
            self.db.health.note(&committed);
        }
        match committed {
            Err(StoreError::Internal(error)) if retry => {
                tracing::error!(%error, "a batch was refused; trying its transitions one by one");
                for (sealed, reply) in sealed.into_iter().zip(replies) {
                    let done = self.transaction(std::slice::from_ref(&sealed)).await;
                    self.finisher.take(vec![reply], done).await;
                }
            }
            done => self.finisher.take(replies, done).await,
        }
    }

    /// One transaction: what each transition came to, in order.
    async fn transaction(&mut self, batch: &[Sealed]) -> finish::Outcomes {
        self.number += 1;
        let mut conn = self.db.writer().await?;
        let mut committing = None;
        let (sealer, id, number) = (&self.sealer, &self.id, self.number);
        let health = &self.db.health;
        let work = async {
            let head = conn.begin().await?;
            let facts = write::load(&mut conn, head, batch.iter()).await?;
            let mut plan = Plan::new(sealer, facts);
            let outcomes: Vec<_> = batch.iter().map(|sealed| plan.apply(sealed)).collect();
            let writes = plan.finish();
            if writes.is_empty() {
                conn.rollback().await?;
                return Ok(outcomes);
            }
            write::write(&mut conn, sealer, writes, (id, number)).await?;
            let outcomes = committing.insert(outcomes);
            conn.commit().await?;
            health.note(&Ok(()));
            Ok(std::mem::take(outcomes))
        };
        let done = timeout(sql::WRITE, work)
            .await
            .unwrap_or_else(|_| Err(StoreError::slow("a commit")));
        let error = match done {
            Ok(outcomes) => return Ok(outcomes),
            Err(error) => error,
        };
        // Closing the connection is the rollback, if there is anything left to roll back.
        conn.discard();
        drop(conn);
        match (sql::lost(committing.is_some(), error), committing) {
            (StoreError::Ambiguous, Some(outcomes)) => {
                confirm(&self.db, id, number).await.map(|()| outcomes)
            }
            (error, _) => Err(error),
        }
    }
}

/// The next batch: as many as may share a transaction.
fn take(waiting: &mut VecDeque<Job>) -> Vec<Job> {
    let mut bytes = 0_usize;
    let fitting = waiting
        .iter()
        .take(BATCH)
        .take_while(|job| {
            let fits = bytes < BATCH_BYTES;
            bytes += job.sealed.weight();
            fits
        })
        .count();
    waiting.drain(..fitting).collect()
}

/// Finds out whether a transaction took place whose commit got no answer. Taking the head's lock waits until the database
/// is done with it, one way or the other.
async fn confirm(db: &Db, id: &str, number: i64) -> Result<(), StoreError> {
    let ask = async {
        loop {
            match last_batch(db, id).await {
                Ok(last) if last == number => return Ok(()),
                Ok(_) => return Err(StoreError::slow("a commit")),
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    };
    timeout(CONFIRM, ask)
        .await
        .unwrap_or(Err(StoreError::Ambiguous))
}

async fn last_batch(db: &Db, id: &str) -> Result<i64, StoreError> {
    let mut conn = db.writer().await?;
    conn.begin().await?;
    let stmt = conn
        .stmt("SELECT last_batch FROM ledgers WHERE id = ")
        .bind(id);
    let found = conn.rows(stmt, |cells| cells.int("last_batch")).await;
    conn.discard();
    found?.first().copied().ok_or(StoreError::Ambiguous)
}
