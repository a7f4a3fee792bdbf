//! The text of a Fusefile, and how much of it may be shown.

use std::fmt;
use std::ops::Range;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::place::Place;
use crate::tree::{Kind, Node};

/// How much of a line is shown, in columns.
const SHOWN: usize = 120;
const MASK: &str = "…";
/// Keys of the file under which nothing is hidden.
const SHOWN_KEYS: [&str; 11] = [
    "version",
    "name",
    "image",
    "copy",
    "resources",
    "build",
    "run",
    "workspace",
    "startup_timeout",
    "hitl",
    "desktop",
];

/// A text, its lines, and the stretches that hold values nobody should see.
#[derive(Clone)]
pub(crate) struct Source {
    pub file: String,
    text: String,
    lines: Vec<Range<usize>>,
    hidden: Vec<Range<usize>>,
}

/// One line with a caret under a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snippet {
    line: usize,
    shown: String,
    before: usize,
    under: usize,
}

impl Source {
    pub(crate) fn new(file: &str, text: &str) -> Self {
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            lines: lines(text),
            hidden: Vec::new(),
        }
    }

    /// Hides every value beneath a node from now on.
    pub(crate) fn hide(&mut self, node: &Node) {
        match &node.kind {
            Kind::Null => (),
            Kind::Bool { .. } | Kind::Number(_) | Kind::Text(_) => {
                self.hidden.push(node.place.range())
            }
            Kind::List(items) => items.iter().for_each(|item| self.hide(item)),
            Kind::Map(entries) => entries.iter().for_each(|entry| self.hide(&entry.value)),
        }
    }

    /// Hides what stands beneath `env`, `files` and `secrets`, names of secrets excepted.
    pub(crate) fn hide_values(&mut self, root: &Node) {
        let Kind::Map(entries) = &root.kind else {
            self.hide(root);
            return;
        };
        for entry in entries {
            match (entry.key.as_str(), &entry.value.kind) {
                ("env" | "files", _) => self.hide(&entry.value),
                ("secrets", Kind::List(items)) => {
                    for item in items.iter().filter(|item| !is_name(item)) {
                        self.hide(item);
                    }
                }
                ("secrets", _) => self.hide(&entry.value),
                (_, _) => (),
            }
        }
    }

    /// A line of a text that is no YAML, so that it is not known what its parts mean: where it may belong to values, only the key
    /// is shown.
    pub(crate) fn guarded(&self, place: Place) -> Option<Snippet> {
        let line = self.lines.get(place.line.checked_sub(1)?)?;
        let text = &self.text[line.clone()];
        let section = self.lines[..place.line]
            .iter()
            .rev()
            .map(|line| &self.text[line.clone()])
            .find(|line| line.starts_with(|c: char| !matches!(c, ' ' | '\t' | '#' | '-')))
            .unwrap_or_default();
        let plain = section
            .split_once(':')
            .is_some_and(|(key, _)| SHOWN_KEYS.contains(&key));
        let end = match text.find(':') {
            _ if plain => line.end,
            Some(at) => line.start + at + 1,
            None => line.start + text.len() - text.trim_start().len(),
        };
        Some(self.cut(place, line, std::slice::from_ref(&(end..line.end))))
    }

    /// The line of a place.
    pub(crate) fn snippet(&self, place: Place) -> Option<Snippet> {
        let line = self.lines.get(place.line.checked_sub(1)?)?;
        let mut hidden: Vec<Range<usize>> = self.hidden.clone();
        hidden.retain(|range| range.start < line.end && range.end > line.start);
        hidden.sort_by_key(|range| range.start);
        Some(self.cut(place, line, &hidden))
    }

    /// `hidden` is in the order of its starts.
    fn cut(&self, place: Place, line: &Range<usize>, hidden: &[Range<usize>]) -> Snippet {
        let text = &self.text[line.clone()];
        let mut shown = String::new();
        let (mut before, mut under, mut masked) = (None, 0, false);
        let (mut next, mut hidden_until) = (hidden.iter().peekable(), 0);
        for (column, (at, c)) in text.char_indices().enumerate() {
            if column + 1 == place.column {
                before = Some(shown.width());
            }
            let inside = before.is_some() && column + 1 < place.column + place.width;
            let at = line.start + at;
            while let Some(range) = next.next_if(|range| range.start <= at) {
                hidden_until = range.end.max(hidden_until);
            }
            if at < hidden_until {
                if !masked {
                    shown.push_str(MASK);
                    under += usize::from(inside);
                }
                masked = true;
                continue;
            }
            masked = false;
            let c = if c == '\u{feff}' { continue } else { plain(c) };
            shown.push(c);
            if inside {
                under += c.width().unwrap_or(0);
            }
        }
        let before = before.unwrap_or_else(|| shown.width());
        Snippet {
            line: place.line,
            shown,
            before,
            under: under.max(1),
        }
        .cropped()
    }
}

impl Snippet {
    /// Leaves a window around the caret of a line that is too long to show.
    fn cropped(self) -> Self {
        if self.shown.width() <= SHOWN {
            return self;
        }
        let from = self.before.saturating_sub(SHOWN / 2);
        let mut window = String::new();
        let mut column = 0;
        let mut start = None;
        for c in self.shown.chars() {
            if column >= from && column < from + SHOWN {
                start.get_or_insert(column);
                window.push(c);
            }
            column += c.width().unwrap_or(0);
        }
        let before = self.before.saturating_sub(start.unwrap_or(from));
        Self {
            under: self.under.min(SHOWN.saturating_sub(before)).max(1),
            shown: window,
            before,
            ..self
        }
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = number.len();
        writeln!(f, " {number} | {}", self.shown.trim_end())?;
        writeln!(
            f,
            " {:margin$} | {:before$}{}",
            "",
            "",
            "^".repeat(self.under),
            before = self.before
        )
    }
}

/// What a terminal would obey or hide is shown as a replacement character.
fn plain(c: char) -> char {
    let format = matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    match c {
        '\t' => ' ',
        c if c.is_control() || format => '\u{fffd}',
        c => c,
    }
}

fn is_name(node: &Node) -> bool {
    match &node.kind {
        Kind::Text(name) => name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')),
        Kind::Null | Kind::Bool { .. } | Kind::Number(_) | Kind::List(_) | Kind::Map(_) => false,
    }
}

/// Lines end as YAML ends them: `\n`, `\r\n` or `\r`.
fn lines(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut lines = Vec::new();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && bytes[at - 1] == b'\r' => start = at + 1,
            b'\n' | b'\r' => {
                lines.push(start..at);
                start = at + 1;
            }
            _ => (),
        }
    }
    lines.push(start..bytes.len());
    lines
}
