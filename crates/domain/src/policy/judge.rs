//! What a policy says about one action.

use fuse_api::hitl::{GateMode, GrantReach};

use super::Policy;
use super::gate::{PolicyGate, Through};
use super::matching::argv::Readings;
use super::matching::computer::fold;
use super::matching::{ComputerAction, LifecycleAction};

/// A command somebody wants to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecAction<'a> {
    /// A program and its arguments; not empty.
    Argv(&'a [String]),
    /// A text for `sh -c`.
    Shell(&'a str),
}

/// How hard a policy stops an action. The greater one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// No gate concerns it.
    Pass,
    /// It goes through, and is recorded.
    Notify,
    /// It waits for a person.
    Ask,
    /// It is refused.
    Deny,
}

/// Everything a policy has to say about one action, in the order of declaration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict<'p> {
    /// The first gate that refuses it.
    pub deny: Option<&'p PolicyGate>,
    /// The gates that hold it.
    pub asks: Vec<&'p PolicyGate>,
    /// The gates that record it, whatever the others say.
    pub notifies: Vec<&'p PolicyGate>,
    /// The basename of the carrier through which the command was read, where a gate concerns it for that reason alone.
    pub carrier: Option<String>,
}

impl<'p> Verdict<'p> {
    /// The strictest of what the gates say.
    #[must_use]
    pub fn severity(&self) -> Severity {
        if self.deny.is_some() {
            Severity::Deny
        } else if !self.asks.is_empty() {
            Severity::Ask
        } else if !self.notifies.is_empty() {
            Severity::Notify
        } else {
            Severity::Pass
        }
    }

    /// Takes gates out of the set that holds the action: a live grant or a decider's allow covers them.
    pub fn drop_asks(&mut self, covered: impl Fn(&PolicyGate) -> bool) {
        self.asks.retain(|gate| !covered(gate));
    }

    /// Deadline of the intervention that holds the action, in seconds: the shortest of its gates'. `None` where nothing holds it.
    #[must_use]
    pub fn timeout_seconds(&self) -> Option<i64> {
        deadline_for(&self.asks)
    }

    /// How far an approval reaches that does not say: no further than any gate of the set would have it.
    #[must_use]
    pub fn default_grant(&self) -> GrantReach {
        default_grant(&self.asks)
    }

    fn add(&mut self, gate: &'p PolicyGate) {
        match gate.mode {
            GateMode::Deny => self.deny = self.deny.or(Some(gate)),
            GateMode::Ask => self.asks.push(gate),
            GateMode::Notify => self.notifies.push(gate),
        }
    }
}

/// The shortest deadline of some gates, in seconds.
#[must_use]
pub fn deadline_for(gates: &[&PolicyGate]) -> Option<i64> {
    gates.iter().map(|gate| gate.timeout_seconds).min()
}

/// The reach that all of some gates would give on their own: `once` before a time, the shorter time first, `env` last.
#[must_use]
pub fn default_grant(gates: &[&PolicyGate]) -> GrantReach {
    gates
        .iter()
        .map(|gate| gate.grant)
        .min_by_key(|reach| match reach {
            GrantReach::Once => i64::MIN,
            GrantReach::Ttl(nanos) => *nanos,
            GrantReach::Env => i64::MAX,
        })
        .unwrap_or(GrantReach::Once)
}

impl Policy {
    /// What the gates and the allowlist say about a command.
    #[must_use]
    pub fn judge_exec(&self, action: ExecAction<'_>) -> Verdict<'_> {
        match action {
            ExecAction::Argv(argv) => {
                let readings = Readings::of(argv, &self.carriers);
                let mut verdict = Verdict::default();
                for at in self.index.of_argv(&readings).iter() {
                    let gate = &self.gates[at];
                    let Some(through) = gate.matcher.concerns_argv(&readings) else {
                        continue;
                    };
                    verdict.add(gate);
                    if through == Through::Carrier && verdict.carrier.is_none() {
                        verdict.carrier = readings.carrier().map(str::to_owned);
                    }
                }
                self.apply_allowlist(&mut verdict, |list| list.passes_argv(&readings));
                verdict
            }
            ExecAction::Shell(text) => {
                let mut verdict = Verdict::default();
                for at in self.index.of_shell().iter() {
                    if self.gates[at].matcher.concerns_shell(text) {
                        verdict.add(&self.gates[at]);
                    }
                }
                self.apply_allowlist(&mut verdict, |list| list.passes_shell());
                verdict
            }
        }
    }

    /// What the gates say about an action on the environment.
    #[must_use]
    pub fn judge_lifecycle(&self, action: LifecycleAction) -> Verdict<'_> {
        self.collect(|gate| gate.matcher.concerns_lifecycle(action))
    }

    /// What the gates say about a desktop action; `text` is what a `type` would type.
    #[must_use]
    pub fn judge_computer(&self, action: ComputerAction, text: Option<&str>) -> Verdict<'_> {
        let typed = text.map(fold);
        self.collect(|gate| gate.matcher.concerns_computer(action, typed.as_deref()))
    }

    /// What is left of a verdict once a person has written the command anew: refusals and records, but nothing holds it again.
    #[must_use]
    pub fn judge_edit(&self, argv: &[String]) -> Verdict<'_> {
        without_asks(self.judge_exec(ExecAction::Argv(argv)))
    }

    /// The same for a retyped text.
    #[must_use]
    pub fn judge_retype(&self, text: &str) -> Verdict<'_> {
        without_asks(self.judge_computer(ComputerAction::Type, Some(text)))
    }

    fn collect(&self, concerns: impl Fn(&PolicyGate) -> bool) -> Verdict<'_> {
        let mut verdict = Verdict::default();
        for gate in &self.gates {
            if concerns(gate) {
                verdict.add(gate);
            }
        }
        verdict
    }

    fn apply_allowlist<'p>(
        &'p self,
        verdict: &mut Verdict<'p>,
        passes: impl Fn(&super::allowlist::Allowlist) -> bool,
    ) {
        if let Some((list, gate)) = &self.allowlist
            && !passes(list)
        {
            verdict.add(gate);
        }
    }
}

fn without_asks(mut verdict: Verdict<'_>) -> Verdict<'_> {
    verdict.asks.clear();
    verdict
}
