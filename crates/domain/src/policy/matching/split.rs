//! How `env -S` cuts its text into words.

/// The words of a `-S` text, or `None` where nothing but the guest could tell: it expands a variable, or it is no valid text.
pub(super) fn split(text: &str) -> Option<Vec<String>> {
    let mut splitter = Splitter {
        words: Vec::new(),
        at_break: true,
    };
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => {
                splitter.begin();
                quote = Some(c);
            }
            (Some(open), _) if open == c => {
                splitter.begin();
                quote = None;
            }
            (None, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r') => splitter.at_break = true,
            (None, '#') if splitter.at_break => return Some(splitter.words),
            (Some('\''), '\\') if !matches!(chars.peek(), Some('\\' | '\'')) => splitter.push('\\'),
            (_, '\\') => match chars.next()? {
                c @ ('"' | '#' | '$' | '\'' | '\\') => splitter.push(c),
                '_' if quote == Some('"') => splitter.push(' '),
                '_' => splitter.at_break = true,
                'c' if quote == Some('"') => return None,
                'c' => return Some(splitter.words),
                'f' => splitter.push('\u{c}'),
                'n' => splitter.push('\n'),
                'r' => splitter.push('\r'),
                't' => splitter.push('\t'),
                'v' => splitter.push('\u{b}'),
                _ => return None,
            },
            (None | Some('"'), '$') => return None,
            (_, c) => splitter.push(c),
        }
    }
    quote.is_none().then_some(splitter.words)
}

struct Splitter {
    words: Vec<String>,
    at_break: bool,
}

impl Splitter {
    fn begin(&mut self) {
        if self.at_break {
            self.words.push(String::new());
            self.at_break = false;
        }
    }

    fn push(&mut self, c: char) {
        self.begin();
        if let Some(word) = self.words.last_mut() {
            word.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    // check: WRAP-4
    fn a_split_string_follows_coreutils() {
        for (text, words) in [
            ("", vec![]),
            ("   ", vec![]),
            ("git push --force", vec!["git", "push", "--force"]),
            ("\tgit\u{b}push\u{c}x\ry\n", vec!["git", "push", "x", "y"]),
            ("'git push' \"a b\"", vec!["git push", "a b"]),
            ("g'i't ''", vec!["git", ""]),
            (r"git\_push", vec!["git", "push"]),
            (r#""git\_push""#, vec!["git push"]),
            (r"a\tb \n", vec!["a\tb", "\n"]),
            (r"'a\nb'", vec![r"a\nb"]),
            (r"'a\\b\'c'", vec![r"a\b'c"]),
            (r"\$x \#y", vec!["$x", "#y"]),
            ("a #b c", vec!["a"]),
            ("a#b", vec!["a#b"]),
            (r"a\cb c", vec!["a"]),
            ("#all", vec![]),
            ("'${X}'", vec!["${X}"]),
        ] {
            assert_eq!(
                split(text),
                Some(words.into_iter().map(str::to_owned).collect()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn what_only_the_guest_could_split_is_not_split() {
        for text in [
            "${X} push",
            "\"${X}\"",
            "$X",
            "'open",
            "\"open",
            r"end\",
            r"\q",
            r#""\c""#,
            "a${X}",
        ] {
            assert_eq!(split(text), None, "{text:?}");
        }
    }
}
