//! One parameter of a tool: what the model reads about it, and what it may be.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Number, Value, json};

use crate::plain;

/// The most bytes that a compiled pattern of a schema may take.
const MAX_PATTERN: usize = 256 * 1024;
/// The most different patterns of an application; fisk's own types have three.
const MAX_PATTERNS: usize = 200;
/// The most characters of a property's description.
const MAX_HELP: usize = 1000;
/// The most completions that are told as hints.
const MAX_HINTS: usize = 20;
/// Keywords of a carried fragment that the model gets to see; others are of releases that this one does not know.
const KEYWORDS: [&str; 9] = [
    "type",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "items",
    "additionalProperties",
    "oneOf",
    "format",
];

/// A parameter of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Property {
    pub name: String,
    pub place: Place,
    pub kind: Kind,
    pub required: bool,
    /// What stands for an omitted argument before a given one.
    pub default: Vec<String>,
    /// The fragment for the model.
    pub schema: Value,
}

impl Property {
    /// Whether a model may give it.
    pub fn is_offered(&self) -> bool {
        match self.place {
            Place::Global | Place::Flag | Place::Argument => true,
            Place::HiddenArgument => false,
        }
    }
}

/// Where it goes in the argument vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before the command path.
    Global,
    /// Behind it.
    Flag,
    /// Behind `--`, in declared order.
    Argument,
    /// The same, but not to be given by a model.
    HiddenArgument,
}

/// What it takes.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// A flag without a value.
    Switch(Off),
    /// One value.
    One(Scalar),
    /// Any number of values.
    List(Scalar),
    /// Any number of values by key.
    Map(Scalar),
}

/// What `false` becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Off {
    /// `--no-NAME`.
    Negated,
    /// Nothing.
    Omitted,
    /// It cannot be said; why.
    Refused(&'static str),
}

/// The patterns of an application, each compiled once.
#[derive(Debug, Default)]
pub(crate) struct Patterns(BTreeMap<String, Regex>);

/// A pattern as the application spells it, and compiled.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    spelled: String,
    compiled: Regex,
}

impl Patterns {
    fn get(&mut self, pattern: &str) -> Result<Regex, String> {
        if let Some(compiled) = self.0.get(pattern) {
            return Ok(compiled.clone());
        }
        if self.0.len() >= MAX_PATTERNS {
            return Err(format!(
                "the application has more than {MAX_PATTERNS} patterns"
            ));
        }
        let compiled = RegexBuilder::new(&ascii_classes(pattern))
            .size_limit(MAX_PATTERN)
            .build()
            .map_err(|_| "the pattern in its schema cannot be compiled".to_owned())?;
        self.0.insert(pattern.to_owned(), compiled.clone());
        Ok(compiled)
    }
}

/// In a JSON schema `\d` and `\w` are ASCII; here they would take the digits of every script, which the application's parser skips.
fn ascii_classes(pattern: &str) -> String {
    let mut made = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            made.push(c);
            continue;
        }
        match chars.next() {
            Some('d') => made.push_str("[0-9]"),
            Some('D') => made.push_str("[^0-9]"),
            Some('w') => made.push_str("[0-9A-Za-z_]"),
            Some('W') => made.push_str("[^0-9A-Za-z_]"),
            Some(other) => made.extend(['\\', other]),
            None => made.push('\\'),
        }
    }
    made
}

/// One value and its bounds.
#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    pub kind: Type,
    pub options: Option<Vec<String>>,
    pub pattern: Option<Pattern>,
    pub minimum: Option<Number>,
    pub maximum: Option<Number>,
}

/// The JSON type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    Integer,
    Number,
    Boolean,
}

impl Scalar {
    /// Any text: all that is known about a value without a schema.
    pub fn text() -> Self {
        Self {
            kind: Type::Text,
            options: None,
            pattern: None,
            minimum: None,
            maximum: None,
        }
    }

    /// Reads a fragment that describes one value. `oneOf` and `format` are for the model alone: the application checks them.
    fn read(fragment: &Map<String, Value>, patterns: &mut Patterns) -> Result<Self, String> {
        let kind = match fragment.get("type").and_then(Value::as_str) {
            Some("string") => Type::Text,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("boolean") => Type::Boolean,
            _ => return Err("the type in its schema is not known".to_owned()),
        };
        let options = match fragment.get("enum") {
            None | Some(Value::Null) => None,
            Some(Value::Array(values)) => {
                let texts: Option<Vec<String>> = values
                    .iter()
                    .map(|v| v.as_str().map(str::to_owned))
                    .collect();
                Some(texts.ok_or("the enum in its schema is not one of strings")?)
            }
            Some(_) => return Err("the enum in its schema is no list".to_owned()),
        };
        let pattern = match fragment.get("pattern") {
            None => None,
            Some(Value::String(pattern)) => Some(Pattern {
                spelled: pattern.clone(),
                compiled: patterns.get(pattern)?,
            }),
            Some(_) => return Err("the pattern in its schema is no string".to_owned()),
        };
        let bound = |key: &str| match fragment.get(key) {
            None => Ok(None),
            Some(Value::Number(bound)) => Ok(Some(bound.clone())),
            Some(_) => Err(format!("the {key} in its schema is no number")),
        };
        Ok(Self {
            kind,
            options,
            pattern,
            minimum: bound("minimum")?,
            maximum: bound("maximum")?,
        })
    }

    /// The text of a value, which is what the application parses.
    pub fn text_of(&self, value: &Value) -> Option<String> {
        match (self.kind, value) {
            (Type::Text, Value::String(text)) => {
                let listed = self
                    .options
                    .as_ref()
                    .is_none_or(|options| options.contains(text));
                let fits = self
                    .pattern
                    .as_ref()
                    .is_none_or(|pattern| pattern.compiled.is_match(text));
                (listed && fits).then(|| text.clone())
            }
            (Type::Integer, Value::Number(number)) if self.is_kept(number) => {
                Some(number.to_string())
            }
            (Type::Number, Value::Number(number)) if self.within(number) => {
                Some(number.to_string())
            }
            (Type::Boolean, Value::Bool(value)) => Some(value.to_string()),
            (Type::Text | Type::Integer | Type::Number | Type::Boolean, _) => None,
        }
    }

    /// Whether the application reads this very integer. One too large for 64 bits was read as a fraction, and is none any more. fisk
    /// reads its plain `int`, which is one of the two types without bounds, as a double and rounds silently.
    fn is_kept(&self, number: &Number) -> bool {
        if number.is_f64() || !self.within(number) {
            return false;
        }
        let bounded = self.minimum.is_some() || self.maximum.is_some();
        bounded
            || number
                .as_i64()
                .is_some_and(|whole| whole as f64 as i128 == i128::from(whole))
    }

    fn within(&self, number: &Number) -> bool {
        let at_least = self
            .minimum
            .as_ref()
            .is_none_or(|minimum| compare(number, minimum).is_some_and(|o| o.is_ge()));
        let at_most = self
            .maximum
            .as_ref()
            .is_none_or(|maximum| compare(number, maximum).is_some_and(|o| o.is_le()));
        at_least && at_most
    }

    /// What is allowed, for a message.
    pub fn allowed(&self) -> String {
        if let Some(options) = &self.options {
            return format!(
                "one of {}",
                plain::list(options.iter().map(String::as_str), 50)
            );
        }
        let kind = match self.kind {
            Type::Text => "a string",
            Type::Integer if self.minimum.is_none() && self.maximum.is_none() => {
                "an integer that a double holds exactly, as the application may read it as one"
            }
            Type::Integer => "an integer of at most 64 bits",
            Type::Number => "a number",
            Type::Boolean => "true or false",
        };
        let mut allowed = kind.to_owned();
        if let Some(pattern) = &self.pattern {
            allowed.push_str(&format!(
                " that matches {}",
                plain::line(&pattern.spelled, 200)
            ));
        }
        if let Some(minimum) = &self.minimum {
            allowed.push_str(&format!(", at least {minimum}"));
        }
        if let Some(maximum) = &self.maximum {
            allowed.push_str(&format!(", at most {maximum}"));
        }
        allowed
    }
}

fn compare(a: &Number, b: &Number) -> Option<std::cmp::Ordering> {
    let whole = |n: &Number| {
        n.as_i64()
            .map(i128::from)
            .or_else(|| n.as_u64().map(i128::from))
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

impl Kind {
    /// What is allowed, for a message.
    pub fn allowed(&self) -> String {
        match self {
            Self::Switch(Off::Negated | Off::Omitted) => "true or false".to_owned(),
            Self::Switch(Off::Refused(_)) => "true, or leaving it out".to_owned(),
            Self::One(scalar) => scalar.allowed(),
            Self::List(scalar) => format!("a list, each of it {}", scalar.allowed()),
            Self::Map(scalar) => format!("an object, each value {}", scalar.allowed()),
        }
    }

    /// Reads the fragment that the application carries for a parameter that takes values, and holds it against what its
    /// parser says about repetition: where they differ, a value could be read as something else.
    pub fn read(
        fragment: &Map<String, Value>,
        cumulative: bool,
        patterns: &mut Patterns,
    ) -> Result<Self, String> {
        let mut part = |key: &str| match fragment.get(key) {
            Some(Value::Object(part)) => Scalar::read(part, patterns),
            _ => Ok(Scalar::text()),
        };
        let kind = match fragment.get("type").and_then(Value::as_str) {
            Some("array") => Self::List(part("items")?),
            Some("object") => Self::Map(part("additionalProperties")?),
            _ => Self::One(Scalar::read(fragment, patterns)?),
        };
        match (&kind, cumulative) {
            (Self::List(_) | Self::Map(_), true) | (Self::One(_) | Self::Switch(_), false) => {
                Ok(kind)
            }
            _ => Err("its schema and its parser differ in whether it may be repeated".to_owned()),
        }
    }

    /// What is known without a schema.
    pub fn derived(cumulative: bool) -> Self {
        if cumulative {
            Self::List(Scalar::text())
        } else {
            Self::One(Scalar::text())
        }
    }

    /// The fragment for the model, without a description. `carried` is what the application says.
    pub fn fragment(&self, carried: Option<&Map<String, Value>>) -> Map<String, Value> {
        let made = match (self, carried) {
            (Self::Switch(_), _) => json!({"type": "boolean"}),
            (_, Some(carried)) => {
                return carried
                    .iter()
                    .filter(|(key, _)| KEYWORDS.contains(&key.as_str()))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
            }
            (Self::List(_), None) => json!({"type": "array", "items": {"type": "string"}}),
            (Self::One(_) | Self::Map(_), None) => json!({"type": "string"}),
        };
        match made {
            Value::Object(fragment) => fragment,
            _ => Map::new(),
        }
    }

    /// Whether the schema lists what is allowed, so that a hint would say nothing more.
    pub fn has_options(&self) -> bool {
        match self {
            Self::Switch(_) => true,
            Self::One(scalar) | Self::List(scalar) | Self::Map(scalar) => scalar.options.is_some(),
        }
    }
}

/// What the model reads about a parameter.
pub(crate) fn description(help: &str, default: &[String], completions: &[String]) -> String {
    let mut text = plain::lines(help, MAX_HELP);
    if !default.is_empty() {
        let shown = plain::list(default.iter().map(String::as_str), MAX_HINTS);
        text.push_str(&format!(" (default: {shown})"));
    }
    if !completions.is_empty() {
        let shown = plain::list(completions.iter().map(String::as_str), MAX_HINTS);
        text.push_str(&format!(" (for example: {shown})"));
    }
    text.trim().to_owned()
}
