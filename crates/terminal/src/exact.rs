//! What will run, shown exactly.

use std::fmt;

use crate::chars::is_blank_lookalike;
use crate::cut::{length, limit};
use crate::visible::{Hidden, Visible};

/// Graphemes of what will run that are shown at once.
pub const MAX_EXACT: usize = 2000;

/// Something that will be executed, typed or opened, as a person sees it before they decide.
///
/// Nothing is taken out of it, and two different inputs of one constructor never look the same:
///
/// * An argument with only ordinary characters is quoted for a POSIX shell where it has to be; pasted there it gives the
///   same argument again.
/// * An argument with a character that cannot be seen for what it is (all that [`strip`](crate::strip()) would take out,
///   and blanks other than a space) is written as `$'…'`. Inside, and only there, `\` starts an escape: `\u{202e}` by
///   code point, `\n` `\t` `\r`, `\\` for a backslash and `\'` for a quote. As shell quoting never leaves a
///   bare `$`, an argument that holds the text `\u{202e}` is not to be confused with one that holds the character.
///
/// [`Display`](fmt::Display) shows at most [`MAX_EXACT`] graphemes. What is longer ends with a line of its own,
/// `[cut: N more characters; show the whole before approving]`. No input can imitate that line, since line
/// feeds are always escaped. Ask [`is_cut`](Self::is_cut) and show [`whole`](Self::whole) before an approval.
///
/// ```
/// use fuse_terminal::Exact;
/// assert_eq!(Exact::argv(["echo", "a b", ""]).whole(), "echo 'a b' ''");
/// assert_eq!(Exact::value(r"\u{202e}").whole(), r#""\\u{202e}""#);
/// assert_eq!(Exact::value("\u{202e}").whole(), r"$'\u{202e}'");
/// assert_eq!(Exact::command_line("git log | head -1").whole(), "git log | head -1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exact {
    whole: String,
    cut: Option<Cut>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Bytes that are shown.
    at: usize,
    /// Characters that are not.
    hidden: usize,
}

impl Exact {
    /// The arguments of a command that runs without a shell.
    pub fn argv<I>(argv: I) -> Self
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let mut out = Visible::default();
        for (n, argument) in argv.into_iter().enumerate() {
            if n > 0 {
                out.text.push(' ');
            }
            quote(argument.as_ref(), &mut out);
        }
        Self::new(out)
    }

    /// One value: a path, or text to be typed. It is quoted as one argument, so its blanks can be seen.
    pub fn value(value: &str) -> Self {
        Self::argv([value])
    }

    /// A command line that a shell will read, as it is written.
    ///
    /// It takes the `$'…'` form as a whole where a character has to be escaped, where it starts or ends
    /// with a blank, is empty, or starts like that form.
    pub fn command_line(line: &str) -> Self {
        let mut out = Visible::default();
        let plain = !line.is_empty()
            && !line.starts_with("$'")
            && line.trim_matches(' ') == line
            && !needs_escape(line);
        if plain {
            out.text.push_str(line);
        } else {
            dollar_quote(line, &mut out);
        }
        Self::new(out)
    }

    /// A script line by line, each as [`command_line`](Self::command_line) shows it, for a caller that puts each behind a
    /// margin of its own.
    pub fn script(script: &str) -> Vec<Self> {
        script.split('\n').map(Self::command_line).collect()
    }

    fn new(Visible { text, escapes }: Visible) -> Self {
        let cut = limit(&text, MAX_EXACT).map(|mut at| {
            let next = escapes.partition_point(|escape| escape.end <= at);
            if let Some(escape) = escapes.get(next).filter(|escape| escape.start < at) {
                at = escape.start;
            }
            Cut {
                at,
                hidden: length(&text[at..]),
            }
        });
        Self { whole: text, cut }
    }

    /// All of it, on one line.
    pub fn whole(&self) -> &str {
        &self.whole
    }

    /// Whether [`Display`](fmt::Display) leaves something out. Then the whole has to be seen before it is approved.
    pub fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// How many characters [`Display`](fmt::Display) leaves out.
    pub fn hidden(&self) -> usize {
        self.cut.map_or(0, |cut| cut.hidden)
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cut {
            None => f.write_str(&self.whole),
            Some(Cut { at, hidden }) => write!(
                f,
                "{}\n[cut: {hidden} more characters; show the whole before approving]",
                &self.whole[..at]
            ),
        }
    }
}

fn needs_escape(text: &str) -> bool {
    let mut hidden = Hidden::new();
    text.chars().any(|c| hidden.is(c) || is_blank_lookalike(c))
}

fn quote(argument: &str, out: &mut Visible) {
    if needs_escape(argument) {
        return dollar_quote(argument, out);
    }
    match shlex::try_quote(argument) {
        Ok(quoted) => out.text.push_str(&quoted),
        // It refuses only NUL, which `needs_escape` has seen; should it refuse more one day, this form takes anything.
        Err(_) => dollar_quote(argument, out),
    }
}

fn dollar_quote(text: &str, out: &mut Visible) {
    let mut hidden = Hidden::new();
    out.text.push_str("$'");
    for c in text.chars() {
        match c {
            '\\' | '\'' => {
                hidden.is(c);
                out.text.push('\\');
                out.text.push(c);
            }
            c if hidden.is(c) || is_blank_lookalike(c) => out.escape(c),
            c => out.text.push(c),
        }
    }
    out.text.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_written_out() {
        for (argument, shown) in [
            ("\u{1b}[2J", r"$'\u{1b}[2J'"),
            ("a\nb\tc\r", r"$'a\nb\tc\r'"),
            ("nul\0", r"$'nul\u{0}'"),
            ("a\u{a0}b", r"$'a\u{a0}b'"),
            ("a\u{3000}b", r"$'a\u{3000}b'"),
            ("it's\u{200b}", r"$'it\'s\u{200b}'"),
            (r"\n", r#""\\n""#),
            ("\\n\u{7}", r"$'\\n\u{7}'"),
            ("\u{301}a", r"$'\u{301}a'"),
            ("$'x'", r#"'$'"'x'""#),
        ] {
            assert_eq!(Exact::value(argument).whole(), shown);
        }
    }

    #[test]
    fn a_line_stays_as_it_is_unless_something_hides_in_it() {
        for line in [r"echo '\u{202e}' \\", "cat <<< \"$x\" && ls -l"] {
            assert_eq!(Exact::command_line(line).whole(), line);
        }
        assert_eq!(Exact::command_line("ls ").whole(), "$'ls '");
        assert_eq!(Exact::command_line("").whole(), "$''");
        assert_eq!(Exact::command_line("$'a'").whole(), r"$'$\'a\''");
        assert_eq!(Exact::command_line("a\nb").whole(), r"$'a\nb'");
    }

    #[test]
    fn a_script_is_shown_line_by_line() {
        let lines: Vec<String> = Exact::script("set -e\nrm x\u{202e}\n")
            .iter()
            .map(Exact::to_string)
            .collect();
        assert_eq!(lines, ["set -e", r"$'rm x\u{202e}'", "$''"]);
    }

    #[test]
    fn a_long_one_is_cut_with_a_mark_and_can_be_read_whole() {
        let exact = Exact::value(&"x".repeat(MAX_EXACT + 7));
        assert!(exact.is_cut());
        assert_eq!(exact.hidden(), 7);
        assert_eq!(
            exact.to_string(),
            format!(
                "{}\n[cut: 7 more characters; show the whole before approving]",
                "x".repeat(MAX_EXACT)
            )
        );
        assert_eq!(exact.whole().len(), MAX_EXACT + 7);
        assert!(!Exact::value(&"x".repeat(MAX_EXACT)).is_cut());
    }

    #[test]
    fn a_cut_never_falls_inside_an_escape() {
        let text = format!("{}\u{202e}tail", "x".repeat(MAX_EXACT - 5));
        let shown = Exact::value(&text).to_string();
        let first = shown.lines().next().unwrap();
        assert_eq!(first, format!("$'{}", "x".repeat(MAX_EXACT - 5)));
        assert!(shown.contains("[cut: 13 more characters;"));
    }

    #[test]
    fn a_pile_of_accents_is_written_out_beyond_what_scripts_need() {
        let shown = Exact::value(&format!("a{}", "\u{301}".repeat(10)));
        assert_eq!(
            shown.whole(),
            format!(r"$'a{}\u{{301}}\u{{301}}'", "\u{301}".repeat(8))
        );
    }
}
