//! One of several.

use std::io::Write;
use std::os::fd::AsFd;

use super::ask::{ASKS, ending};
use super::layout::Screen;
use super::session::{Drawn, Event, Paste, Session};
use super::{Answer, Prompt, PromptError};
use crate::cut::{MAX_TEXT, cell, options, strip_and_cut};
use crate::keys::{Key, chosen as after};

const KEYS: &str = "Type a number, or move with the arrows, and press Enter.
Enter with no number, Escape, Ctrl-C and Ctrl-D: none of them. Other keys do nothing.
";

impl<W: Write + AsFd> Prompt<'_, W> {
    /// Asks a question of the agent with at most 25 [options](crate::options()) and gives the index of the chosen one, `None` where none is
    /// chosen. Nothing is chosen at first; a number or the arrows choose, and Enter takes it.
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
        let answer = 'asked: loop {
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
            // What a terminal marks as pasted holds no Enter.
            for key in &keys {
                if *key == Key::Enter {
                    break 'asked Answer::Given(chosen.checked_sub(1));
                }
                chosen = after(chosen, shown.len(), key);
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

/// The line that shows what Enter would take.
fn choice(shown: &[String], chosen: usize, screen: Screen) -> String {
    let Some(option) = chosen.checked_sub(1).and_then(|at| shown.get(at)) else {
        return "> ".to_owned();
    };
    cell(&format!("> {chosen}  {option}"), screen.outer())
}
