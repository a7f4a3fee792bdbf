//! A line of text.

use std::io::Write;
use std::os::fd::AsFd;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::ask::{ASKS, ending};
use super::layout::Screen;
use super::session::{Drawn, Event, Paste, Session};
use super::{Answer, Prompt, PromptError};
use crate::cut::{MAX_TEXT, strip_and_cut};
use crate::keys::Key;
use crate::strip::strip;

/// The most bytes that an answer may have; what is typed beyond them is not taken.
pub const MAX_LINE: usize = 64 * 1024;

const KEYS: &str = "Backspace, Ctrl-W and Ctrl-U take back a character, a word, all.\n";
const EMPTY: &str = "Enter alone, Escape, Ctrl-C and Ctrl-D: no value.\n";
const WITH_DEFAULT: &str =
    "Enter alone takes the suggestion. Escape, Ctrl-C and Ctrl-D: no value.\n";

impl<W: Write + AsFd> Prompt<'_, W> {
    /// Asks a question of the agent and reads a line of text, `None` where it is empty. Control characters and those that cannot be
    /// seen are not taken, so that the value is what stands on the screen; pasted text comes as one line.
    ///
    /// A default is shown as the agent's suggestion, stripped and cut; Enter alone takes it as it was shown.
    ///
    /// # Errors
    /// Where the terminal fails.
    pub fn line(
        &mut self,
        question: &str,
        default: Option<&str>,
    ) -> Result<Answer<Option<String>>, PromptError> {
        let question = strip_and_cut(question, MAX_TEXT);
        let default = default
            .map(|text| strip_and_cut(text, MAX_TEXT))
            .filter(|text| !text.trim().is_empty());
        let draw = |screen: Screen, value: &str| {
            let (suggestion, enter) = match &default {
                Some(text) => (
                    format!("It suggests:\n{}", screen.block(text)),
                    WITH_DEFAULT,
                ),
                None => (String::new(), EMPTY),
            };
            Drawn {
                body: format!("{ASKS}{}{suggestion}{enter}{KEYS}", screen.block(&question)),
                ready: tail(value, screen),
            }
        };
        let mut session = Session::open(self, Paste::Bracketed, |screen| draw(screen, ""))?;
        let mut value = String::new();
        let answer = 'asked: loop {
            let keys = match session.next()? {
                Event::Keys(keys) => keys,
                Event::Resized(screen) => {
                    session.redraw(&draw(screen, &value))?;
                    continue;
                }
                Event::Closed => break Answer::Ended,
                Event::Cancelled => break Answer::Cancelled,
            };
            if let Some(answer) = keys.iter().find_map(ending) {
                break answer;
            }
            for key in &keys {
                if *key == Key::Enter {
                    // What was typed before may end in blanks or pile up marks that the screen does not show.
                    let typed = strip(&value);
                    break 'asked Answer::Given(match typed.trim().is_empty() {
                        false => Some(typed),
                        true if value.is_empty() => default,
                        true => None,
                    });
                }
                edit(&mut value, key);
            }
            let screen = session.screen();
            session.draw(&format!("\r\x1b[K{}", tail(&value, screen)))?;
        };
        session.close(match answer {
            Answer::Given(Some(_)) => "",
            Answer::Given(None)
            | Answer::Escaped
            | Answer::Interrupted
            | Answer::Ended
            | Answer::Cancelled => "\r\x1b[K> no value",
        });
        Ok(answer)
    }
}

/// What a key does to the text.
fn edit(value: &mut String, key: &Key) {
    match key {
        Key::Char(c) => insert(value, c.encode_utf8(&mut [0; 4])),
        Key::Paste(text) => insert(value, &strip(&text.replace(['\r', '\n', '\t'], " "))),
        Key::Erase => {
            let at = value.grapheme_indices(true).next_back();
            value.truncate(at.map_or(0, |(at, _)| at));
        }
        Key::EraseWord => {
            let kept = value.trim_end().trim_end_matches(|c: char| c != ' ');
            value.truncate(kept.len());
        }
        Key::EraseLine => value.clear(),
        Key::Enter
        | Key::Escape
        | Key::Interrupt
        | Key::EndOfInput
        | Key::Delete
        | Key::Up
        | Key::Down
        | Key::Left
        | Key::Right
        | Key::PageUp
        | Key::PageDown
        | Key::Home
        | Key::End
        | Key::Tab
        | Key::BackTab
        | Key::Other => {}
    }
}

fn insert(value: &mut String, text: &str) {
    let room = MAX_LINE.saturating_sub(value.len());
    value.push_str(&text[..text.floor_char_boundary(room)]);
}

/// The end of the text, as much as fits on one row.
fn tail(value: &str, screen: Screen) -> String {
    let shown = strip(value);
    let room = screen.outer().saturating_sub(3).max(1);
    let mut used = 0;
    let start = shown
        .grapheme_indices(true)
        .rev()
        .take_while(|(_, grapheme)| {
            used += grapheme.width();
            used <= room
        })
        .last()
        .map_or(shown.len(), |(at, _)| at);
    let mark = if start > 0 { "…" } else { "" };
    format!("> {mark}{}", &shown[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key]) -> String {
        let mut value = String::new();
        for key in keys {
            edit(&mut value, key);
        }
        value
    }

    fn chars(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn characters_are_taken_back_as_a_person_counts_them() {
        let mut keys = chars("ae\u{301}");
        keys.push(Key::Erase);
        assert_eq!(typed(&keys), "a");
        let mut keys = chars("one two  ");
        keys.push(Key::EraseWord);
        assert_eq!(typed(&keys), "one ");
        keys.push(Key::EraseLine);
        keys.push(Key::Erase);
        assert_eq!(typed(&keys), "");
    }

    #[test]
    fn a_paste_comes_as_one_safe_line() {
        let paste = Key::Paste("a\r\nb\u{1b}[2J\u{202e}c".to_owned());
        assert_eq!(typed(&[paste]), "a  bc");
    }

    #[test]
    fn a_line_ends_at_its_bound_between_characters() {
        let paste = Key::Paste("é".repeat(MAX_LINE));
        let value = typed(&[Key::Char('a'), paste]);
        assert_eq!(value.len(), MAX_LINE - 1);
        assert!(value.ends_with('é'));
    }

    #[test]
    fn the_end_of_a_long_line_is_shown_on_one_row() {
        let screen = Screen {
            columns: 10,
            rows: 4,
        };
        assert_eq!(tail("abc", screen), "> abc");
        assert_eq!(tail("abcdefghij", screen), "> …efghij");
        assert_eq!(tail("深圳市深圳市", screen), "> …深圳市");
    }
}
