//! What can go wrong.

use std::collections::BTreeMap;

use fuse_api::error::{ErrorBody, ErrorCode, Reason};
use fuse_api::ids::{IdError, InterventionId};
use fuse_api::intervention::Intervention;
use reqwest::StatusCode;
use thiserror::Error;

/// Why a call did not do what it was asked to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A held action was not approved: a person refused it, its deadline passed or its environment went away.
    #[error("{intervention_id} was rejected: {reason}")]
    InterventionRejected {
        /// What was decided on.
        intervention_id: InterventionId,
        /// Why, in the words of whoever decided.
        reason: String,
        /// The whole of it.
        intervention: Box<Intervention>,
    },
    /// A person has to decide first, and the call was told not to wait.
    #[error("waiting on intervention {}", intervention.id)]
    PendingIntervention {
        /// What to wait on, with [`wait`](crate::Interventions::wait).
        intervention: Box<Intervention>,
    },
    /// An approved action failed, or may or may not have run.
    #[error("the approved action of {} failed: {message}", intervention.id)]
    ActionFailed {
        /// What happened.
        message: String,
        /// The whole of it.
        intervention: Box<Intervention>,
    },
    /// A person holds the environment, and the call was told not to wait.
    #[error("{message}")]
    Locked {
        /// What holds it.
        intervention_id: InterventionId,
        /// The kind of what holds it: `takeover` or `stall`.
        kind: String,
        /// The server's words.
        message: String,
    },
    /// The server refused the call.
    #[error("{message}")]
    Api {
        /// The HTTP status.
        status: u16,
        /// What kind of failure it was; none where the answer is not the server's own, as from a proxy.
        code: Option<ErrorCode>,
        /// One sentence for a person.
        message: String,
        /// Facts for a program.
        details: BTreeMap<String, String>,
        /// Names the call in the server's log.
        request_id: Option<String>,
    },
    /// No answer came. Unless the call only reads, it is not known whether it was carried out.
    #[error("no answer from {url}")]
    Transport {
        /// What was called.
        url: String,
        /// What failed.
        #[source]
        source: reqwest::Error,
    },
    /// The server answered something that this version does not understand.
    #[error("the server's answer makes no sense: {0}")]
    Protocol(String),
    /// The id cannot be one, so nothing was sent.
    #[error("{text:?} is {source}")]
    Id {
        /// What was given.
        text: String,
        /// What is wrong with it.
        source: IdError,
    },
    /// The client is set up wrongly; nothing was sent.
    #[error("{0}")]
    Config(String),
}

impl Error {
    /// The server's `details.reason`, such as `hitl_denied` or `self_approval`.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Api { details, .. } => details.get("reason").map(String::as_str),
            _ => None,
        }
    }

    /// Whether the server gave this reason.
    pub fn is(&self, reason: Reason) -> bool {
        self.reason() == Some(reason.as_str())
    }

    /// The gate that refused the action, if one did.
    pub fn gate(&self) -> Option<&str> {
        match self {
            Self::Api { details, .. } => details.get("gate").map(String::as_str),
            _ => None,
        }
    }

    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Api { status, .. } => Some(*status),
            Self::Locked { .. } => Some(423),
            _ => None,
        }
    }

    /// Whether the same read may succeed soon: nobody answered, or somebody who could not.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Transport { source, .. } => !source.is_builder(),
            Self::Api { status, .. } => is_passing(*status),
            _ => false,
        }
    }

    /// Whether the request never left this machine.
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(self, Self::Transport { source, .. } if source.is_connect())
    }

    pub(crate) fn rejected(intervention: Intervention) -> Self {
        Self::InterventionRejected {
            intervention_id: intervention.id.clone(),
            reason: intervention.reason().to_owned(),
            intervention: Box::new(intervention),
        }
    }

    /// The failure that an answer's status and body tell.
    pub(crate) fn of(answered: StatusCode, request_id: Option<String>, body: &[u8]) -> Self {
        let status = answered.as_u16();
        let Ok(ErrorBody { error }) = serde_json::from_slice(body) else {
            return Self::Api {
                status,
                code: None,
                message: format!("HTTP {answered} without an explanation"),
                details: BTreeMap::new(),
                request_id,
            };
        };
        if error.code == ErrorCode::Locked
            && let Some(id) = error.details.get("intervention_id")
            && let Ok(intervention_id) = InterventionId::parse(id)
        {
            return Self::Locked {
                intervention_id,
                kind: error.details.get("kind").cloned().unwrap_or_default(),
                message: error.message,
            };
        }
        Self::Api {
            status,
            code: Some(error.code),
            message: error.message,
            details: error.details,
            request_id,
        }
    }
}

/// Bad gateway, unavailable, gateway timeout: what stands before a server that is restarting.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 502..=504)
}
