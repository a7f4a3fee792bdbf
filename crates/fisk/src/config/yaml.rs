//! The one module that knows the YAML reader. What comes out is a tree of values with their places.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess};
use serde_saphyr::{DuplicateKeyPolicy, Error, MergeKeyPolicy, NonFiniteFloatPolicy, Spanned};

/// The largest configuration, in bytes.
pub(super) const MAX_BYTES: usize = 1024 * 1024;
const MAX_DEPTH: usize = 16;
const MAX_VALUES: usize = 20_000;

/// A place in the file, both from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Place {
    const START: Self = Self { line: 1, column: 1 };

    fn of(location: serde_saphyr::Location) -> Self {
        match location.line() {
            0 => Self::START,
            line => Self {
                line,
                column: location.column(),
            },
        }
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub at: Place,
    pub value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Nothing,
    Switch(bool),
    Number(String),
    Text(String),
    List(Vec<Node>),
    /// Keys in their order; one may stand twice.
    Map(Vec<(Place, String, Node)>),
}

impl Value {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Switch(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// Reads one document, or says where and why it is none.
pub(super) fn read(text: &str) -> Result<Node, (Place, String)> {
    let limits = format!("at most {MAX_DEPTH} levels and {MAX_VALUES} values are allowed");
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_VALUES,
            max_anchors: 64,
            max_aliases: 256,
            max_recorded_anchor_events: MAX_VALUES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_VALUES,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Spanned<Parsed>>(text, options)
        .map(node)
        .map_err(|error| {
            let error = error.without_snippet();
            let at = error.location().map_or(Place::START, Place::of);
            (at, said(error, &limits))
        })
}

fn said(error: &Error, limits: &str) -> String {
    match error {
        Error::MultipleDocuments { .. } => {
            "holds more than one document: one is allowed".to_owned()
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => format!("is too deep or too large: {limits}"),
        Error::ExternalMessage { msg, .. } if msg.contains("recursion limit") => {
            format!("is too deep or too large: {limits}")
        }
        other => {
            let text = other.to_string();
            let end = text.find(" at line ").unwrap_or(text.len());
            format!("is no valid YAML: {}", &text[..end])
        }
    }
}

/// A value on its way from the reader.
enum Parsed {
    Plain(Value),
    List(Vec<Spanned<Parsed>>),
    Map(Vec<(Spanned<Parsed>, Spanned<Parsed>)>),
}

fn node(parsed: Spanned<Parsed>) -> Node {
    let value = match parsed.value {
        Parsed::Plain(value) => value,
        Parsed::List(items) => Value::List(items.into_iter().map(node).collect()),
        Parsed::Map(entries) => Value::Map(entries.into_iter().map(entry).collect()),
    };
    Node {
        at: Place::of(parsed.referenced),
        value,
    }
}

fn entry((key, value): (Spanned<Parsed>, Spanned<Parsed>)) -> (Place, String, Node) {
    let key = node(key);
    // No key is spelled like the others, so they are refused as unknown.
    let name = match key.value {
        Value::Text(name) | Value::Number(name) => name,
        Value::Switch(on) => on.to_string(),
        Value::Nothing => "null".to_owned(),
        Value::List(_) | Value::Map(_) => "?".to_owned(),
    };
    (key.at, name, node(value))
}

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Visitor)
    }
}

struct Visitor;

fn plain<E>(value: Value) -> Result<Parsed, E> {
    Ok(Parsed::Plain(value))
}

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }
    fn visit_none<E>(self) -> Result<Parsed, E> {
        plain(Value::Nothing)
    }
    fn visit_unit<E>(self) -> Result<Parsed, E> {
        plain(Value::Nothing)
    }
    fn visit_bool<E>(self, on: bool) -> Result<Parsed, E> {
        plain(Value::Switch(on))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Parsed, E> {
        plain(Value::Number(number.to_string()))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Parsed, E> {
        plain(Value::Number(number.to_string()))
    }
    fn visit_i128<E>(self, number: i128) -> Result<Parsed, E> {
        plain(Value::Number(number.to_string()))
    }
    fn visit_u128<E>(self, number: u128) -> Result<Parsed, E> {
        plain(Value::Number(number.to_string()))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Parsed, E> {
        plain(Value::Number(number.to_string()))
    }
    fn visit_str<E>(self, text: &str) -> Result<Parsed, E> {
        plain(Value::Text(text.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Parsed, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Parsed::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Parsed::Map(entries))
    }
}
