//! Yes or no.

use std::io::Write;
use std::os::fd::AsFd;

use super::layout::Screen;
use super::session::{Drawn, Event, Paste, Session};
use super::{Answer, Prompt, PromptError};
use crate::cut::{MAX_TEXT, strip_and_cut};
use crate::keys::{Ending, Key, is_no, lone};

/// Stands above a text of the agent.
pub(super) const ASKS: &str = "The agent asks:\n";

/// The answer that a key is at every question.
pub(super) fn ending<T>(key: &Key) -> Option<Answer<T>> {
    key.ending().map(|ending| match ending {
        Ending::Escaped => Answer::Escaped,
        Ending::Interrupted => Answer::Interrupted,
        Ending::Ended => Answer::Ended,
    })
}

impl<W: Write + AsFd> Prompt<'_, W> {
    /// Draws `question [y/N]` and waits for one key: `y` is a yes; `n`, Enter, Escape, Ctrl-C, Ctrl-D and a closed
    /// input are a no; other keys do nothing.
    ///
    /// The question is stripped and cut like any free text.
    ///
    /// # Errors
    /// Where the terminal fails. Take it as a no.
    pub fn confirm(&mut self, question: &str) -> Result<bool, PromptError> {
        let text = format!("{} ", strip_and_cut(question, MAX_TEXT));
        let answer = self.yes_or_no(|_| text.clone())?;
        Ok(answer.given() == Some(true))
    }

    /// Asks a question of the agent and waits for one key, like [`confirm`](Self::confirm); says how it was answered and what
    /// each key does. What the agent suggests is shown and no key stands for it.
    ///
    /// # Errors
    /// Where the terminal fails. Take it as a no.
    pub fn ask(
        &mut self,
        question: &str,
        suggestion: Option<bool>,
    ) -> Result<Answer<bool>, PromptError> {
        let question = strip_and_cut(question, MAX_TEXT);
        let suggestion = match suggestion {
            Some(true) => "It suggests: yes\n",
            Some(false) => "It suggests: no\n",
            None => "",
        };
        self.yes_or_no(|screen| {
            format!(
                "{ASKS}{}{suggestion}y: yes. n, Enter, Escape, Ctrl-C and Ctrl-D: no. Other keys do nothing.\n",
                screen.block(&question),
            )
        })
    }

    fn yes_or_no(&mut self, body: impl Fn(Screen) -> String) -> Result<Answer<bool>, PromptError> {
        let question = |screen| Drawn {
            body: body(screen),
            ready: "[y/N] ".to_owned(),
        };
        let mut session = Session::open(self, Paste::Bracketed, question)?;
        let answer = loop {
            let keys = match session.next()? {
                Event::Keys(keys) => keys,
                Event::Resized(screen) => {
                    session.redraw(&question(screen))?;
                    continue;
                }
                Event::Closed => break Answer::Ended,
                Event::Cancelled => break Answer::Cancelled,
            };
            let Some(key) = lone(&keys, is_no) else {
                continue;
            };
            match key {
                Key::Char('y' | 'Y') => break Answer::Given(true),
                Key::Enter | Key::Char('n' | 'N') => break Answer::Given(false),
                key => {
                    if let Some(answer) = ending(key) {
                        break answer;
                    }
                }
            }
        };
        session.close(if answer == Answer::Given(true) {
            "yes"
        } else {
            "no"
        });
        Ok(answer)
    }
}
