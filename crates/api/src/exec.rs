//! Commands run in an environment.

use serde::{Deserialize, Serialize};

/// A command: exactly one of `cmd` and `shell`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    /// Program and arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cmd: Option<Vec<String>>,
    /// A command line for `sh -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// How long it may run, in milliseconds: 60 000 by default, 600 000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecResult {
    /// Its exit code; 128 and the signal's number where a signal ended it; 124 where it was stopped at its timeout.
    pub exit_code: i32,
    /// What it wrote to standard output, at most 1 MiB; bytes that are not UTF-8 became U+FFFD.
    pub stdout: String,
    /// What it wrote to standard error, at most 1 MiB.
    pub stderr: String,
    /// It was stopped at its timeout.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timed_out: bool,
    /// Output beyond 1 MiB was dropped.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}
