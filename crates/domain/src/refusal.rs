//! Why a command is refused. The HTTP layer maps each case to one status; nothing else does.

use crate::policy::Violation;
use fuse_api::environment::EnvState;
use fuse_api::error::Reason;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::State;
use fuse_api::keys::Scope;
use std::collections::BTreeMap;

/// A command that is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The content breaks a rule. Every broken rule is listed.
    Invalid(Vec<Violation>),
    /// No valid credential came with the call.
    Unauthenticated,
    /// Only the master token may.
    MasterOnly,
    /// The credential is valid and may not do this.
    Forbidden {
        /// Which rule says so.
        reason: Reason,
        /// One sentence.
        message: String,
        /// More facts, beside the reason.
        details: BTreeMap<String, String>,
    },
    /// There is no such thing in the credential's reach.
    NotFound(What),
    /// The thing's state does not allow it.
    Conflict {
        /// One sentence.
        message: String,
        /// Facts for a program.
        details: BTreeMap<String, String>,
    },
    /// A part of the content is over its size limit.
    TooLarge(String),
    /// Known, and not served by this release.
    Unserved(String),
}

/// What was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An environment.
    Environment,
    /// An intervention.
    Intervention,
    /// An API key.
    Key,
}

impl What {
    /// What people call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Intervention => "intervention",
            Self::Key => "API key",
        }
    }
}

impl Refusal {
    /// One broken rule of the content, at a path.
    #[must_use]
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation {
            path: path.into(),
            message: message.into(),
        }])
    }

    /// The credential may not do this.
    #[must_use]
    pub fn forbidden(reason: Reason, message: impl Into<String>) -> Self {
        Self::Forbidden {
            reason,
            message: message.into(),
            details: BTreeMap::new(),
        }
    }

    /// The key lacks a scope.
    #[must_use]
    pub fn missing_scope(scope: Scope) -> Self {
        Self::Forbidden {
            reason: Reason::MissingScope,
            message: format!(
                "this call needs the scope {} or the master token",
                scope.as_str()
            ),
            details: BTreeMap::from([("scope".to_owned(), scope.as_str().to_owned())]),
        }
    }

    /// A gate refuses the action (spec: "Gates").
    #[must_use]
    pub fn denied(gate: &str, message: impl Into<String>, intervention: &InterventionId) -> Self {
        Self::Forbidden {
            reason: Reason::HitlDenied,
            message: message.into(),
            details: BTreeMap::from([
                ("gate".to_owned(), gate.to_owned()),
                ("intervention_id".to_owned(), intervention.to_string()),
            ]),
        }
    }

    /// The intervention has left `pending`.
    #[must_use]
    pub fn already(id: &InterventionId, state: State) -> Self {
        Self::Conflict {
            message: format!("intervention {id} is already {state}"),
            details: BTreeMap::from([
                ("intervention_id".to_owned(), id.to_string()),
                ("state".to_owned(), state.to_string()),
            ]),
        }
    }

    /// The environment is in a state that does not allow this.
    #[must_use]
    pub fn environment_state(state: EnvState, message: impl Into<String>) -> Self {
        Self::Conflict {
            message: message.into(),
            details: BTreeMap::from([("state".to_owned(), state.as_str().to_owned())]),
        }
    }
}
