//! Reads sections of the tree, and notes whatever is wrong with them at its place.

use std::{fmt, ops::RangeInclusive, time::Duration};

use super::{
    duration,
    yaml::{Node, Place, Value},
};

/// The most entries of one list.
const MAX_ITEMS: usize = 1_000;
/// The most problems that are told at once.
const MAX_PROBLEMS: usize = 50;

/// Something that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub at: Place,
    /// What, and what is allowed.
    pub message: String,
}

/// Everything that is wrong with one file; one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The name of the file.
    pub file: String,
    /// Them, in the order of the file.
    pub list: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Problem { at, message }) in self.list.iter().take(MAX_PROBLEMS).enumerate() {
            let gap = if n == 0 { "" } else { "\n" };
            write!(f, "{gap}{}:{}:{}: {message}", self.file, at.line, at.column)?;
        }
        match self.list.len().checked_sub(MAX_PROBLEMS) {
            Some(more) if more > 0 => write!(f, "\nand {more} more"),
            Some(_) | None => Ok(()),
        }
    }
}

/// Takes down problems.
#[derive(Default)]
pub(super) struct Checker {
    pub list: Vec<Problem>,
}

impl Checker {
    pub(super) fn wrong(&mut self, at: Place, message: impl Into<String>) {
        self.list.push(Problem {
            at,
            message: message.into(),
        });
    }
}

/// A mapping whose keys are known.
pub(super) struct Section<'a> {
    /// Where the mapping is in the file, dotted; empty at the top.
    path: String,
    entries: Vec<(Place, &'a str, &'a Node)>,
}

/// A value with the path that names it in problems.
pub(super) struct Field<'a> {
    pub path: String,
    pub key: Place,
    pub node: &'a Node,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(super) fn root(node: &'a Node, keys: &[&str], checker: &mut Checker) -> Option<Self> {
        let field = Field {
            path: String::new(),
            key: node.at,
            node,
        };
        Self::read(&field, keys, checker)
    }

    fn read(field: &Field<'a>, keys: &[&str], checker: &mut Checker) -> Option<Self> {
        let Value::Map(all) = &field.node.value else {
            let subject = match field.path.as_str() {
                "" => "the file".to_owned(),
                path => path.to_owned(),
            };
            let got = field.node.value.kind();
            let message = format!("{subject}: must be a mapping of keys, not {got}");
            checker.wrong(field.node.at, message);
            return None;
        };
        let mut entries: Vec<(Place, &str, &Node)> = Vec::with_capacity(all.len());
        for (at, key, node) in all {
            if let Some((first, _, _)) = entries.iter().find(|(_, known, _)| known == key) {
                let line = first.line;
                checker.wrong(
                    *at,
                    format!("the key {key:?} stands twice: first on line {line}"),
                );
            } else if keys.contains(&key.as_str()) {
                entries.push((*at, key, node));
            } else {
                checker.wrong(*at, unknown(key, keys));
            }
        }
        Some(Self {
            path: field.path.clone(),
            entries,
        })
    }

    /// The value of a key. A key without a value is a problem: it is not clear what it should mean.
    pub(super) fn field(&self, key: &str, checker: &mut Checker) -> Option<Field<'a>> {
        let (at, _, node) = self.entries.iter().find(|(_, known, _)| *known == key)?;
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            parent => format!("{parent}.{key}"),
        };
        if matches!(node.value, Value::Nothing) {
            checker.wrong(
                *at,
                format!("{path}: has no value: give it one, or leave the key out"),
            );
            return None;
        }
        Some(Field {
            path,
            key: *at,
            node,
        })
    }

    /// A mapping beneath a key.
    pub(super) fn section(&self, key: &str, keys: &[&str], checker: &mut Checker) -> Option<Self> {
        let field = self.field(key, checker)?;
        Self::read(&field, keys, checker)
    }

    /// A text that is not empty.
    pub(super) fn text(&self, key: &str, checker: &mut Checker) -> Option<String> {
        self.field(key, checker)?.text(checker)
    }

    /// `true` or `false`.
    pub(super) fn switch(&self, key: &str, checker: &mut Checker) -> Option<bool> {
        let field = self.field(key, checker)?;
        match field.node.value {
            Value::Switch(on) => Some(on),
            _ => field.must("be true or false", checker),
        }
    }

    /// A whole number within bounds.
    pub(super) fn number(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
        checker: &mut Checker,
    ) -> Option<u64> {
        let field = self.field(key, checker)?;
        let number = match &field.node.value {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if range.contains(&number) => Some(number),
            Some(_) | None => field.must(
                &format!(
                    "be a whole number from {} to {}",
                    range.start(),
                    range.end()
                ),
                checker,
            ),
        }
    }

    /// A duration within bounds.
    pub(super) fn duration(
        &self,
        key: &str,
        range: RangeInclusive<Duration>,
        checker: &mut Checker,
    ) -> Option<Duration> {
        let field = self.field(key, checker)?;
        let given = match &field.node.value {
            Value::Text(text) => duration::parse(text),
            _ => None,
        };
        match given {
            Some(given) if range.contains(&given) => Some(given),
            Some(_) | None => field.must(
                &format!(
                    "be a duration like 30s, 2m or 1h30m, from {} to {}",
                    duration::show(*range.start()),
                    duration::show(*range.end())
                ),
                checker,
            ),
        }
    }

    /// One word out of some.
    pub(super) fn word<T: Copy>(
        &self,
        key: &str,
        words: &[(&str, T)],
        checker: &mut Checker,
    ) -> Option<T> {
        let field = self.field(key, checker)?;
        if let Value::Text(text) = &field.node.value
            && let Some((_, meaning)) = words.iter().find(|(word, _)| word == text)
        {
            return Some(*meaning);
        }
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        field.must(&format!("be one of {}", names.join(", ")), checker)
    }

    /// A list of texts, none of them empty; absent is empty.
    pub(super) fn texts(&self, key: &str, checker: &mut Checker) -> Vec<(Place, String)> {
        let Some(field) = self.field(key, checker) else {
            return Vec::new();
        };
        let Value::List(items) = &field.node.value else {
            field.must::<()>("be a list of texts", checker);
            return Vec::new();
        };
        if items.len() > MAX_ITEMS {
            let message = format!(
                "{}: has {} entries: at most {MAX_ITEMS} are allowed",
                field.path,
                items.len()
            );
            checker.wrong(field.key, message);
            return Vec::new();
        }
        let mut found: Vec<(Place, String)> = Vec::with_capacity(items.len());
        for (n, node) in items.iter().enumerate() {
            let item = Field {
                path: format!("{}[{n}]", field.path),
                key: node.at,
                node,
            };
            let Some(text) = item.text(checker) else {
                continue;
            };
            if found.iter().any(|(_, known)| *known == text) {
                checker.wrong(node.at, format!("{}: {text:?} stands twice", item.path));
            } else {
                found.push((node.at, text));
            }
        }
        found
    }
}

impl Field<'_> {
    /// A text that is not empty.
    fn text(&self, checker: &mut Checker) -> Option<String> {
        match &self.node.value {
            Value::Text(text) if text.contains('\0') => self.must("hold no NUL character", checker),
            Value::Text(text) if !text.trim().is_empty() => Some(text.clone()),
            Value::Text(_) => self.must("not be empty", checker),
            Value::Number(_) | Value::Switch(_) => {
                self.must("be a text: put it in quotes", checker)
            }
            Value::Nothing | Value::List(_) | Value::Map(_) => self.must("be a text", checker),
        }
    }

    /// Notes what the value must be, and what it is instead.
    pub(super) fn must<T>(&self, what: &str, checker: &mut Checker) -> Option<T> {
        let got = match &self.node.value {
            Value::Text(text) if text.chars().count() <= 60 => format!("{text:?}"),
            Value::Number(text) if text.len() <= 60 => text.clone(),
            Value::Switch(on) => on.to_string(),
            other => other.kind().to_owned(),
        };
        checker.wrong(
            self.node.at,
            format!("{}: must {what}, not {got}", self.path),
        );
        None
    }
}

fn unknown(key: &str, keys: &[&str]) -> String {
    // A section that stands one level too deep is a mistake of its own.
    match nearest(key, keys).or_else(|| nearest(key, &super::read::ROOT)) {
        Some(word) if word == key => {
            format!("unknown key {key:?} here: it belongs to the top level of the file")
        }
        Some(word) => format!("unknown key {key:?}, did you mean {word:?}?"),
        None if keys.is_empty() => format!("unknown key {key:?}: no key is allowed here"),
        None => format!("unknown key {key:?}; allowed here: {}", keys.join(", ")),
    }
}

/// The word that somebody probably meant.
fn nearest<'a>(wrong: &str, words: &[&'a str]) -> Option<&'a str> {
    if wrong.len() > 64 {
        return None;
    }
    let wrong = wrong.to_lowercase();
    words
        .iter()
        .map(|word| (strsim::damerau_levenshtein(&wrong, word), *word))
        .filter(|(far, word)| *far <= (word.len() / 3).max(1))
        .min()
        .map(|(_, word)| word)
}
