//! The audit log's entries.

use crate::ids::{EnvId, InterventionId, RecordingId};
use crate::intervention::Actor;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AuditEvent {
    /// An intervention was raised.
    Raised,
    /// It was approved or rejected.
    Decided,
    /// Its deadline passed.
    Expired,
    /// Its environment was destroyed while it was pending.
    Cancelled,
    /// An approval covers identical repeats.
    GrantCreated,
    /// A grant let an action through.
    GrantUsed,
    /// A scoped key was minted.
    InviteMinted,
    /// A scoped key authenticated for the first time.
    InviteUsed,
    /// A secret request was answered.
    SecretAnswered,
    /// A person took control of the environment.
    TakeoverStarted,
    /// The takeover was released.
    TakeoverEnded,
    /// A recorded takeover session closed.
    TakeoverSession,
}

impl AuditEvent {
    /// The event as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Decided => "decided",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::GrantCreated => "grant_created",
            Self::GrantUsed => "grant_used",
            Self::InviteMinted => "invite_minted",
            Self::InviteUsed => "invite_used",
            Self::SecretAnswered => "secret_answered",
            Self::TakeoverStarted => "takeover_started",
            Self::TakeoverEnded => "takeover_ended",
            Self::TakeoverSession => "takeover_session",
        }
    }
}

/// One entry of the audit log, chained to the one before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEntry {
    /// 1 for the first, without holes.
    pub seq: i64,
    /// What happened.
    pub event: AuditEvent,
    /// When.
    pub at: Timestamp,
    /// The environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_id: Option<EnvId>,
    /// The intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervention_id: Option<InterventionId>,
    /// The intervention's kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub on: String,
    /// The gate that raised it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gate: String,
    /// Who did it.
    pub actor: Actor,
    /// The peer's address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remote_addr: String,
    /// The recording of a takeover session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_id: Option<RecordingId>,
    /// The hash of the entry before it; 64 zeros for the first.
    pub prev_hash: String,
    /// SHA-256, in lower-case hex, of the canonical JSON of the entry without this member.
    pub hash: String,
}

/// A page of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditPage {
    /// Oldest first.
    pub entries: Vec<AuditEntry>,
    /// Hand it back as `cursor` for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
