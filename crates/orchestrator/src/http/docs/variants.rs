//! Bodies that come in several forms: one closed schema with a name for each.
//!
//! The types read all members of all forms and the domain says which of them belong together. Here each form has a schema of
//! its own that takes the members' descriptions from the type.

use super::members::{
    FILE, MAX_PATH, NOT_BLANK, PROGRAM, SECRET_NAME, SEEN, VARIABLE, deadline, patch, whole,
};
use fuse_domain::environment::{MAX_TEXT_BYTES, Network};
use fuse_domain::intervention::request::{
    MAX_CHOICE, MAX_CHOICES, MAX_QUESTION, MAX_REVIEW, MAX_TEXT,
};
use fuse_domain::policy::{ComputerAction, LifecycleAction};
use serde_json::{Map, Value, json};

/// One form of a body.
struct Form {
    name: &'static str,
    description: &'static str,
    /// Its members, each laid over the same member of the type.
    members: Value,
    required: &'static [&'static str],
}

const fn form(
    name: &'static str,
    description: &'static str,
    members: Value,
    required: &'static [&'static str],
) -> Form {
    Form {
        name,
        description,
        members,
        required,
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn closed(description: &str, properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "description": description, "properties": properties,
        "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn one_of(description: &str, names: &[&str]) -> Value {
    let forms: Vec<_> = names.iter().map(|name| reference(name)).collect();
    json!({"description": description, "oneOf": forms})
}

fn one_or_many(item: &Value) -> Value {
    json!({"oneOf": [item, {"type": "array", "minItems": 1, "items": item}]})
}

/// A reference that stands in the place of what a type says.
fn instead(name: &str) -> Value {
    json!({"type": null, "items": null, "$ref": format!("#/components/schemas/{name}")})
}

/// The same, or `null`.
fn instead_or_null(name: &str) -> Value {
    let mut schema = instead(name);
    schema["nullable"] = json!(true);
    schema
}

/// A member that says nothing beside the one that counts.
fn unsaid() -> Value {
    json!({"type": "null"})
}

#[rustfmt::skip]
fn forms() -> Vec<(&'static str, Vec<Form>)> {
    let text = |most: usize| json!({"type": "string", "pattern": SEEN, "maxLength": most});
    let file = json!({"type": "string", "pattern": FILE, "maxLength": MAX_PATH});
    let secret = json!({"type": "string", "pattern": SECRET_NAME});
    let line = json!({"type": "string", "pattern": NOT_BLANK});
    let format = json!({"type": null, "oneOf": [reference("ReviewFormat"), {"enum": ["", null]}]});
    let note = json!({"maxLength": MAX_TEXT});
    vec![
        ("EnvVar", vec![
            form("EnvVarValue", "A variable by its value.",
                json!({"value": {"type": "string", "maxLength": MAX_TEXT_BYTES}}), &["value"]),
            form("EnvVarSecret", "A variable that has the value of an entry of `secrets`.",
                json!({"secret": secret}), &["secret"]),
        ]),
        ("SecretTarget", vec![
            form("SecretVariable", "A variable that a secret may land in.",
                json!({"env": {"type": "string", "pattern": VARIABLE}, "label": text(MAX_TEXT)}), &["env", "label"]),
            form("SecretFile", "A file that a secret may land in.",
                json!({"file": file, "label": text(MAX_TEXT)}), &["file", "label"]),
        ]),
        ("ExecRequest", vec![
            form("ExecCommand", "`action=exec`: runs a program with its arguments.",
                json!({"cmd": instead("Argv"), "timeout_ms": whole()}), &["cmd"]),
            form("ExecShell", "`action=exec`: runs a command line by `sh -c`.",
                json!({"shell": line, "timeout_ms": whole()}), &["shell"]),
        ]),
        ("RaiseRequest", vec![
            form("AskRequest", "`action=request`: asks a question.", json!({
                "kind": {"enum": ["ask"]},
                "question": text(MAX_QUESTION),
                "choices": {"minItems": 1, "maxItems": MAX_CHOICES, "uniqueItems": true, "items": text(MAX_CHOICE)},
                "timeout_seconds": deadline(),
            }), &["kind", "question"]),
            form("ReviewFileRequest", "`action=request`: asks for a verdict on a file of the environment.", json!({
                "kind": {"enum": ["review"]}, "path": file, "format": format, "message": note,
                "timeout_seconds": deadline(),
            }), &["kind", "path"]),
            form("ReviewTextRequest", "`action=request`: asks for a verdict on a text; over 1 MiB it is a 413.", json!({
                "kind": {"enum": ["review"]},
                "content": {"type": "string", "minLength": 1, "maxLength": MAX_REVIEW},
                "format": format, "message": note, "timeout_seconds": deadline(),
            }), &["kind", "content"]),
            form("SecretRequest", "`action=request`: asks for a credential. Not served by this release: 501.", json!({
                "kind": {"enum": ["secret"]}, "target": {"type": "string", "minLength": 1}, "message": note,
                "timeout_seconds": deadline(),
            }), &["kind", "target"]),
            form("TakeoverRequest", "`action=request`: asks a person to take over. Not served by this release: 501.", json!({
                "kind": {"enum": ["takeover"]}, "reason": note, "via": instead_or_null("Via"),
                "timeout_seconds": deadline(),
            }), &["kind"]),
        ]),
        ("CreateKey", vec![
            form("CreateFullAccessKey", "Makes a full-access key.",
                json!({"label": {}, "scopes": {"maxItems": 0}}), &[]),
            form("CreateScopedKey", "Makes a key with scopes. Not served by this release: 501.", json!({
                "label": {},
                "scopes": {"type": "array", "minItems": 1, "items": instead("Scope")},
                "ttl_seconds": {"type": "integer", "minimum": 1, "maximum": 86_400},
                "env_id": instead_or_null("EnvId"),
                "actor": {},
            }), &["scopes", "ttl_seconds"]),
        ]),
        ("Gate", vec![
            form("ExecGate", "A gate on commands.", gate("exec", "ExecMatch"), &GATE),
            form("LifecycleGate", "A gate on actions on the environment itself.", gate("lifecycle", "LifecycleMatch"), &GATE),
            form("ComputerGate", "A gate on desktop actions.", gate("computer", "ComputerMatch"), &GATE),
            form("StallSignal", "A signal: the agent looks stuck.", signal("stall", "StallMatch"), &GATE),
            form("ExpirySignal", "A signal: the environment is about to be reaped.", signal("expiry", "ExpiryMatch"), &GATE),
        ]),
    ]
}

const GATE: [&str; 3] = ["name", "on", "match"];

/// What gates and signals have in common.
fn watcher(on: &str, matches: &str) -> Value {
    json!({
        "name": {"pattern": "^[a-z0-9._-]{1,64}$"},
        "on": {"$ref": null, "type": "string", "enum": [on]},
        "match": reference(matches),
        "timeout_seconds": deadline(),
        "reason": {"nullable": true, "maxLength": MAX_TEXT},
    })
}

fn gate(on: &str, matches: &str) -> Value {
    let mut members = watcher(on, matches);
    for name in ["grant", "decide"] {
        members[name] = json!({});
    }
    members["mode"] = json!({"nullable": true});
    members
}

fn signal(on: &str, matches: &str) -> Value {
    let mut members = watcher(on, matches);
    members["mode"] = instead_or_null("SignalMode");
    members
}

/// Schemas that no type stands behind: what a gate matches, by what it watches, and the bodies of actions.
#[rustfmt::skip]
fn fresh() -> Vec<(&'static str, Value)> {
    let off = json!({"enum": [false, null], "description": "Says nothing."});
    let strings = |kind: Value| json!({"type": kind, "minItems": 1, "items": {"type": "string"}});
    let quiet = |kind: Value| json!({"type": kind, "minimum": 60, "maximum": 86_400,
        "description": "No command or desktop action for this many seconds."});
    let texts = json!({"type": "array", "minItems": 1,
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}});
    let typing = json!({"type": "string", "enum": ["type"]});
    let typing = json!({"oneOf": [typing, {"type": "array", "minItems": 1, "items": typing}, unsaid()]});
    vec![
        ("Argv", json!({"type": "array", "minItems": 1, "items": {"type": "string"},
            "description": "A program and its arguments. The first item names the program and is not empty."})),
        ("Run", json!({"description": "The environment's task.", "oneOf": [
            {"type": "string", "pattern": NOT_BLANK, "maxLength": MAX_TEXT_BYTES, "description": "A command line for `sh -lc`."},
            {"$ref": "#/components/schemas/Argv", "maxItems": 1000}]})),
        ("NetworkMode", json!({"type": "string", "enum": [Network::None.as_str(), Network::Host.as_str()],
            "description": "What an environment may reach: its own loopback alone, or the machine's network."})),
        ("SignalMode", json!({"type": "string", "enum": ["ask", "notify"],
            "description": "What happens on a signal, which has no action to refuse."})),
        ("LifecycleAction", json!({"type": "string", "enum": LifecycleAction::ALL.map(LifecycleAction::as_str),
            "description": "An action on the environment itself."})),
        ("ComputerAction", json!({"type": "string", "enum": ComputerAction::ALL.map(ComputerAction::as_str),
            "description": "A desktop action."})),
        ("ExecMatch", one_of("What has to be true of a command.", &["ExecProgramMatch", "ExecArgsMatch", "ExecShellMatch"])),
        ("ExecProgramMatch", closed("The program, and its arguments where they are named.", json!({
            "program": one_or_many(&json!({"type": "string", "pattern": PROGRAM})),
            "args": strings(json!(["array", "null"])), "shell": off}), &["program"])),
        ("ExecArgsMatch", closed("The arguments of any program, in this order, not necessarily side by side.", json!({
            "args": strings(json!("array")), "program": unsaid(), "shell": off}), &["args"])),
        ("ExecShellMatch", closed("Any shell text, which nothing can look into.", json!({
            "shell": {"type": "boolean", "enum": [true]}, "program": unsaid(), "args": unsaid()}), &["shell"])),
        ("LifecycleMatch", closed("Which actions.", json!({"action": one_or_many(&reference("LifecycleAction"))}), &["action"])),
        ("ComputerMatch", one_of("What has to be true of a desktop action.", &["ComputerActionMatch", "ComputerTextMatch"])),
        ("ComputerActionMatch", closed("Which actions.", json!({
            "action": one_or_many(&reference("ComputerAction")), "text_contains": unsaid()}), &["action"])),
        ("ComputerTextMatch", closed("A `type` whose text contains any of these, ignoring case.", json!({
            "text_contains": texts, "action": typing}), &["text_contains"])),
        ("StallMatch", one_of("When an agent looks stuck: either of the two is enough.", &["StallFailuresMatch", "StallQuietMatch"])),
        ("StallFailuresMatch", closed("So many failed commands in a row, or quiet where that is named too.", json!({
            "failures": {"type": "integer", "minimum": 1, "maximum": 100},
            "quiet_seconds": quiet(json!(["integer", "null"]))}), &["failures"])),
        ("StallQuietMatch", closed("Quiet alone.", json!({
            "quiet_seconds": quiet(json!("integer")), "failures": unsaid()}), &["quiet_seconds"])),
        ("ExpiryMatch", closed("How long ahead of the reaper, in seconds; less than the reaper's own window.", json!({
            "before_seconds": {"type": "integer", "minimum": 60, "maximum": 86_400}}), &["before_seconds"])),
        ("EnvActionBody", one_of("What an action takes; each form says which one it is for.", &[
            "ExecCommand", "ExecShell", "AskRequest", "ReviewFileRequest", "ReviewTextRequest", "SecretRequest", "TakeoverRequest"])),
    ]
}

/// Components that only stood for several forms at once.
const REPLACED: [&str; 3] = ["Match", "GateOn", "OneOrMany"];

/// Puts the forms in the place of the types that read them all.
pub fn apply(schemas: &mut Map<String, Value>) {
    for (name, forms) in forms() {
        let Some(whole) = schemas.get(name).cloned() else {
            continue;
        };
        let names: Vec<_> = forms.iter().map(|form| form.name).collect();
        for form in forms {
            let mut properties = json!({});
            for (member, rule) in form.members.as_object().into_iter().flatten() {
                let mut schema = whole["properties"][member].clone();
                patch(&mut schema, rule);
                properties[member.as_str()] = schema;
            }
            schemas.insert(
                form.name.to_owned(),
                closed(form.description, properties, form.required),
            );
        }
        let description = whole["description"].as_str().unwrap_or_default();
        schemas.insert(name.to_owned(), one_of(description, &names));
    }
    for (name, schema) in fresh() {
        schemas.insert(name.to_owned(), schema);
    }
    for name in REPLACED {
        schemas.remove(name);
    }
}
