//! A line of text while it is typed.

use fuse_terminal::{is_dangerous, strip};
use unicode_segmentation::UnicodeSegmentation;

/// The most bytes of an answer.
pub(crate) const MAX_ANSWER: usize = 64 * 1024;

/// The text, with the cursor between two graphemes.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    at: usize,
}

impl Editor {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn before(&self) -> &str {
        &self.text[..self.at]
    }

    pub fn after(&self) -> &str {
        &self.text[self.at..]
    }

    pub fn take(&mut self) -> String {
        self.at = 0;
        std::mem::take(&mut self.text)
    }

    pub fn type_char(&mut self, c: char) {
        if !is_dangerous(c) {
            self.insert(c.encode_utf8(&mut [0; 4]));
        }
    }

    /// Pasted text comes as one line, without anything that drives a terminal or cannot be seen.
    pub fn paste(&mut self, pasted: &str) {
        let clean = strip(pasted);
        self.insert(&clean);
    }

    fn insert(&mut self, text: &str) {
        let mut room = MAX_ANSWER.saturating_sub(self.text.len()).min(text.len());
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        self.text.insert_str(self.at, &text[..room]);
        self.at += room;
        // What was typed may have joined what stood behind it.
        self.at = self
            .text
            .grapheme_indices(true)
            .map(|(start, grapheme)| start + grapheme.len())
            .find(|end| *end >= self.at)
            .unwrap_or(self.text.len());
    }

    fn previous(&self) -> usize {
        self.before()
            .grapheme_indices(true)
            .next_back()
            .map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        let length = self.after().graphemes(true).next().map_or(0, str::len);
        self.at + length
    }

    pub fn left(&mut self) {
        self.at = self.previous();
    }

    pub fn right(&mut self) {
        self.at = self.next();
    }

    pub fn home(&mut self) {
        self.at = 0;
    }

    pub fn end(&mut self) {
        self.at = self.text.len();
    }

    pub fn erase(&mut self) {
        let from = self.previous();
        self.cut(from);
    }

    pub fn delete(&mut self) {
        let to = self.next();
        self.text.drain(self.at..to);
    }

    pub fn erase_line(&mut self) {
        self.cut(0);
    }

    pub fn erase_word(&mut self) {
        let word = self.before().trim_end_matches(' ');
        let from = word.rfind(' ').map_or(0, |space| space + 1);
        self.cut(from);
    }

    fn cut(&mut self, from: usize) {
        self.text.drain(from..self.at);
        self.at = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editing_moves_by_graphemes() {
        let mut editor = Editor::default();
        editor.paste("ae\u{301}深");
        editor.left();
        editor.erase();
        assert_eq!((editor.before(), editor.after()), ("a", "深"));
        editor.type_char('b');
        editor.right();
        editor.type_char('c');
        assert_eq!(editor.text(), "ab深c");
        editor.home();
        editor.delete();
        assert_eq!(editor.text(), "b深c");
    }

    #[test]
    fn words_and_lines_can_be_erased() {
        let mut editor = Editor::default();
        editor.paste("one two  ");
        editor.erase_word();
        assert_eq!(editor.text(), "one ");
        editor.erase_line();
        assert_eq!(editor.text(), "");
        editor.erase();
        editor.erase_word();
        editor.delete();
    }

    #[test]
    fn nothing_that_hides_gets_in_and_no_more_than_there_is_room_for() {
        let mut editor = Editor::default();
        editor.paste("a\u{1b}[2Jb\r\nc\u{202e}\td");
        editor.type_char('\u{200b}');
        assert_eq!(editor.text(), "ab c d");
        editor.paste(&"深".repeat(MAX_ANSWER));
        assert!(editor.text().len() <= MAX_ANSWER);
    }
}
