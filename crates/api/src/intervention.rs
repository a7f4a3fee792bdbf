//! Interventions, what raises them and what decides them.

use crate::exec::{ExecResult, is_false};
use crate::hitl::GrantReach;
use crate::ids::{EnvId, InterventionId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

macro_rules! names {
    ($ty:ident { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $ty {
            /// Every value, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name as it stands on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Reads a name.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
        impl fmt::Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// What kind of answer is wanted, and from what it arose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A question.
    Ask,
    /// A verdict on a file or a diff.
    Review,
    /// A credential.
    Secret,
    /// Control of the environment.
    Takeover,
    /// A command that a gate concerns.
    Exec,
    /// An environment action that a gate concerns.
    Lifecycle,
    /// A computer action that a gate concerns.
    Computer,
    /// The agent looks stuck.
    Stall,
    /// The environment is about to be reaped.
    Expiry,
}

names!(Kind {
    Ask => "ask", Review => "review", Secret => "secret", Takeover => "takeover", Exec => "exec",
    Lifecycle => "lifecycle", Computer => "computer", Stall => "stall", Expiry => "expiry",
});

/// Where an intervention is in its life. It leaves `pending` exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody has decided and the deadline has not passed.
    Pending,
    /// Answered.
    Approved,
    /// Refused, with a reason.
    Rejected,
    /// The deadline passed first.
    Expired,
    /// The environment was destroyed first.
    Cancelled,
}

names!(State {
    Pending => "pending", Approved => "approved", Rejected => "rejected", Expired => "expired",
    Cancelled => "cancelled",
});

/// What the agent goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Go on.
    Approve,
    /// Do not.
    Reject,
}

names!(Outcome { Approve => "approve", Reject => "reject" });

/// How it is known who acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ActorSource {
    /// The key is pinned to the actor.
    Pinned,
    /// The caller named the actor.
    Asserted,
    /// The credential itself.
    Key,
    /// A gate decided.
    Gate,
    /// A decider decided.
    Decider,
    /// A deadline or a destroy decided.
    System,
}

names!(ActorSource {
    Pinned => "pinned", Asserted => "asserted", Key => "key", Gate => "gate", Decider => "decider",
    System => "system",
});

/// Who acted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// An opaque id.
    pub id: String,
    /// What people call the actor.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How this is known.
    pub source: ActorSource,
    /// The key that acted or that named the actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<crate::ids::KeyId>,
}

/// How a gate treated the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Held for a person.
    Ask,
    /// Let through and recorded.
    Notify,
    /// Refused.
    Deny,
}

names!(Mode { Ask => "ask", Notify => "notify", Deny => "deny" });

/// One request for a human, or one record of an action that a gate concerned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Intervention {
    /// Its id.
    pub id: InterventionId,
    /// The environment it belongs to.
    pub env_id: EnvId,
    /// What kind of answer is wanted.
    pub kind: Kind,
    /// Where it is in its life.
    pub state: State,
    /// When it expires, if nobody decides.
    pub deadline: Timestamp,
    /// When it was raised.
    pub created_at: Timestamp,
    /// When it left `pending`.
    pub resolved_at: Option<Timestamp>,
    /// The gate that raised it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// How that gate treats the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Who raised it.
    pub triggered_by: Actor,
    /// What is up for a decision; absent where it is `unreadable`.
    #[serde(default, skip_serializing_if = "Payload::is_empty")]
    pub payload: Payload,
    /// SHA-256, in hex, of the canonical JSON of `payload`; absent with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub payload_hash: String,
    /// Something stored of it cannot be read: it was altered, or damaged. What can be read is shown; it may be rejected, and is
    /// never approved or run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unreadable: bool,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What the approved action came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ActionResult>,
}

impl Intervention {
    /// Whether the agent may go on: decided, the outcome is approve, and all of it can be read.
    #[must_use]
    pub fn approved(&self) -> bool {
        !self.unreadable
            && self
                .decision
                .as_ref()
                .is_some_and(|decision| decision.outcome == Outcome::Approve)
    }

    /// The answer of the decision; empty while there is none.
    #[must_use]
    pub fn answer(&self) -> &str {
        self.decision.as_ref().map_or("", |d| d.answer.as_str())
    }

    /// The reason or comment of the decision; empty while there is none.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.decision.as_ref().map_or("", |d| d.reason.as_str())
    }
}

/// What is up for a decision: one of the kinds, and what stands beside it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Payload {
    /// A question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskPayload>,
    /// A text to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewPayload>,
    /// A held, refused or recorded command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecPayload>,
    /// A held, refused or recorded action on the environment itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<LifecyclePayload>,
    /// Every ask gate that holds the action, in declaration order, where there is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// The gate's own words to the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_reason: Option<String>,
    /// The carrier through which the command was read, where a gate concerns it for that reason alone: a program that runs the
    /// program among its operands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<String>,
}

impl Payload {
    /// Whether it says nothing at all, which no payload of a readable intervention does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            ask,
            review,
            exec,
            lifecycle,
            gates,
            gate_reason,
            carrier,
        } = self;
        let content = ask.is_some() || review.is_some() || exec.is_some() || lifecycle.is_some();
        let beside = !gates.is_empty() || gate_reason.is_some() || carrier.is_some();
        !content && !beside
    }
}

/// A question and the answers it admits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AskPayload {
    /// The question.
    pub question: String,
    /// The answers it admits; any answer where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// How a review's content reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReviewFormat {
    /// Plain text.
    Text,
    /// A unified diff.
    Diff,
}

names!(ReviewFormat { Text => "text", Diff => "diff" });

/// A text to judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReviewPayload {
    /// The guest path it was asked for by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The file that was read, where links led elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_path: Option<String>,
    /// The text, as it was when the review was raised.
    pub content: String,
    /// How it reads.
    pub format: ReviewFormat,
    /// The agent's note to the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The file was longer than 1 MiB and is cut.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// Bytes that are not UTF-8 were replaced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lossy: bool,
}

/// A command: exactly one of `argv` and `shell`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecPayload {
    /// Program and arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// A command line for `sh -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// How long it may run, where the caller said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// An action on the environment itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LifecyclePayload {
    /// Its name, like `destroy`.
    pub action: String,
    /// What it was asked with, where it takes anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
}

/// How an intervention ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Decision {
    /// What the agent goes by.
    pub outcome: Outcome,
    /// The answer to an approved ask.
    #[serde(default)]
    pub answer: String,
    /// Why it was refused, or a comment on the approval.
    #[serde(default)]
    pub reason: String,
    /// Who decided.
    pub decided_by: Actor,
    /// When.
    pub decided_at: Timestamp,
    /// The argv that runs in place of the one asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_argv: Option<Vec<String>>,
    /// The text that is typed in place of the one asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_text: Option<String>,
    /// How far the approval of a held action reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantReach>,
}

/// What an approved action came to: exactly one member, or none where there is nothing to say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActionResult {
    /// How the command ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecResult>,
    /// What the desktop answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computer: Option<Value>,
    /// The environment that a fork or a migrate made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_id: Option<EnvId>,
    /// The snapshot that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<crate::ids::SnapshotId>,
    /// Why the approved action failed, or that it may or may not have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Raises a request. Which members count depends on `kind`; one that does not is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RaiseRequest {
    /// `ask`, `review`, `secret` or `takeover`.
    pub kind: String,
    /// ask: the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// ask: the answers it admits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
    /// review: an absolute, clean guest path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// review: the text itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// review: `text` or `diff`; guessed where it is left out or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// review, secret: the agent's note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// secret: a declared target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// takeover: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// takeover: `terminal` or `desktop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Shortens the deadline, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// Approves an intervention.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApproveRequest {
    /// ask: the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// A comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// exec: run this in place of what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_argv: Option<Vec<String>>,
    /// computer: type this in place of what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_text: Option<String>,
    /// Held actions: `once`, `env` or `ttl:` and a duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// expiry: how much longer the environment lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extend_seconds: Option<u64>,
    /// Decide only if this is still the payload's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_hash: Option<String>,
}

/// Rejects an intervention.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RejectRequest {
    /// Why, for the agent to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Refused: a rejection grants nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Decide only if this is still the payload's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_hash: Option<String>,
}

/// The answer of a held call (202).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Held {
    /// The intervention to wait on.
    pub intervention_id: InterventionId,
    /// The same intervention, as it stands.
    pub intervention: Intervention,
}

/// A page of interventions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InterventionList {
    /// Newest first.
    pub interventions: Vec<Intervention>,
    /// Hand it back as `cursor` for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
