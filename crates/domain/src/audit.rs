//! The audit log: what an entry says, and the chain that shows tampering.
//!
//! An entry's hash covers every other member of it, the previous entry's hash among them (spec: "Audit log").

use fuse_api::audit::{AuditEntry, AuditEvent};
use fuse_api::ids::{EnvId, InterventionId, RecordingId};
use fuse_api::intervention::Actor;
use fuse_api::time::Timestamp;
use sha2::{Digest, Sha256};

/// The `prev_hash` of the first entry.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// An entry before it has its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditDraft {
    /// What happened.
    pub event: AuditEvent,
    /// When.
    pub at: Timestamp,
    /// The environment, where there is one.
    pub env_id: Option<EnvId>,
    /// The intervention, where there is one.
    pub intervention_id: Option<InterventionId>,
    /// The intervention's kind, or empty.
    pub on: String,
    /// The gate that raised it, or empty.
    pub gate: String,
    /// Who did it.
    pub actor: Actor,
    /// The peer's address, or empty where nobody called.
    pub remote_addr: String,
    /// The recording, for a closed takeover session.
    pub recording_id: Option<RecordingId>,
}

/// The end of the chain: what the next entry follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The last entry's number; 0 for an empty log.
    pub seq: i64,
    /// The last entry's hash; [`GENESIS`] for an empty log.
    pub hash: String,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            seq: 0,
            hash: GENESIS.to_owned(),
        }
    }
}

/// Gives a draft its place after `head`, which moves on to it.
#[must_use]
pub fn chain(head: &mut Head, draft: AuditDraft) -> AuditEntry {
    let AuditDraft {
        event,
        at,
        env_id,
        intervention_id,
        on,
        gate,
        actor,
        remote_addr,
        recording_id,
    } = draft;
    let mut entry = AuditEntry {
        seq: head.seq + 1,
        event,
        at,
        env_id,
        intervention_id,
        on,
        gate,
        actor,
        remote_addr,
        recording_id,
        prev_hash: head.hash.clone(),
        hash: String::new(),
    };
    entry.hash = hash(&entry);
    head.seq = entry.seq;
    head.hash.clone_from(&entry.hash);
    entry
}

/// The hash that an entry has to carry: SHA-256 of its canonical JSON (RFC 8785) without the member `hash`.
#[must_use]
pub fn hash(entry: &AuditEntry) -> String {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.remove("hash");
    }
    canonical_hash(&value)
}

/// SHA-256, in lower-case hex, of the canonical JSON (RFC 8785).
#[must_use]
pub fn canonical_hash(value: &serde_json::Value) -> String {
    let mut text = Vec::with_capacity(512);
    if !write_simple(value, &mut text) {
        // Canonical JSON of a `Value` fails only for numbers that JSON cannot hold, which a `Value` cannot hold either.
        text = serde_json_canonicalizer::to_vec(value).unwrap_or_default();
    }
    hex::encode(Sha256::digest(text))
}

/// The largest whole number below which every one is told apart by a double, and written without an exponent.
const EXACT: i64 = 1 << 53;

/// Canonical JSON of what almost every entry is made of, several times quicker than in general: members with ASCII names, whose
/// order in bytes is their order in UTF-16, and small whole numbers. False for anything else.
fn write_simple(value: &serde_json::Value, to: &mut Vec<u8>) -> bool {
    use serde_json::Value;
    use std::io::Write;
    match value {
        Value::Null => to.extend_from_slice(b"null"),
        Value::Bool(true) => to.extend_from_slice(b"true"),
        Value::Bool(false) => to.extend_from_slice(b"false"),
        Value::Number(number) => {
            let whole = number
                .as_i64()
                .filter(|n| (-EXACT..=EXACT).contains(n) && !number.is_f64());
            return whole.is_some_and(|n| write!(to, "{n}").is_ok());
        }
        // Its escapes are the canonical ones.
        Value::String(text) => return serde_json::to_writer(to, text).is_ok(),
        Value::Array(values) => {
            to.push(b'[');
            for (n, value) in values.iter().enumerate() {
                if n > 0 {
                    to.push(b',');
                }
                if !write_simple(value, to) {
                    return false;
                }
            }
            to.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            to.push(b'{');
            for (n, (name, value)) in members.into_iter().enumerate() {
                if n > 0 {
                    to.push(b',');
                }
                if !name.is_ascii() || serde_json::to_writer(&mut *to, name).is_err() {
                    return false;
                }
                to.push(b':');
                if !write_simple(value, to) {
                    return false;
                }
            }
            to.push(b'}');
        }
    }
    true
}

/// What is wrong with a log. `Display` is the sentence that an operator reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An entry's content is not what was hashed.
    #[error(
        "audit chain broken at seq {0}: row content does not match its hash (the row was edited)"
    )]
    Edited(i64),
    /// An entry is not there.
    #[error("audit chain broken at seq {0}: entry is missing (a row was deleted)")]
    Missing(i64),
    /// An entry stands where another belongs.
    #[error("audit chain broken at seq {0}: entry is out of order (rows were reordered)")]
    Reordered(i64),
    /// The log ends before a head that somebody noted.
    #[error("audit log is shorter than the noted head seq {0} (rows were cut off the end)")]
    Shorter(i64),
}

/// Walks a log from its first entry on and finds the first one that does not hold.
#[derive(Debug, Clone, Default)]
pub struct Verifier {
    head: Head,
    noted: Option<Head>,
}

impl Verifier {
    /// A walk that also proves that the log still holds `noted`.
    #[must_use]
    pub fn with_noted_head(noted: Option<Head>) -> Self {
        Self {
            head: Head::default(),
            noted,
        }
    }

    /// A walk that starts behind `head`, whose entry is trusted, and proves that the log still holds `noted`.
    #[must_use]
    pub const fn after(head: Head, noted: Option<Head>) -> Self {
        Self { head, noted }
    }

    /// Checks the next entry in the order of the log.
    ///
    /// # Errors
    /// The entry was edited, or it does not follow the one before it.
    pub fn next(&mut self, entry: &AuditEntry) -> Result<(), Broken> {
        let expected = self.head.seq + 1;
        if entry.seq > expected {
            return Err(Broken::Missing(expected));
        }
        if entry.seq < expected {
            return Err(Broken::Reordered(entry.seq));
        }
        if hash(entry) != entry.hash {
            // A row that was moved keeps its content: it fits its hash under the number that it had.
            return Err(if fits_elsewhere(entry) {
                Broken::Reordered(entry.seq)
            } else {
                Broken::Edited(entry.seq)
            });
        }
        if entry.prev_hash != self.head.hash {
            return Err(Broken::Reordered(entry.seq));
        }
        if let Some(noted) = &self.noted
            && noted.seq == entry.seq
            && noted.hash != entry.hash
        {
            return Err(Broken::Edited(entry.seq));
        }
        self.head = Head {
            seq: entry.seq,
            hash: entry.hash.clone(),
        };
        Ok(())
    }

    /// Ends the walk and gives the head of the log.
    ///
    /// # Errors
    /// The log ends before the noted head.
    pub fn finish(self) -> Result<Head, Broken> {
        match self.noted {
            Some(noted) if noted.seq > self.head.seq => Err(Broken::Shorter(noted.seq)),
            Some(_) | None => Ok(self.head),
        }
    }
}

/// How far from its place a moved row is looked for.
const MOVED_AT_MOST: i64 = 10_000;

fn fits_elsewhere(entry: &AuditEntry) -> bool {
    let mut moved = entry.clone();
    let first = entry.seq.saturating_sub(MOVED_AT_MOST).max(1);
    (first..=entry.seq.saturating_add(MOVED_AT_MOST)).any(|seq| {
        moved.seq = seq;
        seq != entry.seq && hash(&moved) == entry.hash
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::actor;
    use proptest::prelude::*;

    fn log(length: i64) -> Vec<AuditEntry> {
        let mut head = Head::default();
        (0..length)
            .map(|n| {
                let draft = AuditDraft {
                    event: AuditEvent::Raised,
                    at: Timestamp::from_micros(n),
                    env_id: EnvId::parse("fuse-agent").ok(),
                    intervention_id: None,
                    on: "ask".into(),
                    gate: String::new(),
                    actor: actor::system(),
                    remote_addr: String::new(),
                    recording_id: None,
                };
                chain(&mut head, draft)
            })
            .collect()
    }

    fn verify(log: &[AuditEntry], noted: Option<Head>) -> Result<Head, Broken> {
        let mut verifier = Verifier::with_noted_head(noted);
        for entry in log {
            verifier.next(entry)?;
        }
        verifier.finish()
    }

    fn head_of(entry: &AuditEntry) -> Head {
        Head {
            seq: entry.seq,
            hash: entry.hash.clone(),
        }
    }

    // check: AUDIT-4
    #[test]
    fn a_log_that_nobody_touched_holds() {
        let log = log(5);
        assert_eq!(log[0].prev_hash, GENESIS);
        assert_eq!(log[1].prev_hash, log[0].hash);
        assert_eq!(verify(&log, None), Ok(head_of(&log[4])));
        assert_eq!(verify(&log, Some(head_of(&log[2]))), Ok(head_of(&log[4])));
        assert_eq!(verify(&[], None), Ok(Head::default()));
    }

    // check: AUDIT-6
    #[test]
    fn an_edit_a_deletion_and_a_reordering_are_told_apart() {
        let whole = log(6);
        let mut edited = whole.clone();
        edited[2].gate = "other".into();
        assert_eq!(verify(&edited, None), Err(Broken::Edited(3)));
        let mut deleted = whole.clone();
        deleted.remove(2);
        assert_eq!(verify(&deleted, None), Err(Broken::Missing(3)));
        let mut listed_in_another_order = whole.clone();
        listed_in_another_order.swap(2, 3);
        assert!(verify(&listed_in_another_order, None).is_err());
        let mut swapped = whole.clone();
        swapped.swap(2, 4);
        swapped[2].seq = 3;
        swapped[4].seq = 5;
        assert_eq!(verify(&swapped, None), Err(Broken::Reordered(3)));
        let mut rehashed = whole.clone();
        rehashed[2].gate = "other".into();
        rehashed[2].hash = hash(&rehashed[2]);
        assert_eq!(verify(&rehashed, None), Err(Broken::Reordered(4)));
    }

    // check: AUDIT-11
    #[test]
    fn a_noted_head_proves_that_nothing_was_cut_off_or_written_anew() {
        let whole = log(6);
        let noted = head_of(&whole[5]);
        assert_eq!(
            verify(&whole[..4], Some(noted.clone())),
            Err(Broken::Shorter(6))
        );
        let mut anew = log(6);
        anew[5].gate = "other".into();
        anew[5].hash = hash(&anew[5]);
        assert_eq!(verify(&anew, Some(noted)), Err(Broken::Edited(6)));
    }

    #[test]
    fn the_sentences_name_the_place_and_what_happened() {
        assert_eq!(
            Broken::Edited(42).to_string(),
            "audit chain broken at seq 42: row content does not match its hash (the row was edited)"
        );
        assert_eq!(
            Broken::Missing(42).to_string(),
            "audit chain broken at seq 42: entry is missing (a row was deleted)"
        );
        assert_eq!(
            Broken::Reordered(42).to_string(),
            "audit chain broken at seq 42: entry is out of order (rows were reordered)"
        );
        assert_eq!(
            Broken::Shorter(42).to_string(),
            "audit log is shorter than the noted head seq 42 (rows were cut off the end)"
        );
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            (-1_000_i64..1_000).prop_map(Into::into),
            (EXACT - 2..EXACT + 2).prop_map(Into::into),
            any::<u64>().prop_map(Into::into),
            any::<f64>().prop_map(|n| serde_json::json!(n)),
            any::<String>().prop_map(Into::into),
            "[\\x00-\\x7f]{0,12}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let name = prop_oneof!["[\\x00-\\x7f]{0,4}", any::<String>()];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(name, inner, 0..6).prop_map(|members| members
                    .into_iter()
                    .collect::<serde_json::Map<_, _>>()
                    .into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_quick_way_writes_what_the_general_way_writes(value in json()) {
            let mut quick = Vec::new();
            if write_simple(&value, &mut quick) {
                let general = serde_json_canonicalizer::to_vec(&value).expect("canonical JSON");
                prop_assert_eq!(String::from_utf8_lossy(&quick), String::from_utf8_lossy(&general));
            }
        }
    }

    #[test]
    fn every_entry_takes_the_quick_way() {
        for entry in log(3) {
            let value = serde_json::to_value(entry).expect("JSON");
            assert!(write_simple(&value, &mut Vec::new()));
        }
    }

    // check: AUDIT-5
    #[test]
    fn empty_members_are_no_part_of_an_entry() {
        let entry = &log(1)[0];
        let value = serde_json::to_value(entry).expect("JSON");
        for absent in ["gate", "intervention_id", "remote_addr", "recording_id"] {
            assert!(value.get(absent).is_none(), "{absent}");
        }
        assert!(value["actor"].get("name").is_none());
        assert!(value["actor"].get("key_id").is_none());
    }
}
