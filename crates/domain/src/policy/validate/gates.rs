//! The rules of gates and signals.

use std::collections::HashMap;
use std::fmt::Display;

use fuse_api::hitl::{Gate, GateMode, GateOn, GrantReach, HitlBlock, Match};

use super::super::matching::{ComputerAction, LifecycleAction};
use super::super::{PolicyFacts, Violation};
use super::{DEADLINE, Findings, deadline, in_range, secret_name, text, url};

const SPELL: std::ops::RangeInclusive<i64> = 60..=86_400;
const FAILURES: std::ops::RangeInclusive<i64> = 1..=100;

pub(super) fn check(block: &HitlBlock, facts: Option<&PolicyFacts>, found: &mut Findings) {
    let mut names = HashMap::new();
    for (i, gate) in block.gates.iter().enumerate() {
        let mut scope = Scope { gate: i, found };
        scope.check("name", text::gate_name(&gate.name));
        match names.get(gate.name.as_str()) {
            Some(first) => scope.add(
                "name",
                format!("is taken by hitl.gates[{first}]; give each gate its own name"),
            ),
            None => {
                names.insert(gate.name.as_str(), i);
            }
        }
        scope.matches(gate, facts);
        scope.rest(gate, facts);
    }
}

struct Scope<'a> {
    gate: usize,
    found: &'a mut Findings,
}

impl Scope<'_> {
    fn add(&mut self, field: impl Display, message: impl Into<String>) {
        self.found.0.push(Violation {
            path: format!("hitl.gates[{}].{field}", self.gate),
            message: message.into(),
        });
    }

    fn check(&mut self, field: impl Display, verdict: Result<(), String>) {
        if let Err(message) = verdict {
            self.add(field, message);
        }
    }

    fn matches(&mut self, gate: &Gate, facts: Option<&PolicyFacts>) {
        let own = own_fields(gate.on);
        let set = set_fields(&gate.matches);
        for field in set.iter().filter(|field| !own.contains(field)) {
            self.add(
                format_args!("match.{field}"),
                format!(
                    "does not belong to on: {}; {} may be set",
                    gate.on.as_str(),
                    listed(own)
                ),
            );
        }
        if !set.iter().any(|field| own.contains(field)) {
            if set.is_empty() {
                self.add(
                    "match",
                    format!("is empty; set at least one of {}", listed(own)),
                );
            }
            return;
        }
        match gate.on {
            GateOn::Exec => self.exec(&gate.matches),
            GateOn::Lifecycle => self.actions(
                &gate.matches,
                |name| LifecycleAction::parse(name).is_some(),
                &LifecycleAction::ALL.map(LifecycleAction::as_str),
            ),
            GateOn::Computer => self.computer(&gate.matches),
            GateOn::Stall => self.stall(&gate.matches),
            GateOn::Expiry => self.expiry(&gate.matches, facts),
        }
    }

    fn exec(&mut self, wanted: &Match) {
        if let Some(programs) = &wanted.program {
            self.not_empty("match.program", &programs.0, "a program");
            for (j, name) in programs.0.iter().enumerate() {
                self.check(
                    format_args!("match.program{}", index(j, &programs.0)),
                    text::program(name),
                );
            }
        }
        if let Some(args) = &wanted.args {
            self.not_empty("match.args", args, "an argument");
            for (j, arg) in args.iter().enumerate() {
                if arg.contains('\0') {
                    self.add(
                        format_args!("match.args[{j}]"),
                        "holds a NUL, which no argument can; any other text is allowed",
                    );
                }
            }
        }
        if wanted.shell == Some(true) && (wanted.program.is_some() || wanted.args.is_some()) {
            self.add(
                "match.shell",
                "cannot stand beside program or args, since nothing looks into a shell's text; split the gate in two",
            );
        }
    }

    fn actions(&mut self, wanted: &Match, known: impl Fn(&str) -> bool, all: &[&str]) {
        let Some(actions) = &wanted.action else {
            return;
        };
        self.not_empty("match.action", &actions.0, "an action");
        for (j, name) in actions.0.iter().enumerate() {
            if !known(name) {
                self.add(
                    format_args!("match.action{}", index(j, &actions.0)),
                    format!("is {}; {} are allowed", text::shown(name), all.join(", ")),
                );
            }
        }
    }

    fn computer(&mut self, wanted: &Match) {
        self.actions(
            wanted,
            |name| ComputerAction::parse(name).is_some(),
            &ComputerAction::ALL.map(ComputerAction::as_str),
        );
        let Some(texts) = &wanted.text_contains else {
            return;
        };
        self.not_empty("match.text_contains", texts, "a text");
        for (j, entry) in texts.iter().enumerate() {
            if entry.is_empty() {
                self.add(format_args!("match.text_contains[{j}]"), "is empty and would match everything; a text of one character or more is allowed");
            }
            self.check(
                format_args!("match.text_contains[{j}]"),
                text::bounded(entry),
            );
        }
        if wanted
            .action
            .as_ref()
            .is_some_and(|actions| actions.0.iter().any(|name| name != "type"))
        {
            self.add(
                "match.text_contains",
                "implies action: type and can stand beside no other action; split the gate in two",
            );
        }
    }

    fn stall(&mut self, wanted: &Match) {
        if let Some(failures) = wanted.failures
            && !FAILURES.contains(&failures)
        {
            self.add(
                "match.failures",
                format!("is {failures}; 1 to 100 are allowed"),
            );
        }
        if let Some(quiet) = wanted.quiet_seconds {
            self.check(
                "match.quiet_seconds",
                in_range(quiet, &SPELL, "1 minute to 24 hours"),
            );
        }
    }

    fn expiry(&mut self, wanted: &Match, facts: Option<&PolicyFacts>) {
        let Some(before) = wanted.before_seconds else {
            return;
        };
        if !SPELL.contains(&before) {
            return self.check(
                "match.before_seconds",
                in_range(before, &SPELL, "1 minute to 24 hours"),
            );
        }
        let Some(facts) = facts else { return };
        let idle = facts.idle_timeout_seconds.filter(|window| *window > 0);
        let runtime = facts
            .max_runtime_seconds
            .filter(|window| facts.has_task && *window > 0);
        match idle.max(runtime) {
            None => self.add(
                "match.before_seconds",
                "has no reaper to be ahead of; set idle_timeout, or max_runtime on an environment with a run",
            ),
            Some(window) if before >= window => self.add(
                "match.before_seconds",
                format!("is {before}, but the reaper's window is {window} seconds; less than that is allowed"),
            ),
            Some(_) => {}
        }
    }

    /// Mode, grant, deadline, reason and decider.
    fn rest(&mut self, gate: &Gate, facts: Option<&PolicyFacts>) {
        let signal = matches!(gate.on, GateOn::Stall | GateOn::Expiry);
        if signal && gate.mode == GateMode::Deny {
            self.add(
                "mode",
                format!(
                    "is deny, but a {} has no action to refuse; ask or notify are allowed",
                    gate.on.as_str()
                ),
            );
        }
        if let Some(grant) = gate.grant {
            if signal {
                self.add(
                    "grant",
                    format!(
                        "does not belong to a {}, which has no action to repeat; leave it out",
                        gate.on.as_str()
                    ),
                );
            } else if gate.mode != GateMode::Ask {
                self.add("grant", format!("does not belong to mode: {}; only an ask gate is approved, so leave it out", gate.mode.as_str()));
            }
            if let GrantReach::Ttl(nanos) = grant
                && !(DEADLINE.start() * 1_000_000_000..=DEADLINE.end() * 1_000_000_000)
                    .contains(&nanos)
            {
                self.add(
                    "grant",
                    format!("is {grant}; ttl:10s to ttl:24h are allowed"),
                );
            }
        }
        if let Some(seconds) = gate.timeout_seconds {
            self.check("timeout_seconds", deadline(seconds));
        }
        self.check("reason", text::bounded(&gate.reason));
        if let Some(decide) = &gate.decide {
            if signal {
                self.add(
                    "decide",
                    format!(
                        "does not belong to a {}, which has no action to judge; leave it out",
                        gate.on.as_str()
                    ),
                );
            } else if gate.mode != GateMode::Ask {
                self.add(
                    "decide",
                    format!(
                        "does not belong to mode: {}, which has nothing to decide; leave it out",
                        gate.mode.as_str()
                    ),
                );
            }
            self.check("decide.url", url::check(&decide.url));
            self.check("decide.secret", secret_name(&decide.secret, facts));
        }
    }

    fn not_empty(&mut self, field: &str, list: &[String], what: &str) {
        if list.is_empty() {
            self.add(
                field,
                format!("is an empty list; name {what}, or leave the field out"),
            );
        }
    }
}

fn own_fields(on: GateOn) -> &'static [&'static str] {
    match on {
        GateOn::Exec => &["program", "args", "shell"],
        GateOn::Lifecycle => &["action"],
        GateOn::Computer => &["action", "text_contains"],
        GateOn::Stall => &["failures", "quiet_seconds"],
        GateOn::Expiry => &["before_seconds"],
    }
}

/// The fields that are set. `shell: false` says nothing and counts as left out.
fn set_fields(wanted: &Match) -> Vec<&'static str> {
    let Match {
        program,
        args,
        shell,
        action,
        text_contains,
        failures,
        quiet_seconds,
        before_seconds,
    } = wanted;
    [
        ("program", program.is_some()),
        ("args", args.is_some()),
        ("shell", *shell == Some(true)),
        ("action", action.is_some()),
        ("text_contains", text_contains.is_some()),
        ("failures", failures.is_some()),
        ("quiet_seconds", quiet_seconds.is_some()),
        ("before_seconds", before_seconds.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, set)| set.then_some(name))
    .collect()
}

fn listed(fields: &[&str]) -> String {
    match fields {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

/// A list of one may have been written as a plain name, so its path has no index.
fn index(j: usize, list: &[String]) -> String {
    if list.len() == 1 {
        String::new()
    } else {
        format!("[{j}]")
    }
}
