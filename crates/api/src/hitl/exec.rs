//! Which programs may run without a person, and which carry others.

use serde::{Deserialize, Serialize, Serializer};

/// Allowlist mode, and which programs gates look behind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExecAllow {
    /// What happens to a program that is not listed; `ask` where it is left out.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "ExecDefault", extend("default" = "ask")))]
    pub default: Option<ExecDefault>,
    /// Programs that may run: a basename, or an absolute path.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub allow: Option<Vec<String>>,
    /// Basenames of more programs that run the program among their operands, 1 to 64. Where neither `allow` nor `default` stands
    /// beside them there is no allowlist.
    #[serde(default)]
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

/// An allowlist is shown with what it holds where members were left out.
impl Serialize for ExecAllow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            default: Option<ExecDefault>,
            #[serde(skip_serializing_if = "Option::is_none")]
            allow: Option<&'a [String]>,
            #[serde(skip_serializing_if = "Option::is_none")]
            carriers: Option<&'a [String]>,
        }
        let lists = self.lists();
        Shown {
            default: lists.then(|| self.default.unwrap_or_default()),
            allow: lists.then(|| self.allow.as_deref().unwrap_or_default()),
            carriers: self.carriers.as_deref(),
        }
        .serialize(serializer)
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
