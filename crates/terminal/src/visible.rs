//! Characters written so that they can be seen.

use std::fmt::Write as _;
use std::ops::Range;

use crate::chars::{MAX_MARKS, is_dangerous, is_mark};

/// Text in which what is hidden is written as an escape, and where those escapes are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Visible {
    pub text: String,
    /// In bytes of `text`, in order.
    pub escapes: Vec<Range<usize>>,
}

impl Visible {
    /// Writes `\n`, `\t` and `\r` as shells know them and everything else as `\u{hex}`.
    pub fn escape(&mut self, c: char) {
        let start = self.text.len();
        match c {
            '\n' => self.text.push_str("\\n"),
            '\t' => self.text.push_str("\\t"),
            '\r' => self.text.push_str("\\r"),
            c => write!(self.text, "\\u{{{:x}}}", u32::from(c)).expect("a string takes it"),
        }
        self.escapes.push(start..self.text.len());
    }
}

/// Tells, character by character, which ones cannot be shown as they are: the dangerous ones, and marks that pile
/// up or stand on nothing.
pub(crate) struct Hidden {
    marks: usize,
}

impl Hidden {
    /// At the start of a text there is nothing that a mark could stand on but what the caller printed before.
    pub fn new() -> Self {
        Self { marks: MAX_MARKS }
    }

    pub fn is(&mut self, c: char) -> bool {
        if is_mark(c) && !is_dangerous(c) {
            self.marks += 1;
            return self.marks > MAX_MARKS;
        }
        // After an escape a mark would stand on its closing brace.
        self.marks = if is_dangerous(c) { MAX_MARKS } else { 0 };
        is_dangerous(c)
    }
}
