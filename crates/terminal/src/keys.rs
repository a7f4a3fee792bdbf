//! Which keys a piece of a terminal's input is, for whoever reads single keys.
//!
//! The input is read by hand and not by a terminal library, whose readers spin for ever on a terminal that hung up and tell a lone
//! Escape from the start of an arrow key only by luck.

use std::time::Duration;

use crate::chars::is_dangerous;

/// A key that was pressed, or a piece of pasted text. Releases and repeats that a terminal reports are [`Other`](Self::Other).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A character that can be shown.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Backspace.
    Erase,
    /// Delete.
    Delete,
    /// Ctrl-W.
    EraseWord,
    /// Ctrl-U.
    EraseLine,
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home, or Ctrl-A.
    Home,
    /// End, or Ctrl-E.
    End,
    /// Tab.
    Tab,
    /// Shift-Tab.
    BackTab,
    /// What the terminal marked as pasted, unchecked.
    Paste(String),
    /// Any other.
    Other,
}

/// How a key ends a question without an answer. Each of them is a no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Escape.
    Escaped,
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D.
    Ended,
}

impl Key {
    /// Whether it ends every question, and how.
    pub fn ending(&self) -> Option<Ending> {
        match self {
            Self::Escape => Some(Ending::Escaped),
            Self::Interrupt => Some(Ending::Interrupted),
            Self::EndOfInput => Some(Ending::Ended),
            Self::Char(_)
            | Self::Enter
            | Self::Erase
            | Self::Delete
            | Self::EraseWord
            | Self::EraseLine
            | Self::Up
            | Self::Down
            | Self::Left
            | Self::Right
            | Self::PageUp
            | Self::PageDown
            | Self::Home
            | Self::End
            | Self::Tab
            | Self::BackTab
            | Self::Paste(_)
            | Self::Other => None,
        }
    }
}

/// Whether more has to come before the input can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partial {
    /// All of it can be told.
    No,
    /// What may follow a lone Escape, which begins the names of other keys.
    Escape,
    /// The rest of a character, or of a key's name.
    Key,
    /// The end of a paste.
    Paste,
}

impl Partial {
    /// How long what is missing may take, on a line that carries byte after byte; `None` where nothing is missing. Who presses Escape
    /// waits for the shorter time.
    pub fn patience(self) -> Option<Duration> {
        match self {
            Self::No => None,
            Self::Escape => Some(Duration::from_millis(100)),
            Self::Key | Self::Paste => Some(Duration::from_millis(500)),
        }
    }
}

const PASTE_END: &[u8] = b"\x1b[201~";

/// The most bytes of a key's name between `[` and its last byte.
const MAX_NAME: usize = 64;

/// The keys in `bytes`, which came in one piece. What is unfinished at its end is told as such, and counts as it is where nothing
/// follows: the start of an arrow key that goes no further is an Escape. Where nothing is unfinished, what follows does not change
/// the keys before it.
pub fn decode(bytes: &[u8]) -> (Vec<Key>, Partial) {
    let mut keys = Vec::new();
    let mut partial = Partial::No;
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let key = match byte {
            b'\r' | b'\n' => Key::Enter,
            b'\t' => Key::Tab,
            0x01 => Key::Home,
            0x03 => Key::Interrupt,
            0x04 => Key::EndOfInput,
            0x05 => Key::End,
            0x08 | 0x7f => Key::Erase,
            0x15 => Key::EraseLine,
            0x17 => Key::EraseWord,
            0x1b => match sequence(after) {
                None => {
                    if partial == Partial::No {
                        partial = unfinished(after);
                    }
                    Key::Escape
                }
                Some((b"200", b'~', after)) => {
                    let end = after
                        .windows(PASTE_END.len())
                        .position(|window| window == PASTE_END);
                    let pasted = &after[..end.unwrap_or(after.len())];
                    keys.push(Key::Paste(String::from_utf8_lossy(pasted).into_owned()));
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
                let (c, length) = match scalar(byte, after) {
                    Scalar::Whole(c, length) => (c, length),
                    Scalar::Invalid => (None, 0),
                    Scalar::Unfinished => {
                        partial = Partial::Key;
                        (None, after.len())
                    }
                };
                rest = &after[length..];
                c.map_or(Key::Other, Key::Char)
            }
        };
        keys.push(key);
    }
    (keys, partial)
}

/// Keys that came in one piece, without an Enter behind a single character. Who is used to prompts that want one sends both at
/// once, from a terminal that sends whole lines; one key after the other, the first is the answer, too.
pub fn without_habit(keys: &[Key]) -> &[Key] {
    match keys {
        [Key::Char(_), Key::Enter] => &keys[..1],
        keys => keys,
    }
}

/// The key that counts among those that came in one piece: the only one, else the first negative one.
pub fn lone(keys: &[Key], negative: impl Fn(&Key) -> bool) -> Option<&Key> {
    match without_habit(keys) {
        [key] => Some(key),
        keys => keys.iter().find(|key| negative(key)),
    }
}

/// Whether a key says no at a question of single keys.
pub fn is_no(key: &Key) -> bool {
    matches!(key, Key::Enter | Key::Char('n' | 'N')) || key.ending().is_some()
}

/// Which of `count` options, counted from 1, is chosen after a key; 0 is none. Digits, the arrows and what takes text back choose; other
/// keys change nothing.
pub fn chosen(before: usize, count: usize, key: &Key) -> usize {
    match key {
        Key::Char(c) => match c.to_digit(10) {
            // A digit that leads nowhere does nothing.
            Some(digit) => match before * 10 + digit as usize {
                number if number <= count => number,
                _ => before,
            },
            None => before,
        },
        Key::Erase => before / 10,
        Key::EraseWord | Key::EraseLine => 0,
        Key::Down => (before + 1).min(count),
        // It stops at the first, since nobody means "none" by it.
        Key::Up => before.saturating_sub(1).max(usize::from(before > 0)),
        Key::Enter
        | Key::Escape
        | Key::Interrupt
        | Key::EndOfInput
        | Key::Delete
        | Key::Left
        | Key::Right
        | Key::PageUp
        | Key::PageDown
        | Key::Home
        | Key::End
        | Key::Tab
        | Key::BackTab
        | Key::Paste(_)
        | Key::Other => before,
    }
}

/// What stands behind an Escape that begins the name of a key: its parameters, its last byte and what follows.
fn sequence(after: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    match after {
        [b'O', last @ 0x40..=0x7e, after @ ..] => Some((&[], *last, after)),
        [b'[', body @ ..] => {
            let at = body
                .iter()
                .take(MAX_NAME + 1)
                .position(|b| !(0x20..=0x3f).contains(b))?;
            let last = body[at];
            (0x40..=0x7e)
                .contains(&last)
                .then_some((&body[..at], last, &body[at + 1..]))
        }
        _ => None,
    }
}

/// Whether what stands behind an Escape, and is no name of a key, can become one.
fn unfinished(after: &[u8]) -> Partial {
    match after {
        [] => Partial::Escape,
        [b'O'] => Partial::Key,
        [b'[', body @ ..]
            if body.len() <= MAX_NAME && body.iter().all(|b| (0x20..=0x3f).contains(b)) =>
        {
            Partial::Key
        }
        _ => Partial::No,
    }
}

fn named(parameters: &[u8], last: u8) -> Key {
    match (parameters, last) {
        (b"", b'A') => Key::Up,
        (b"", b'B') => Key::Down,
        (b"", b'C') => Key::Right,
        (b"", b'D') => Key::Left,
        (b"", b'H') | (b"1" | b"7", b'~') => Key::Home,
        (b"", b'F') | (b"4" | b"8", b'~') => Key::End,
        (b"", b'Z') => Key::BackTab,
        (b"3", b'~') => Key::Delete,
        (b"5", b'~') => Key::PageUp,
        (b"6", b'~') => Key::PageDown,
        // Another program left the terminal reporting keys in this form: one can still say no.
        (b"27" | b"27;1" | b"27;1:1", b'u') => Key::Escape,
        (b"99;5" | b"99;5:1", b'u') => Key::Interrupt,
        (b"100;5" | b"100;5:1", b'u') => Key::EndOfInput,
        _ => Key::Other,
    }
}

/// What starts with a byte beyond ASCII.
enum Scalar {
    /// A character, if it is one that can be shown, and how many of the bytes behind the first belong to it.
    Whole(Option<char>, usize),
    /// The start of one.
    Unfinished,
    /// Bytes that cannot become one.
    Invalid,
}

fn scalar(first: u8, after: &[u8]) -> Scalar {
    let length = match first {
        0xc2..=0xdf => 1,
        0xe0..=0xef => 2,
        0xf0..=0xf4 => 3,
        _ => return Scalar::Invalid,
    };
    let mut bytes = vec![first];
    bytes.extend(after.iter().take(length));
    match std::str::from_utf8(&bytes) {
        Ok(text) => Scalar::Whole(text.chars().next().filter(|c| !is_dangerous(*c)), length),
        Err(error) if error.error_len().is_none() => Scalar::Unfinished,
        Err(_) => Scalar::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let (keys, partial) = decode(bytes);
        assert_eq!(partial, Partial::No);
        keys
    }

    #[test]
    fn a_named_key_is_one_key() {
        for (bytes, key) in [
            (&b"\x1b[A"[..], Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[6~", Key::PageDown),
            (b"\x1b[Z", Key::BackTab),
            (b"\x1b[1;5C", Key::Other),
        ] {
            assert_eq!(keys(bytes), [key]);
        }
    }

    #[test]
    fn an_escape_in_doubt_is_an_escape() {
        assert_eq!(decode(b"\x1b"), (vec![Key::Escape], Partial::Escape));
        assert_eq!(keys(b"\x1by"), [Key::Escape, Key::Char('y')]);
        for start in [&b"\x1b["[..], b"\x1b[1;5", b"\x1bO"] {
            let (keys, partial) = decode(start);
            assert_eq!((&keys[0], partial), (&Key::Escape, Partial::Key));
        }
        let endless = [&b"\x1b["[..], &[b'1'; 65]].concat();
        assert_eq!(keys(&endless)[0], Key::Escape);
        assert_eq!(keys(b"\x1b[\x03")[0], Key::Escape);
    }

    #[test]
    fn one_can_say_no_on_a_terminal_that_was_left_reporting_keys_in_the_new_form() {
        for (bytes, key) in [
            (&b"\x1b[27u"[..], Key::Escape),
            (b"\x1b[99;5u", Key::Interrupt),
            (b"\x1b[100;5:1u", Key::EndOfInput),
        ] {
            assert_eq!(keys(bytes), [key]);
        }
    }

    #[test]
    fn a_choice_stays_among_the_options() {
        let after = |typed: &str| {
            let (keys, _) = decode(typed.as_bytes());
            keys.iter().fold(0, |before, key| chosen(before, 12, key))
        };
        for (typed, expected) in [
            ("1", 1),
            ("12", 12),
            ("13", 1),
            ("0", 0),
            ("12\x7f", 1),
            ("12\x15", 0),
            ("\x1b[A", 0),
            ("\x1b[B\x1b[B\x1b[A\x1b[A\x1b[A", 1),
            ("12\x1b[B", 12),
            ("x\r", 0),
        ] {
            assert_eq!(after(typed), expected, "{typed:?}");
        }
    }

    #[test]
    fn a_release_or_a_repeat_is_no_key_press() {
        for report in [
            &b"\x1b[121;1:3u"[..],
            b"\x1b[121;1:2u",
            b"\x1b[121u",
            b"\x1b[1;1:3B",
        ] {
            assert_eq!(keys(report), [Key::Other]);
        }
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
        assert_eq!(keys(b"\xff\xc0"), [Key::Other, Key::Other]);
        assert_eq!(keys(b"\xc3y"), [Key::Other, Key::Char('y')]);
    }

    #[test]
    fn the_start_of_a_character_is_unfinished_until_it_cannot_become_one() {
        for start in [&b"\xc3"[..], b"\xe6", b"\xe6\xb7", b"y\xf0\x9f\x98"] {
            let (keys, partial) = decode(start);
            assert_eq!(
                (keys.last(), partial),
                (Some(&Key::Other), Partial::Key),
                "{start:?}"
            );
        }
        assert_eq!(keys(b"\xe0\x80"), [Key::Other, Key::Other]);
    }

    proptest! {
        /// Pieces that each are waited for until nothing is unfinished make the keys of the whole, wherever it is cut.
        #[test]
        fn a_cut_where_nothing_is_unfinished_changes_no_key(
            pieces in proptest::collection::vec(
                prop_oneof![
                    any::<u8>().prop_map(|byte| vec![byte]),
                    any::<char>().prop_map(|c| c.to_string().into_bytes()),
                    proptest::sample::select(vec!["\x1b", "\x1b[", "\x1b[A", "\x1bOB", "\x1b[1;5C", "\x1b[200~", "\x1b[201~", "y", "\r"])
                        .prop_map(|text| text.as_bytes().to_vec()),
                ],
                0..12,
            ),
        ) {
            let bytes = pieces.concat();
            let (whole, _) = decode(&bytes);
            for at in 0..=bytes.len() {
                let (mut keys, partial) = decode(&bytes[..at]);
                if partial == Partial::No {
                    keys.extend(decode(&bytes[at..]).0);
                    prop_assert_eq!(&keys, &whole, "cut at {}", at);
                }
            }
        }
    }
}
