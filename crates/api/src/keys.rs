//! API keys.

use crate::ids::{EnvId, KeyId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What a scoped key allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Scope {
    /// List and read interventions and the audit log.
    #[serde(rename = "hitl:read")]
    Read,
    /// Approve and reject. Implies read.
    #[serde(rename = "hitl:decide")]
    Decide,
    /// Answer secret requests. Implies read.
    #[serde(rename = "hitl:secret")]
    Secret,
    /// Take over and release the environment.
    #[serde(rename = "hitl:takeover")]
    Takeover,
    /// Name the actor the key acts for.
    #[serde(rename = "hitl:act-as")]
    ActAs,
}

impl Scope {
    /// The scope as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "hitl:read",
            Self::Decide => "hitl:decide",
            Self::Secret => "hitl:secret",
            Self::Takeover => "hitl:takeover",
            Self::ActAs => "hitl:act-as",
        }
    }
}

/// The person that a key is pinned to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ActorLabel {
    /// An opaque id, at most 128 bytes.
    pub id: String,
    /// What people call the actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ActorLabel {
    /// An actor by its id, without a name.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: None,
        }
    }

    /// The same actor with what people call it.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }
}

/// Makes a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    /// What people call the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What a scoped key allows; none makes a full-access key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// The environment a scoped key is limited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_id: Option<String>,
    /// How long a scoped key lives, 1 to 86 400 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<i64>,
    /// The person a scoped key is pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorLabel>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// What people call it.
    pub label: String,
    /// What it allows; empty for a full-access key.
    pub scopes: Vec<Scope>,
    /// The environment it is limited to.
    pub env_id: Option<EnvId>,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
    /// The person it is pinned to.
    pub actor: Option<ActorLabel>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// A key's secret. It is shown once, at creation, and no log shows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct KeySecret(pub String);

impl KeySecret {
    /// What every key's secret starts with.
    pub const PREFIX: &'static str = "fuse_sk_";
}

impl std::fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

/// A fresh key with its secret, this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedKey {
    /// The secret.
    pub key: KeySecret,
    /// The rest.
    #[serde(flatten)]
    pub info: Key,
}

/// All keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyList {
    /// Newest first.
    pub api_keys: Vec<Key>,
    /// Hand it back as `cursor` for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
