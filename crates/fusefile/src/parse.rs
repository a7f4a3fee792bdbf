//! From text to a file whose shape is right.

use std::fmt;

use serde::Deserialize as _;

use crate::model::Fusefile;
use crate::path::Path;
use crate::place::Place;
use crate::shape;
use crate::source::Source;
use crate::tree::{self, Kind, Node};
use crate::verdict::{Severity, Verdict, Verdicts};

/// How many complaints are made about one file. Beyond that the first ones are what helps.
pub(crate) const MOST: usize = 100;

/// A Fusefile whose shape is right, and where each part of it stands.
#[derive(Clone)]
pub struct Parsed {
    pub(crate) fusefile: Fusefile,
    root: Node,
    source: Source,
    warnings: Vec<Verdict>,
}

impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parsed")
            .field("fusefile", &self.fusefile)
            .finish_non_exhaustive()
    }
}

/// Reads a Fusefile. `file` is its name in complaints.
///
/// # Errors
/// The text is no YAML, or does not have the shape that [`crate::json_schema`] describes. Where it is YAML, everything that is
/// wrong with its shape is said at once.
pub fn parse(file: &str, text: &str) -> Result<Parsed, Verdicts> {
    let mut source = Source::new(file, text);
    let mut root = tree::read(text).map_err(|broken| {
        let place = broken.place.unwrap_or(Place::START);
        let verdict = Verdict {
            severity: Severity::Error,
            path: String::new(),
            message: broken.message,
            place: Some(place),
            snippet: source.guarded(place),
        };
        Verdicts::new(file, vec![verdict])
    })?;
    source.hide_values(&root);
    let bare = declare_bare_kinds(&mut root);
    let value = shape::check(&root).map_err(|mut misfits| {
        for misfit in &misfits {
            if let Some(value) = &misfit.hide {
                source.hide(value);
            }
        }
        misfits.truncate(MOST);
        let verdicts = misfits.into_iter().map(|misfit| Verdict {
            severity: Severity::Error,
            path: misfit.path,
            message: misfit.message,
            place: Some(misfit.place),
            snippet: source.snippet(misfit.place),
        });
        Verdicts::new(file, verdicts.collect())
    })?;
    let fusefile = Fusefile::deserialize(value).map_err(|error| {
        let verdict = Verdict {
            severity: Severity::Error,
            path: String::new(),
            message: format!("is no Fusefile: {error}"),
            place: Some(root.place),
            snippet: None,
        };
        Verdicts::new(file, vec![verdict])
    })?;
    let mut parsed = Parsed {
        fusefile,
        root,
        source,
        warnings: Vec::new(),
    };
    parsed.warnings = bare
        .iter()
        .map(|path| {
            let name = path.rsplit('.').next().unwrap_or_default();
            let message = format!("counts as declared; write `{name}: {{}}` to say so");
            parsed.verdict(Severity::Warning, &Path::parse(path), message)
        })
        .collect();
    Ok(parsed)
}

/// A request kind without settings is declared by its key alone. Returns the paths of the kinds that were written so.
fn declare_bare_kinds(root: &mut Node) -> Vec<String> {
    let mut bare = Vec::new();
    let requests = entry_mut(root, "hitl").and_then(|hitl| entry_mut(hitl, "requests"));
    if let Some(Node {
        kind: Kind::Map(kinds),
        ..
    }) = requests
    {
        for kind in kinds {
            if kind.value.kind == Kind::Null
                && matches!(kind.key.as_str(), "ask" | "review" | "secret" | "takeover")
            {
                kind.value.kind = Kind::Map(Vec::new());
                bare.push(format!("hitl.requests.{}", kind.key));
            }
        }
    }
    bare
}

fn entry_mut<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    match &mut node.kind {
        Kind::Map(entries) => entries
            .iter_mut()
            .find(|entry| entry.key == key)
            .map(|entry| &mut entry.value),
        Kind::Null | Kind::Bool { .. } | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => None,
    }
}

impl Parsed {
    /// What the file says.
    #[must_use]
    pub const fn fusefile(&self) -> &Fusefile {
        &self.fusefile
    }

    /// What can be said about the shape without refusing it.
    #[must_use]
    pub fn warnings(&self) -> Verdicts {
        self.verdicts(self.warnings.clone())
    }

    /// A complaint about a field, at its place or the nearest one around it.
    pub(crate) fn verdict(
        &self,
        severity: Severity,
        path: &Path,
        message: impl Into<String>,
    ) -> Verdict {
        let place = path.locate(&self.root);
        Verdict {
            severity,
            path: path.to_string(),
            message: message.into(),
            place,
            snippet: place.and_then(|place| self.source.snippet(place)),
        }
    }

    pub(crate) fn verdicts(&self, list: Vec<Verdict>) -> Verdicts {
        Verdicts::new(&self.source.file, list)
    }
}
