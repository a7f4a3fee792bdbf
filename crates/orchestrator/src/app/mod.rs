//! The verbs: load the facts, let the domain decide, let the ledger commit, then act.
//!
//! Every verb refuses in the settled order: unknown or out of reach, scope, actor, who may decide, state, content.

mod audit;
mod decide;
mod environments;
mod exec;
mod gated;
mod homes;
mod keys;
mod lifecycle;
mod look;
mod raise;
#[cfg(test)]
mod recall_tests;
mod wait;

pub use audit::AuditFilter;
pub use environments::EnvFilter;
pub use exec::ExecAnswer;
pub use homes::Home;
pub(crate) use homes::{backend_id, maker_of};
pub(crate) use lifecycle::ALIVE;
pub use lifecycle::DestroyAnswer;
pub(crate) use look::Rely;
pub use wait::InterventionFilter;

use crate::events::EventHub;
use crate::instance::Instance;
use crate::known::Known;
use crate::metrics::Metrics;
use crate::wake::WakeMap;
use fuse_api::ids::InterventionId;
use fuse_api::time::Timestamp;
use fuse_backend::Backend;
use fuse_domain::intervention::{Record, RunState};
use fuse_domain::refusal::{Refusal, What};
use fuse_domain::transition::{Committed, Transition};
use fuse_store::{Store, StoreError};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// How many times a verb decides anew when another change came first.
const ATTEMPTS: usize = 8;

/// A verb that was not carried out.
#[derive(Debug)]
pub enum AppError {
    /// The domain refuses it.
    Refused(Refusal),
    /// A part that is needed does not answer; nothing was done.
    Unavailable(String),
    /// A fault of ours. The text is for the log and never crosses the wire.
    Internal(String),
}

impl From<Refusal> for AppError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Cursor(e) => Self::Refused(Refusal::invalid("cursor", e.to_string())),
            e @ (StoreError::Unavailable(_) | StoreError::Ambiguous) => {
                Self::Unavailable(e.to_string())
            }
            e @ (StoreError::Corrupt { .. } | StoreError::Internal(_)) => Self::Internal(chain(&e)),
        }
    }
}

/// An error with its causes, for the log.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

/// What a verb gives.
pub type AppResult<T> = Result<T, AppError>;

/// The master token's digest. The token itself is not kept.
pub struct MasterToken([u8; 32]);

impl MasterToken {
    /// Keeps a token's digest.
    #[must_use]
    pub fn new(token: &str) -> Self {
        Self(digest(token))
    }

    /// Compares in constant time.
    #[must_use]
    pub fn is(&self, presented: &str) -> bool {
        self.has_digest(&digest(presented))
    }

    /// The same for whoever has the SHA-256 of what is presented.
    fn has_digest(&self, presented: &[u8; 32]) -> bool {
        use subtle::ConstantTimeEq;
        presented.ct_eq(&self.0).into()
    }
}

/// What is stored of a secret, and compared.
pub(crate) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Everything the verbs and the loops work with.
pub struct App {
    /// Where the record is.
    pub store: Store,
    /// Where environments run.
    pub backend: Arc<dyn Backend>,
    /// Who waits for what.
    pub wake: WakeMap,
    /// Hints for event streams.
    pub events: EventHub,
    /// Figures for operators.
    pub metrics: Metrics,
    /// This process.
    pub instance: Instance,
    /// This data directory.
    pub host_id: String,
    /// The operator's root credential.
    pub master: MasterToken,
    /// Whether contents are sealed at rest.
    pub sealing: bool,
    /// What may be answered without a look at the database.
    pub(crate) known: Known,
    /// What is known of environments that were met.
    pub(crate) homes: homes::Homes,
    ready: mpsc::UnboundedSender<InterventionId>,
    stop: watch::Sender<bool>,
}

/// What [`App::new`] puts together.
pub struct Parts {
    /// Where the record is.
    pub store: Store,
    /// Where environments run.
    pub backend: Arc<dyn Backend>,
    /// Figures for operators.
    pub metrics: Metrics,
    /// This process.
    pub instance: Instance,
    /// This data directory.
    pub host_id: String,
    /// The operator's root credential.
    pub master: MasterToken,
    /// Whether contents are sealed at rest.
    pub sealing: bool,
}

impl App {
    /// Puts the parts together. Nothing runs yet; what becomes ready to run is told to the receiver.
    #[must_use]
    pub fn new(parts: Parts) -> (Self, mpsc::UnboundedReceiver<InterventionId>) {
        let (ready, to_run) = mpsc::unbounded_channel();
        let app = Self {
            known: Known::new(parts.store.hearing()),
            store: parts.store,
            backend: parts.backend,
            wake: WakeMap::new(),
            events: EventHub::default(),
            metrics: parts.metrics,
            instance: parts.instance,
            host_id: parts.host_id,
            master: parts.master,
            sealing: parts.sealing,
            homes: homes::Homes::default(),
            ready,
            stop: watch::Sender::new(false),
        };
        (app, to_run)
    }

    /// Starts what a record that was just committed is ready for.
    pub(crate) fn act_on(&self, record: &Record) {
        match record.run {
            RunState::Ready => {
                // A closed channel means that the process stops; the next one finds the action on record.
                let _ = self.ready.send(record.view.id.clone());
            }
            RunState::Nothing | RunState::Started(_) | RunState::Done => {}
        }
    }

    /// The time now. The one clock that rules are given.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    /// Parked waiters and streams answer at once with what is; loops end.
    pub fn shutdown(&self) {
        self.stop.send_replace(true);
    }

    /// Tells when the orchestrator stops.
    #[must_use]
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Whether the database answers and commits go through.
    ///
    /// # Errors
    /// It does not; the text says which, and the log names the cause.
    pub async fn ready(&self) -> Result<(), String> {
        let ready = self.store.ready().await;
        let failing = self.store.failing();
        self.metrics.set_failing(failing.as_ref().map(|f| f.since));
        match (ready, failing) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(failing)) => Err(format!(
                "commits have failed since {}; the log names the cause",
                failing.since
            )),
            (Err(_), None) => Err("the database does not answer".to_owned()),
        }
    }

    /// Commits, and tells apart what the caller has to do: go on, or decide anew on `Conflict`.
    pub(crate) async fn commit(&self, transition: Transition) -> AppResult<Outcome> {
        let begun = std::time::Instant::now();
        let changes = [
            transition.resolve.as_ref().map(|change| change.id.clone()),
            transition.progress.as_ref().map(|change| change.id.clone()),
        ];
        let committed = self
            .store
            .commit(transition)
            .await
            .inspect_err(|_| self.metrics.database_error())?;
        self.metrics.committed(begun.elapsed());
        match committed {
            Committed::Done(records) => {
                for record in &records {
                    self.known.committed(record);
                }
                Ok(Outcome::Done(records))
            }
            Committed::Conflict => {
                for id in changes.iter().flatten() {
                    self.known.changed(id);
                }
                Ok(Outcome::Conflict)
            }
            Committed::EnvironmentGone => Err(Refusal::NotFound(What::Environment).into()),
            Committed::TooManyPending => Err(Refusal::Conflict {
                message: format!(
                    "{} interventions are pending in this environment; decide some first",
                    fuse_domain::transition::MAX_PENDING
                ),
                details: std::collections::BTreeMap::new(),
            }
            .into()),
        }
    }
}

/// How a commit went, as far as a verb has to act on it.
pub(crate) enum Outcome {
    /// It is on record.
    Done(Vec<Arc<Record>>),
    /// Another change came first.
    Conflict,
}
