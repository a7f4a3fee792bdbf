//! Every rule of the block, checked in the order of declaration.

mod gates;
mod text;
mod url;

use std::collections::HashMap;
use std::fmt::Display;

use fuse_api::hitl::{HitlBlock, SecretTarget, Via};

use super::matching::wrappers;
use super::{PolicyFacts, Violation};
use crate::text::is_blank;

/// Range of a deadline and of a grant, in seconds.
const DEADLINE: std::ops::RangeInclusive<i64> = 10..=86_400;

const CARRIERS: usize = 64;
const WEBHOOKS: usize = 5;
const TARGETS: usize = 20;

/// Longest reason or label, in bytes.
const TEXT: usize = 64 * 1024;

/// Broken rules, as they are found.
#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, path: impl Display, message: impl Into<String>) {
        self.0.push(Violation {
            path: format!("hitl.{path}"),
            message: message.into(),
        });
    }

    /// Adds a complaint about one field, if there is one.
    fn check(&mut self, path: impl Display, verdict: Result<(), String>) {
        if let Err(message) = verdict {
            self.add(path, message);
        }
    }
}

/// Every broken rule. Without facts only those that the block breaks by itself.
pub(super) fn violations(block: &HitlBlock, facts: Option<&PolicyFacts>) -> Vec<Violation> {
    let mut found = Findings::default();
    found.check("timeout_seconds", deadline(block.timeout_seconds));
    requests(block, facts, &mut found);
    gates::check(block, facts, &mut found);
    if let Some(exec) = &block.exec {
        for (i, entry) in exec.allow.iter().flatten().enumerate() {
            found.check(format_args!("exec.allow[{i}]"), text::allow_entry(entry));
        }
        if let Some(carriers) = &exec.carriers {
            named_carriers(carriers, &mut found);
        }
    }
    if block.notify.len() > WEBHOOKS {
        found.add(
            "notify",
            format!(
                "has {} webhooks; at most {WEBHOOKS} are allowed",
                block.notify.len()
            ),
        );
    }
    for (i, hook) in block.notify.iter().enumerate() {
        found.check(
            format_args!("notify[{i}].webhook"),
            url::check(&hook.webhook),
        );
        found.check(
            format_args!("notify[{i}].secret"),
            secret_name(&hook.secret, facts),
        );
    }
    found.0
}

fn named_carriers(carriers: &[String], found: &mut Findings) {
    let count = carriers.len();
    if !(1..=CARRIERS).contains(&count) {
        found.add(
            "exec.carriers",
            format!("has {count} names; 1 to {CARRIERS} are allowed, or leave the field out"),
        );
    }
    for (i, name) in carriers.iter().enumerate() {
        let path = format_args!("exec.carriers[{i}]");
        let seen_through = wrappers::find(name).is_some() || wrappers::is_multiplexer(name);
        match text::program(name) {
            Err(message) => found.add(path, message),
            Ok(()) if seen_through => found.add(
                path,
                format!(
                    "is {name}, which gates see through already; name a program that is no wrapper"
                ),
            ),
            Ok(()) => {}
        }
    }
}

fn requests(block: &HitlBlock, facts: Option<&PolicyFacts>, found: &mut Findings) {
    if let Some(secret) = &block.requests.secret {
        if facts.is_some_and(|facts| !facts.sealing_available) {
            found.add(
                "requests.secret",
                "needs TOKEN_ENCRYPTION_KEY on the orchestrator, which has none",
            );
        }
        let count = secret.targets.len();
        if !(1..=TARGETS).contains(&count) {
            found.add(
                "requests.secret.targets",
                format!("has {count} targets; 1 to {TARGETS} are allowed"),
            );
        }
        let mut seen = HashMap::new();
        for (i, target) in secret.targets.iter().enumerate() {
            secret_target(target, i, found);
            if let Some(name) = target.env.as_deref().or(target.file.as_deref())
                && let Some(first) = seen.insert(name, i)
            {
                found.add(
                    format_args!("requests.secret.targets[{i}]"),
                    format!("is the same place as hitl.requests.secret.targets[{first}]; declare each place once"),
                );
            }
        }
    }
    if let (Some(takeover), Some(facts)) = (&block.requests.takeover, facts)
        && !facts.has_desktop
        && let Some(i) = takeover.via.iter().position(|via| *via == Via::Desktop)
    {
        found.add(
            format_args!("requests.takeover.via[{i}]"),
            "desktop needs the top-level desktop block; without one only terminal is allowed",
        );
    }
}

fn secret_target(target: &SecretTarget, i: usize, found: &mut Findings) {
    let path = format!("requests.secret.targets[{i}]");
    match (&target.env, &target.file) {
        (Some(name), None) => found.check(format_args!("{path}.env"), text::variable_name(name)),
        (None, Some(file)) => found.check(format_args!("{path}.file"), text::guest_file(file)),
        (Some(_), Some(_)) => found.add(&path, "sets both env and file; exactly one of them is allowed"),
        (None, None) => found.add(
            &path,
            "sets neither env (a variable name) nor file (an absolute guest path); exactly one is needed",
        ),
    }
    if is_blank(&target.label) {
        found.add(
            format_args!("{path}.label"),
            "is missing; say what the person is asked for",
        );
    } else {
        found.check(format_args!("{path}.label"), text::bounded(&target.label));
    }
}

fn deadline(seconds: i64) -> Result<(), String> {
    in_range(seconds, &DEADLINE, "24 hours")
}

fn in_range(
    seconds: i64,
    range: &std::ops::RangeInclusive<i64>,
    longest: &str,
) -> Result<(), String> {
    if range.contains(&seconds) {
        return Ok(());
    }
    Err(format!(
        "is {seconds}; {} to {} seconds ({longest}) are allowed",
        range.start(),
        range.end()
    ))
}

fn secret_name(name: &str, facts: Option<&PolicyFacts>) -> Result<(), String> {
    if name.is_empty() {
        return Err(
            "is missing; name an entry of the request's secrets, whose value signs the calls"
                .to_owned(),
        );
    }
    match facts {
        Some(facts) if !facts.secret_names.contains(name) => Err(format!(
            "names {name:?}, which is no entry of the request's secrets; name one that is"
        )),
        Some(_) | None => Ok(()),
    }
}
