//! The JSON Schema of the Fusefile, generated from the types in [`crate::model`].

use std::sync::LazyLock;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

use crate::model::Fusefile;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(without_null))
        .with_transform(RecursiveTransform(with_pattern))
        .into_generator()
        .into_root_schema_for::<Fusefile>();
    schema.insert("title".to_owned(), Value::from("Fusefile"));
    schema.to_value()
});

/// The schema as a JSON document. It is the same on every call.
#[must_use]
pub fn json_schema() -> &'static Value {
    &SCHEMA
}

/// A key that is there has a value: `null` is no way to leave something out.
fn without_null(schema: &mut Schema) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(any)) = schema.get_mut("anyOf") else {
        return;
    };
    any.retain(|alternative| alternative.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = any.as_slice() {
        let only = only.clone();
        schema.remove("anyOf");
        for (keyword, value) in only {
            schema.insert(keyword, value);
        }
    }
}

/// Editors know no durations and grants, but they know patterns.
fn with_pattern(schema: &mut Schema) {
    let pattern = match schema.get("format").and_then(Value::as_str) {
        Some("go-duration") => "^(0|([0-9.]+(ns|us|ms|s|m|h))+)$",
        Some("grant") => "^(once|env|ttl:.+)$",
        Some(_) | None => return,
    };
    schema.insert("pattern".to_owned(), Value::from(pattern));
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: FILE-7
    #[test]
    fn the_checked_in_schema_is_current() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/fusefile.schema.json"
        );
        let mut text = serde_json::to_string_pretty(json_schema()).unwrap();
        text.push('\n');
        if std::env::var_os("FUSE_UPDATE_SCHEMA").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            stored == text,
            "docs/fusefile.schema.json is stale: run this test with FUSE_UPDATE_SCHEMA=1"
        );
    }
}
