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
    // Canonical JSON of a `Value` fails only for numbers that JSON cannot hold, which a `Value` cannot hold either.
    let text = serde_json_canonicalizer::to_vec(value).unwrap_or_default();
    hex::encode(Sha256::digest(text))
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
            return Err(Broken::Edited(entry.seq));
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
