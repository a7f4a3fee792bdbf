//! What a carrier may run: every suffix of the words behind it.

use std::collections::HashSet;

use super::argv::{Doubt, Readings, Span, known};
use super::carriers::{self, CARRIERS};
use super::shells;
use super::wrappers;

/// Words behind which `find` and its like name what they run.
const EXECS: [&str; 8] = [
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-x",
    "-X",
    "--exec",
    "--exec-batch",
];

/// What stands for a file's name.
const FILE: &str = "{}";

/// Which suffixes of some words are readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) struct Tail {
    /// The first of them.
    pub from: usize,
    /// From here on input, or a word before it, may add arguments.
    pub open: usize,
}

impl Tail {
    pub(super) const WHOLE: Self = Self::from(0);

    pub(super) const fn from(from: usize) -> Self {
        Self {
            from,
            open: usize::MAX,
        }
    }
}

/// What was met on the way through the suffixes.
#[derive(Default)]
struct Met {
    /// Carriers of the table, whose texts are looked for once, since the first has the most words behind it.
    listed: [u64; 4],
    /// A carrier that the policy names.
    named: bool,
    /// How many carriers there were.
    count: usize,
    /// One of them puts names of files in place of `{}`.
    fills: bool,
}

impl Readings<'_> {
    /// Reads every suffix behind a carrier, and of each text that is split there.
    pub(super) fn scan_tails(&mut self, carrier: Span, named: &HashSet<String>) {
        // Enough for any command that somebody means, and linear.
        self.fuel = 0x1_0000 + 32 * self.words().map(|word| word.len() + 1).sum::<usize>();
        let mut met = Met::default();
        self.meet(carrier, named, &mut met);
        self.scan(carrier.source, named, &mut met);
        let mut source = 1;
        while source <= self.rewritten.len() {
            if source != carrier.source {
                // What one of them carries, each may carry again.
                met.listed = [0; 4];
                met.named = false;
                self.scan(source, named, &mut met);
            }
            source += 1;
        }
    }

    fn scan(&mut self, source: usize, named: &HashSet<String>, met: &mut Met) {
        let Some(tail) = *self.tail_mut(source) else {
            return;
        };
        for start in tail.from..self.source(source).len() {
            if self.sight.doubt == Doubt::Anything {
                // Every exec gate matches.
                return;
            }
            let word = &self.source(source)[start];
            let place = Span::at(source, start);
            if met.fills && word.contains(FILE) {
                let before = start.checked_sub(1).map(|at| &self.source(source)[at]);
                // A name of a file may be the program.
                if met.count > 1 || before.is_some_and(|before| EXECS.contains(&before.as_str())) {
                    self.doubt_at_least(Doubt::Anything);
                }
            }
            let word = &self.source(source)[start];
            if wrappers::find(word).is_some() || wrappers::is_multiplexer(word) {
                if let Some(program) = self.follow(place, false) {
                    self.reach(program, named, met);
                }
            } else if carriers::names(word).any(shells::is_shell) {
                let open = self.tail_mut(source).is_some_and(|tail| start >= tail.open);
                let mut place = place;
                place.open = open;
                self.heed_shell(place);
            } else {
                self.meet(place, named, met);
            }
        }
    }

    /// A wrapper behind a carrier runs this.
    fn reach(&mut self, program: Span, named: &HashSet<String>, met: &Met) {
        let Some(word) = self.source(program.source).get(program.start) else {
            return;
        };
        let carrier = known(word, named).is_some();
        if (met.fills && word.contains(FILE)) || (program.open && carrier) {
            self.doubt_at_least(Doubt::Anything);
        }
        if program.open
            && let Some(tail) = self.tail_mut(program.source)
        {
            tail.open = tail.open.min(program.start);
        }
    }

    /// Notes what a carrier does with the words behind it.
    fn meet(&mut self, at: Span, named: &HashSet<String>, met: &mut Met) {
        let words = &self.source(at.source)[at.start..];
        let Some((program, args)) = words.split_first() else {
            return;
        };
        let Some(carrier) = known(program, named) else {
            return;
        };
        let seen = match carriers::find(program) {
            Some((index, _)) => {
                let bit = 1 << (index % 64);
                let word = &mut met.listed[index.min(CARRIERS.len()) / 64];
                std::mem::replace(word, *word | bit) & bit != 0
            }
            None => std::mem::replace(&mut met.named, true),
        };
        if seen {
            return;
        }
        met.count += 1;
        met.fills |= carrier.fills;
        // The table bounds how often the words are looked at.
        let text = carrier.hands_text(args);
        if carrier.open
            && let Some(tail) = self.tail_mut(at.source)
        {
            tail.open = tail.open.min(at.start);
        }
        self.sight.shell_text |= text;
    }
}
