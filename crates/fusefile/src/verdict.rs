//! What is said about a Fusefile, each time with the place and a caret.

use std::fmt;

use serde::Serialize;

use crate::place::Place;
use crate::source::Snippet;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, and probably does not do what was meant.
    Warning,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// How bad it is.
    pub severity: Severity,
    /// The field in the Fusefile's own names, like `hitl.gates[2].timeout`; empty where the file as a whole is meant.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
    /// Where; nothing where no place of the file is to blame.
    #[serde(flatten)]
    pub place: Option<Place>,
    #[serde(skip)]
    pub(crate) snippet: Option<Snippet>,
}

/// Everything that is said about one Fusefile, in the order of its lines.
///
/// For programs it is `{"file","verdicts":[{"severity","path","message","line","column","width"}]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    file: String,
    #[serde(rename = "verdicts")]
    list: Vec<Verdict>,
}

impl Verdicts {
    pub(crate) fn new(file: &str, mut list: Vec<Verdict>) -> Self {
        list.sort_by_key(|verdict| {
            (
                verdict.place.map(|place| (place.line, place.column)),
                verdict.severity,
            )
        });
        list.dedup();
        Self {
            file: file.to_owned(),
            list,
        }
    }

    /// Every complaint.
    #[must_use]
    pub fn all(&self) -> &[Verdict] {
        &self.list
    }

    /// The complaints that forbid the file's use.
    pub fn errors(&self) -> impl Iterator<Item = &Verdict> {
        self.list
            .iter()
            .filter(|verdict| verdict.severity == Severity::Error)
    }

    /// The complaints that do not.
    pub fn warnings(&self) -> impl Iterator<Item = &Verdict> {
        self.list
            .iter()
            .filter(|verdict| verdict.severity == Severity::Warning)
    }

    /// Whether the file cannot be used.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors().next().is_some()
    }

    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// These and others about the same file.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.list.extend(other.list);
        Self::new(&self.file, self.list)
    }
}

/// For people: `FILE:LINE:COLUMN: error: PATH: MESSAGE`, the line, and a caret under the place.
///
/// Values under `env` and `files` are never shown, nor is anything that a terminal would obey.
impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for verdict in &self.list {
            let Verdict {
                severity,
                path,
                message,
                place,
                snippet,
            } = verdict;
            f.write_str(&self.file)?;
            if let Some(Place { line, column, .. }) = place {
                write!(f, ":{line}:{column}")?;
            }
            write!(f, ": {}: ", severity.as_str())?;
            if !path.is_empty() {
                write!(f, "{path}: ")?;
            }
            writeln!(f, "{message}")?;
            if let Some(snippet) = snippet {
                snippet.fmt(f)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Verdicts {}
