//! YAML as a tree that knows where each part of it stands in the text.
//!
//! The only module that knows the YAML crate. It asks that crate for text, lists and mappings with their spans and makes no
//! further use of it, so that every later complaint can name a place.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Error, MergeKeyPolicy, NonFiniteFloatPolicy, Spanned};

use crate::place::Place;

/// The largest Fusefile, in bytes.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;
/// Deeper than any key lies. Each level costs the reader tens of kilobytes of stack in an unoptimised build.
const MAX_DEPTH: usize = 24;
const MAX_NODES: usize = 50_000;

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub place: Place,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool {
        value: bool,
        spelling: String,
    },
    /// A number as it is spelled.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One key of a mapping. Keys may repeat; that is for a later check to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub key: String,
    pub key_place: Place,
    pub value: Node,
}

impl Kind {
    /// What people call it.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool { .. } => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

impl Node {
    /// The entry of a mapping with this key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|entry| entry.key == key),
            Kind::Null | Kind::Bool { .. } | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => {
                None
            }
        }
    }

    /// An item of a list.
    pub(crate) fn item(&self, index: usize) -> Option<&Self> {
        match &self.kind {
            Kind::List(items) => items.get(index),
            Kind::Null | Kind::Bool { .. } | Kind::Number(_) | Kind::Text(_) | Kind::Map(_) => None,
        }
    }
}

/// Why a text is no YAML document.
pub(crate) struct Broken {
    pub place: Option<Place>,
    pub message: String,
}

/// Reads one document.
pub(crate) fn read(text: &str) -> Result<Node, Broken> {
    if text.len() > MAX_BYTES {
        return Err(Broken {
            place: None,
            message: format!(
                "the file must be at most {MAX_BYTES} bytes long, not {}",
                text.len()
            ),
        });
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            flow_nesting_limit: MAX_DEPTH,
            max_anchors: 100,
            max_aliases: 1_000,
            max_recorded_anchor_events: MAX_NODES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: 16,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let root = serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options)
        .map_err(|error| broken(error.without_snippet()))?;
    Ok(node(root, text))
}

fn broken(error: &Error) -> Broken {
    let message = match error {
        Error::MultipleDocuments { .. } => {
            "a Fusefile holds one document: remove the second `---`".to_owned()
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => too_much(),
        Error::ExternalMessage { msg, .. } if msg.contains("recursion limit") => too_much(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an anchor cannot hold itself".to_owned()
        }
        Error::UnknownAnchor { .. } => "no anchor of this name stands before the alias".to_owned(),
        Error::ExternalMessage { msg, .. } | Error::Message { msg, .. } => msg.clone(),
        other => {
            let text = other.to_string();
            match text.find(" at line ") {
                Some(end) => text[..end].to_owned(),
                None => text,
            }
        }
    };
    Broken {
        place: error.location().and_then(Place::of),
        message,
    }
}

fn too_much() -> String {
    format!(
        "nests too deep or repeats too much: at most {MAX_DEPTH} levels and {MAX_NODES} values, repeats by `*alias` counted"
    )
}

/// A value as the YAML crate hands it over. What is no text comes without its spelling, which the span still knows.
enum Raw {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<Raw>, Spanned<Raw>)>),
}

fn node(raw: Spanned<Raw>, text: &str) -> Node {
    let place = Place::of(raw.referenced).unwrap_or_default();
    let spelled = |fallback: String| {
        Place::of(raw.defined)
            .and_then(|place| text.get(place.range()))
            .filter(|spelling| !spelling.is_empty())
            .map_or(fallback, str::to_owned)
    };
    let kind = match raw.value {
        Raw::Null => Kind::Null,
        Raw::Bool(value) => Kind::Bool {
            value,
            spelling: spelled(value.to_string()),
        },
        Raw::Number(value) => Kind::Number(spelled(value)),
        Raw::Text(value) => Kind::Text(value),
        Raw::List(items) => Kind::List(items.into_iter().map(|item| node(item, text)).collect()),
        Raw::Map(entries) => Kind::Map(
            entries
                .into_iter()
                .map(|(key, value)| entry(key, value, text))
                .collect(),
        ),
    };
    Node { place, kind }
}

fn entry(key: Spanned<Raw>, value: Spanned<Raw>, text: &str) -> Entry {
    let key = node(key, text);
    let spelled = text
        .get(key.place.range())
        .filter(|spelling| !spelling.is_empty());
    let name = match key.kind {
        Kind::Text(name) | Kind::Number(name) | Kind::Bool { spelling: name, .. } => name,
        Kind::Null => spelled.unwrap_or("null").to_owned(),
        // No key of a Fusefile is spelled like that, so it is refused as unknown.
        Kind::List(_) => "[…]".to_owned(),
        Kind::Map(_) => "{…}".to_owned(),
    };
    Entry {
        key: name,
        key_place: key.place,
        value: node(value, text),
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E>(self) -> Result<Raw, E> {
                Ok(Raw::Null)
            }
            fn visit_none<E>(self) -> Result<Raw, E> {
                Ok(Raw::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
                Ok(Raw::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
                Ok(Raw::Number(value.to_string()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
                Ok(Raw::Number(value.to_string()))
            }
            fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
                Ok(Raw::Number(value.to_string()))
            }
            fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
                Ok(Raw::Number(value.to_string()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
                Ok(Raw::Number(value.to_string()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
                Ok(Raw::Text(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Raw::List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Raw::Map(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(text: &str) -> Kind {
        read(&format!("k: {text}\n"))
            .ok()
            .unwrap()
            .entry("k")
            .unwrap()
            .value
            .kind
            .clone()
    }

    // check: FILE-10
    #[test]
    fn words_that_older_yaml_took_for_booleans_stay_text() {
        for word in ["yes", "no", "on", "off", "y", "n", "Yes", "ON"] {
            assert_eq!(kind_of(word), Kind::Text(word.to_owned()));
        }
        let root = read("on: exec\nyes: 1\n").ok().unwrap();
        assert!(root.entry("on").is_some() && root.entry("yes").is_some());
        assert!(matches!(kind_of("true"), Kind::Bool { value: true, .. }));
    }

    #[test]
    fn a_number_keeps_its_spelling_through_an_alias_too() {
        assert_eq!(kind_of("1.10"), Kind::Number("1.10".into()));
        assert_eq!(kind_of("0x1F"), Kind::Number("0x1F".into()));
        let root = read("a: &x 1.10\nb: *x\n").ok().unwrap();
        assert_eq!(
            root.entry("b").unwrap().value.kind,
            Kind::Number("1.10".into())
        );
    }

    // check: FILE-9
    #[test]
    fn a_bomb_and_deep_nesting_are_refused_quickly() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = vec![format!("*a{}", level - 1); 9].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        let started = std::time::Instant::now();
        for text in [
            bomb,
            "[".repeat(100_000),
            "- ".repeat(100_000),
            format!("a: {}", "{b: ".repeat(70)),
            "a: &a [*a]\n".to_owned(),
            "x".repeat(MAX_BYTES + 1),
        ] {
            assert!(read(&text).is_err(), "{}", &text[..20.min(text.len())]);
        }
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    }
}
