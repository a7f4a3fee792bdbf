//! Every program that an argument vector would run, outermost first.

use std::collections::HashSet;

use super::carriers::{self, Carrier};
use super::options::Wrapper;
use super::shells;
use super::tail::Tail;
use super::wrappers::{self, Notes, Strip, basename};

/// Wrappers that may stand before a program, and texts that `env -S` may split, before nobody can be expected to follow.
pub(in crate::policy) const DEPTH: usize = 16;

/// Room for every wrapper, every split text, and the program.
const ROOM: usize = 2 * DEPTH + 1;

/// One program with its arguments, as seen after some wrappers were taken off.
#[derive(Debug, Clone, Copy)]
pub(in crate::policy) struct Reading<'a> {
    /// The program and its arguments; never empty.
    pub words: &'a [String],
    /// The program's basename.
    pub name: &'a str,
    /// Its part in the whole.
    pub role: Role,
    /// Input adds arguments to it.
    pub open: bool,
}

/// What a reading's program is to the command.
#[derive(Debug, Clone, Copy)]
pub(in crate::policy) enum Role {
    /// The program that runs in the end.
    Program,
    /// It runs the next reading. Carries whether an allowlist lets it pass without an entry.
    Wrapper {
        /// Whether it needs no entry of its own.
        free: bool,
    },
    /// It is many programs in one, and runs the next reading's.
    Multiplexer,
}

impl<'a> Reading<'a> {
    /// The program as written.
    pub fn program(&self) -> &'a str {
        self.words.first().map_or("", String::as_str)
    }

    /// What follows the program.
    pub fn args(&self) -> &'a [String] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// How much of a command could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policy) enum Doubt {
    /// Nothing: what is written is what runs.
    None,
    /// Any of the words that are left may be the program.
    Words,
    /// Anything may run.
    Anything,
}

/// What was understood of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) struct Sight {
    /// How far to trust the readings.
    pub doubt: Doubt,
    /// A shell is handed text.
    pub shell_text: bool,
}

const CLEAR: Sight = Sight {
    doubt: Doubt::None,
    shell_text: false,
};

/// The readings of one command.
#[derive(Debug)]
pub(in crate::policy) struct Readings<'a> {
    spans: [Span; ROOM],
    len: usize,
    argv: &'a [String],
    /// Where the suffixes of the argv begin that are readings.
    tail: Option<Tail>,
    pub(super) rewritten: Vec<Rewriting>,
    /// What was understood up to the first carrier, the whole of the command where there is none.
    pub plain: Sight,
    /// What was understood with all that a carrier may run.
    pub sight: Sight,
    /// A variable is set that can make an allowed program run another, or input decides.
    pub unlistable: bool,
    /// How many more bytes may be looked at behind a carrier.
    pub(super) fuel: usize,
}

/// Words that a split text gave.
#[derive(Debug)]
pub(super) struct Rewriting {
    pub words: Vec<String>,
    /// The source and the place of the wrapper that they stand for.
    origin: (usize, usize),
    /// Where its suffixes begin that are readings.
    pub tail: Option<Tail>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// 0 is the argv itself, `n` the `n`th rewriting of it.
    pub source: usize,
    pub start: usize,
    /// Where the basename starts in the program.
    name: usize,
    role: Role,
    pub open: bool,
}

const EMPTY: Span = Span {
    source: 0,
    start: 0,
    name: 0,
    role: Role::Program,
    open: false,
};

impl Span {
    pub(super) fn at(source: usize, start: usize) -> Self {
        Self {
            source,
            start,
            ..EMPTY
        }
    }
}

impl<'a> Readings<'a> {
    /// Reads a command, which is not empty. `named` are carriers beside those of the table. The time is linear in the length of its words.
    pub fn of(argv: &'a [String], named: &HashSet<String>) -> Self {
        let mut readings = Self {
            spans: [EMPTY; ROOM],
            len: 0,
            argv,
            tail: None,
            rewritten: Vec::new(),
            plain: CLEAR,
            sight: CLEAR,
            unlistable: false,
            fuel: usize::MAX,
        };
        let end = readings.follow(EMPTY, true);
        readings.plain = readings.sight;
        if let Some(at) = end {
            readings.carry(at, named);
        }
        readings
    }

    /// The readings up to the first carrier, outermost first; there is at least one.
    pub fn iter(&self) -> impl Iterator<Item = Reading<'_>> {
        self.spans[..self.len].iter().map(|span| {
            let words = &self.source(span.source)[span.start..];
            Reading {
                words,
                name: words.first().map_or("", |program| &program[span.name..]),
                role: span.role,
                open: span.open,
            }
        })
    }

    /// Words of which every suffix is a reading, each with the place from which on input may add to them.
    pub fn tails(&self) -> impl Iterator<Item = (&[String], usize)> {
        let rewritten = self.rewritten.iter().map(|r| (r.words.as_slice(), r.tail));
        std::iter::once((self.argv, self.tail))
            .chain(rewritten)
            .filter_map(|(words, tail)| {
                let tail = tail?;
                Some((&words[tail.from..], tail.open.saturating_sub(tail.from)))
            })
    }

    /// The basename of the carrier that the command is read through.
    pub fn carrier(&self) -> Option<&str> {
        self.tails().next()?;
        self.iter().last().map(|reading| reading.name)
    }

    /// Every word there is: the program is among them where [`Doubt::Words`] holds.
    pub fn words(&self) -> impl Iterator<Item = &String> {
        self.argv
            .iter()
            .chain(self.rewritten.iter().flat_map(|r| &r.words))
    }

    /// The words of a source.
    pub(super) fn source(&self, source: usize) -> &[String] {
        match source.checked_sub(1) {
            None => self.argv,
            Some(index) => &self.rewritten[index].words,
        }
    }

    /// The tail of a source.
    pub(super) fn tail_mut(&mut self, source: usize) -> &mut Option<Tail> {
        match source.checked_sub(1) {
            None => &mut self.tail,
            Some(index) => &mut self.rewritten[index].tail,
        }
    }

    fn push(&mut self, span: Span, role: Role) {
        let program = self.source(span.source).get(span.start);
        let name = program.map_or(0, |program| program.len() - basename(program).len());
        if let Some(place) = self.spans.get_mut(self.len) {
            *place = Span { name, role, ..span };
            self.len += 1;
        }
    }

    pub(super) fn doubt_at_least(&mut self, doubt: Doubt) {
        self.sight.doubt = self.sight.doubt.max(doubt);
    }

    /// Takes wrappers off until a program comes, and gives its place. `None` where none comes or nobody can tell which.
    /// What it passes becomes a reading where `outer` is set.
    pub(super) fn follow(&mut self, mut at: Span, outer: bool) -> Option<Span> {
        let mut depth = 0;
        // What input takes the place of, once an `xargs` said so.
        let mut replaced: Option<String> = None;
        loop {
            let words = &self.source(at.source)[at.start..];
            let program = words.first().map_or("", String::as_str);
            let step = match wrappers::find(program) {
                Some(wrapper) => Step::Wrapper(wrapper),
                None if wrappers::is_multiplexer(program) => Step::Multiplexer,
                None => Step::Program,
            };
            let multiplexed = words.get(1).map(|applet| !applet.starts_with('-'));
            if let Some(text) = &replaced {
                // Input may name the program, or be an option that moves it.
                let reach = if matches!(step, Step::Program) {
                    1
                } else {
                    words.len()
                };
                let words = &words[..reach.min(words.len())];
                let found = words.iter().any(|word| word.contains(text.as_str()));
                let cost = cost(words);
                if found {
                    self.sight.doubt = Doubt::Anything;
                }
                if !self.spend(cost) {
                    return None;
                }
            }
            let wrapper = match step {
                Step::Wrapper(_) | Step::Multiplexer if depth == DEPTH => {
                    self.doubt_at_least(Doubt::Words);
                    self.pass(at, Role::Program, outer);
                    return None;
                }
                Step::Program => {
                    self.pass(at, Role::Program, outer);
                    self.heed_shell(at);
                    return Some(at);
                }
                Step::Multiplexer => match multiplexed {
                    Some(true) => {
                        self.pass(at, Role::Multiplexer, outer);
                        at.start += 1;
                        depth += 1;
                        continue;
                    }
                    Some(false) => {
                        self.pass(at, Role::Program, outer);
                        return None;
                    }
                    None => {
                        self.end(at, outer);
                        return None;
                    }
                },
                Step::Wrapper(wrapper) => wrapper,
            };
            let words = &self.source(at.source)[at.start..];
            let (strip, notes) = wrappers::strip(wrapper, words);
            let mut spent = cost(&words[..notes.read.min(words.len())]);
            if notes.shell {
                spent += cost(words);
                if words.iter().any(|word| word.contains('$')) {
                    self.sight.doubt = Doubt::Anything;
                }
            }
            self.heed(&notes);
            if !self.spend(spent) {
                return None;
            }
            match strip {
                Strip::Inner(offset) => {
                    self.pass(at, Role::Wrapper { free: wrapper.free }, outer);
                    at.start += offset;
                    at.open |= wrapper.adds_input;
                    self.unlistable |= wrapper.adds_input;
                    replaced = notes.replaces.or(replaced);
                    depth += 1;
                }
                Strip::Rewritten(words) => {
                    let Some(source) = self.rewrite(at, words, outer) else {
                        self.sight.doubt = Doubt::Anything;
                        self.pass(at, Role::Program, outer);
                        return None;
                    };
                    self.pass(at, Role::Wrapper { free: wrapper.free }, outer);
                    at.source = source;
                    at.start = 0;
                }
                Strip::Unsplittable => {
                    self.sight.doubt = Doubt::Anything;
                    self.pass(at, Role::Program, outer);
                    return None;
                }
                Strip::Unreadable => {
                    self.doubt_at_least(Doubt::Words);
                    self.end(at, outer);
                    return None;
                }
                Strip::Alone => {
                    self.end(at, outer);
                    return None;
                }
            }
        }
    }

    fn pass(&mut self, at: Span, role: Role, outer: bool) {
        if outer {
            self.push(at, role);
        }
    }

    /// Keeps the words of a split text, once for each wrapper. `None` where there are too many already.
    fn rewrite(&mut self, at: Span, words: Vec<String>, outer: bool) -> Option<usize> {
        let origin = (at.source, at.start);
        if !self.spend(cost(&words)) {
            return None;
        }
        if let Some(known) = self.rewritten.iter().position(|r| r.origin == origin) {
            return Some(known + 1);
        }
        if self.rewritten.len() == DEPTH {
            return None;
        }
        self.rewritten.push(Rewriting {
            words,
            origin,
            tail: (!outer).then_some(Tail::WHOLE),
        });
        Some(self.rewritten.len())
    }

    fn heed(&mut self, notes: &Notes) {
        if notes.doubt {
            self.doubt_at_least(Doubt::Words);
        }
        self.sight.shell_text |= notes.shell;
        self.unlistable |= notes.taints;
    }

    /// Notes that the program is a shell that is handed text.
    pub(super) fn heed_shell(&mut self, at: Span) {
        let words = &self.source(at.source)[at.start..];
        let Some((program, args)) = words.split_first() else {
            return;
        };
        if shells::is_shell(program) {
            let (text, read) = shells::runs_text(program, args);
            let cost = cost(&args[..read.min(args.len())]);
            self.sight.shell_text |= at.open || text;
            self.spend(cost);
        }
    }

    /// Whether there is fuel for looking at so many bytes. Where it runs out nobody can be expected to follow.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        match self.fuel.checked_sub(bytes) {
            Some(rest) => {
                self.fuel = rest;
                true
            }
            None => {
                self.fuel = 0;
                self.sight = Sight {
                    doubt: Doubt::Anything,
                    shell_text: true,
                };
                false
            }
        }
    }

    /// The words ended before a program came. If input adds more of them, it adds the program.
    fn end(&mut self, at: Span, outer: bool) {
        if at.open {
            self.sight.doubt = Doubt::Anything;
        }
        self.pass(at, Role::Program, outer);
    }

    /// Reads what the program may carry, if it is a carrier.
    fn carry(&mut self, at: Span, named: &HashSet<String>) {
        let words = &self.source(at.source)[at.start..];
        let Some((program, args)) = words.split_first() else {
            return;
        };
        let Some(carrier) = known(program, named) else {
            return;
        };
        let Some(from) = carrier.carries(args) else {
            // Input may add the verb.
            if at.open && args.iter().all(|word| word.starts_with('-')) {
                self.sight.doubt = Doubt::Anything;
                self.plain = self.sight;
            }
            return;
        };
        let unlistable = self.unlistable;
        if at.open {
            self.sight.doubt = Doubt::Anything;
            self.plain = self.sight;
        }
        *self.tail_mut(at.source) = Some(Tail::from(at.start + 1 + from));
        self.scan_tails(at, named);
        // An allowlist counts a carrier as itself.
        self.unlistable = unlistable;
    }
}

/// The carrier that a program is, by the table or by the policy.
pub(super) fn known(program: &str, named: &HashSet<String>) -> Option<Carrier> {
    match carriers::find(program) {
        Some((_, carrier)) => Some(carrier),
        None if !named.is_empty() && named.contains(basename(program)) => Some(carriers::UNKNOWN),
        None => None,
    }
}

/// What looking at words costs, in bytes.
pub(super) fn cost(words: &[String]) -> usize {
    words.iter().map(|word| word.len() + 1).sum()
}

enum Step {
    Wrapper(&'static Wrapper),
    Multiplexer,
    Program,
}
