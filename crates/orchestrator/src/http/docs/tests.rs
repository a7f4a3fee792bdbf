//! The document against the table, the file and itself.

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
                documented(&doc, operation).contains(&action.to_owned()),
                "{row:?}"
            );
        }
    }
    for (path, item) in doc["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            let method = method.to_ascii_uppercase();
            let mut actions: Vec<_> = documented(&doc, operation).into_iter().map(Some).collect();
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

fn documented(doc: &Value, operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let action = parameters.into_iter().find(|p| p["name"] == "action");
    let schema = action.map(|a| a["schema"].clone()).unwrap_or_default();
    let schema = match schema["$ref"].as_str() {
        Some(to) => doc.pointer(&to[1..]).cloned().unwrap_or_default(),
        None => schema,
    };
    let values = schema["enum"].clone();
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

// check: HTTP-19
#[test]
fn every_rule_meets_a_member_of_the_document() {
    let (_, served) = routes::all().split_for_parts();
    let mut base = Base::openapi();
    base.merge(served);
    let doc = serde_json::to_value(&base).expect("JSON");
    for (name, rule) in members::rules() {
        let schema = &doc["components"]["schemas"][name];
        assert!(schema.is_object(), "there is no component {name}");
        for member in rule["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|m| m.0)
        {
            assert!(schema["properties"][member].is_object(), "{name}.{member}");
        }
    }
}

// check: HTTP-19
#[test]
fn operations_and_components_have_names_of_their_own() {
    let doc = document();
    let mut seen = BTreeSet::new();
    for (path, item) in doc["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            let id = operation["operationId"].as_str().unwrap_or_default();
            let plain = id.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(!id.is_empty() && plain, "{method} {path}: {id:?}");
            assert!(seen.insert(id.to_owned()), "{id} stands there twice");
        }
    }
    // An object inside of another has no name that a client could use.
    fn nested(at: &str, schema: &Value, found: &mut Vec<String>) {
        for (member, inner) in schema["properties"].as_object().into_iter().flatten() {
            let at = format!("{at}.{member}");
            for inner in [inner, &inner["items"], &inner["additionalProperties"]] {
                if inner["properties"].is_object() {
                    found.push(at.clone());
                }
            }
        }
    }
    let mut found = Vec::new();
    for (name, schema) in doc["components"]["schemas"].as_object().expect("schemas") {
        nested(name, schema, &mut found);
    }
    assert!(found.is_empty(), "{found:?}");
}

// check: HTTP-19
#[test]
fn what_is_sent_is_closed_and_every_answer_carries_its_id() {
    let doc = document();
    for body in [
        "ExecCommand",
        "AskRequest",
        "CreateEnvironment",
        "ExecGate",
        "CreateScopedKey",
    ] {
        let schema = &doc["components"]["schemas"][body];
        assert_eq!(schema["additionalProperties"], json!(false), "{body}");
    }
    let task = &doc["components"]["schemas"]["CreateEnvironment"]["required"];
    assert_eq!(task, &json!(["task_id"]));
    for (path, item) in doc["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            for (status, response) in operation["responses"].as_object().expect("responses") {
                let response = match response["$ref"].as_str() {
                    Some(to) => doc.pointer(&to[1..]).expect("a component"),
                    None => response,
                };
                let id = &response["headers"]["X-Request-ID"];
                assert!(id.is_object(), "{method} {path} {status}");
            }
        }
    }
}

// check: HTTP-17, HTTP-19
#[test]
fn security_names_whom_the_table_admits() {
    let doc = document();
    let of = |path: &str, method: &str| doc["paths"][path][method]["security"].clone();
    assert_eq!(of("/v1/api-keys", "get"), json!([{"bearer": ["master"]}]));
    assert_eq!(
        of("/v1/hitl/audit", "get"),
        json!([{"bearer": ["hitl:read"]}])
    );
    let act = of("/v1/environments/{id}", "post");
    assert_eq!(
        act,
        json!([{"bearer": ["full"]}, {"bearer": ["hitl:takeover"]}, {"bearer": ["master"]}])
    );
    let allow = &doc["components"]["responses"]["MethodNotAllowed"]["headers"]["Allow"];
    assert_eq!(allow["required"], json!(true));
}
