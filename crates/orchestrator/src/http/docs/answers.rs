//! What comes back beside the good answers: failures by status, the headers of every answer, and where an answer leads.

use fuse_api::error::{ErrorCode, Reason};
use fuse_api::routes::{Access, Route, Served};
use serde_json::{Value, json};

/// One status that is no success.
struct FailureOf {
    status: &'static str,
    name: &'static str,
    codes: &'static [ErrorCode],
    description: &'static str,
    applies: fn(&Operation<'_>) -> bool,
}

/// An operation, as far as its failures depend on it.
pub struct Operation<'a> {
    /// The `operationId`.
    pub id: &'a str,
    /// Its rows of the table; one for each action.
    pub rows: &'a [&'a Route],
}

impl Operation<'_> {
    fn any(&self, test: impl Fn(&Route) -> bool) -> bool {
        self.rows.iter().any(|row| test(row))
    }

    /// Whether no credential is needed.
    pub fn is_public(&self) -> bool {
        self.rows.iter().all(|row| row.access == Access::Public)
    }

    fn changes(&self) -> bool {
        self.any(|row| row.method != "GET")
    }

    fn takes_body(&self) -> bool {
        self.any(|row| row.method == "POST")
    }

    fn is_one_of(&self, ids: &[&str]) -> bool {
        ids.contains(&self.id)
    }

    /// Whether it is an upgrade to a stream into an environment.
    fn is_stream(&self) -> bool {
        self.any(|row| {
            ["/attach", "/desktop", "/stream"]
                .iter()
                .any(|end| row.path.ends_with(end))
        })
    }
}

#[rustfmt::skip]
const FAILURES: [FailureOf; 10] = [
    FailureOf { status: "400", name: "InvalidArgument", codes: &[ErrorCode::InvalidArgument],
        description: "The request is malformed or its content breaks a rule; the message and `details` name the field's path",
        applies: |o| !o.is_public() },
    FailureOf { status: "401", name: "Unauthorized", codes: &[ErrorCode::Unauthorized],
        description: "No valid credential came with the call",
        applies: |o| !o.is_public() },
    FailureOf { status: "403", name: "Forbidden", codes: &[ErrorCode::Forbidden, ErrorCode::Unauthorized],
        description: "The credential is valid and may not do this; `details.reason` is an ErrorReason. `unauthorized`: the call is for the master token alone",
        applies: |o| !o.is_public() },
    FailureOf { status: "404", name: "NotFound", codes: &[ErrorCode::NotFound],
        description: "There is no such thing within the credential's reach; an id that is malformed counts as unknown",
        applies: |o| o.any(|row| row.path.contains("{id}"))
            || o.is_one_of(&["list_interventions", "list_audit", "create_key"]) },
    FailureOf { status: "409", name: "Conflict", codes: &[ErrorCode::Conflict],
        description: "The state does not allow it; `details` tells the state",
        applies: |o| (o.changes() || o.is_stream()) && !o.is_one_of(&["create_key", "revoke_key"]) },
    FailureOf { status: "413", name: "PayloadTooLarge", codes: &[ErrorCode::PayloadTooLarge],
        description: "The body is over 2 MiB, or a part of it over its own limit",
        applies: |o| o.takes_body() },
    FailureOf { status: "423", name: "Locked", codes: &[ErrorCode::Locked],
        description: "A person holds the environment; `details.intervention_id` names what to wait for",
        applies: |o| o.is_stream() || o.any(|row| row.action == Some("exec") || row.path.ends_with("/computer") && row.method == "POST") },
    FailureOf { status: "500", name: "Internal", codes: &[ErrorCode::Internal],
        description: "A fault of the orchestrator; its log has the cause under the answer's X-Request-ID",
        applies: |_| true },
    FailureOf { status: "501", name: "Unimplemented", codes: &[ErrorCode::Unimplemented],
        description: "Known, and not served by this release",
        applies: |o| o.any(|row| row.served == Served::Later)
            || o.is_one_of(&["create_environment", "create_key", "act_on_environment", "decide_intervention"]) },
    FailureOf { status: "503", name: "Unavailable", codes: &[ErrorCode::Unavailable],
        description: "A part that is needed does not answer; nothing was done",
        // Only readiness, of what needs no credential, has a part that may not answer.
        applies: |o| !o.is_public() || o.any(|row| row.path == "/ready") },
];

/// The failures that belong to no operation, since no operation has such a path or method.
#[rustfmt::skip]
const ELSEWHERE: [FailureOf; 2] = [
    FailureOf { status: "404", name: "RouteNotFound", codes: &[ErrorCode::RouteNotFound],
        description: "There is no such path", applies: |_| false },
    FailureOf { status: "405", name: "MethodNotAllowed", codes: &[ErrorCode::MethodNotAllowed],
        description: "The path is known and does not take this method; HEAD goes where GET does", applies: |_| false },
];

/// Components of the failures and of headers.
pub fn components(doc: &mut Value) {
    let parts = &mut doc["components"];
    parts["headers"]["X-Request-ID"] = json!({"required": true,
        "description": "The id of the call in the log: the caller's own where it is well formed, else a new one.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"}});
    for failure in FAILURES.iter().chain(&ELSEWHERE) {
        let codes: Vec<_> = failure.codes.iter().map(|code| code.as_str()).collect();
        let mut response = json!({
            "description": format!("{}. Code: `{}`.", failure.description, codes.join("`, `")),
            "headers": {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}},
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
            "x-fuse-codes": codes,
        });
        let own = match failure.status {
            "401" => Some((
                "WWW-Authenticate",
                json!({"type": "string", "enum": ["Bearer"]}),
            )),
            "405" => Some((
                "Allow",
                json!({"type": "string", "pattern": "^[A-Z]+(, [A-Z]+)*$"}),
            )),
            _ => None,
        };
        if let Some((header, schema)) = own {
            response["headers"][header] = json!({"required": true, "schema": schema});
        }
        parts["responses"][failure.name] = response;
    }
    parts["schemas"]["ErrorReason"] = json!({"type": "string", "enum": Reason::ALL.map(Reason::as_str),
        "description": "`details.reason` of a 403."});
    let actor = |name: &str, description: &str| {
        json!({"name": name, "in": "header", "description": description,
            "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]([ -~]*[!-~])?$"}})
    };
    parts["parameters"]["FuseActor"] = actor(
        "Fuse-Actor",
        "Who acts, for the record: an opaque id. Only the master token and keys with `hitl:act-as` may name one. UTF-8 is taken \
         too; ids of Fuse itself (`master`, `system`, `key:…`, `gate:…`, `decider:…`) are refused.",
    );
    parts["parameters"]["FuseActorName"] = actor(
        "Fuse-Actor-Name",
        "What people call the actor; it needs `Fuse-Actor` beside it. UTF-8 is taken too.",
    );
}

/// The failures of an operation, the headers of its answers, and where its answers lead.
pub fn complete(operation: &mut Value, of: &Operation<'_>) {
    for failure in FAILURES.iter().filter(|failure| (failure.applies)(of)) {
        let name = format!("#/components/responses/{}", failure.name);
        operation["responses"][failure.status] = json!({"$ref": name});
    }
    for response in operation["responses"]
        .as_object_mut()
        .into_iter()
        .flat_map(|all| all.values_mut())
    {
        if response.get("$ref").is_none() {
            response["headers"]["X-Request-ID"] =
                json!({"$ref": "#/components/headers/X-Request-ID"});
        }
    }
    for (from, status, at, to) in LINKS {
        if of.id == from {
            let name = to.to_owned();
            operation["responses"][status]["links"][name] = json!({"operationId": to,
                "parameters": {"path.id": format!("$response.body#/{at}")}});
        }
    }
    if !of.is_public() {
        let parameters = ["FuseActor", "FuseActorName"];
        let parameters =
            parameters.map(|name| json!({"$ref": format!("#/components/parameters/{name}")}));
        match operation["parameters"].as_array_mut() {
            Some(all) => all.extend(parameters),
            None => operation["parameters"] = json!(parameters),
        }
    }
}

/// Which member of which answer is the `id` of which operation.
const LINKS: [(&str, &str, &str, &str); 9] = [
    ("create_environment", "201", "id", "get_environment"),
    ("create_environment", "201", "id", "act_on_environment"),
    ("create_environment", "201", "id", "destroy_environment"),
    ("act_on_environment", "201", "id", "get_intervention"),
    ("act_on_environment", "201", "id", "decide_intervention"),
    (
        "act_on_environment",
        "202",
        "intervention_id",
        "get_intervention",
    ),
    (
        "act_on_environment",
        "202",
        "intervention_id",
        "decide_intervention",
    ),
    (
        "destroy_environment",
        "202",
        "intervention_id",
        "get_intervention",
    ),
    ("create_key", "201", "id", "revoke_key"),
];
