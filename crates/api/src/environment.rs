//! Environments and what creates them.

use crate::hitl::HitlBlock;
use crate::ids::{EnvId, TaskId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where an environment is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EnvState {
    /// It is being made.
    Provisioning,
    /// It takes commands.
    Running,
    /// It takes no new commands and ends when it is idle.
    Draining,
    /// It is being removed.
    Destroying,
    /// It is gone. Only the event stream shows this state.
    Destroyed,
    /// It could not be made, or its guest ended on its own.
    Failed,
}

impl EnvState {
    /// The state as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provisioning => "provisioning",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Destroying => "destroying",
            Self::Destroyed => "destroyed",
            Self::Failed => "failed",
        }
    }

    /// Reads a state.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::Provisioning,
            Self::Running,
            Self::Draining,
            Self::Destroying,
            Self::Destroyed,
            Self::Failed,
        ]
        .into_iter()
        .find(|s| s.as_str() == text)
    }
}

/// One environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Environment {
    /// `fuse-` and the task id.
    pub id: EnvId,
    /// Where it is in its life.
    pub state: EnvState,
    /// The caller's name for it.
    pub task_id: TaskId,
    /// The host that runs it.
    pub host_id: String,
    /// Where its exposed service answers; empty while nothing is exposed.
    pub url: String,
    /// What was asked for, defaults filled in.
    pub spec: Spec,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The size and place of an environment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Processors it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Memory, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram_mb: Option<u64>,
    /// Disk, in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_gb: Option<u64>,
    /// Processes it may hold at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_processes: Option<u64>,
    /// `host`, or the name of a root tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A label for placement; this server has one region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The host to place it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// The caller's own labels.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub labels: BTreeMap<String, String>,
    /// `none` (loopback only, the default) or `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// How long an environment that runs a task may live, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_seconds: Option<u64>,
    /// How long it may stay without activity, in seconds; 60 at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_seconds: Option<u64>,
    /// GPUs; not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// The kind of GPU; not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_kind: Option<String>,
    /// A slice of a GPU; not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_profile: Option<String>,
    /// The processor architecture of the host; not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Large memory pages; not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<bool>,
}

/// Reads `null` as the type's empty value, so that a member that is null means the same as one left out.
fn null_is_default<'de, D, T>(d: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}

/// Where a variable's value comes from: exactly one of the two.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EnvVar {
    /// The value itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The name of an entry of `secrets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl std::fmt::Debug for EnvVar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvVar")
            .field("secret", &self.secret)
            .finish_non_exhaustive()
    }
}

/// One build step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BuildStep {
    /// A command line for `sh -lc`.
    pub run: String,
    /// Where it runs; the workspace by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
}

/// The environment's task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Run {
    /// A command line for `sh -lc`.
    Shell(String),
    /// Program and arguments.
    Argv(Vec<String>),
}

/// A virtual display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Desktop {
    /// Pixels, 320 to 3840.
    pub width: u32,
    /// Pixels, 320 to 3840.
    pub height: u32,
    /// The window manager; not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wm: Option<String>,
}

/// A value that no log shows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct SecretText(pub String);

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

/// What creates an environment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateEnvironment {
    /// The caller's name for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task_id: String,
    /// Its size and place.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: Spec,
    /// Secret values by name. They are never returned.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub secrets: BTreeMap<String, SecretText>,
    /// Variables that every command sees.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub env: BTreeMap<String, EnvVar>,
    /// Files by absolute path, their content in base64; 512 KiB in all.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub files: BTreeMap<String, String>,
    /// Steps that finish before the create answers.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub build: Vec<BuildStep>,
    /// The environment's task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// Where commands run; `/workspace` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// A script that finishes before the create answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_script: Option<String>,
    /// How long it may run, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_script_timeout_seconds: Option<u64>,
    /// A virtual display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<Desktop>,
    /// What needs a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hitl: Option<HitlBlock>,
    /// Not served: anything but null or empty answers 501.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose: Option<Value>,
    /// Not served: anything but null or empty answers 501.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthcheck: Option<Value>,
    /// Not served: anything but null or empty answers 501.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_inline: Option<Value>,
    /// Not served: anything but null or empty answers 501.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_url: Option<Value>,
    /// Not served: anything but null or empty answers 501.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_token: Option<Value>,
    /// Not served: anything but null or empty answers 501.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Value>,
}

/// A page of environments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EnvironmentList {
    /// Newest first.
    pub environments: Vec<Environment>,
    /// Hand it back as `cursor` for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
