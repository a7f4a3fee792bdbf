//! Safe text in rows of a screen.

use fuse_terminal::strip_lines;
use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

/// Where a row may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrap {
    /// Behind a space where there is one: prose.
    Words,
    /// Between any two graphemes: what has to be shown exactly.
    Exact,
}

/// Columns that a text takes on the screen.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(grapheme_width).sum()
}

pub(crate) fn grapheme_width(grapheme: &str) -> usize {
    if grapheme.chars().any(char::is_control) {
        return 0;
    }
    usize::from(grapheme.cell_width())
}

/// The rows of a safe text of one line; at least one. A grapheme wider than a row gets one for itself.
pub(crate) fn rows(text: &str, columns: usize, wrap: Wrap) -> Rows<'_> {
    Rows {
        rest: Some(text),
        columns: columns.max(1),
        wrap,
    }
}

pub(crate) struct Rows<'a> {
    rest: Option<&'a str>,
    columns: usize,
    wrap: Wrap,
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest?;
        let mut end = room(text, self.columns);
        if end < text.len() && self.wrap == Wrap::Words && !text[end..].starts_with(' ') {
            // Not where the word alone fills more than half a row: it would look torn apart.
            if let Some(space) = text[..end].rfind(' ')
                && space + 1 > end / 2
            {
                end = space + 1;
            }
        }
        let (row, mut rest) = text.split_at(end);
        if self.wrap == Wrap::Words && !rest.is_empty() {
            rest = rest.strip_prefix(' ').unwrap_or(rest);
        }
        self.rest = (!rest.is_empty()).then_some(rest);
        Some(row)
    }
}

/// How many bytes of `text` fit in a row; never none of a text that is not empty.
fn room(text: &str, columns: usize) -> usize {
    let head = &text.as_bytes()[..text.len().min(columns + 1)];
    if head.is_ascii() {
        // A mark may stand on the character behind the last column.
        if text.len() <= columns {
            return text.len();
        }
        if text.as_bytes().get(columns + 1).is_none_or(u8::is_ascii) {
            return columns;
        }
    }
    let mut used = 0;
    text.grapheme_indices(true)
        .find(|(at, grapheme)| {
            used += grapheme_width(grapheme);
            used > columns && *at > 0
        })
        .map_or(text.len(), |(at, _)| at)
}

const TAB: usize = 4;

/// One line of somebody else's text as it is kept: stripped, with its tabs as spaces.
pub(crate) fn clean_line(raw: &str) -> String {
    let text = strip_lines(raw);
    if !text.contains(['\t', '\n']) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut column = 0;
    for piece in text.split_inclusive(['\t', '\n']) {
        let body = piece.trim_end_matches(['\t', '\n']);
        out.push_str(body);
        column += width(body);
        if body.len() < piece.len() {
            let blanks = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str, columns: usize) -> Vec<&str> {
        rows(text, columns, Wrap::Exact).collect()
    }

    #[test]
    fn exact_rows_hold_all_of_the_text_between_graphemes() {
        assert_eq!(exact("abcde", 2), ["ab", "cd", "e"]);
        assert_eq!(exact("深圳市", 5), ["深圳", "市"]);
        assert_eq!(exact("深圳", 1), ["深", "圳"]);
        assert_eq!(exact("abe\u{301}c", 3), ["abe\u{301}", "c"]);
        assert_eq!(exact("ab e\u{301}c", 4), ["ab e\u{301}", "c"]);
        assert_eq!(exact("", 4), [""]);
        assert_eq!(exact("abcd", 0), ["a", "b", "c", "d"]);
    }

    #[test]
    fn prose_breaks_behind_spaces_where_it_can() {
        let words: Vec<&str> = rows("the quick brown fox", 10, Wrap::Words).collect();
        assert_eq!(words, ["the quick ", "brown fox"]);
        let long: Vec<&str> = rows("a 0123456789abcdef", 8, Wrap::Words).collect();
        assert_eq!(long, ["a 012345", "6789abcd", "ef"]);
    }

    #[test]
    fn a_tab_reaches_the_next_stop() {
        assert_eq!(clean_line("a\tb\u{1b}[31mc\t"), "a   bc  ");
    }
}
