//! Every program that an argument vector would run, outermost first.

use super::options::Wrapper;
use super::shells;
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

/// The readings of one command.
#[derive(Debug)]
pub(in crate::policy) struct Readings<'a> {
    spans: [Span; ROOM],
    len: usize,
    argv: &'a [String],
    rewritten: Vec<Vec<String>>,
    /// How far to trust the readings.
    pub doubt: Doubt,
    /// A shell is handed text.
    pub shell_text: bool,
    /// A variable is set that can make an allowed program run another, or input decides.
    pub unlistable: bool,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    /// 0 is the argv itself, `n` the `n`th rewriting of it.
    source: usize,
    start: usize,
    /// Where the basename starts in the program.
    name: usize,
    role: Role,
    open: bool,
}

impl Span {
    fn words<'a>(&self, argv: &'a [String], rewritten: &'a [Vec<String>]) -> &'a [String] {
        let source = match self.source.checked_sub(1) {
            None => argv,
            Some(index) => &rewritten[index],
        };
        &source[self.start..]
    }
}

const EMPTY: Span = Span {
    source: 0,
    start: 0,
    name: 0,
    role: Role::Program,
    open: false,
};

impl<'a> Readings<'a> {
    /// Reads a command, which is not empty. The time is linear in the length of its words.
    pub fn of(argv: &'a [String]) -> Self {
        let mut readings = Self {
            spans: [EMPTY; ROOM],
            len: 0,
            argv,
            rewritten: Vec::new(),
            doubt: Doubt::None,
            shell_text: false,
            unlistable: false,
        };
        readings.read();
        readings
    }

    /// The readings, outermost first; there is at least one.
    pub fn iter(&self) -> impl Iterator<Item = Reading<'_>> {
        self.spans[..self.len].iter().map(|span| {
            let words = span.words(self.argv, &self.rewritten);
            Reading {
                words,
                name: words.first().map_or("", |program| &program[span.name..]),
                role: span.role,
                open: span.open,
            }
        })
    }

    /// Every word there is: the program is among them where [`Doubt::Words`] holds.
    pub fn words(&self) -> impl Iterator<Item = &String> {
        self.argv.iter().chain(self.rewritten.iter().flatten())
    }

    fn push(&mut self, span: Span, role: Role) {
        let program = span.words(self.argv, &self.rewritten).first();
        let name = program.map_or(0, |program| program.len() - basename(program).len());
        if let Some(place) = self.spans.get_mut(self.len) {
            *place = Span { name, role, ..span };
            self.len += 1;
        }
    }

    fn doubt_at_least(&mut self, doubt: Doubt) {
        self.doubt = self.doubt.max(doubt);
    }

    fn read(&mut self) {
        let mut at = EMPTY;
        let mut depth = 0;
        // What input takes the place of, once an `xargs` said so.
        let mut replaced: Option<String> = None;
        loop {
            let words = at.words(self.argv, &self.rewritten);
            let program = words.first().map_or("", String::as_str);
            let step = match wrappers::find(program) {
                Some(wrapper) => Step::Wrapper(wrapper),
                None if basename(program) == "busybox" => Step::Busybox,
                None => Step::Program,
            };
            if let Some(text) = &replaced {
                // Input may name the program, or be an option that moves it.
                let reach = if matches!(step, Step::Program) {
                    1
                } else {
                    words.len()
                };
                if words
                    .iter()
                    .take(reach)
                    .any(|word| word.contains(text.as_str()))
                {
                    self.doubt = Doubt::Anything;
                }
            }
            let wrapper = match step {
                Step::Wrapper(_) | Step::Busybox if depth == DEPTH => {
                    self.doubt_at_least(Doubt::Words);
                    return self.push(at, Role::Program);
                }
                Step::Program => {
                    self.shell_text |= shells::is_shell(program)
                        && (at.open || shells::runs_text(program, &words[1..]));
                    return self.push(at, Role::Program);
                }
                Step::Busybox => match words.get(1) {
                    Some(applet) if !applet.starts_with('-') => {
                        self.push(at, Role::Multiplexer);
                        at.start += 1;
                        depth += 1;
                        continue;
                    }
                    Some(_) => return self.push(at, Role::Program),
                    None => return self.end(at),
                },
                Step::Wrapper(wrapper) => wrapper,
            };
            let (strip, notes) = wrappers::strip(wrapper, words);
            if notes.shell && words.iter().any(|word| word.contains('$')) {
                self.doubt = Doubt::Anything;
            }
            self.heed(&notes);
            match strip {
                Strip::Inner(offset) => {
                    self.push(at, Role::Wrapper { free: wrapper.free });
                    at.start += offset;
                    at.open |= wrapper.adds_input;
                    self.unlistable |= wrapper.adds_input;
                    replaced = notes.replaces.or(replaced);
                    depth += 1;
                }
                Strip::Rewritten(words) if self.rewritten.len() < DEPTH => {
                    self.push(at, Role::Wrapper { free: wrapper.free });
                    self.rewritten.push(words);
                    at.source = self.rewritten.len();
                    at.start = 0;
                }
                Strip::Rewritten(_) | Strip::Unsplittable => {
                    self.doubt = Doubt::Anything;
                    return self.push(at, Role::Program);
                }
                Strip::Unreadable => {
                    self.doubt_at_least(Doubt::Words);
                    return self.end(at);
                }
                Strip::Alone => return self.end(at),
            }
        }
    }

    fn heed(&mut self, notes: &Notes) {
        if notes.doubt {
            self.doubt_at_least(Doubt::Words);
        }
        self.shell_text |= notes.shell;
        self.unlistable |= notes.taints;
    }

    /// The words ended before a program came. If input adds more of them, it adds the program.
    fn end(&mut self, at: Span) {
        if at.open {
            self.doubt = Doubt::Anything;
        }
        self.push(at, Role::Program);
    }
}

enum Step {
    Wrapper(&'static Wrapper),
    Busybox,
    Program,
}
