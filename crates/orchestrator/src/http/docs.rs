//! The OpenAPI document: what the handlers say, completed from the route table.
//!
//! A handler declares its parameters, its bodies and its good answers. Credentials and failures are the same rule for every
//! route, so they are written by that rule and cannot be forgotten.

use super::routes;
use fuse_api::error::ErrorBody;
use fuse_api::events::Event;
use fuse_api::exec::ExecRequest;
use fuse_api::intervention::{ApproveRequest, RaiseRequest, RejectRequest};
use fuse_api::routes::{Access, ROUTES, Route, Served};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa::openapi::schema::{AnyOfBuilder, Schema};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Type};

/// What can be done to an environment.
pub struct EnvAction;
/// How an intervention can be decided.
pub struct DecideAction;
/// Which interventions a list shows.
pub struct StateFilter;
/// The body of an environment's action.
pub struct EnvActionBody;
/// The body of a decision.
pub struct DecideBody;

fn names(names: Vec<&'static str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names))
        .into()
}

fn actions(method: &str, path: &str) -> Vec<&'static str> {
    let rows = ROUTES
        .iter()
        .filter(|r| r.method == method && r.path == path);
    rows.filter_map(|r| r.action).collect()
}

fn any_of(bodies: &[&str]) -> RefOr<Schema> {
    let all = bodies.iter().fold(AnyOfBuilder::new(), |any, name| {
        any.item(Ref::from_schema_name(*name))
    });
    all.into()
}

macro_rules! inline_schema {
    ($($name:ty => $schema:expr),+ $(,)?) => {$(
        impl utoipa::PartialSchema for $name {
            fn schema() -> RefOr<Schema> { $schema }
        }
        impl utoipa::ToSchema for $name {}
    )+};
}

inline_schema! {
    EnvAction => names(actions("POST", "/v1/environments/{id}")),
    DecideAction => names(actions("POST", "/v1/interventions/{id}")),
    StateFilter => names(vec!["pending", "approved", "rejected", "expired", "cancelled", "all"]),
    EnvActionBody => any_of(&["ExecRequest", "RaiseRequest"]),
    DecideBody => any_of(&["ApproveRequest", "RejectRequest"]),
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Fuse orchestrator",
        description = "Environments for agents, and the people who decide what an agent may not decide alone.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(
        ErrorBody,
        Event,
        ExecRequest,
        RaiseRequest,
        ApproveRequest,
        RejectRequest,
        StateFilter
    ))
)]
struct Base;

/// The failures of every call, by status: the name of the component and what it means.
const FAILURES: [(&str, &str, &str); 10] = [
    (
        "400",
        "InvalidArgument",
        "The request is malformed or its content breaks a rule; the message names the field's path",
    ),
    (
        "401",
        "Unauthorized",
        "No valid credential came with the call",
    ),
    (
        "403",
        "Forbidden",
        "The credential is valid and may not do this; `details.reason` says why",
    ),
    (
        "404",
        "NotFound",
        "There is no such thing within the credential's reach, or no such route",
    ),
    ("409", "Conflict", "The state does not allow it"),
    (
        "413",
        "PayloadTooLarge",
        "The body, or a part of it, is over its limit",
    ),
    ("423", "Locked", "A person holds the environment"),
    ("500", "Internal", "A fault of the orchestrator"),
    (
        "501",
        "Unimplemented",
        "Known, and not served by this release",
    ),
    (
        "503",
        "Unavailable",
        "A part that is needed does not answer; nothing was done",
    ),
];

/// The calls whose body may be left out, which means `{}`.
const BODY_IS_OPTIONAL: [&str; 2] = ["create_key", "decide_intervention"];

/// The document, as JSON with sorted keys and a line end.
#[must_use]
pub fn openapi() -> String {
    let (_, served) = routes::all().split_for_parts();
    let mut base = Base::openapi();
    base.merge(served);
    // The types of the document print; an empty one would fail the test that reads it.
    let mut doc = serde_json::to_value(&base).unwrap_or_default();
    add_planned(&mut doc);
    complete(&mut doc);
    let mut text = serde_json::to_string_pretty(&sorted(doc)).unwrap_or_default();
    text.push('\n');
    text
}

/// Rows that no served handler documents.
fn add_planned(doc: &mut Value) {
    for row in ROUTES.iter().filter(|row| row.served == Served::Later) {
        let operation = &mut doc["paths"][row.path][row.method.to_ascii_lowercase()];
        if !operation.is_null() {
            continue;
        }
        let name = row.path.trim_start_matches("/v1/");
        let id = format!("{}_{name}", row.method.to_ascii_lowercase());
        let id: String = id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let mut parameters = Vec::new();
        if row.path.contains("{id}") {
            parameters.push(
                json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}),
            );
        }
        if row.action.is_some() {
            parameters.push(json!({"name": "action", "in": "query", "required": true,
                "schema": {"type": "string", "enum": actions(row.method, row.path)}}));
        }
        *operation = json!({
            "operationId": id,
            "summary": "Not served by this release.",
            "parameters": parameters,
            "responses": {},
        });
    }
}

/// Credentials, failures, and parameters that are left out rather than null.
fn complete(doc: &mut Value) {
    doc["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    doc["components"]["securitySchemes"]["bearer"] = json!({"type": "http", "scheme": "bearer",
        "description": "The master token or an API key."});
    for (_, name, description) in FAILURES {
        doc["components"]["responses"][name] = json!({
            "description": description,
            "headers": {"X-Request-ID": {"schema": {"type": "string"}, "description": "The id of the call in the log"}},
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
        });
    }
    let Some(paths) = doc["paths"].as_object_mut() else {
        return;
    };
    for (path, item) in paths {
        let Some(item) = item.as_object_mut() else {
            continue;
        };
        for (method, operation) in item {
            let method = method.to_ascii_uppercase();
            let rows: Vec<_> = ROUTES
                .iter()
                .filter(|r| r.method == method && r.path == *path)
                .collect();
            complete_operation(operation, &rows);
        }
    }
}

fn complete_operation(operation: &mut Value, rows: &[&Route]) {
    let public = rows.iter().all(|row| row.access == Access::Public);
    let changes = rows.iter().any(|row| row.method != "GET");
    let later = rows.iter().any(|row| row.served == Served::Later);
    for (status, name, _) in FAILURES {
        let applies = match status {
            "500" => true,
            // Only readiness has a part that may not answer.
            "503" => !public || rows.iter().any(|row| row.path == "/ready"),
            "409" | "413" | "423" => changes,
            "501" => later || changes,
            _ => !public,
        };
        if applies {
            let reference = format!("#/components/responses/{name}");
            operation["responses"][status] = json!({"$ref": reference});
        }
    }
    operation["security"] = if public {
        json!([])
    } else {
        json!([{"bearer": []}])
    };
    operation["x-fuse-access"] = rows
        .iter()
        .map(|row| {
            (
                row.action.unwrap_or("call").to_owned(),
                json!(access_name(row.access)),
            )
        })
        .collect::<Map<_, _>>()
        .into();
    if BODY_IS_OPTIONAL
        .iter()
        .any(|id| operation["operationId"] == *id)
    {
        operation["requestBody"]["required"] = json!(false);
    }
    // An index would leave a null where there is nothing.
    if let Some(parameters) = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut)
    {
        for parameter in parameters {
            without_null(&mut parameter["schema"]);
        }
    }
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access::Public => "public",
        Access::Full => "full",
        Access::Master => "master",
        Access::Scoped(scope) => scope.as_str(),
        Access::Mint => "mint",
    }
}

/// A parameter is there or it is not: it has no null.
fn without_null(schema: &mut Value) {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|t| t != "null");
        if let [only] = &types[..] {
            schema["type"] = only.clone();
        }
    }
    for key in ["oneOf", "anyOf"] {
        let Some(forms) = schema.get_mut(key).and_then(Value::as_array_mut) else {
            continue;
        };
        forms.retain(|form| form["type"] != "null");
        if let [only] = &forms[..] {
            *schema = only.clone();
        }
    }
}

/// The same value with its keys in order, whatever order the JSON library keeps.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().map(|(k, v)| (k, sorted(v))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        serde_json::from_str(&openapi()).expect("JSON")
    }

    // check: HTTP-11
    #[test]
    fn the_document_and_the_route_table_say_the_same() {
        let doc = document();
        for row in ROUTES {
            let operation = &doc["paths"][row.path][row.method.to_ascii_lowercase()];
            assert!(operation.is_object(), "{row:?} is not in the document");
            if let Some(action) = row.action {
                assert!(
                    documented(operation).contains(&action.to_owned()),
                    "{row:?}"
                );
            }
        }
        for (path, item) in doc["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("methods") {
                let method = method.to_ascii_uppercase();
                let mut actions: Vec<_> = documented(operation).into_iter().map(Some).collect();
                if actions.is_empty() {
                    actions.push(None);
                }
                for action in actions {
                    let row = fuse_api::routes::find(&method, path, action.as_deref());
                    assert!(
                        row.is_some(),
                        "{method} {path} {action:?} is not in the table"
                    );
                }
            }
        }
    }

    fn documented(operation: &Value) -> Vec<String> {
        let parameters = operation["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let action = parameters.into_iter().find(|p| p["name"] == "action");
        let values = action
            .map(|a| a["schema"]["enum"].clone())
            .unwrap_or_default();
        let values = values.as_array().cloned().unwrap_or_default();
        values
            .iter()
            .filter_map(|v| v.as_str().map(str::to_owned))
            .collect()
    }

    // check: HTTP-11
    #[test]
    fn every_reference_in_the_document_leads_somewhere() {
        fn walk(value: &Value, doc: &Value, seen: &mut usize) {
            match value {
                Value::Object(members) => {
                    if let Some(to) = members.get("$ref").and_then(Value::as_str) {
                        *seen += 1;
                        assert!(doc.pointer(&to[1..]).is_some(), "{to} leads nowhere");
                    }
                    members.values().for_each(|v| walk(v, doc, seen));
                }
                Value::Array(items) => items.iter().for_each(|v| walk(v, doc, seen)),
                _ => {}
            }
        }
        let doc = document();
        let mut seen = 0;
        walk(&doc, &doc, &mut seen);
        assert!(seen > 100, "only {seen} references");
    }

    // check: HTTP-11
    #[test]
    fn the_checked_in_document_is_the_one_the_code_prints() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi/fuse-v1.json");
        let stored = std::fs::read_to_string(path).expect("openapi/fuse-v1.json");
        assert!(stored == openapi(), "run `cargo xtask regenerate`");
    }

    // check: HTTP-11
    #[test]
    fn no_member_of_the_document_is_null() {
        assert!(!openapi().contains(": null"));
    }

    // check: ACCESS-1
    #[test]
    fn only_public_routes_are_documented_without_a_credential() {
        let doc = document();
        for row in ROUTES {
            let security = &doc["paths"][row.path][row.method.to_ascii_lowercase()]["security"];
            let open = security.as_array().is_some_and(Vec::is_empty);
            assert_eq!(open, row.access == Access::Public, "{row:?}");
        }
    }
}
