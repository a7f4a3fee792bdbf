//! How a question stands on the screen.

use std::os::fd::BorrowedFd;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Stands before each row of a text that is not ours, so that none of it can pass for a row of ours.
const MARGIN: &str = "│ ";

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Screen {
    pub columns: usize,
    pub rows: usize,
}

impl Screen {
    /// That of `terminal`; the usual one where it does not know.
    pub fn of(terminal: BorrowedFd<'_>) -> Self {
        match terminal_size::terminal_size_of(terminal) {
            Some((columns, rows)) if columns.0 > 0 && rows.0 > 0 => Self {
                columns: columns.0.into(),
                rows: rows.0.into(),
            },
            Some(_) | None => Self {
                columns: 80,
                rows: 24,
            },
        }
    }

    /// Columns that a row of somebody else's text has. The last column stays free, where terminals differ about when they wrap.
    pub fn inner(self) -> usize {
        self.columns.saturating_sub(MARGIN.width() + 1).max(1)
    }

    /// Columns that a row of ours has.
    pub fn outer(self) -> usize {
        self.columns.saturating_sub(1).max(1)
    }

    /// A safe text that is not ours, row by row behind a margin, each row with its line end.
    pub fn block(self, text: &str) -> String {
        Rows::new(text, self.inner()).map(margin).collect()
    }

    /// How many rows a text of ours takes.
    pub fn height(self, text: &str) -> usize {
        text.lines()
            .map(|line| line.width().div_ceil(self.columns).max(1))
            .sum()
    }
}

/// A row behind the margin.
pub(super) fn margin(row: &str) -> String {
    format!("{MARGIN}{row}\n")
}

/// A safe text of one line as rows of so many columns, cut between graphemes; at least one row.
pub(super) struct Rows<'a> {
    rest: Option<&'a str>,
    columns: usize,
}

impl<'a> Rows<'a> {
    pub fn new(text: &'a str, columns: usize) -> Self {
        Self {
            rest: Some(text),
            columns,
        }
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest?;
        let mut used = 0;
        let end = text
            .grapheme_indices(true)
            // What is wider than a row gets one for itself.
            .find(|(at, grapheme)| {
                used += grapheme.width();
                used > self.columns && *at > 0
            })
            .map_or(text.len(), |(at, _)| at);
        let (row, rest) = text.split_at(end);
        self.rest = (!rest.is_empty()).then_some(rest);
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, columns: usize) -> Vec<&str> {
        Rows::new(text, columns).collect()
    }

    #[test]
    fn rows_hold_all_of_the_text_between_graphemes() {
        assert_eq!(rows("abcde", 2), ["ab", "cd", "e"]);
        assert_eq!(rows("深圳市", 5), ["深圳", "市"]);
        assert_eq!(rows("深圳", 1), ["深", "圳"]);
        assert_eq!(rows("e\u{301}e\u{301}", 1), ["e\u{301}", "e\u{301}"]);
        assert_eq!(rows("", 4), [""]);
        assert_eq!(rows("abcd", 4), ["abcd"]);
    }

    #[test]
    fn every_row_stands_behind_the_margin_on_any_screen() {
        for columns in 0..20 {
            let screen = Screen { columns, rows: 1 };
            let block = screen.block("[y/N] yes, once");
            assert!(block.lines().all(|line| line.starts_with(MARGIN)));
            let text: String = block.lines().map(|line| &line[MARGIN.len()..]).collect();
            assert_eq!(text, "[y/N] yes, once");
        }
    }
}
