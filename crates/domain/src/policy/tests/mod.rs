mod allowlist;
mod carriers;
mod exec_gates;
mod judging;
mod random;
mod reference;
mod surroundings;
mod validation;
mod wrappers;

use fuse_api::hitl::HitlBlock;
use serde_json::{Value, json};

use super::*;

/// Facts under which nothing is missing.
fn facts() -> PolicyFacts {
    PolicyFacts {
        secret_names: ["s".to_owned()].into(),
        has_desktop: true,
        sealing_available: true,
        idle_timeout_seconds: Some(3600),
        max_runtime_seconds: Some(7200),
        has_task: true,
    }
}

fn block(value: Value) -> HitlBlock {
    serde_json::from_value(value).expect("a block")
}

fn policy(value: Value) -> Policy {
    Policy::compile(&block(value), &facts()).expect("a valid block")
}

fn gates(value: Value) -> Policy {
    policy(json!({ "gates": value }))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Cuts at blanks; a word in `'…'` stays whole.
fn argv(line: &str) -> Vec<String> {
    line.split('\'')
        .enumerate()
        .flat_map(|(i, part)| match i % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

fn severity(policy: &Policy, line: &str) -> Severity {
    policy.judge_exec(ExecAction::Argv(&argv(line))).severity()
}
