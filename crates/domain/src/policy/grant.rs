//! Which repeats a grant covers.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::judge::ExecAction;
use super::matching::LifecycleAction;

/// What a grant is looked up by: a gate and the exact action.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantKey {
    /// The gate's name.
    pub gate: String,
    /// The action, as 64 lower-case hex digits.
    pub action: String,
}

impl GrantKey {
    /// The key of one gate for an action.
    #[must_use]
    pub fn new(gate: &str, action: &str) -> Self {
        Self {
            gate: gate.to_owned(),
            action: action.to_owned(),
        }
    }

    /// The keys that a grant is recorded under: one for every gate that held the action.
    pub fn for_set<'a>(gates: impl IntoIterator<Item = &'a str>, action: &str) -> Vec<Self> {
        gates
            .into_iter()
            .map(|gate| Self::new(gate, action))
            .collect()
    }
}

/// Names a command exactly. Its timeout is no part of it.
#[must_use]
pub fn exec_digest(action: ExecAction<'_>) -> String {
    let mut hash = Sha256::new();
    match action {
        ExecAction::Argv(argv) => {
            text(&mut hash, "argv");
            size(&mut hash, argv.len());
            for word in argv {
                text(&mut hash, word);
            }
        }
        ExecAction::Shell(line) => {
            text(&mut hash, "shell");
            text(&mut hash, line);
        }
    }
    hex::encode(hash.finalize())
}

/// Names a lifecycle action and its parameters exactly. No parameters, `null` and `{}` are one.
#[must_use]
pub fn lifecycle_digest(action: LifecycleAction, params: &Value) -> String {
    let mut hash = Sha256::new();
    text(&mut hash, "lifecycle");
    text(&mut hash, action.as_str());
    match params {
        Value::Null => value(&mut hash, &Value::Object(serde_json::Map::new())),
        params => value(&mut hash, params),
    }
    hex::encode(hash.finalize())
}

/// Names a desktop action exactly, by the whole body the agent sent. The order of its members does not count.
#[must_use]
pub fn computer_digest(body: &Value) -> String {
    let mut hash = Sha256::new();
    text(&mut hash, "computer");
    value(&mut hash, body);
    hex::encode(hash.finalize())
}

// Every part is preceded by its size, so that no two actions share a sequence of bytes.
fn size(hash: &mut Sha256, size: usize) {
    hash.update((size as u64).to_be_bytes());
}

fn text(hash: &mut Sha256, text: &str) {
    size(hash, text.len());
    hash.update(text.as_bytes());
}

fn value(hash: &mut Sha256, of: &Value) {
    match of {
        Value::Null => hash.update(b"n"),
        Value::Bool(flag) => hash.update(if *flag { b"t" } else { b"f" }),
        Value::Number(number) => {
            hash.update(b"#");
            text(hash, &number.to_string());
        }
        Value::String(string) => {
            hash.update(b"s");
            text(hash, string);
        }
        Value::Array(items) => {
            hash.update(b"[");
            size(hash, items.len());
            for item in items {
                value(hash, item);
            }
        }
        Value::Object(members) => {
            hash.update(b"{");
            size(hash, members.len());
            let mut names: Vec<_> = members.keys().collect();
            names.sort_unstable();
            for name in names {
                text(hash, name);
                value(hash, &members[name]);
            }
        }
    }
}
