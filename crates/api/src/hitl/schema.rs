//! JSON Schemas of the types that serialise by hand.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{GrantReach, OneOrMany};

impl JsonSchema for OneOrMany {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "OneOrMany".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    }
}

impl JsonSchema for GrantReach {
    fn schema_name() -> Cow<'static, str> {
        "GrantReach".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^(once|env|ttl:.+)$"})
    }
}
