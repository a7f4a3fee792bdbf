//! Just enough of Rust's lexical rules to tell code from comments and literals.

/// `text` with every comment and every literal's content blanked; lines keep their numbers.
pub fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_end(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => comment_end(&chars, at),
            '"' => string_end(&chars, at),
            'r' if !word_before(&chars, at) => raw_string_end(&chars, at),
            '\'' => char_end(&chars, at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

fn word_before(chars: &[char], at: usize) -> bool {
    // `br"…"` is a raw string too, `for"` is not.
    let before = |back: usize| {
        at.checked_sub(back)
            .and_then(|index| chars.get(index))
            .copied()
    };
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if matches!(before(1), Some('b' | 'c')) {
        is_word(before(2))
    } else {
        is_word(before(1))
    }
}

fn line_end(chars: &[char], at: usize) -> usize {
    chars[at..]
        .iter()
        .position(|&c| c == '\n')
        .map_or(chars.len(), |length| at + length)
}

fn comment_end(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn string_end(chars: &[char], at: usize) -> usize {
    let mut index = at + 1;
    while index < chars.len() {
        match chars[index] {
            '\\' => index += 2,
            '"' => return index + 1,
            _ => index += 1,
        }
    }
    chars.len()
}

fn raw_string_end(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return at;
    }
    let closes = |index: usize| {
        chars[index] == '"'
            && chars[index + 1..]
                .iter()
                .take(hashes)
                .filter(|&&c| c == '#')
                .count()
                == hashes
    };
    (open + 1..chars.len())
        .find(|&index| closes(index))
        .map_or(chars.len(), |index| index + 1 + hashes)
}

/// A character literal's end; a lifetime has none.
fn char_end(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => (at + 3..chars.len())
            .find(|&index| chars[index] == '\'')
            .map_or(chars.len(), |end| end + 1),
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::code_only;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let text = "a // x\n/* b /* c */\n d */ e \"f\\\" g\" h r#\"i\" j\"# k '\"' l";
        let code = code_only(text);
        assert_eq!(code.lines().count(), 3);
        let words: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(words, ["a", "e", "h", "k", "l"]);
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(
            code_only("fn f<'a>(r#in: &'a str) -> for_r"),
            "fn f<'a>(r#in: &'a str) -> for_r"
        );
    }

    #[test]
    fn what_never_ends_does_not_hang() {
        for text in ["\"abc", "/* abc", "r#\"abc", "'\\", "\"abc\\"] {
            assert_eq!(code_only(text).chars().count(), text.chars().count());
        }
    }
}
