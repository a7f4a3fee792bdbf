//! The OpenAPI document: what the handlers say, completed from the route table.
//!
//! A handler declares its parameters, its bodies and its good answers. Credentials and failures are the same rule for every
//! route, so they are written by that rule and cannot be forgotten.

mod answers;
mod members;
mod variants;

use super::routes;
use answers::Operation;
use fuse_api::error::ErrorBody;
use fuse_api::events::Event;
use fuse_api::exec::ExecRequest;
use fuse_api::intervention::{ApproveRequest, RaiseRequest, RejectRequest};
use fuse_api::routes::{Access, ROUTES, Route, Served};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use utoipa::OpenApi;
use utoipa::openapi::schema::{AnyOfBuilder, KnownFormat, Schema, SchemaFormat};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Type};

/// What can be done to an environment.
pub struct EnvAction;
/// How an intervention can be decided.
pub struct DecideAction;
/// Which interventions a list shows.
pub struct StateFilter;
/// A duration in Go's syntax.
pub struct GoDuration;
/// A time, or how long ago.
pub struct Since;
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

fn duration() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(members::DURATION))
        .description(Some("A duration in Go's syntax, like 30s or 1h30m."))
}

fn since() -> RefOr<Schema> {
    let time = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    AnyOfBuilder::new()
        .item(time)
        .item(Ref::from_schema_name("GoDuration"))
        .description(Some("A time (RFC 3339), or how long ago as a duration."))
        .into()
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
    GoDuration => duration().into(),
    Since => since(),
    EnvActionBody => any_of(&["ExecRequest", "RaiseRequest"]),
    DecideBody => any_of(&["ApproveRequest", "RejectRequest"]),
}

/// What holds for every call.
const ABOUT: &str = "\
Environments for agents, and the people who decide what an agent may not decide alone.

Where one path has several actions, `?action=` names one; the forms of the body say which action they are for, and \
`x-fuse-bodies` lists them by action. Lengths count UTF-8 bytes. A member that is `null` counts as left out where its schema \
allows `null`. A body is read as JSON whatever its `Content-Type` says, and answers are what is documented whatever `Accept` says.

Calls of every path: an unknown path is a 404 (RouteNotFound), a known one with another method a 405 with `Allow` \
(MethodNotAllowed); HEAD goes where GET does. A request that is no HTTP, or whose head is too large, is refused before any of \
this, without a body. Refusals come in this order: 401, 400 for what cannot be read, 404, 403, 423, 409, 400 for its content.";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Fuse orchestrator",
        description = ABOUT,
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(
        ErrorBody,
        Event,
        ExecRequest,
        RaiseRequest,
        ApproveRequest,
        RejectRequest,
        StateFilter,
        EnvAction,
        DecideAction,
        GoDuration,
        Since
    ))
)]
struct Base;

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

/// The operations of rows that no handler documents yet, by the name that they keep.
const PLANNED: [(&str, &str, &str); 12] = [
    ("GET", "/v1/environments/{id}/attach", "attach_environment"),
    ("POST", "/v1/environments/{id}/snapshots", "create_snapshot"),
    ("POST", "/v1/environments/{id}/computer", "act_on_computer"),
    ("GET", "/v1/environments/{id}/computer", "get_computer"),
    (
        "GET",
        "/v1/environments/{id}/computer/stream",
        "stream_computer",
    ),
    ("GET", "/v1/snapshots", "list_snapshots"),
    ("GET", "/v1/snapshots/{id}", "get_snapshot"),
    ("DELETE", "/v1/snapshots/{id}", "delete_snapshot"),
    ("POST", "/v1/snapshots/{id}", "act_on_snapshot"),
    ("GET", "/v1/interventions/{id}/attach", "attach_takeover"),
    (
        "GET",
        "/v1/interventions/{id}/desktop",
        "attach_takeover_desktop",
    ),
    ("GET", "/v1/hitl/recordings/{id}", "get_recording"),
];

/// The kind of id that a path takes.
fn id_schema(path: &str) -> &'static str {
    let noun = path
        .split('/')
        .find(|part| !matches!(*part, "" | "v1" | "hitl"));
    match noun {
        Some("interventions") => "InterventionId",
        Some("snapshots") => "SnapshotId",
        Some("recordings") => "RecordingId",
        Some("api-keys") => "KeyId",
        _ => "EnvId",
    }
}

/// Rows that no served handler documents.
fn add_planned(doc: &mut Value) {
    for row in ROUTES.iter().filter(|row| row.served == Served::Later) {
        let operation = &mut doc["paths"][row.path][row.method.to_ascii_lowercase()];
        if !operation.is_null() {
            continue;
        }
        let planned = PLANNED
            .iter()
            .find(|p| (p.0, p.1) == (row.method, row.path));
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
            "operationId": planned.map(|p| p.2).unwrap_or_default(),
            "summary": "Not served by this release.",
            "tags": [row.path.split('/').nth(2).unwrap_or_default()],
            "parameters": parameters,
            "responses": {},
        });
    }
}

/// What no handler says: the rules of members, forms of bodies, credentials and failures.
fn complete(doc: &mut Value) {
    doc["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    doc["components"]["securitySchemes"]["bearer"] = json!({"type": "http", "scheme": "bearer",
        "description": "The master token or an API key. An operation names who it admits: `master` is the master token alone, `full` \
            the master token or a full-access key, `hitl:…` the master token or a key with that scope, `mint` whoever may mint \
            the key that is asked for. `x-fuse-access` says it for each action."});
    if let Some(schemas) = doc["components"]["schemas"].as_object_mut() {
        members::apply(schemas);
        variants::apply(schemas);
    }
    answers::components(doc);
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
            complete_operation(path, operation, &rows);
        }
    }
}

fn complete_operation(path: &str, operation: &mut Value, rows: &[&Route]) {
    let id = operation["operationId"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    // An index would leave a null where there is nothing.
    if let Some(parameters) = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut)
    {
        for parameter in parameters {
            without_null(&mut parameter["schema"]);
            if parameter["in"] == "path" {
                parameter["schema"] =
                    json!({"$ref": format!("#/components/schemas/{}", id_schema(path))});
            }
        }
    }
    let of = Operation { id: &id, rows };
    answers::complete(operation, &of);
    operation["security"] = rows
        .iter()
        .filter(|row| row.access != Access::Public)
        .map(|row| access_name(row.access))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|name| json!({"bearer": [name]}))
        .collect::<Vec<_>>()
        .into();
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
    if let Some((_, bodies)) = BODIES.iter().find(|(operation, _)| *operation == id) {
        operation["x-fuse-bodies"] = bodies
            .iter()
            .map(|(action, names)| ((*action).to_owned(), json!(names)))
            .collect::<Map<_, _>>()
            .into();
    }
    if BODY_IS_OPTIONAL.contains(&id.as_str()) {
        operation["requestBody"]["required"] = json!(false);
    }
}

/// An action and the forms of its body.
type Bodies = (&'static str, &'static [&'static str]);

/// Which forms of a body belong to which action. A query decides there, which no keyword of OpenAPI can say.
const BODIES: [(&str, &[Bodies]); 2] = [
    (
        "act_on_environment",
        &[
            ("exec", &["ExecCommand", "ExecShell"]),
            (
                "request",
                &[
                    "AskRequest",
                    "ReviewFileRequest",
                    "ReviewTextRequest",
                    "SecretRequest",
                    "TakeoverRequest",
                ],
            ),
        ],
    ),
    (
        "decide_intervention",
        &[
            ("approve", &["ApproveRequest"]),
            ("reject", &["RejectRequest"]),
        ],
    ),
];

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
mod tests;
