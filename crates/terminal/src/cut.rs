//! Cutting between graphemes, never inside one.

use std::collections::HashMap;

use thiserror::Error;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::strip::strip;

/// Graphemes of a question, an option or a default that are shown, the `…` included.
pub const MAX_TEXT: usize = 500;

/// Options that a person can be offered at once.
pub const MAX_OPTIONS: usize = 25;

/// Scalar values that count as one grapheme. Some clusters (conjoining jamo, conjuncts) have no natural end, and
/// one of them must not get past a limit as "one character".
const SCALARS: usize = 16;

fn cost(grapheme: &str) -> usize {
    grapheme.chars().count().div_ceil(SCALARS)
}

/// Where `text` has to be cut to hold at most `max` graphemes, or `None` where it fits.
pub(crate) fn limit(text: &str, max: usize) -> Option<usize> {
    // As many bytes as graphemes allowed: it cannot be too long.
    if text.len() <= max {
        return None;
    }
    let mut left = max;
    for (at, grapheme) in text.grapheme_indices(true) {
        match left.checked_sub(cost(grapheme)) {
            Some(rest) => left = rest,
            None => return Some(at),
        }
    }
    None
}

/// How many characters a person would count in `text`.
pub(crate) fn length(text: &str) -> usize {
    text.graphemes(true).map(cost).sum()
}

/// [`strip`]s `text` and cuts it to at most `max` graphemes, the `…` that marks the cut included.
///
/// It is stripped first, so that a cut cannot leave half an escape sequence. A cluster of more than 16 scalar values
/// counts as several, so the result has at most `16 * max` of them. With a `max` of 0 it is empty.
///
/// ```
/// use fuse_terminal::strip_and_cut;
/// assert_eq!(strip_and_cut("abcdef", 6), "abcdef");
/// assert_eq!(strip_and_cut("abcdef", 4), "abc…");
/// assert_eq!(strip_and_cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
/// ```
pub fn strip_and_cut(text: &str, max: usize) -> String {
    let mut text = strip(text);
    if limit(&text, max).is_some() {
        let at = limit(&text, max.saturating_sub(1)).unwrap_or(text.len());
        text.truncate(at);
        if max > 0 {
            text.push('…');
        }
    }
    text
}

/// [`strip`]s `text` and cuts it to at most `columns` terminal columns: a cell of a table.
///
/// ```
/// use fuse_terminal::cell;
/// assert_eq!(cell("深圳市", 6), "深圳市");
/// assert_eq!(cell("深圳市", 5), "深圳…");
/// assert_eq!(cell("深圳市", 4), "深…");
/// ```
pub fn cell(text: &str, columns: usize) -> String {
    let mut text = strip(text);
    if width(&text) <= columns {
        return text;
    }
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let mut used = 0;
    let at = text
        .grapheme_indices(true)
        .find(|(_, grapheme)| {
            used += grapheme.width();
            used > room
        })
        .map_or(text.len(), |(at, _)| at);
    text.truncate(at);
    text.push('…');
    text
}

// The sum over graphemes, which is also what `cell` fills up to.
fn width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// Why a list of options cannot be offered to a person.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionsError {
    /// More than [`MAX_OPTIONS`].
    #[error("{got} options are too many to offer, at most {MAX_OPTIONS} are allowed")]
    TooMany {
        /// How many there were.
        got: usize,
    },
    /// Nothing can be seen of an option.
    #[error("option {index} is blank once it is made safe to show")]
    Blank {
        /// Its place, from 0.
        index: usize,
    },
    /// Two options look the same, so a person could not tell which one they choose.
    #[error("options {first} and {second} look the same once they are made safe to show")]
    Same {
        /// The place of the one, from 0.
        first: usize,
        /// The place of the other.
        second: usize,
    },
}

/// The options as they are shown, in their order: each [`strip_and_cut`] to [`MAX_TEXT`].
///
/// # Errors
/// Where there are too many, or a person could not see or tell apart what they choose between.
///
/// ```
/// use fuse_terminal::{OptionsError, options};
/// assert_eq!(options(["yes", "no\u{7}"]).unwrap(), ["yes", "no"]);
/// assert_eq!(options(["yes", "ye\u{200b}s"]), Err(OptionsError::Same { first: 0, second: 1 }));
/// ```
pub fn options<I>(options: I) -> Result<Vec<String>, OptionsError>
where
    I: IntoIterator<Item: AsRef<str>>,
{
    let shown: Vec<String> = options
        .into_iter()
        .map(|option| strip_and_cut(option.as_ref(), MAX_TEXT))
        .collect();
    if shown.len() > MAX_OPTIONS {
        return Err(OptionsError::TooMany { got: shown.len() });
    }
    let mut seen = HashMap::new();
    for (index, option) in shown.iter().enumerate() {
        let option = option.trim();
        if option.is_empty() {
            return Err(OptionsError::Blank { index });
        }
        if let Some(first) = seen.insert(option, index) {
            return Err(OptionsError::Same {
                first,
                second: index,
            });
        }
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_endless_cluster_cannot_pass_as_one_character() {
        let jamo = "\u{1100}".repeat(10_000);
        assert_eq!(jamo.graphemes(true).count(), 1);
        assert_eq!(strip_and_cut(&jamo, 500), "…");
        assert_eq!(length(&jamo), 625);
    }

    #[test]
    fn a_cut_to_nothing_is_empty() {
        assert_eq!(strip_and_cut("a", 0), "");
        assert_eq!(cell("a", 0), "");
        assert_eq!(strip_and_cut("ab", 1), "…");
        assert_eq!(cell("ab", 1), "…");
    }

    #[test]
    fn text_is_stripped_before_it_is_cut() {
        let text = format!("{}\u{1b}[31mred", "a".repeat(499));
        assert_eq!(strip_and_cut(&text, 500), format!("{}…", "a".repeat(499)));
    }

    #[test]
    fn twenty_five_options_pass_and_one_more_does_not() {
        let many: Vec<String> = (0..26).map(|n| n.to_string()).collect();
        assert_eq!(options(&many[..25]).unwrap().len(), 25);
        assert_eq!(options(&many), Err(OptionsError::TooMany { got: 26 }));
    }

    #[test]
    fn an_option_of_blanks_is_refused() {
        assert_eq!(
            options(["a", " \u{200b}\n"]),
            Err(OptionsError::Blank { index: 1 })
        );
    }
}
