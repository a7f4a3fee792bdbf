//! The `hitl` block of a create request: which requests, gates, allowlist and webhooks an environment has.
//!
//! These types hold what was written. Whether it makes sense is the domain's verdict (`fuse_domain::policy`), so ranges, names
//! and combinations are not checked here; that keeps every complaint with its path in one place.

mod exec;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::time::{format_go_duration, parse_go_duration};

pub use exec::{ExecAllow, ExecDefault};

/// Deadline of an intervention, in seconds, where the block names none.
pub const DEFAULT_TIMEOUT_SECONDS: i64 = 600;

/// The whole block. An environment without one refuses every request and holds nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HitlBlock {
    /// Deadline of every intervention in seconds, 10 to 86400.
    #[serde(default = "default_timeout", deserialize_with = "timeout_or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "i64"))]
    pub timeout_seconds: i64,
    /// What an expired intervention resolves to.
    #[serde(default, deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "OnTimeout"))]
    pub on_timeout: OnTimeout,
    /// Whether every decision has to name a person.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "is_false"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "bool"))]
    pub require_actor: bool,
    /// The kinds an agent may raise.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Requests::is_empty"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Requests"))]
    pub requests: Requests,
    /// Gates and signals, in declaration order.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Gate>"))]
    pub gates: Vec<Gate>,
    /// Allowlist mode: what may run, and what happens to the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecAllow>,
    /// Webhooks that hear of every audit event, at most five.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<NotifyHook>"))]
    pub notify: Vec<NotifyHook>,
}

impl Default for HitlBlock {
    fn default() -> Self {
        Self {
            timeout_seconds: DEFAULT_TIMEOUT_SECONDS,
            on_timeout: OnTimeout::default(),
            require_actor: false,
            requests: Requests::default(),
            gates: Vec::new(),
            exec: None,
            notify: Vec::new(),
        }
    }
}

/// What an intervention resolves to when its deadline passes undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OnTimeout {
    /// Silence is a no.
    #[default]
    Reject,
    /// Silence is a yes, with an empty answer.
    Allow,
}

/// The request kinds an agent may raise. A kind is declared by being present, even as `{}`; `null` declares nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Requests {
    /// Questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Declared>,
    /// Verdicts on a file or a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Declared>,
    /// Credentials, and the only places they may land.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRequests>,
    /// Handing the environment to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takeover: Option<TakeoverRequests>,
}

impl Requests {
    /// Whether no kind is declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            ask,
            review,
            secret,
            takeover,
        } = self;
        ask.is_none() && review.is_none() && secret.is_none() && takeover.is_none()
    }
}

/// `{}`: a kind without settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Declared {}

/// Settings of secret requests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretRequests {
    /// Every place a value may land, at most 20.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<SecretTarget>"))]
    pub targets: Vec<SecretTarget>,
}

/// One place a secret may land: exactly one of `env` and `file`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretTarget {
    /// A variable that every later exec sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// An absolute guest path outside `/fuse`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What the person is asked for, in the words of whoever wrote the policy.
    #[serde(default)]
    pub label: String,
}

/// Settings of takeovers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TakeoverRequests {
    /// The ways in; empty means the terminal alone.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Via>"))]
    pub via: Vec<Via>,
}

/// A way into an environment during a takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Via {
    /// A recorded shell.
    #[default]
    Terminal,
    /// The recorded live desktop.
    Desktop,
}

/// One gate or signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// 1 to 64 of `a-z 0-9 - _ .`, unique in the block.
    #[serde(default)]
    pub name: String,
    /// What it watches.
    pub on: GateOn,
    /// What has to be true of the action; every field that is set must match.
    #[serde(default, rename = "match", deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Match"))]
    pub matches: Match,
    /// What happens to a matching action.
    #[serde(default, deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "GateMode"))]
    pub mode: GateMode,
    /// How far an approval reaches by default. `None` is once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantReach>,
    /// Deadline of this gate in seconds, instead of the block's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Told to the caller on a deny, shown to the person on an ask.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub reason: String,
    /// A webhook that is asked before a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decide: Option<Decide>,
}

/// What a gate watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GateOn {
    /// Commands run through the API.
    Exec,
    /// Actions on the environment itself.
    Lifecycle,
    /// Actions on the desktop.
    Computer,
    /// A signal: the agent looks stuck.
    Stall,
    /// A signal: the environment is about to be reaped.
    Expiry,
}

impl GateOn {
    /// The wire's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Lifecycle => "lifecycle",
            Self::Computer => "computer",
            Self::Stall => "stall",
            Self::Expiry => "expiry",
        }
    }
}

/// What a gate does with a matching action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GateMode {
    /// Hold it until a person decides.
    #[default]
    Ask,
    /// Let it through and record it.
    Notify,
    /// Refuse it.
    Deny,
}

impl GateMode {
    /// The wire's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Notify => "notify",
            Self::Deny => "deny",
        }
    }
}

/// What has to be true of an action. Which fields may be set depends on the gate's `on`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Match {
    /// exec: basename of the program, any of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<OneOrMany>,
    /// exec: arguments that appear in this order, not necessarily side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// exec: any shell text, which nothing can look into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<bool>,
    /// lifecycle and computer: names of actions, any of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<OneOrMany>,
    /// computer: a `type` whose text contains any of these, ignoring case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_contains: Option<Vec<String>>,
    /// stall: this many failed commands in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<i64>,
    /// stall: no command or computer action for this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_seconds: Option<i64>,
    /// expiry: this many seconds ahead of the reaper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_seconds: Option<i64>,
}

/// A webhook that answers for the person when it can.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decide {
    /// Where to ask, over http or https.
    #[serde(default)]
    pub url: String,
    /// The name of the secret that signs each call.
    #[serde(default)]
    pub secret: String,
}

/// A webhook for audit events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotifyHook {
    /// Where to post, over http or https.
    #[serde(default)]
    pub webhook: String,
    /// The name of the secret that signs each delivery.
    #[serde(default)]
    pub secret: String,
}

/// One name or a list of them as input, always a list as output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct OneOrMany(pub Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> de::Visitor<'de> for Names {
            type Value = OneOrMany;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a list of names")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![name.to_owned()]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMany, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element::<String>()? {
                    names.push(name);
                }
                Ok(OneOrMany(names))
            }
        }
        deserializer.deserialize_any(Names)
    }
}

/// How far an approval reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GrantReach {
    /// This one action.
    Once,
    /// Identical repeats for the environment's lifetime.
    Env,
    /// Identical repeats for so many nanoseconds.
    Ttl(i64),
}

impl fmt::Display for GrantReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once => f.write_str("once"),
            Self::Env => f.write_str("env"),
            Self::Ttl(nanos) => write!(f, "ttl:{}", format_go_duration(*nanos)),
        }
    }
}

/// A text that names no reach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a grant is `once`, `env` or `ttl:` and a duration, like ttl:30m")]
pub struct GrantReachError;

impl FromStr for GrantReach {
    type Err = GrantReachError;
    fn from_str(text: &str) -> Result<Self, GrantReachError> {
        match (text, text.strip_prefix("ttl:")) {
            ("once", _) => Ok(Self::Once),
            ("env", _) => Ok(Self::Env),
            (_, Some(ttl)) => parse_go_duration(ttl)
                .map(Self::Ttl)
                .map_err(|_| GrantReachError),
            (_, None) => Err(GrantReachError),
        }
    }
}

impl Serialize for GrantReach {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GrantReach {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(feature = "openapi")]
mod openapi;
#[cfg(feature = "schema")]
mod schema;

fn default_timeout() -> i64 {
    DEFAULT_TIMEOUT_SECONDS
}

fn timeout_or_default<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(DEFAULT_TIMEOUT_SECONDS))
}

/// Clients in some languages send `null` for what they leave out.
fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests;
