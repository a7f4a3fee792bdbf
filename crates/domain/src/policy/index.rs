//! Which gates a command has to be shown to at all.

use std::collections::HashMap;

use super::gate::{Matcher, PolicyGate};
use super::matching::argv::{Doubt, Readings};
use super::matching::carriers;

/// The exec gates of a policy, by what they look for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Index {
    /// By each program that a gate names.
    programs: HashMap<String, Vec<usize>>,
    /// Those that name none, by the first of their arguments.
    args: HashMap<String, Vec<usize>>,
    shell: Vec<usize>,
    /// How many gates the policy has, of any kind.
    gates: usize,
}

impl Index {
    pub(super) fn of(gates: &[PolicyGate]) -> Self {
        let mut index = Self {
            gates: gates.len(),
            ..Self::default()
        };
        for (at, gate) in gates.iter().enumerate() {
            match &gate.matcher {
                Matcher::ShellText => index.shell.push(at),
                Matcher::Command { programs, args } if programs.is_empty() => {
                    let first = args.first().cloned().unwrap_or_default();
                    index.args.entry(first).or_default().push(at);
                }
                Matcher::Command { programs, .. } => {
                    for program in programs {
                        index.programs.entry(program.clone()).or_default().push(at);
                    }
                }
                Matcher::Unlisted
                | Matcher::Lifecycle(_)
                | Matcher::Computer { .. }
                | Matcher::Stall { .. }
                | Matcher::Expiry { .. } => {}
            }
        }
        index
    }

    /// The gates that may concern the command. One that is left out certainly does not.
    pub(super) fn of_argv(&self, readings: &Readings<'_>) -> Hits {
        let mut hits = Hits::new(self.gates);
        let sight = readings.sight;
        if sight.doubt == Doubt::Anything {
            hits.take_all();
            return hits;
        }
        if sight.shell_text || sight.doubt == Doubt::Words {
            hits.take(&self.shell);
        }
        let mut open = false;
        if !self.programs.is_empty() {
            for reading in readings.iter() {
                self.program(reading.name, &mut hits);
            }
        }
        for reading in readings.iter() {
            open |= reading.open;
        }
        for (words, from) in readings.tails() {
            open |= from < words.len();
            self.carried(words.iter(), &mut hits);
        }
        if sight.doubt == Doubt::Words {
            self.carried(readings.words(), &mut hits);
        }
        if open || sight.doubt == Doubt::Words {
            for gates in self.args.values() {
                hits.take(gates);
            }
        } else if !self.args.is_empty() {
            for word in readings.words() {
                if let Some(gates) = self.args.get(word) {
                    hits.take(gates);
                }
            }
        }
        hits
    }

    /// The gates that may concern a shell string.
    pub(super) fn of_shell(&self) -> Hits {
        let mut hits = Hits::new(self.gates);
        hits.take(&self.shell);
        self.program("sh", &mut hits);
        hits
    }

    fn carried<'w>(&self, words: impl Iterator<Item = &'w String>, hits: &mut Hits) {
        if !self.programs.is_empty() {
            for name in words.flat_map(|word| carriers::names(word)) {
                self.program(name, hits);
            }
        }
    }

    fn program(&self, name: &str, hits: &mut Hits) {
        if let Some(gates) = self.programs.get(name) {
            hits.take(gates);
        }
    }
}

/// Some gates of a policy. Nothing is allocated before the first.
#[derive(Debug)]
pub(super) struct Hits {
    bits: Vec<u64>,
    gates: usize,
    /// The list that was taken last, since a word often comes again.
    last: Option<*const [usize]>,
}

impl Hits {
    fn new(gates: usize) -> Self {
        Self {
            bits: Vec::new(),
            gates,
            last: None,
        }
    }

    fn take(&mut self, gates: &[usize]) {
        let list = std::ptr::from_ref(gates);
        if gates.is_empty() || self.last.is_some_and(|last| std::ptr::eq(last, list)) {
            return;
        }
        self.last = Some(list);
        self.bits.resize(self.gates.div_ceil(64), 0);
        for at in gates {
            self.bits[at / 64] |= 1 << (at % 64);
        }
    }

    fn take_all(&mut self) {
        self.bits = vec![u64::MAX; self.gates.div_ceil(64)];
    }

    /// Their places, in the order of declaration.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.bits
            .iter()
            .enumerate()
            .flat_map(|(word, bits)| {
                let mut rest = *bits;
                std::iter::from_fn(move || {
                    let bit = rest.trailing_zeros();
                    rest &= rest.checked_sub(1)?;
                    Some(word * 64 + bit as usize)
                })
            })
            .filter(|at| *at < self.gates)
    }
}
