//! What a member may hold: lengths, ranges, patterns, and where `null` means left out.
//!
//! The rules are the domain's. Here they stand in JSON Schema's words, so that a client learns them from the document; the run of
//! generated requests in `tests/python` goes red where the two differ. A length counts characters there and bytes here, which
//! is the same for ASCII, and the descriptions say bytes. What no schema can say stands in the descriptions alone.

use fuse_api::ids::TaskId;
use fuse_domain::access::{actor::MAX_ACTOR_BYTES, mint::MAX_LABEL};
use fuse_domain::environment::MAX_TEXT_BYTES;
use fuse_domain::intervention::raise::MIN_TIMEOUT_SECONDS;
use fuse_domain::intervention::request::MAX_TEXT;
use serde_json::{Map, Value, json};

/// Something that a person sees: more than blanks, controls and characters without a picture.
pub const SEEN: &str = r"[^\s\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0]";
/// Something else than blanks.
pub const NOT_BLANK: &str = r"\S";
/// No control characters.
pub const NO_CONTROLS: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";
/// An absolute, clean path of a file.
pub const FILE: &str = r"^(/([^/.][^/]{0,254}|\.[^/.][^/]{0,253}|\.\.[^/]{1,253}))+$";
/// An absolute, clean path of a folder: of a file, or the root.
const FOLDER: &str = r"^(/|(/([^/.][^/]{0,254}|\.[^/.][^/]{0,253}|\.\.[^/]{1,253}))+)$";
/// The name of a secret.
pub const SECRET_NAME: &str = "^[A-Za-z0-9._-]{1,128}$";
/// The name of a variable.
pub const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]{0,254}$";
/// A duration in Go's syntax, as it stands in a query string.
pub const DURATION: &str = r"^([0-9]{1,5}(\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$";
const GRANT: &str = r"^(once|env|ttl:([0-9]{1,5}(\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+)$";
/// The program of a command, as a gate names it.
pub const PROGRAM: &str = r"^(\[|[^\s\u0000-\u001f\u007f-\u009f/=*?\[\]{}\\]{1,255})$";
const ALLOWED: &str = r"^(\[|/usr/bin/\[|((/[^\u0000-\u001f\u007f-\u009f/=*?\[\]{}\\]+)*/)?[^\s\u0000-\u001f\u007f-\u009f/=*?\[\]{}\\]{1,255})$";
const URL: &str = r#"^[Hh][Tt][Tt][Pp][Ss]?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?)(:[1-9][0-9]{0,4})?([/?][!-"$-\[\]-~]*)?$"#;
const BASE64: &str =
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";
/// SHA-256 in hex.
const SHA256: &str = "^[0-9a-f]{64}$";
const LABEL: &str = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
const DAY: u64 = 86_400;
const YEAR: u64 = 365 * DAY;
/// The longest path, in bytes.
pub const MAX_PATH: usize = 4096;

/// A range of numbers.
pub fn range(least: impl Into<Value>, most: impl Into<Value>) -> Value {
    json!({"minimum": least.into(), "maximum": most.into()})
}

/// The range of a deadline.
pub fn deadline() -> Value {
    range(MIN_TIMEOUT_SECONDS, DAY)
}

/// A whole number of 64 bits, which is more than most formats take it for.
pub fn whole() -> Value {
    json!({"format": "uint64", "maximum": u64::MAX})
}

fn prefixed(prefix: &str) -> Value {
    json!({"pattern": format!("^{prefix}[0-9a-f]{{32}}$")})
}

fn signed(member: &str) -> Value {
    json!({"required": [member, "secret"], "properties": {
        member: {"pattern": URL, "maxLength": 2048},
        "secret": {"pattern": SECRET_NAME},
    }})
}

/// What is laid over the schema of each component: JSON Merge Patch, where `nullable` adds `null` to what a member may be.
#[rustfmt::skip]
pub fn rules() -> Vec<(&'static str, Value)> {
    let digest = json!({"pattern": SHA256});
    vec![
        ("TaskId", json!({"pattern": format!("^{LABEL}$"), "maxLength": TaskId::MAX})),
        ("EnvId", json!({"pattern": format!("^fuse-{LABEL}$"), "maxLength": TaskId::MAX + 5})),
        ("InterventionId", prefixed("int_")),
        ("KeyId", prefixed("ak_")),
        ("RecordingId", prefixed("rec_")),
        ("SnapshotId", prefixed("snap_")),
        ("SecretText", json!({"minLength": 1, "maxLength": MAX_TEXT_BYTES})),
        ("KeySecret", json!({"pattern": "^fuse_sk_"})),
        ("GrantReach", json!({"pattern": GRANT})),
        ("Spec", json!({"properties": {
            "cpus": range(0.05, 1024),
            "ram_mb": range(32, 16_777_216),
            "storage_gb": range(1, 65_536),
            "max_processes": range(32, 4_194_304),
            "image": {"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"},
            "region": {"maxLength": 128},
            "labels": {"nullable": true, "maxProperties": 64,
                "propertyNames": {"minLength": 1, "maxLength": 128, "pattern": NO_CONTROLS},
                "additionalProperties": {"maxLength": 1024}},
            "network": {"type": null, "$ref": "#/components/schemas/NetworkMode", "nullable": true},
            "max_runtime_seconds": range(1, YEAR),
            "idle_timeout_seconds": range(60, YEAR),
            "gpus": whole(),
        }})),
        ("BuildStep", json!({"properties": {
            "run": {"pattern": NOT_BLANK, "maxLength": MAX_TEXT_BYTES},
            "workdir": {"pattern": FOLDER, "maxLength": MAX_PATH},
        }})),
        ("Desktop", json!({"properties": {"width": range(320, 3840), "height": range(320, 3840)}})),
        ("CreateEnvironment", json!({"required": ["task_id"], "properties": {
            "task_id": {"type": null, "$ref": "#/components/schemas/TaskId"},
            "spec": {"nullable": true},
            "secrets": {"nullable": true, "maxProperties": 1000, "propertyNames": {"pattern": SECRET_NAME}},
            "env": {"nullable": true, "maxProperties": 1000, "propertyNames": {"pattern": VARIABLE}},
            "files": {"nullable": true, "propertyNames": {"pattern": FILE, "maxLength": MAX_PATH},
                "additionalProperties": {"pattern": BASE64, "contentEncoding": "base64"}},
            "build": {"nullable": true, "maxItems": 1000},
            "workspace": {"pattern": FOLDER, "maxLength": MAX_PATH},
            "startup_script": {"pattern": NOT_BLANK, "maxLength": MAX_TEXT_BYTES},
            "startup_script_timeout_seconds": range(1, 3600),
        }})),
        ("HitlBlock", json!({"properties": {
            "timeout_seconds": {"nullable": true, "default": fuse_api::hitl::DEFAULT_TIMEOUT_SECONDS,
                "minimum": MIN_TIMEOUT_SECONDS, "maximum": DAY},
            "on_timeout": {"nullable": true},
            "require_actor": {"nullable": true},
            "requests": {"nullable": true},
            "gates": {"nullable": true},
            "notify": {"nullable": true, "maxItems": 5},
        }})),
        ("SecretRequests", json!({"required": ["targets"], "properties": {"targets": {"minItems": 1, "maxItems": 20}}})),
        ("TakeoverRequests", json!({"properties": {"via": {"nullable": true}}})),
        ("Decide", signed("url")),
        ("NotifyHook", signed("webhook")),
        ("ExecAllow", json!({"properties": {
            "allow": {"items": {"pattern": ALLOWED, "maxLength": MAX_PATH}},
            "carriers": {"minItems": 1, "maxItems": 64, "items": {"pattern": PROGRAM}},
        }})),
        ("ActorLabel", json!({"properties": {
            "id": {"pattern": SEEN, "maxLength": MAX_ACTOR_BYTES},
            "name": {"pattern": SEEN, "maxLength": MAX_ACTOR_BYTES},
        }})),
        ("ApproveRequest", json!({"properties": {
            "answer": {"maxLength": MAX_TEXT},
            "reason": {"maxLength": MAX_TEXT},
            "edited_argv": {"type": null, "items": null, "$ref": "#/components/schemas/Argv", "nullable": true},
            "grant": {"pattern": GRANT},
            "extend_seconds": whole(),
            "payload_hash": digest,
        }})),
        ("RejectRequest", json!({"required": ["reason"], "properties": {
            "reason": {"type": "string", "pattern": SEEN, "maxLength": MAX_TEXT},
            "grant": null,
            "payload_hash": digest,
        }})),
        ("CreateKey", json!({"properties": {"label": {"pattern": NO_CONTROLS, "maxLength": MAX_LABEL}}})),
        ("Intervention", json!({"properties": {"payload_hash": digest}})),
        ("AuditEntry", json!({"properties": {"seq": {"minimum": 1}, "hash": digest, "prev_hash": digest}})),
    ]
}

/// Lays the rules over the schemas of the components.
pub fn apply(schemas: &mut Map<String, Value>) {
    for (name, rule) in rules() {
        if let Some(schema) = schemas.get_mut(name) {
            patch(schema, &rule);
        }
    }
}

/// JSON Merge Patch; `nullable` adds `null` to what the schema allows.
pub fn patch(schema: &mut Value, rule: &Value) {
    let Some(rules) = rule.as_object() else {
        *schema = rule.clone();
        return;
    };
    if !schema.is_object() {
        *schema = json!({});
    }
    for (key, rule) in rules.iter().filter(|(key, _)| *key != "nullable") {
        if rule.is_null() {
            schema
                .as_object_mut()
                .and_then(|members| members.remove(key));
        } else {
            patch(&mut schema[key.as_str()], rule);
        }
    }
    if rules.contains_key("nullable") {
        allow_null(schema);
    }
}

fn allow_null(schema: &mut Value) {
    if let Some(reference) = schema.as_object_mut().and_then(|s| s.remove("$ref")) {
        schema["oneOf"] = json!([{"$ref": reference}, {"type": "null"}]);
    } else if let Some(name) = schema["type"].as_str().map(str::to_owned) {
        schema["type"] = json!([name, "null"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_adds_replaces_and_takes_away() {
        let mut schema = json!({"type": "string", "a": {"b": 1, "c": 2}, "l": [1]});
        patch(
            &mut schema,
            &json!({"a": {"b": 3, "c": null}, "l": [2, null], "nullable": true}),
        );
        assert_eq!(
            schema,
            json!({"type": ["string", "null"], "a": {"b": 3}, "l": [2, null]})
        );
        let mut schema = json!({"$ref": "#/x", "description": "d"});
        patch(&mut schema, &json!({"nullable": true}));
        let both = json!({"description": "d", "oneOf": [{"$ref": "#/x"}, {"type": "null"}]});
        assert_eq!(schema, both);
    }
}
