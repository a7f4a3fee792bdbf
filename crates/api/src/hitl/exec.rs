//! Which programs may run without a person, and which carry others.

use serde::{Deserialize, Serialize};

/// Allowlist mode, and which programs gates look behind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExecAllow {
    /// What happens to a program that is not listed; `ask` where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "ExecDefault", extend("default" = "ask")))]
    pub default: Option<ExecDefault>,
    /// Programs that may run: a basename, or an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub allow: Option<Vec<String>>,
    /// Basenames of more programs that run the program among their operands, 1 to 64. Where neither `allow` nor `default` stands
    /// beside them there is no allowlist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub carriers: Option<Vec<String>>,
}

impl ExecAllow {
    /// Whether there is an allowlist. Naming carriers alone makes none.
    #[must_use]
    pub fn lists(&self) -> bool {
        self.allow.is_some() || self.default.is_some() || self.carriers.is_none()
    }
}

/// What happens to a program that is not on the allowlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ExecDefault {
    /// A person decides.
    #[default]
    Ask,
    /// It is refused.
    Deny,
}
