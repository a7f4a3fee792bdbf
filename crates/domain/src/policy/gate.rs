//! A gate made ready to be asked.

use fuse_api::hitl::{Decide, Gate, GateMode, GateOn, GrantReach};

use super::matching::argv::{Doubt, Readings, Sight};
use super::matching::carriers::names as carried_names;
use super::matching::computer::fold;
use super::matching::{ComputerAction, LifecycleAction};
use crate::text::is_blank;

/// One gate of a compiled policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyGate {
    /// Its name, unique in the policy.
    pub name: String,
    /// What it watches.
    pub on: GateOn,
    /// What it does with a matching action.
    pub mode: GateMode,
    /// How far an approval reaches where it does not say.
    pub grant: GrantReach,
    /// Deadline of what it holds, in seconds: its own, or the block's.
    pub timeout_seconds: i64,
    /// Its reason as written; may be empty.
    pub reason: String,
    /// Who is asked before a person.
    pub decide: Option<Decide>,
    pub(super) matcher: Matcher,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Matcher {
    /// Text handed to a shell.
    ShellText,
    /// A program, any where none is named, with these arguments in order.
    Command {
        programs: Vec<String>,
        args: Vec<String>,
    },
    /// What is not on the allowlist.
    Unlisted,
    Lifecycle(Vec<LifecycleAction>),
    /// Any of these actions; with texts, folded, only one that types one of them.
    Computer {
        actions: Vec<ComputerAction>,
        texts: Vec<String>,
    },
    Stall {
        failures: Option<i64>,
        quiet_seconds: Option<i64>,
    },
    Expiry {
        before_seconds: i64,
    },
}

impl PolicyGate {
    /// What the caller of a refused action is told: the reason, or a sentence that names the gate.
    #[must_use]
    pub fn denial(&self) -> String {
        if is_blank(&self.reason) {
            format!("refused by hitl gate {}", self.name)
        } else {
            self.reason.clone()
        }
    }

    /// The settings of a stall signal: failures in a row, and seconds of quiet.
    #[must_use]
    pub fn stall(&self) -> Option<(Option<i64>, Option<i64>)> {
        match &self.matcher {
            Matcher::Stall {
                failures,
                quiet_seconds,
            } => Some((*failures, *quiet_seconds)),
            Matcher::ShellText
            | Matcher::Command { .. }
            | Matcher::Unlisted
            | Matcher::Lifecycle(_)
            | Matcher::Computer { .. }
            | Matcher::Expiry { .. } => None,
        }
    }

    /// How many seconds ahead of the reaper an expiry signal fires.
    #[must_use]
    pub fn expiry(&self) -> Option<i64> {
        match &self.matcher {
            Matcher::Expiry { before_seconds } => Some(*before_seconds),
            Matcher::ShellText
            | Matcher::Command { .. }
            | Matcher::Unlisted
            | Matcher::Lifecycle(_)
            | Matcher::Computer { .. }
            | Matcher::Stall { .. } => None,
        }
    }

    /// The gate as it was declared and found valid.
    pub(super) fn compile(gate: &Gate, block_timeout: i64) -> Self {
        Self {
            name: gate.name.clone(),
            on: gate.on,
            mode: gate.mode,
            grant: gate.grant.unwrap_or(GrantReach::Once),
            timeout_seconds: gate.timeout_seconds.unwrap_or(block_timeout),
            reason: gate.reason.clone(),
            decide: gate.decide.clone(),
            matcher: Matcher::compile(gate),
        }
    }
}

impl Matcher {
    fn compile(gate: &Gate) -> Self {
        let wanted = &gate.matches;
        let actions = wanted.action.as_ref().map_or(&[][..], |names| &names.0);
        match gate.on {
            GateOn::Exec if wanted.shell == Some(true) => Self::ShellText,
            GateOn::Exec => Self::Command {
                programs: wanted.program.clone().unwrap_or_default().0,
                args: wanted.args.clone().unwrap_or_default(),
            },
            GateOn::Lifecycle => Self::Lifecycle(
                actions
                    .iter()
                    .filter_map(|a| LifecycleAction::parse(a))
                    .collect(),
            ),
            GateOn::Computer => {
                let texts: Vec<String> = wanted
                    .text_contains
                    .iter()
                    .flatten()
                    .map(|text| fold(text))
                    .collect();
                let mut actions: Vec<_> = actions
                    .iter()
                    .filter_map(|a| ComputerAction::parse(a))
                    .collect();
                if !texts.is_empty() {
                    actions = vec![ComputerAction::Type];
                }
                Self::Computer { actions, texts }
            }
            GateOn::Stall => Self::Stall {
                failures: wanted.failures,
                quiet_seconds: wanted.quiet_seconds,
            },
            GateOn::Expiry => Self::Expiry {
                before_seconds: wanted.before_seconds.unwrap_or_default(),
            },
        }
    }

    /// Whether the gate concerns a command, and what made it.
    pub(super) fn concerns_argv(&self, readings: &Readings<'_>) -> Option<Through> {
        match self {
            Self::ShellText => {
                let held = |sight: &Sight| sight.shell_text || sight.doubt > Doubt::None;
                Through::of(held(&readings.plain), || held(&readings.sight))
            }
            Self::Command { programs, args } => Through::of(
                match readings.plain.doubt {
                    Doubt::Anything => true,
                    Doubt::Words => named_among(programs, readings),
                    Doubt::None => readings.iter().any(|reading| {
                        (programs.is_empty() || names(programs, reading.name))
                            && (reading.open
                                || in_order(args, reading.args().iter().map(String::as_str)))
                    }),
                },
                || {
                    let mut tails = readings.tails();
                    match readings.sight.doubt {
                        Doubt::Anything => true,
                        Doubt::Words if named_among(programs, readings) => true,
                        Doubt::Words | Doubt::None => {
                            tails.any(|(words, open)| carries(programs, args, words, open))
                        }
                    }
                },
            ),
            Self::Unlisted
            | Self::Lifecycle(_)
            | Self::Computer { .. }
            | Self::Stall { .. }
            | Self::Expiry { .. } => None,
        }
    }

    /// Whether the gate concerns a shell string, which runs as `sh -c TEXT`.
    pub(super) fn concerns_shell(&self, text: &str) -> bool {
        match self {
            Self::ShellText => true,
            Self::Command { programs, args } => {
                names(programs, "sh") && in_order(args, ["-c", text].into_iter())
            }
            Self::Unlisted
            | Self::Lifecycle(_)
            | Self::Computer { .. }
            | Self::Stall { .. }
            | Self::Expiry { .. } => false,
        }
    }

    pub(super) fn concerns_lifecycle(&self, action: LifecycleAction) -> bool {
        match self {
            Self::Lifecycle(actions) => actions.contains(&action),
            Self::ShellText
            | Self::Command { .. }
            | Self::Unlisted
            | Self::Computer { .. }
            | Self::Stall { .. }
            | Self::Expiry { .. } => false,
        }
    }

    /// `typed` is the folded text of a `type` action.
    pub(super) fn concerns_computer(&self, action: ComputerAction, typed: Option<&str>) -> bool {
        match self {
            Self::Computer { actions, texts } => {
                actions.contains(&action)
                    && (texts.is_empty()
                        || typed.is_none_or(|typed| texts.iter().any(|text| typed.contains(text))))
            }
            Self::ShellText
            | Self::Command { .. }
            | Self::Unlisted
            | Self::Lifecycle(_)
            | Self::Stall { .. }
            | Self::Expiry { .. } => false,
        }
    }
}

/// What made a gate concern a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Through {
    /// The command itself, wrappers taken off.
    Wrappers,
    /// Only that a carrier may run what stands behind it.
    Carrier,
}

impl Through {
    fn of(plain: bool, carried: impl FnOnce() -> bool) -> Option<Self> {
        if plain {
            Some(Self::Wrappers)
        } else {
            carried().then_some(Self::Carrier)
        }
    }
}

/// Whether any of the words may be one of the programs.
fn named_among(programs: &[String], readings: &Readings<'_>) -> bool {
    programs.is_empty()
        || readings
            .words()
            .any(|word| carried_names(word).any(|name| names(programs, name)))
}

/// Whether a suffix of the words is a command that is wanted. From `open` on, arguments may be added. The first place of a program
/// has the most words behind it, so that no other has to be looked behind.
fn carries(programs: &[String], args: &[String], words: &[String], open: usize) -> bool {
    let mut first = programs.is_empty().then_some(0);
    if first.is_some() && open < words.len() {
        return true;
    }
    if first.is_none() {
        for (at, word) in words.iter().enumerate() {
            if carried_names(word).any(|name| names(programs, name)) {
                if at >= open {
                    return true;
                }
                first = first.or(Some(at));
            }
        }
    }
    first.is_some_and(|at| {
        let behind = words.get(at + 1..).unwrap_or_default();
        in_order(args, behind.iter().map(String::as_str))
    })
}

fn names(programs: &[String], name: &str) -> bool {
    programs.iter().any(|program| program == name)
}

/// Whether the wanted words stand among the given ones in this order.
fn in_order<'a>(wanted: &[String], mut given: impl Iterator<Item = &'a str>) -> bool {
    wanted.iter().all(|word| given.any(|arg| arg == word))
}
