//! What an environment may do by itself, and what a person has to see first.
//!
//! A [`Policy`] is compiled once from the `hitl` block of a create request and then asked about every action. Asking costs no
//! allocation unless a gate concerns the action or a wrapper has to be taken apart.

mod allowlist;
mod explain;
mod gate;
mod grant;
mod index;
mod judge;
mod matching;
mod validate;
mod warnings;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use fuse_api::hitl::{ExecDefault, GateMode, GateOn, GrantReach, HitlBlock, Via};

pub use explain::{CommandReading, read_command};
pub use gate::PolicyGate;
pub use grant::{GrantKey, computer_digest, exec_digest, lifecycle_digest};
pub use judge::{ExecAction, Severity, Verdict, deadline_for, default_grant};
pub use matching::{ComputerAction, LifecycleAction};

/// The gate name under which the allowlist holds and refuses.
pub const EXEC_DEFAULT: &str = "exec.default";

/// A compiled and valid `hitl` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    block: HitlBlock,
    gates: Vec<PolicyGate>,
    index: index::Index,
    carriers: HashSet<String>,
    allowlist: Option<(allowlist::Allowlist, PolicyGate)>,
}

/// What a block is checked against beside itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyFacts {
    /// Names of the create request's `secrets`.
    pub secret_names: BTreeSet<String>,
    /// Whether the request has a `desktop`.
    pub has_desktop: bool,
    /// Whether the orchestrator can seal what it stores.
    pub sealing_available: bool,
    /// `spec.idle_timeout_seconds`.
    pub idle_timeout_seconds: Option<i64>,
    /// `spec.max_runtime_seconds`.
    pub max_runtime_seconds: Option<i64>,
    /// Whether the request has a `run`.
    pub has_task: bool,
}

/// One broken rule of the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where, as in `hitl.gates[2].match.shell`.
    pub path: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl Policy {
    /// Checks a block and makes it ready.
    ///
    /// # Errors
    /// Every broken rule, in the order of declaration; never an empty list.
    pub fn compile(block: &HitlBlock, facts: &PolicyFacts) -> Result<Self, Vec<Violation>> {
        Self::checked(block, Some(facts))
    }

    /// Makes a stored block ready again. What it was checked against when it was created may have changed since, and is not asked for.
    ///
    /// # Errors
    /// Every rule that the block breaks by itself, which means that the store holds what was never accepted.
    pub fn reload(block: &HitlBlock) -> Result<Self, Vec<Violation>> {
        Self::checked(block, None)
    }

    fn checked(block: &HitlBlock, facts: Option<&PolicyFacts>) -> Result<Self, Vec<Violation>> {
        let violations = validate::violations(block, facts);
        if !violations.is_empty() {
            return Err(violations);
        }
        let gates: Vec<_> = block
            .gates
            .iter()
            .map(|gate| PolicyGate::compile(gate, block.timeout_seconds))
            .collect();
        Ok(Self {
            index: index::Index::of(&gates),
            carriers: block
                .exec
                .iter()
                .flat_map(|exec| exec.carriers.iter().flatten().cloned())
                .collect(),
            gates,
            allowlist: block.exec.as_ref().filter(|exec| exec.lists()).map(|exec| {
                let gate = PolicyGate {
                    name: EXEC_DEFAULT.to_owned(),
                    on: GateOn::Exec,
                    mode: match exec.default.unwrap_or_default() {
                        ExecDefault::Ask => GateMode::Ask,
                        ExecDefault::Deny => GateMode::Deny,
                    },
                    grant: GrantReach::Once,
                    timeout_seconds: block.timeout_seconds,
                    reason: String::new(),
                    decide: None,
                    matcher: gate::Matcher::Unlisted,
                };
                (
                    allowlist::Allowlist::new(exec.allow.as_deref().unwrap_or_default()),
                    gate,
                )
            }),
            block: block.clone(),
        })
    }

    /// The block as it was declared.
    #[must_use]
    pub fn block(&self) -> &HitlBlock {
        &self.block
    }

    /// The declared gates and signals, in order.
    #[must_use]
    pub fn gates(&self) -> &[PolicyGate] {
        &self.gates
    }

    /// The gate of that name; [`EXEC_DEFAULT`] is one where there is an allowlist.
    #[must_use]
    pub fn gate(&self, name: &str) -> Option<&PolicyGate> {
        let unlisted = self.allowlist.as_ref().map(|(_, gate)| gate);
        self.gates
            .iter()
            .chain(unlisted)
            .find(|gate| gate.name == name)
    }

    /// The ways into the environment that a takeover may use; none where takeover is not declared.
    #[must_use]
    pub fn takeover_via(&self) -> &[Via] {
        match &self.block.requests.takeover {
            None => &[],
            Some(takeover) if takeover.via.is_empty() => &[Via::Terminal],
            Some(takeover) => &takeover.via,
        }
    }

    /// The label of a declared secret target, by its bare variable name or path.
    #[must_use]
    pub fn secret_label(&self, target: &str) -> Option<&str> {
        let secret = self.block.requests.secret.as_ref()?;
        let found = secret.targets.iter().find(|declared| {
            declared.env.as_deref().or(declared.file.as_deref()) == Some(target)
        })?;
        Some(&found.label)
    }

    /// What is allowed but unwise, each with its path.
    #[must_use]
    pub fn warnings(&self) -> Vec<Violation> {
        warnings::warnings(&self.block)
    }
}
