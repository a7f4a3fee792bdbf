//! Content under review: every line, with what hides in it made visible.

use crate::colour::{ColourChoice, Style};
use crate::visible::{Hidden, Visible};

/// What a line of a review is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Text, and whatever stands between the files of a diff.
    Plain,
    /// `diff`, `index`, `---`, `+++` and the like before the first hunk of a file.
    Header,
    /// `@@ … @@`.
    Hunk,
    /// A line that the diff adds.
    Added,
    /// A line that the diff removes.
    Removed,
    /// A line of a hunk that stays, or the note about a missing line feed.
    Context,
}

impl LineKind {
    fn style(self) -> Option<Style> {
        match self {
            Self::Plain | Self::Context => None,
            Self::Header => Some(Style::Bold),
            Self::Hunk => Some(Style::Cyan),
            Self::Added => Some(Style::Green),
            Self::Removed => Some(Style::Red),
        }
    }
}

/// A file or a diff that somebody has to judge.
///
/// Nothing is taken out: an agent could otherwise hide a part of a patch from its reviewer. Line feeds and tabs stay, all
/// other [dangerous](crate::is_dangerous) characters become `\u{202e}`, a carriage return becomes `\r`. As the content may hold such a
/// text itself, [`made_visible`](Self::made_visible) tells how many are ours; with colour ours are in reverse video.
///
/// ```
/// use fuse_terminal::{ColourChoice, Review};
/// let review = Review::diff("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\u{202e}\n");
/// assert_eq!(review.made_visible(), 1);
/// assert_eq!(review.render(ColourChoice::Plain), "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\\u{202e}\n");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    lines: Vec<(LineKind, Visible)>,
}

impl Review {
    /// Content that is no diff.
    pub fn text(content: &str) -> Self {
        Self::new(content, |_| LineKind::Plain)
    }

    /// Content that is a unified diff. A line that fits no diff is [`LineKind::Plain`].
    pub fn diff(content: &str) -> Self {
        let mut parser = DiffParser::default();
        Self::new(content, |line| parser.kind(line))
    }

    fn new(content: &str, mut kind: impl FnMut(&str) -> LineKind) -> Self {
        let content = content.strip_suffix('\n').unwrap_or(content);
        let lines = content
            .split('\n')
            .map(|line| (kind(line), visible(line)))
            .collect();
        Self { lines }
    }

    /// How many hidden characters are shown as escapes.
    pub fn made_visible(&self) -> usize {
        self.lines.iter().map(|(_, line)| line.escapes.len()).sum()
    }

    /// The lines with their kinds, safe for a terminal, without line feeds.
    pub fn lines(&self) -> impl Iterator<Item = (LineKind, &str)> {
        self.lines
            .iter()
            .map(|(kind, line)| (*kind, line.text.as_str()))
    }

    /// All lines, each with its line feed.
    pub fn render(&self, colour: ColourChoice) -> String {
        let mut out = String::new();
        for (kind, line) in &self.lines {
            match colour {
                ColourChoice::Plain => out.push_str(&line.text),
                ColourChoice::Colour => painted(*kind, line, &mut out),
            }
            out.push('\n');
        }
        out
    }
}

fn painted(kind: LineKind, line: &Visible, out: &mut String) {
    let style = kind.style();
    if let Some(style) = style {
        out.push_str(&format!("\u{1b}[{}m", style.code()));
    }
    let mut at = 0;
    for escape in &line.escapes {
        out.push_str(&line.text[at..escape.start]);
        // 27 ends the reverse video alone, and keeps the line's colour.
        out.push_str(&format!(
            "\u{1b}[{}m{}\u{1b}[27m",
            Style::Reverse.code(),
            &line.text[escape.clone()]
        ));
        at = escape.end;
    }
    out.push_str(&line.text[at..]);
    if style.is_some() {
        out.push_str("\u{1b}[0m");
    }
}

fn visible(line: &str) -> Visible {
    let mut hidden = Hidden::new();
    let mut out = Visible::default();
    for c in line.chars() {
        if hidden.is(c) && c != '\t' {
            out.escape(c);
        } else {
            out.text.push(c);
        }
    }
    out
}

/// Counts the lines of a hunk, because a removed line `-- x` reads `--- x` and is no header.
#[derive(Default)]
struct DiffParser {
    old_left: u64,
    new_left: u64,
}

impl DiffParser {
    fn kind(&mut self, line: &str) -> LineKind {
        if self.old_left > 0 || self.new_left > 0 {
            match line.as_bytes().first() {
                Some(b'+') => {
                    self.new_left = self.new_left.saturating_sub(1);
                    return LineKind::Added;
                }
                Some(b'-') => {
                    self.old_left = self.old_left.saturating_sub(1);
                    return LineKind::Removed;
                }
                Some(b'\\') => return LineKind::Context,
                // Some tools leave the blank off an empty line.
                Some(b' ' | b'\r') | None => {
                    self.old_left = self.old_left.saturating_sub(1);
                    self.new_left = self.new_left.saturating_sub(1);
                    return LineKind::Context;
                }
                // The counts were wrong: go on as outside of a hunk.
                Some(_) => *self = Self::default(),
            }
        }
        if let Some((old, new)) = hunk(line) {
            (self.old_left, self.new_left) = (old, new);
            return LineKind::Hunk;
        }
        const HEADERS: &[&str] = &[
            "diff ",
            "index ",
            "--- ",
            "+++ ",
            "old mode ",
            "new mode ",
            "deleted file mode ",
            "new file mode ",
            "similarity index ",
            "dissimilarity index ",
            "rename from ",
            "rename to ",
            "copy from ",
            "copy to ",
            "Binary files ",
            "GIT binary patch",
        ];
        if HEADERS.iter().any(|header| line.starts_with(header)) {
            LineKind::Header
        } else if line.starts_with('\\') {
            LineKind::Context
        } else {
            LineKind::Plain
        }
    }
}

/// The line counts of `@@ -a,b +c,d @@`; a count that is left out is 1.
fn hunk(line: &str) -> Option<(u64, u64)> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    let old = count(words.next()?.strip_prefix('-')?)?;
    let new = count(words.next()?.strip_prefix('+')?)?;
    words.next()?.starts_with("@@").then_some((old, new))
}

fn count(range: &str) -> Option<u64> {
    match range.split_once(',') {
        Some((start, count)) => {
            start.parse::<u64>().ok()?;
            count.parse().ok()
        }
        None => range.parse::<u64>().ok().map(|_| 1),
    }
}

#[cfg(test)]
mod tests {
    use super::LineKind::{Added, Context, Header, Hunk, Plain, Removed};
    use super::*;

    fn kinds(diff: &str) -> Vec<LineKind> {
        Review::diff(diff).lines().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn each_line_of_a_diff_has_its_kind() {
        let diff = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ fn x\n a\n-b\n+c\n\n\\ No newline at end of file\nnote\n";
        assert_eq!(
            kinds(diff),
            [
                Header, Header, Header, Header, Hunk, Context, Removed, Added, Context, Context,
                Plain
            ]
        );
    }

    #[test]
    fn a_removed_sql_comment_is_no_header() {
        assert_eq!(
            kinds("--- a.sql\n+++ b.sql\n@@ -1 +1 @@\n--- old\n+++ new\n--- c.sql\n+++ d.sql\n"),
            [Header, Header, Hunk, Removed, Added, Header, Header]
        );
    }

    #[test]
    fn hidden_characters_of_a_diff_are_shown_not_removed() {
        let review = Review::diff("@@ -1 +1 @@\n-a\r\n+\tb\u{1b}]0;evil()\u{7}\n");
        assert_eq!(
            review.render(ColourChoice::Plain),
            "@@ -1 +1 @@\n-a\\r\n+\tb\\u{1b}]0;evil()\\u{7}\n"
        );
        assert_eq!(review.made_visible(), 3);
    }

    #[test]
    fn colour_marks_kinds_and_escapes_and_always_ends() {
        let review = Review::diff("@@ -1 +1 @@\n-a\n+b\u{202e}c\nplain\n");
        assert_eq!(
            review.render(ColourChoice::Colour),
            "\u{1b}[36m@@ -1 +1 @@\u{1b}[0m\n\u{1b}[31m-a\u{1b}[0m\n\
             \u{1b}[32m+b\u{1b}[7m\\u{202e}\u{1b}[27mc\u{1b}[0m\nplain\n"
        );
    }

    #[test]
    fn text_that_looks_like_a_diff_is_not_coloured_as_text() {
        assert_eq!(
            Review::text("+a\n-b").render(ColourChoice::Colour),
            "+a\n-b\n"
        );
    }

    #[test]
    fn a_hunk_with_absurd_counts_breaks_nothing() {
        assert_eq!(
            kinds("@@ -1,99999999999999999999 +1 @@\n+a\n@@ -0,0 +1,2 @@\n+a\nx\n+b"),
            [Plain, Plain, Hunk, Added, Plain, Plain]
        );
    }
}
