//! Free text, with all that drives a terminal taken out.

use crate::chars::{MAX_MARKS, is_dangerous, is_mark};

/// `text` as one safe line, for text that somebody wrote to be read.
///
/// Escape sequences go whole, in the 7-bit and the 8-bit form, and so does every
/// [dangerous](crate::is_dangerous) character and each mark beyond [`MAX_MARKS`] on one character. A line feed and
/// a tab become a space each, since a question must not be able to draw lines of its own. The result is never
/// longer than `text`, and stripping it again changes nothing.
///
/// A string sequence (OSC, DCS, APC, PM, SOS) that does not end on its own line loses only its introducer: its text
/// stays visible, so that an open sequence cannot hide what follows it.
///
/// ```
/// assert_eq!(fuse_terminal::strip("a\u{1b}[31mred\u{9b}0m\nb"), "ared b");
/// assert_eq!(fuse_terminal::strip("ok?\u{1b}]0; and drop the table"), "ok?0; and drop the table");
/// ```
pub fn strip(text: &str) -> String {
    strip_with(text, |_| ' ')
}

/// Like [`strip()`], but line feeds and tabs stay: for text of several lines, such as a long message.
///
/// Print it line by line with an indent of your own, so that its lines cannot pass for yours.
///
/// ```
/// assert_eq!(fuse_terminal::strip_lines("a\r\n\tb\u{7}"), "a\n\tb");
/// ```
pub fn strip_lines(text: &str) -> String {
    strip_with(text, |c| c)
}

fn strip_with(text: &str, blank: impl Fn(char) -> char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut marks = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = sequence(rest) {
            rest = &rest[length..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' | '\t' => {
                marks = 0;
                out.push(blank(c));
            }
            c if is_dangerous(c) => {}
            c if is_mark(c) => {
                marks += 1;
                if marks <= MAX_MARKS {
                    out.push(c);
                }
            }
            c => {
                marks = 0;
                out.push(c);
            }
        }
    }
    out
}

/// The length in bytes of the escape sequence at the start of `text`, if one starts there.
///
/// Every call reads at most up to the next introducer, so stripping takes linear time on any input.
fn sequence(text: &str) -> Option<usize> {
    let mut chars = text.chars();
    let length = match chars.next()? {
        '\u{1b}' => match chars.next() {
            Some('[') => 2 + parameters(&text[2..]),
            Some(']') => 2 + string(&text[2..], true).unwrap_or(0),
            Some('P' | 'X' | '^' | '_') => 2 + string(&text[2..], false).unwrap_or(0),
            _ => 1 + short(&text[1..]),
        },
        // All of C1 are two bytes in UTF-8.
        '\u{9b}' => 2 + parameters(&text[2..]),
        '\u{9d}' => 2 + string(&text[2..], true).unwrap_or(0),
        '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => 2 + string(&text[2..], false).unwrap_or(0),
        '\u{80}'..='\u{9f}' => 2,
        _ => return None,
    };
    Some(length)
}

/// The rest of a control sequence: parameters, intermediates and the final byte, as far as they are well formed.
fn parameters(body: &str) -> usize {
    let bytes = body.as_bytes();
    let mut at = run(bytes, 0, 0x30..=0x3f);
    at = run(bytes, at, 0x20..=0x2f);
    at + usize::from(matches!(bytes.get(at), Some(0x40..=0x7e)))
}

/// The rest of a two-character escape or of one with intermediates (`ESC ( 0`); nothing where it is malformed.
fn short(body: &str) -> usize {
    let bytes = body.as_bytes();
    let at = run(bytes, 0, 0x20..=0x2f);
    match bytes.get(at) {
        Some(0x30..=0x7e) => at + 1,
        _ => 0,
    }
}

fn run(bytes: &[u8], from: usize, class: std::ops::RangeInclusive<u8>) -> usize {
    from + bytes[from..]
        .iter()
        .take_while(|b| class.contains(b))
        .count()
}

/// The length of a string sequence's body with its terminator, or `None` where it is not terminated.
///
/// What ends a string without being its terminator (another escape, a cancel, the end of the line) counts as
/// not terminated: then the body was no string, and is shown.
fn string(body: &str, bell_ends: bool) -> Option<usize> {
    for (at, c) in body.char_indices() {
        match c {
            '\u{7}' if bell_ends => return Some(at + 1),
            '\u{9c}' => return Some(at + 2),
            '\u{1b}' => return body[at + 1..].starts_with('\\').then_some(at + 2),
            '\n' | '\u{18}' | '\u{1a}' | '\u{80}'..='\u{9f}' => return None,
            _ => {}
        }
    }
    None
}
