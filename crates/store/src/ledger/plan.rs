//! What a batch of transitions comes to: decided in memory over the rows as the transaction found them. No I/O.
//!
//! Each transition is checked whole before it changes anything here, so one that fails leaves nothing behind, and the next
//! one of the batch sees what the ones before it did.

use crate::error::StoreError;
use crate::row::{Row, Seal, SealedDecision};
use crate::seal::Sealer;
use fuse_api::audit::{AuditEntry, AuditEvent};
use fuse_api::environment::EnvState;
use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::{Decision, State};
use fuse_api::time::Timestamp;
use fuse_domain::audit::{AuditDraft, Head, chain};
use fuse_domain::intervention::{EnvUid, Record};
use fuse_domain::transition::{CloseEnv, Grant, MAX_PENDING, Transition};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A transition with its content sealed.
pub(super) struct Sealed {
    pub transition: Transition,
    /// The raised interventions, in order.
    pub raised: Vec<(Arc<Record>, Row)>,
    pub decision: Option<SealedDecision>,
    pub result: Option<Vec<u8>>,
}

impl Sealed {
    pub fn new(sealer: &Sealer, mut transition: Transition) -> Result<Self, StoreError> {
        let raised = std::mem::take(&mut transition.raise)
            .into_iter()
            .map(|record| Ok((Row::seal(sealer, &record)?, record)))
            .map(|sealed| sealed.map(|(row, record)| (Arc::new(record), row)))
            .collect::<Result<_, StoreError>>()?;
        let decision = transition
            .resolve
            .as_ref()
            .map(|resolve| {
                let id = &resolve.id;
                Seal { sealer, id }.decision(&resolve.decision)
            })
            .transpose()?;
        let result = transition
            .progress
            .as_ref()
            .and_then(|progress| {
                progress
                    .result
                    .as_ref()
                    .map(|result| (&progress.id, result))
            })
            .map(|(id, result)| Seal { sealer, id }.result(result))
            .transpose()?;
        Ok(Self {
            transition,
            raised,
            decision,
            result,
        })
    }

    /// The bytes that it adds to the database's work.
    pub fn weight(&self) -> usize {
        let raised = self
            .raised
            .iter()
            .filter_map(|(_, row)| row.payload.as_ref());
        raised.chain(&self.result).map(Vec::len).sum()
    }

    /// The interventions that it changes.
    pub fn changes(&self) -> impl Iterator<Item = &InterventionId> {
        let t = &self.transition;
        let resolved = t.resolve.iter().map(|resolve| &resolve.id);
        resolved.chain(t.progress.iter().map(|progress| &progress.id))
    }
}

/// What a transaction found.
#[derive(Default)]
pub(super) struct Facts {
    pub head: Head,
    pub rows: Vec<Row>,
    pub environments: HashMap<EnvUid, EnvFacts>,
}

/// What a transaction found of an environment.
pub(super) struct EnvFacts {
    pub id: EnvId,
    pub state: EnvState,
    pub pending: i64,
}

/// What a transition came to.
pub(super) enum Applied {
    Done(Done),
    Conflict,
    EnvironmentGone,
    TooManyPending,
}

/// What is shown of a transition once it is on record.
#[derive(Default)]
pub(super) struct Done {
    pub raised: Vec<Arc<Record>>,
    /// As the transition left them; a later one of the batch may have gone on.
    pub changed: Vec<Row>,
    pub cancelled: Vec<Row>,
    pub environment: Option<(EnvUid, EnvId, EnvState)>,
}

struct Entry {
    row: Row,
    /// The version that the database holds; none for a new row.
    stored: Option<i64>,
}

/// A batch in the making.
pub(super) struct Plan<'a> {
    sealer: &'a Sealer,
    head: Head,
    entries: BTreeMap<InterventionId, Entry>,
    environments: HashMap<EnvUid, EnvFacts>,
    grants: Vec<Grant>,
    closed: Vec<(EnvUid, EnvState, Timestamp)>,
    audit: Vec<AuditEntry>,
}

/// What the transaction has to write.
pub(super) struct Writes {
    pub head: Head,
    pub inserts: Vec<Row>,
    /// Rows with the version that the database has to hold still.
    pub updates: Vec<(i64, Row)>,
    pub grants: Vec<Grant>,
    pub closed: Vec<(EnvUid, EnvState, Timestamp)>,
    pub audit: Vec<AuditEntry>,
}

impl<'a> Plan<'a> {
    pub fn new(sealer: &'a Sealer, facts: Facts) -> Self {
        let entries = facts.rows.into_iter().map(|row| {
            let stored = Some(row.version);
            (row.id.clone(), Entry { row, stored })
        });
        Self {
            sealer,
            head: facts.head,
            entries: entries.collect(),
            environments: facts.environments,
            grants: Vec::new(),
            closed: Vec::new(),
            audit: Vec::new(),
        }
    }

    /// Takes a transition whole, or leaves everything as it was.
    pub fn apply(&mut self, sealed: &Sealed) -> Result<Applied, StoreError> {
        if let Some(refused) = self.refuse(sealed) {
            return Ok(refused);
        }
        let Sealed {
            transition,
            raised,
            decision,
            result,
        } = sealed;
        let mut done = Done::default();
        // The last step that can fail; nothing has changed yet.
        let cancelled = match &transition.close {
            Some(close) => self.cancellations(close, raised)?,
            None => Vec::new(),
        };
        for (record, row) in raised {
            if row.state == State::Pending
                && let Some(env) = self.environments.get_mut(&row.env_uid)
            {
                env.pending += 1;
            }
            done.raised.push(Arc::clone(record));
            let row = row.clone();
            self.entries
                .insert(row.id.clone(), Entry { row, stored: None });
        }
        if let (Some(resolve), Some(decision)) = (&transition.resolve, decision)
            && let Some(entry) = self.entries.get_mut(&resolve.id)
        {
            entry.row.resolve(resolve, decision.clone());
            if let Some(env) = self.environments.get_mut(&entry.row.env_uid) {
                env.pending -= 1;
            }
            done.changed.push(entry.row.clone());
        }
        if let Some(progress) = &transition.progress
            && let Some(entry) = self.entries.get_mut(&progress.id)
        {
            entry.row.run = progress.run.clone();
            entry.row.result = result.clone().or(entry.row.result.take());
            entry.row.version += 1;
            done.changed.push(entry.row.clone());
        }
        self.grants.extend(transition.grants.iter().cloned());
        for draft in &transition.audit {
            self.audit.push(chain(&mut self.head, draft.clone()));
        }
        if let Some(close) = &transition.close {
            self.close(close, cancelled, &mut done);
        }
        Ok(Applied::Done(done))
    }

    /// Why a transition cannot be taken.
    fn refuse(&self, sealed: &Sealed) -> Option<Applied> {
        let mut pending: HashMap<&EnvUid, i64> = HashMap::new();
        for (_, row) in &sealed.raised {
            let env = self
                .environments
                .get(&row.env_uid)
                .filter(|env| is_alive(env.state) && env.id == row.env_id);
            let Some(env) = env else {
                return Some(Applied::EnvironmentGone);
            };
            if self.entries.contains_key(&row.id) {
                return Some(Applied::Conflict);
            }
            if row.state == State::Pending {
                let pending = pending.entry(&row.env_uid).or_insert(env.pending);
                *pending += 1;
                if *pending > MAX_PENDING {
                    return Some(Applied::TooManyPending);
                }
            }
        }
        let t = &sealed.transition;
        let resolves = t.resolve.as_ref().is_none_or(|resolve| {
            resolve.state != State::Pending
                && self.entries.get(&resolve.id).is_some_and(|entry| {
                    entry.row.state == State::Pending
                        && entry.row.version == resolve.expected_version
                })
        });
        let progresses = t.progress.as_ref().is_none_or(|progress| {
            self.entries.get(&progress.id).is_some_and(|entry| {
                entry.row.state != State::Pending && entry.row.version == progress.expected_version
            })
        });
        let closes = t.close.as_ref().is_none_or(|close| {
            self.environments.get(&close.env_uid).is_some_and(|env| {
                close.from.contains(&env.state) && !(close.unless_pending && env.pending > 0)
            })
        });
        (!(resolves && progresses && closes)).then_some(Applied::Conflict)
    }

    /// What is pending in an environment that closes, each with its sealed decision.
    fn cancellations(
        &self,
        close: &CloseEnv,
        raised: &[(Arc<Record>, Row)],
    ) -> Result<Vec<(InterventionId, SealedDecision)>, StoreError> {
        let rows = self.entries.values().map(|entry| &entry.row);
        rows.chain(raised.iter().map(|(_, row)| row))
            .filter(|row| row.state == State::Pending && row.env_uid == close.env_uid)
            .map(|row| Ok((row.id.clone(), self.seal(&row.id, &close.cancel_with)?)))
            .collect()
    }

    fn seal(&self, id: &InterventionId, decision: &Decision) -> Result<SealedDecision, StoreError> {
        let sealer = self.sealer;
        Seal { sealer, id }.decision(decision)
    }

    fn close(
        &mut self,
        close: &CloseEnv,
        cancelled: Vec<(InterventionId, SealedDecision)>,
        done: &mut Done,
    ) {
        for (id, decision) in cancelled {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            // The same transition may have resolved it just now.
            if entry.row.state != State::Pending {
                continue;
            }
            entry.row.state = State::Cancelled;
            entry.row.resolved_at = Some(close.at);
            entry.row.decision = Some(decision);
            entry.row.version += 1;
            let row = entry.row.clone();
            let draft = AuditDraft {
                event: AuditEvent::Cancelled,
                at: close.at,
                env_id: Some(row.env_id.clone()),
                intervention_id: Some(id),
                on: row.kind.as_str().to_owned(),
                gate: row.gate.clone().unwrap_or_default(),
                actor: close.actor.clone(),
                remote_addr: String::new(),
                recording_id: None,
            };
            self.audit.push(chain(&mut self.head, draft));
            done.cancelled.push(row);
        }
        if let Some(env) = self.environments.get_mut(&close.env_uid) {
            env.pending = 0;
            env.state = close.to;
            done.environment = Some((close.env_uid.clone(), env.id.clone(), close.to));
        }
        self.closed
            .push((close.env_uid.clone(), close.to, close.at));
    }

    /// What there is to write.
    pub fn finish(self) -> Writes {
        let mut inserts = Vec::new();
        let mut updates = Vec::new();
        for Entry { row, stored } in self.entries.into_values() {
            match stored {
                None => inserts.push(row),
                Some(version) if version != row.version => updates.push((version, row)),
                Some(_) => {}
            }
        }
        Writes {
            head: self.head,
            inserts,
            updates,
            grants: self.grants,
            closed: self.closed,
            audit: self.audit,
        }
    }
}

impl Writes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.inserts.is_empty()
            && self.updates.is_empty()
            && self.grants.is_empty()
            && self.closed.is_empty()
            && self.audit.is_empty()
    }
}

/// Whether an environment takes new interventions.
const fn is_alive(state: EnvState) -> bool {
    match state {
        EnvState::Provisioning | EnvState::Running | EnvState::Draining => true,
        EnvState::Destroying | EnvState::Destroyed | EnvState::Failed => false,
    }
}
