//! OpenAPI schemas of the types that serialise by hand.

use utoipa::openapi::schema::{OneOfBuilder, Schema};
use utoipa::openapi::{ObjectBuilder, RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

use super::{GrantReach, OneOrMany};

impl PartialSchema for OneOrMany {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(String::schema())
            .item(Vec::<String>::schema())
            .description(Some("One name or a list of names; always shown as a list."))
            .into()
    }
}

impl ToSchema for OneOrMany {}

impl PartialSchema for GrantReach {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^(once|env|ttl:.+)$"))
            .description(Some(
                "once, env, or ttl: and a duration of 10s to 24h, like ttl:30m.",
            ))
            .into()
    }
}

impl ToSchema for GrantReach {}
