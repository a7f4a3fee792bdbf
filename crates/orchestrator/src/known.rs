//! What this process may answer from memory, and what proves it.
//!
//! - A settled record never changes again.
//! - What a decision is computed from is proven by its version when it commits. A refusal has no commit to prove it, so it is
//!   computed again from the database.
//! - Anything else counts for [`FRESH`] at most. A notice that it changed ends it sooner.
//! - Nothing but a key counts while this process does not hear of changes elsewhere; a key's [`FRESH`] needs no notice.

use crate::memory::{Memory, Ticket};
use bytes::Bytes;
use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::State;
use fuse_domain::intervention::Record;
use fuse_store::{EnvironmentRow, KeyRow};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long what was read counts without anything that proves it.
pub const FRESH: Duration = Duration::from_secs(1);
/// What records may take up, printed; each takes about as much again unprinted.
const RECORDS: usize = 32 * 1024 * 1024;
/// A record that prints longer is read each time.
const LARGE: usize = 16 * 1024;
/// What a record takes beside its text.
const RECORD: usize = 1024;
const ENVIRONMENTS: usize = 4_096;
const KEYS: usize = 4_096;

/// A record with its printed form, which everybody who is shown it shares.
#[derive(Debug)]
pub struct Shown {
    /// The record.
    pub record: Arc<Record>,
    json: OnceLock<Bytes>,
}

impl Shown {
    /// Not yet printed.
    pub fn new(record: Arc<Record>) -> Arc<Self> {
        Arc::new(Self {
            record,
            json: OnceLock::new(),
        })
    }

    /// What the wire shows, as JSON; printed once.
    pub fn json(&self) -> Bytes {
        let printed = self.json.get_or_init(|| {
            // The wire types all print.
            Bytes::from(serde_json::to_vec(&self.record.view).unwrap_or_default())
        });
        printed.clone()
    }
}

/// The SHA-256 of a key's secret.
pub type Digest = [u8; 32];

/// The memory of one process.
pub struct Known {
    records: Memory<InterventionId, Arc<Shown>>,
    pub environments: Memory<EnvId, Arc<EnvironmentRow>>,
    pub keys: Memory<Digest, Arc<KeyRow>>,
    /// The spell of hearing that what is kept belongs to.
    spell: AtomicU64,
}

impl Known {
    /// Nothing is known. `hearing` names the spell in which changes elsewhere are heard of; zero is none.
    pub fn new(hearing: u64) -> Self {
        Self {
            records: Memory::new(RECORDS),
            environments: Memory::new(ENVIRONMENTS),
            keys: Memory::new(KEYS),
            spell: AtomicU64::new(hearing),
        }
    }

    /// Whether what is kept belongs to this spell.
    pub fn holds(&self, hearing: u64) -> bool {
        hearing != 0 && self.spell.load(Ordering::Acquire) == hearing
    }

    /// Changes may have been missed before this spell.
    pub fn begin(&self, hearing: u64) {
        // Nothing counts until all of the old is gone.
        self.spell.store(0, Ordering::Release);
        self.records.forget_all();
        self.environments.forget_all();
        self.keys.forget_all();
        self.spell.store(hearing, Ordering::Release);
    }

    /// A record, and how long ago it was seen to be so.
    pub fn record(&self, id: &InterventionId, now: Instant) -> Option<(Arc<Shown>, Duration)> {
        self.records.get(id, now)
    }

    /// To be taken before a record is read.
    pub fn before_reading(&self, id: &InterventionId, now: Instant) -> Ticket {
        self.records.ticket(id, now)
    }

    /// A record was read.
    pub fn read(&self, record: Record, ticket: Ticket) -> Arc<Shown> {
        let version = record.version;
        let shown = Shown::new(Arc::new(record));
        let weight = weight(&shown);
        let id = shown.record.view.id.clone();
        let older = |kept: &Arc<Shown>| kept.record.version < version;
        if weight <= LARGE {
            self.records
                .learn(id, Arc::clone(&shown), weight, ticket, older);
        } else {
            self.records.forget(&id);
        }
        shown
    }

    /// A record was put on record here, as the commit tells it and as the notice does. Both give the same one.
    pub fn committed(&self, record: &Arc<Record>) -> Arc<Shown> {
        let id = &record.view.id;
        let now = Instant::now();
        if let Some((shown, _)) = self.records.get(id, now)
            && shown.record.version == record.version
        {
            return shown;
        }
        let shown = Shown::new(Arc::clone(record));
        let kept = match record.view.state {
            State::Pending | State::Approved | State::Rejected => true,
            // They end by the thousand, and few of them are asked for again.
            State::Expired | State::Cancelled => false,
        };
        if kept && weight(&shown) <= LARGE {
            let older = |kept: &Arc<Shown>| kept.record.version < record.version;
            let weight = weight(&shown);
            self.records
                .put(id.clone(), Arc::clone(&shown), weight, now, older);
        } else {
            self.records.forget(id);
        }
        shown
    }

    /// A record changed, and how is not known.
    pub fn changed(&self, id: &InterventionId) {
        self.records.forget(id);
    }
}

fn weight(shown: &Shown) -> usize {
    shown.json().len() + RECORD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    fn version(mut record: Record, version: i64) -> Arc<Record> {
        record.version = version;
        Arc::new(record)
    }

    #[test]
    fn the_commit_and_its_notice_share_what_is_printed() {
        let known = Known::new(1);
        let record = Arc::new(record(State::Pending));
        let (by_commit, by_notice) = (known.committed(&record), known.committed(&record));
        assert!(Arc::ptr_eq(&by_commit, &by_notice));
        let kept = known.record(&record.view.id, Instant::now());
        assert!(Arc::ptr_eq(&kept.expect("kept").0, &by_commit));
    }

    #[test]
    fn a_notice_that_comes_late_does_not_bring_back_what_was() {
        let known = Known::new(1);
        let pending = record(State::Pending);
        let (first, second) = (version(pending.clone(), 1), version(pending, 2));
        known.committed(&second);
        known.committed(&first);
        let (kept, _) = known.record(&first.view.id, Instant::now()).expect("kept");
        assert_eq!(kept.record.version, 2);
    }

    #[test]
    fn what_may_have_been_missed_ends_everything_that_was_known() {
        let known = Known::new(1);
        let record = Arc::new(record(State::Pending));
        known.committed(&record);
        assert!(known.holds(1));
        assert!(!known.holds(0), "nothing is heard");
        assert!(!known.holds(3), "a later spell has to begin first");
        known.begin(3);
        assert!(known.holds(3) && !known.holds(1));
        assert!(known.record(&record.view.id, Instant::now()).is_none());
    }

    #[test]
    fn what_is_large_or_ended_without_an_answer_is_not_kept() {
        let known = Known::new(1);
        let mut large = record(State::Pending);
        large.view.gate = Some("g".repeat(LARGE));
        for record in [large, record(State::Expired), record(State::Cancelled)] {
            let record = Arc::new(record);
            known.committed(&record);
            assert!(known.record(&record.view.id, Instant::now()).is_none());
        }
    }

    #[test]
    fn a_change_elsewhere_ends_what_was_known_of_it_alone() {
        let known = Known::new(1);
        let [one, other] = [(); 2].map(|()| Arc::new(record(State::Pending)));
        known.committed(&one);
        known.committed(&other);
        known.changed(&one.view.id);
        assert!(known.record(&one.view.id, Instant::now()).is_none());
        assert!(known.record(&other.view.id, Instant::now()).is_some());
    }
}
