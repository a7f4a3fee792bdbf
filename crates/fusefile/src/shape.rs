//! Holds the shape of a file against the schema, and finds everything that is wrong at once.

use std::str::FromStr as _;

use fuse_api::hitl::GrantReach;
use fuse_api::time::parse_go_duration;
use serde_json::{Map, Value};

use crate::path::Path;
use crate::place::Place;
use crate::schema::json_schema;
use crate::tree::{Entry, Kind, Node};

/// Something that does not fit.
pub(crate) struct Misfit {
    pub path: String,
    pub place: Place,
    pub message: String,
    /// A value of unknown meaning that stands on the same line as its key, and is not to be shown.
    pub hide: Option<Node>,
}

/// The file as JSON, numbers and booleans as text where text is wanted.
///
/// # Errors
/// Every part that does not fit the schema; never an empty list.
pub(crate) fn check(root: &Node) -> Result<Value, Vec<Misfit>> {
    let mut shape = Shape {
        misfits: Vec::new(),
    };
    let value = shape.value(root, json_schema(), &Path::root(), root.place);
    if shape.misfits.is_empty() {
        Ok(value)
    } else {
        Err(shape.misfits)
    }
}

struct Shape {
    misfits: Vec<Misfit>,
}

impl Shape {
    fn misfit(&mut self, path: &Path, place: Place, message: impl Into<String>) -> Value {
        self.misfits.push(Misfit {
            path: path.to_string(),
            place,
            message: message.into(),
            hide: None,
        });
        Value::Null
    }

    /// `near` is the key or the list item that a value belongs to.
    fn value(&mut self, node: &Node, schema: &Value, path: &Path, near: Place) -> Value {
        let schema = resolve(schema);
        if node.kind == Kind::Null {
            let what = expected(schema);
            return if path.is_root() {
                self.misfit(path, near, "the file is empty: begin with `version: 1`")
            } else {
                self.misfit(
                    path,
                    near,
                    format!("has no value: write {what}, or leave the key out"),
                )
            };
        }
        if let Some(words) = words(schema) {
            return self.word(node, &words, path);
        }
        let schema = match alternatives(schema) {
            Some(some) => match some
                .iter()
                .map(resolve)
                .find(|one| accepts(one, &node.kind))
            {
                Some(one) => one,
                None => return self.wrong_type(node, schema, path, near),
            },
            None => schema,
        };
        if !accepts(schema, &node.kind) {
            return self.wrong_type(node, schema, path, near);
        }
        match &node.kind {
            Kind::Null => Value::Null,
            Kind::Bool { spelling, .. } if types(schema).contains(&"string") => {
                Value::from(spelling.as_str())
            }
            Kind::Bool { value, .. } => Value::from(*value),
            Kind::Number(spelling) => self.number(spelling, schema, node.place, path),
            Kind::Text(text) => self.text(text, schema, node.place, path),
            Kind::List(items) => {
                let items = items.iter().enumerate();
                let each = &schema["items"];
                items
                    .map(|(index, item)| self.value(item, each, &path.item(index), item.place))
                    .collect()
            }
            Kind::Map(entries) => self.map(entries, schema, path, near),
        }
    }

    fn wrong_type(&mut self, node: &Node, schema: &Value, path: &Path, near: Place) -> Value {
        let place = match node.kind {
            Kind::List(_) | Kind::Map(_) | Kind::Null => near,
            Kind::Bool { .. } | Kind::Number(_) | Kind::Text(_) => node.place,
        };
        let quotes = match node.kind {
            Kind::Bool { .. } | Kind::Number(_)
                if schema.get("format").is_none()
                    && accepts(schema, &Kind::Text(String::new())) =>
            {
                ": put it in quotes to make it text"
            }
            Kind::Null
            | Kind::Bool { .. }
            | Kind::Number(_)
            | Kind::Text(_)
            | Kind::List(_)
            | Kind::Map(_) => "",
        };
        let message = format!(
            "must be {}, not {}{quotes}",
            expected(schema),
            node.kind.name()
        );
        let place = if path.holds_values() { near } else { place };
        self.misfit(path, place, message)
    }

    fn word(&mut self, node: &Node, words: &[&str], path: &Path) -> Value {
        match &node.kind {
            Kind::Text(text) if words.contains(&text.as_str()) => Value::from(text.as_str()),
            Kind::Text(text) => {
                let hint = suggestion(text, words.iter().copied());
                self.misfit(
                    path,
                    node.place,
                    format!("must be {}, not {text:?}{hint}", list(words)),
                )
            }
            other => {
                let name = other.name();
                self.misfit(
                    path,
                    node.place,
                    format!("must be {}, not {name}", list(words)),
                )
            }
        }
    }

    fn number(&mut self, spelling: &str, schema: &Value, place: Place, path: &Path) -> Value {
        let types = types(schema);
        if types.contains(&"string") {
            return Value::from(spelling);
        }
        let value = if types.contains(&"integer") {
            let value = whole(spelling).filter(|value| in_format(*value, schema));
            match value {
                Some(value) => match u64::try_from(value) {
                    Ok(value) => Value::from(value),
                    Err(_) => i64::try_from(value).map_or(Value::Null, Value::from),
                },
                None => {
                    let least = if schema.get("minimum").is_some() {
                        ", 0 or more"
                    } else {
                        ""
                    };
                    return self.misfit(
                        path,
                        place,
                        format!("must be a whole number{least}, not {spelling}"),
                    );
                }
            }
        } else {
            match spelling
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite())
            {
                Some(value) => Value::from(value),
                None => {
                    return self.misfit(
                        path,
                        place,
                        format!("must be a decimal number, not {spelling}"),
                    );
                }
            }
        };
        match schema.get("const") {
            Some(only) if *only != value => {
                self.misfit(path, place, format!("must be {only}, not {spelling}"))
            }
            Some(_) | None => value,
        }
    }

    fn text(&mut self, text: &str, schema: &Value, place: Place, path: &Path) -> Value {
        let fault = match schema.get("format").and_then(Value::as_str) {
            Some("go-duration") => match parse_go_duration(text) {
                Ok(nanos) if nanos >= 0 && nanos % 1_000_000_000 == 0 => None,
                Ok(_) | Err(_) => Some(format!(
                    "must be a duration in whole seconds, like 90s, 10m or 1h30m, not {text:?}"
                )),
            },
            Some("grant") => match GrantReach::from_str(text) {
                Ok(_) => None,
                Err(error) => Some(format!("is {text:?}: {error}")),
            },
            Some(_) | None => None,
        };
        match fault {
            Some(fault) => self.misfit(path, place, fault),
            None => Value::from(text),
        }
    }

    fn map(&mut self, entries: &[Entry], schema: &Value, path: &Path, near: Place) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut seen: Vec<&Entry> = Vec::with_capacity(entries.len());
        let mut value = Map::new();
        for entry in entries {
            let at = path.key(&entry.key);
            if let Some(first) = seen.iter().find(|first| first.key == entry.key) {
                let line = first.key_place.line;
                self.misfit(
                    &at,
                    entry.key_place,
                    format!("stands twice: the first is on line {line}"),
                );
                continue;
            }
            seen.push(entry);
            let own = properties.and_then(|properties| properties.get(&entry.key));
            match own.or_else(|| {
                schema
                    .get("additionalProperties")
                    .filter(|rest| rest.is_object())
            }) {
                Some(schema) => {
                    let read = self.value(&entry.value, schema, &at, entry.key_place);
                    value.insert(entry.key.clone(), read);
                }
                None => self.unknown(entry, properties, path),
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        for key in required.into_iter().flatten().filter_map(Value::as_str) {
            if !seen.iter().any(|entry| entry.key == key) {
                let own = properties
                    .and_then(|all| all.get(key))
                    .unwrap_or(&Value::Null);
                let what = match own.get("const") {
                    Some(only) => format!("write `{key}: {only}`"),
                    None => format!("it takes {}", expected(own)),
                };
                self.misfit(path, near, format!("the key `{key}` is missing: {what}"));
            }
        }
        Value::Object(value)
    }

    fn unknown(&mut self, entry: &Entry, properties: Option<&Map<String, Value>>, path: &Path) {
        let known: Vec<&str> = properties
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
            .collect();
        let hint = suggestion(&entry.key, known.iter().copied());
        let message = match entry.key.as_str() {
            "<<" => "merge keys (`<<`) are not read: repeat the keys".to_owned(),
            key if known.is_empty() => format!("unknown key {key:?}: no key is allowed here"),
            key if hint.is_empty() => {
                format!("unknown key {key:?}; allowed here: {}", known.join(", "))
            }
            key => format!("unknown key {key:?}{hint}"),
        };
        self.misfit(path, entry.key_place, message);
        if let Some(last) = self.misfits.last_mut() {
            last.hide = Some(entry.value.clone());
        }
    }
}

/// Follows references; the schema has no chain of them that ends in itself.
fn resolve(schema: &Value) -> &Value {
    match schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|to| to.strip_prefix('#'))
    {
        Some(to) => json_schema().pointer(to).map_or(schema, resolve),
        None => schema,
    }
}

fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))
        .and_then(Value::as_array)
}

/// The words of an enumeration.
fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.iter().map(Value::as_str).collect();
    }
    alternatives(schema)?
        .iter()
        .map(
            |one| match one.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
                Some([word]) => word.as_str(),
                Some(_) => None,
                None => one.get("const").and_then(Value::as_str),
            },
        )
        .collect()
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    }
}

fn accepts(schema: &Value, kind: &Kind) -> bool {
    if let Some(some) = alternatives(schema) {
        return some.iter().map(resolve).any(|one| accepts(one, kind));
    }
    let types = types(schema);
    match kind {
        Kind::Null => false,
        Kind::Bool { .. } => types.contains(&"boolean"),
        Kind::Number(_) => types.contains(&"integer") || types.contains(&"number"),
        Kind::Text(_) => types.contains(&"string"),
        Kind::List(_) => types.contains(&"array"),
        Kind::Map(_) => types.contains(&"object"),
    }
}

/// What a schema allows, in words.
fn expected(schema: &Value) -> String {
    let schema = resolve(schema);
    if let Some(words) = words(schema) {
        return list(&words);
    }
    if let Some(some) = alternatives(schema) {
        let mut all: Vec<String> = some.iter().map(expected).collect();
        all.dedup();
        return all.join(" or ");
    }
    if let Some(only) = schema.get("const") {
        return format!("the number {only}");
    }
    match (
        schema.get("format").and_then(Value::as_str),
        types(schema).first().copied(),
    ) {
        (Some("go-duration"), _) => "a duration like 90s, 10m or 1h30m".to_owned(),
        (Some("grant"), _) => "`once`, `env` or `ttl:` and a duration".to_owned(),
        (_, Some("string")) => "text".to_owned(),
        (_, Some("boolean")) => "`true` or `false`".to_owned(),
        (_, Some("integer" | "number")) => "a number".to_owned(),
        (_, Some("array")) => match expected(&schema["items"]).as_str() {
            "text" => "a list of texts".to_owned(),
            _ => "a list".to_owned(),
        },
        (_, Some("object")) => {
            let keys = schema.get("properties").and_then(Value::as_object);
            match keys.map(|keys| keys.keys().map(String::as_str).collect::<Vec<_>>()) {
                None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                    "`{}`".to_owned()
                }
                Some(keys) if (1..=3).contains(&keys.len()) => {
                    format!("a mapping with {}", keys.join(", "))
                }
                Some(_) | None => "a mapping".to_owned(),
            }
        }
        (_, _) => "a value".to_owned(),
    }
}

fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "nothing".to_owned(),
    }
}

/// `, did you mean "x"?`, or nothing where no word is near.
fn suggestion<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> String {
    if wrong.len() > 64 {
        return String::new();
    }
    let wrong = wrong.to_lowercase();
    known
        .map(|word| (strsim::damerau_levenshtein(&wrong, word), word))
        .filter(|(distance, word)| *distance * 3 <= word.chars().count().max(3))
        .min()
        .map_or(String::new(), |(_, word)| {
            format!(", did you mean {word:?}?")
        })
}

/// A whole number in decimal.
fn whole(spelling: &str) -> Option<i128> {
    let digits = spelling.strip_prefix(['-', '+']).unwrap_or(spelling);
    let plain =
        !digits.is_empty() && digits.len() <= 20 && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| spelling.parse().ok()).flatten()
}

fn in_format(value: i128, schema: &Value) -> bool {
    match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => u32::try_from(value).is_ok(),
        Some("uint64") => u64::try_from(value).is_ok(),
        Some(_) | None => i64::try_from(value).is_ok(),
    }
}
