//! Where something stands in the text.

use std::ops::Range;

use serde::Serialize;

/// A stretch of text and where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Its length in characters; 0 where the reader does not know it.
    pub width: usize,
    #[serde(skip)]
    start: usize,
    #[serde(skip)]
    bytes: usize,
}

impl Place {
    /// Where a text begins.
    pub(crate) const START: Self = Self {
        line: 1,
        column: 1,
        width: 0,
        start: 0,
        bytes: 0,
    };

    /// What the YAML reader calls this place; nothing where it does not know.
    pub(crate) fn of(location: serde_saphyr::Location) -> Option<Self> {
        let span = location.span();
        let size = |number: u64| usize::try_from(number).unwrap_or(0);
        (location.line() > 0).then(|| Self {
            line: size(location.line()),
            column: size(location.column()),
            width: size(span.len()),
            start: span.byte_offset().map_or(0, size),
            bytes: span.byte_len().map_or(0, size),
        })
    }

    /// The bytes of the text; empty where the reader does not know them.
    pub(crate) const fn range(&self) -> Range<usize> {
        self.start..self.start.saturating_add(self.bytes)
    }
}
