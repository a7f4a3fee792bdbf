//! Which keys a piece of input is.

use crate::chars::is_dangerous;

/// A key, or a piece of pasted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Backspace.
    Erase,
    /// Ctrl-W.
    EraseWord,
    /// Ctrl-U.
    EraseLine,
    Up,
    Down,
    PageDown,
    /// What a terminal marked as pasted, unchecked.
    Paste(String),
    /// Any other.
    Other,
}

/// Whether more has to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Partial {
    No,
    /// The end of a paste.
    Paste,
}

const PASTE_END: &[u8] = b"\x1b[201~";

/// The keys in `bytes`, which came in one piece. What is unfinished at its end counts as it is: the start of an arrow key
/// that goes no further is an Escape.
pub(super) fn decode(bytes: &[u8]) -> (Vec<Key>, Partial) {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        keys.push(match byte {
            b'\r' | b'\n' => Key::Enter,
            0x03 => Key::Interrupt,
            0x04 => Key::EndOfInput,
            0x08 | 0x7f => Key::Erase,
            0x15 => Key::EraseLine,
            0x17 => Key::EraseWord,
            0x1b => match sequence(after) {
                None => Key::Escape,
                Some((b"200", b'~', after)) => {
                    let end = after
                        .windows(PASTE_END.len())
                        .position(|window| window == PASTE_END);
                    let pasted = String::from_utf8_lossy(&after[..end.unwrap_or(after.len())]);
                    keys.push(Key::Paste(pasted.into_owned()));
                    let Some(end) = end else {
                        return (keys, Partial::Paste);
                    };
                    rest = &after[end + PASTE_END.len()..];
                    continue;
                }
                Some((parameters, last, after)) => {
                    rest = after;
                    named(parameters, last)
                }
            },
            0x00..=0x1f => Key::Other,
            0x20..=0x7e => Key::Char(char::from(byte)),
            0x80.. => {
                let (c, length) = scalar(byte, after);
                rest = &after[length..];
                c.map_or(Key::Other, Key::Char)
            }
        });
    }
    (keys, Partial::No)
}

/// What stands behind an Escape that begins the name of a key: its parameters, its last byte and what follows.
fn sequence(after: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    match after {
        [b'O', last @ 0x40..=0x7e, after @ ..] => Some((&[], *last, after)),
        [b'[', body @ ..] => {
            let at = body.iter().position(|b| !(0x20..=0x3f).contains(b))?;
            let last = body[at];
            (0x40..=0x7e)
                .contains(&last)
                .then_some((&body[..at], last, &body[at + 1..]))
        }
        _ => None,
    }
}

fn named(parameters: &[u8], last: u8) -> Key {
    match (parameters, last) {
        (b"", b'A') => Key::Up,
        (b"", b'B') => Key::Down,
        (b"6", b'~') => Key::PageDown,
        _ => Key::Other,
    }
}

/// The character that starts with `first`, if it is one that can be shown, and how many bytes of `after` belong to it.
fn scalar(first: u8, after: &[u8]) -> (Option<char>, usize) {
    let length = match first {
        0xc2..=0xdf => 1,
        0xe0..=0xef => 2,
        0xf0..=0xf4 => 3,
        _ => return (None, 0),
    };
    let mut bytes = vec![first];
    bytes.extend(after.iter().take(length));
    match std::str::from_utf8(&bytes) {
        Ok(text) => (text.chars().next().filter(|c| !is_dangerous(*c)), length),
        Err(_) => (None, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let (keys, partial) = decode(bytes);
        assert_eq!(partial, Partial::No);
        keys
    }

    #[test]
    fn an_arrow_key_is_one_key() {
        assert_eq!(keys(b"\x1b[A"), [Key::Up]);
        assert_eq!(keys(b"\x1bOB"), [Key::Down]);
        assert_eq!(keys(b"\x1b[1;5C"), [Key::Other]);
        assert_eq!(keys(b"\x1b[6~"), [Key::PageDown]);
    }

    #[test]
    fn an_escape_in_doubt_is_an_escape() {
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x1by"), [Key::Escape, Key::Char('y')]);
        assert_eq!(keys(b"\x1b[")[0], Key::Escape);
        assert_eq!(keys(b"\x1b[1;")[0], Key::Escape);
        assert_eq!(keys(b"\x1b\x1b[A"), [Key::Escape, Key::Up]);
        assert_eq!(keys(b"\x1b[\x03")[0], Key::Escape);
    }

    #[test]
    fn pasted_text_is_one_piece_whatever_it_holds() {
        assert_eq!(
            keys(b"\x1b[200~y\r\x03\x1b[A\x1b[201~n"),
            [Key::Paste("y\r\u{3}\u{1b}[A".to_owned()), Key::Char('n')]
        );
        assert_eq!(
            decode(b"\x1b[200~y"),
            (vec![Key::Paste("y".to_owned())], Partial::Paste)
        );
    }

    #[test]
    fn characters_are_read_whole_and_those_that_hide_are_none() {
        assert_eq!(keys("é深".as_bytes()), [Key::Char('é'), Key::Char('深')]);
        assert_eq!(keys("\u{202e}".as_bytes()), [Key::Other]);
        assert_eq!(keys("\u{9b}".as_bytes()), [Key::Other]);
        assert_eq!(keys(b"\xff\xc3"), [Key::Other, Key::Other]);
        assert_eq!(keys(b"\xc3y"), [Key::Other, Key::Char('y')]);
    }
}
