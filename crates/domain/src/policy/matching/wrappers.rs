//! Taking one wrapper off the front of an argument vector.

use super::options::{Effect, Operands, Opt, Takes, WRAPPERS, Wrapper};
use super::split::split;
use super::variables::runs_programs;

/// The last part of a path.
pub(in crate::policy) fn basename(path: &str) -> &str {
    match path.bytes().rposition(|b| b == b'/') {
        Some(slash) => &path[slash + 1..],
        None => path,
    }
}

/// The wrapper that a program word names, wherever it lies.
pub(in crate::policy) fn find(program: &str) -> Option<&'static Wrapper> {
    let name = basename(program);
    WRAPPERS.iter().find(|wrapper| wrapper.name == name)
}

/// Whether the program is many in one, and runs the one that its first argument names.
pub(in crate::policy) fn is_multiplexer(program: &str) -> bool {
    matches!(basename(program), "busybox" | "toybox")
}

/// What was learnt on the way through a wrapper's own arguments.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Notes {
    /// The command may run as something else than what is written.
    pub doubt: bool,
    /// The command goes through a shell.
    pub shell: bool,
    /// It sets a variable that can make an allowed program run another.
    pub taints: bool,
    /// Input takes the place of this text.
    pub replaces: Option<String>,
    /// How many words were looked at, or a few more.
    pub read: usize,
}

/// Where a wrapper's own arguments end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Strip {
    /// The command starts at this word.
    Inner(usize),
    /// No command follows: the wrapper is the program.
    Alone,
    /// These words stand in place of the wrapper and its arguments, and start with the wrapper again.
    Rewritten(Vec<String>),
    /// Its arguments make no sense to the table.
    Unreadable,
    /// The text to split is one that only the guest could split.
    Unsplittable,
}

/// Reads past the own arguments of the wrapper that is the first of `words`.
pub(super) fn strip(wrapper: &Wrapper, words: &[String]) -> (Strip, Notes) {
    let mut notes = Notes::default();
    let end = read(wrapper, words, &mut notes);
    (end, notes)
}

fn read(wrapper: &Wrapper, words: &[String], notes: &mut Notes) -> Strip {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        notes.read = at + 1;
        if word == "--" {
            at += 1;
            break;
        }
        if wrapper.numbers && is_number(word) {
            at += 1;
            continue;
        }
        let step = match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(long), _) => long_option(wrapper, long),
            (None, Some(cluster)) if !cluster.is_empty() => short_options(wrapper, cluster, notes),
            (None, _)
                if wrapper.operands == Operands::SudoAssignments
                    && is_sudo_assignment(words, at) =>
            {
                assign(word, notes);
                at += 1;
                continue;
            }
            (None, _) => break,
        };
        let Some((opt, glued)) = step else {
            return Strip::Unreadable;
        };
        at += 1;
        let value = match (opt.takes, glued) {
            (Takes::Value, None) => match words.get(at) {
                Some(next) => {
                    at += 1;
                    Some(next.as_str())
                }
                None => return Strip::Unreadable,
            },
            (Takes::Value | Takes::Glued | Takes::Nothing, glued) => glued,
        };
        if opt.effect == Effect::Split {
            return rewrite(words, value.unwrap_or_default(), at);
        }
        note(opt.effect, value, notes);
    }
    operands(wrapper.operands, words, at, notes)
}

/// What the words after the options are, up to the command.
fn operands(kind: Operands, words: &[String], mut at: usize, notes: &mut Notes) -> Strip {
    match kind {
        Operands::None | Operands::SudoAssignments => {}
        Operands::Duration => at += 1,
        Operands::Assignments => {
            if words.get(at).is_some_and(|word| word == "-") {
                at += 1;
            }
            while let Some(word) = words.get(at).filter(|word| word.contains('=')) {
                assign(word, notes);
                at += 1;
                notes.read = at;
            }
        }
    }
    if at < words.len() {
        Strip::Inner(at)
    } else {
        Strip::Alone
    }
}

fn rewrite(words: &[String], text: &str, rest: usize) -> Strip {
    let Some(parts) = split(text) else {
        return Strip::Unsplittable;
    };
    let mut rewritten = Vec::with_capacity(1 + parts.len() + words.len() - rest);
    rewritten.push(words[0].clone());
    rewritten.extend(parts);
    rewritten.extend_from_slice(&words[rest..]);
    Strip::Rewritten(rewritten)
}

/// The option of `--name` or `--name=value`, with its value. `None` where there is no such option or it takes no value.
fn long_option<'a>(wrapper: &Wrapper, long: &'a str) -> Option<(Opt, Option<&'a str>)> {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let opt = wrapper.long(name)?;
    (value.is_none() || opt.takes != Takes::Nothing).then_some((opt, value))
}

/// The last option of a cluster like `-rn1`, with the value glued to it; what the ones before it mean is noted.
fn short_options<'a>(
    wrapper: &Wrapper,
    cluster: &'a str,
    notes: &mut Notes,
) -> Option<(Opt, Option<&'a str>)> {
    let mut last = None;
    for (index, letter) in cluster.char_indices() {
        let opt = wrapper.short(u8::try_from(letter).ok()?)?;
        if opt.takes != Takes::Nothing {
            let rest = &cluster[index + letter.len_utf8()..];
            return Some((opt, Some(rest).filter(|rest| !rest.is_empty())));
        }
        note(opt.effect, None, notes);
        last = Some((opt, None));
    }
    last
}

fn note(effect: Effect, value: Option<&str>, notes: &mut Notes) {
    match effect {
        Effect::Plain | Effect::Split => {}
        Effect::Replace => notes.replaces = Some(value.unwrap_or("{}").to_owned()),
        Effect::Doubt => notes.doubt = true,
        Effect::Shell => {
            notes.doubt = true;
            notes.shell = true;
        }
    }
}

fn assign(word: &str, notes: &mut Notes) {
    notes.taints |= runs_programs(word.split('=').next().unwrap_or(word));
}

fn is_number(word: &str) -> bool {
    word.strip_prefix('-')
        .map(|rest| rest.strip_prefix(['-', '+']).unwrap_or(rest))
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// `sudo` takes assignments among its options, but none right behind a `--`, and no path or word that starts with `=`.
fn is_sudo_assignment(words: &[String], at: usize) -> bool {
    let word = &words[at];
    !word.starts_with(['/', '=']) && word.contains('=') && !(at > 1 && words[at - 1] == "--")
}
