//! One of several.

use std::io::Write;
use std::os::fd::AsFd;

use super::ask::{ASKS, ending};
use super::decode::Key;
use super::layout::Screen;
use super::session::{Drawn, Event, Paste, Session};
use super::{Answer, Prompt, PromptError};
use crate::cut::{MAX_TEXT, cell, options, strip_and_cut};

const KEYS: &str = "Type a number, or move with the arrows, and press Enter.
Enter with no number, Escape, Ctrl-C and Ctrl-D: none of them. Other keys do nothing.
";

impl<W: Write + AsFd> Prompt<'_, W> {
    /// Asks a question of the agent with at most 25 [options](crate::options()) and gives the index of the chosen one, `None` where none is
    /// chosen. Nothing is chosen at first; a number or the arrows choose, and Enter, where it comes alone, takes it.
    ///
    /// # Errors
    /// [`PromptError::Options`] where the options cannot be told apart; others where the terminal fails.
    pub fn select(
        &mut self,
        question: &str,
        choices: &[String],
        suggestion: Option<&str>,
    ) -> Result<Answer<Option<usize>>, PromptError> {
        let shown = options(choices)?;
        let question = strip_and_cut(question, MAX_TEXT);
        let suggestion = suggestion.map(|text| strip_and_cut(text, MAX_TEXT));
        let draw = |screen: Screen, chosen: usize| {
            let list: String = (1..)
                .zip(&shown)
                .map(|(number, option)| screen.block(&format!("{number:2}  {option}")))
                .collect();
            let suggestion = suggestion.as_ref().map_or_else(String::new, |text| {
                format!("It suggests:\n{}", screen.block(text))
            });
            Drawn {
                body: format!(
                    "{ASKS}{}Options:\n{list}{suggestion}{KEYS}",
                    screen.block(&question)
                ),
                ready: choice(&shown, chosen, screen),
            }
        };
        let mut session = Session::open(self, Paste::Bracketed, |screen| draw(screen, 0))?;
        // Counted from 1 as on the screen; 0 is none.
        let mut chosen = 0;
        let answer = loop {
            let keys = match session.next()? {
                Event::Keys(keys) => keys,
                Event::Resized(screen) => {
                    session.redraw(&draw(screen, chosen))?;
                    continue;
                }
                Event::Closed => break Answer::Ended,
                Event::Cancelled => break Answer::Cancelled,
            };
            if let Some(answer) = keys.iter().find_map(ending) {
                break answer;
            }
            if keys.contains(&Key::Enter) && (keys.len() == 1 || chosen == 0) {
                break Answer::Given(chosen.checked_sub(1));
            }
            for key in &keys {
                chosen = moved(chosen, shown.len(), key);
            }
            let screen = session.screen();
            session.draw(&format!("\r\x1b[K{}", choice(&shown, chosen, screen)))?;
        };
        session.close(match answer {
            Answer::Given(Some(_)) => "",
            Answer::Given(None)
            | Answer::Escaped
            | Answer::Interrupted
            | Answer::Ended
            | Answer::Cancelled => "\r\x1b[K> none",
        });
        Ok(answer)
    }
}

/// What is chosen after a key, of `count` options.
fn moved(chosen: usize, count: usize, key: &Key) -> usize {
    match key {
        Key::Char(c) => match c.to_digit(10) {
            // A digit that leads nowhere does nothing.
            Some(digit) => match chosen * 10 + digit as usize {
                number if number <= count => number,
                _ => chosen,
            },
            None => chosen,
        },
        Key::Erase => chosen / 10,
        Key::EraseWord | Key::EraseLine => 0,
        Key::Down | Key::PageDown => (chosen + 1).min(count),
        // It stops at the first, since nobody means "none" by it.
        Key::Up => chosen.saturating_sub(1).max(usize::from(chosen > 0)),
        Key::Enter
        | Key::Escape
        | Key::Interrupt
        | Key::EndOfInput
        | Key::Paste(_)
        | Key::Other => chosen,
    }
}

/// The line that shows what Enter would take.
fn choice(shown: &[String], chosen: usize, screen: Screen) -> String {
    let Some(option) = chosen.checked_sub(1).and_then(|at| shown.get(at)) else {
        return "> ".to_owned();
    };
    cell(&format!("> {chosen}  {option}"), screen.outer())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(count: usize, keys: &str) -> usize {
        keys.chars().fold(0, |chosen, c| {
            let key = match c {
                'u' => Key::Up,
                'd' => Key::Down,
                '<' => Key::Erase,
                c => Key::Char(c),
            };
            moved(chosen, count, &key)
        })
    }

    #[test]
    fn digits_and_arrows_stay_among_the_options() {
        assert_eq!(after(25, "12"), 12);
        assert_eq!(after(25, "27"), 2);
        assert_eq!(after(5, "6"), 0);
        assert_eq!(after(5, "0x"), 0);
        assert_eq!(after(25, "12<"), 1);
        assert_eq!(after(25, "1<"), 0);
        assert_eq!(after(3, "dd"), 2);
        assert_eq!(after(3, "dddddd"), 3);
        assert_eq!(after(3, "u"), 0);
        assert_eq!(after(3, "duu"), 1);
    }
}
