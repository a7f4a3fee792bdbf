//! May this command run?

use std::io::Write;
use std::os::fd::AsFd;

use super::ask::ending;
use super::layout::Screen;
use super::pager::{Paged, page};
use super::session::{Drawn, Event, Paste, Session};
use super::{Answer, Prompt, PromptError};
use crate::cut::{MAX_TEXT, strip_and_cut};
use crate::exact::Exact;
use crate::keys::{Key, is_no, lone};

const KEYS: &str = "y: run it once. s: run it, and this command again until the run ends. v: page the whole command line.
n, Enter, Escape, Ctrl-C and Ctrl-D: deny it. Other keys do nothing.
";
const UNREAD: &str =
    "It is longer than what is shown here. y and s count once v has shown all of it.\n";
const CHOICES: &str = "[y/s/v/N] ";

/// What a person says to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approved {
    /// It runs, this once.
    Once,
    /// It runs, and later calls of the same command run without a question.
    Session,
    /// `n` or Enter: it does not run.
    No,
}

impl<W: Write + AsFd> Prompt<'_, W> {
    /// Shows `title` and the command line, and waits for a key: `y` approves it once and `s` for the session, `v` pages the whole of
    /// it; `n`, Enter, Escape, Ctrl-C, Ctrl-D and a closed input deny; other keys do nothing. All this stands on the screen.
    ///
    /// A command line that [is cut](Exact::is_cut) or does not fit on the screen has to be paged to its end before `y` and `s` count. It
    /// is paged by the prompt itself: `$PAGER` would be a program of somebody's choice.
    ///
    /// # Errors
    /// Where the terminal fails. Take it as a denial.
    pub fn approve(
        &mut self,
        title: &str,
        command: &Exact,
    ) -> Result<Answer<Approved>, PromptError> {
        let title = strip_and_cut(title, MAX_TEXT);
        let draw = |screen: Screen, read: bool| {
            let (text, fits) = question(&title, command, screen);
            let note = if fits || read { "" } else { UNREAD };
            let drawn = Drawn {
                body: format!("{text}{note}"),
                ready: CHOICES.to_owned(),
            };
            (drawn, fits)
        };
        let mut session = Session::open(self, Paste::Bracketed, |screen| draw(screen, false).0)?;
        let mut fits = draw(session.screen(), false).1;
        let mut read = false;
        let answer = loop {
            let keys = match session.next()? {
                Event::Keys(keys) => keys,
                Event::Resized(screen) => {
                    let (drawn, now) = draw(screen, read);
                    fits = now;
                    session.redraw(&drawn)?;
                    continue;
                }
                Event::Closed => break Answer::Ended,
                Event::Cancelled => break Answer::Cancelled,
            };
            match lone(&keys, is_no) {
                Some(Key::Char('y' | 'Y' | 's' | 'S')) if !fits && !read => {
                    session.draw(&format!("\n{UNREAD}{CHOICES}"))?;
                }
                Some(Key::Char('y' | 'Y')) => break Answer::Given(Approved::Once),
                Some(Key::Char('s' | 'S')) => break Answer::Given(Approved::Session),
                Some(Key::Char('v' | 'V')) => {
                    match page(&mut session, command.whole())? {
                        Paged::Back { to_end } => read |= to_end,
                        Paged::Ended(answer) => break answer,
                    }
                    let (drawn, now) = draw(session.screen(), read);
                    fits = now;
                    // Whoever comes back from reading it has read it: no waiting until nobody types.
                    session.redraw(&drawn)?;
                }
                Some(Key::Enter | Key::Char('n' | 'N')) => break Answer::Given(Approved::No),
                Some(key) => {
                    if let Some(answer) = ending(key) {
                        break answer;
                    }
                }
                None => session.draw(&format!("\nOne key at a time.\n{CHOICES}"))?,
            }
        };
        session.close(match answer {
            Answer::Given(Approved::Once) => "yes, once",
            Answer::Given(Approved::Session) => "yes, for the session",
            Answer::Given(Approved::No)
            | Answer::Escaped
            | Answer::Interrupted
            | Answer::Ended
            | Answer::Cancelled => "denied",
        });
        Ok(answer)
    }
}

/// What is drawn but for the last lines, and whether all of the command line is on the screen then.
fn question(title: &str, command: &Exact, screen: Screen) -> (String, bool) {
    let shown = command.to_string();
    // The mark of a cut is ours: no command line holds a line feed.
    let (line, mark) = shown.split_once('\n').unwrap_or((&shown, ""));
    let block = screen.block(line);
    let mark = if mark.is_empty() {
        String::new()
    } else {
        format!("{mark}\n")
    };
    let text = format!("{title}\n{block}{mark}{KEYS}");
    let height = screen.height(&text) + 1;
    let fits = !command.is_cut() && height <= screen.rows;
    (text, fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scrolls_off_the_screen_does_not_fit() {
        let command = Exact::argv(["a".repeat(600)]);
        let screen = |columns, rows| Screen { columns, rows };
        assert!(question("Run?", &command, screen(80, 24)).1);
        assert!(!question("Run?", &command, screen(80, 10)).1);
        assert!(!question("Run?", &command, screen(20, 24)).1);
        let long = Exact::argv(["a".repeat(2001)]);
        assert!(!question("Run?", &long, screen(500, 500)).1);
    }

    #[test]
    fn the_mark_of_a_cut_stands_outside_the_margin() {
        let long = Exact::argv(["a".repeat(2001)]);
        let screen = Screen {
            columns: 40,
            rows: 10,
        };
        let (text, _) = question("Run?", &long, screen);
        assert!(text.contains("\n[cut: 1 more characters;"), "{text}");
    }
}
