//! The name of an environment.

use std::fmt;

/// The id of an environment: 1 to 63 of `a-z A-Z 0-9 . _ -`, starting with a letter or a digit.
///
/// It names a directory, a host name and a cgroup, hence the narrow alphabet.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnvId(String);

impl EnvId {
    /// The id of this text, if it is one.
    pub(crate) fn checked(text: String) -> Option<Self> {
        is_plain_name(&text).then_some(Self(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EnvId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EnvId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A name that is safe as one component of a path.
pub(crate) fn is_plain_name(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}
