//! The error body and the closed set of codes and reasons in it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What kind of failure it was. Each code has exactly one HTTP status, but for `unauthorized`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// 400: the request is malformed or breaks a rule of its content.
    InvalidArgument,
    /// 401: no valid credential; 403 where only the master token may.
    Unauthorized,
    /// 403: the credential is valid and may not do this.
    Forbidden,
    /// 404: there is no such thing within the credential's reach.
    NotFound,
    /// 404: there is no such path.
    RouteNotFound,
    /// 405: the path is known and does not take this method; the header `Allow` names those that it takes.
    MethodNotAllowed,
    /// 409: the thing is not in a state that allows this.
    Conflict,
    /// 413: the body or a part of it is too large.
    PayloadTooLarge,
    /// 423: a person holds the environment.
    Locked,
    /// 500: a fault of the orchestrator.
    Internal,
    /// 501: known and not served.
    Unimplemented,
    /// 503: a part the orchestrator needs does not answer; try again.
    Unavailable,
}

impl ErrorCode {
    /// The code as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::RouteNotFound => "route_not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::Conflict => "conflict",
            Self::PayloadTooLarge => "payload_too_large",
            Self::Locked => "locked",
            Self::Internal => "internal",
            Self::Unimplemented => "unimplemented",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The values of `details.reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A gate, the allowlist or a decider refused the action.
    HitlDenied,
    /// A scoped key left the hitl routes.
    EnvScope,
    /// The key lacks the scope that the call needs; `details.scope` names it.
    MissingScope,
    /// A mint that would reach further than the minting key.
    MintEscalation,
    /// `Fuse-Actor` differs from the key's pinned actor.
    ActorMismatch,
    /// The key may not name an actor.
    ActorNotAllowed,
    /// The environment's policy demands that a person is named.
    ActorRequired,
    /// Who raised an intervention may not decide it.
    SelfApproval,
}

impl Reason {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 8] = [
        Self::HitlDenied,
        Self::EnvScope,
        Self::MissingScope,
        Self::MintEscalation,
        Self::ActorMismatch,
        Self::ActorNotAllowed,
        Self::ActorRequired,
        Self::SelfApproval,
    ];

    /// The reason as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HitlDenied => "hitl_denied",
            Self::EnvScope => "env_scope",
            Self::MissingScope => "missing_scope",
            Self::MintEscalation => "mint_escalation",
            Self::ActorMismatch => "actor_mismatch",
            Self::ActorNotAllowed => "actor_not_allowed",
            Self::ActorRequired => "actor_required",
            Self::SelfApproval => "self_approval",
        }
    }
}

/// The body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// The failure.
    pub error: ErrorInfo,
}

/// One failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorInfo {
    /// What kind of failure it was.
    pub code: ErrorCode,
    /// One sentence for a person.
    pub message: String,
    /// Facts for a program, flat.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}
