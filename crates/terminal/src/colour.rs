//! Whether to use colour, and the few styles there are.

use std::borrow::Cow;
use std::ffi::OsStr;

/// Whether output carries colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourChoice {
    /// It goes to a person who did not decline.
    Colour,
    /// It goes to a file or a pipe, or the person declined.
    Plain,
}

impl ColourChoice {
    /// Colour only on a terminal, and never where `NO_COLOR` is set to something.
    ///
    /// ```
    /// use fuse_terminal::ColourChoice;
    /// assert_eq!(ColourChoice::new(true, None), ColourChoice::Colour);
    /// assert_eq!(ColourChoice::new(true, Some("1".as_ref())), ColourChoice::Plain);
    /// assert_eq!(ColourChoice::new(false, None), ColourChoice::Plain);
    /// ```
    pub fn new(is_terminal: bool, no_color: Option<&OsStr>) -> Self {
        if is_terminal && no_color.is_none_or(OsStr::is_empty) {
            Self::Colour
        } else {
            Self::Plain
        }
    }

    /// [`new`](Self::new) with this process's `NO_COLOR`.
    pub fn of_process(is_terminal: bool) -> Self {
        Self::new(is_terminal, std::env::var_os("NO_COLOR").as_deref())
    }

    /// `text` in a style, or as it is where there is no colour. `text` must be safe already.
    pub fn paint(self, style: Style, text: &str) -> Cow<'_, str> {
        match self {
            Self::Plain => Cow::Borrowed(text),
            Self::Colour => Cow::Owned(format!("\u{1b}[{}m{text}\u{1b}[0m", style.code())),
        }
    }
}

/// The styles that output for people uses; all from the 16 basic colours, so that they fit any theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Headings and names.
    Bold,
    /// What matters less.
    Dim,
    /// Refusals, errors, removed lines.
    Red,
    /// Success, added lines.
    Green,
    /// What waits for somebody.
    Yellow,
    /// Places: hunks, ids.
    Cyan,
    /// A hidden character made visible.
    Reverse,
}

impl Style {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Cyan => "36",
            Self::Reverse => "7",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: CLI-2
    #[test]
    fn colour_needs_a_terminal_and_no_objection() {
        use ColourChoice::{Colour, Plain};
        for (is_terminal, no_color, expected) in [
            (true, None, Colour),
            (true, Some(""), Colour),
            (true, Some("0"), Plain),
            (false, None, Plain),
            (false, Some(""), Plain),
        ] {
            let no_color = no_color.map(OsStr::new);
            assert_eq!(ColourChoice::new(is_terminal, no_color), expected);
        }
        assert_eq!(Plain.paint(Style::Red, "x"), "x");
        assert_eq!(Colour.paint(Style::Red, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
