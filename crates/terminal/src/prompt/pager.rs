//! Reading a command line whole.

use std::io::Write;
use std::os::fd::AsFd;

use super::ask::ending;
use super::layout::{Rows, Screen, margin};
use super::session::{Drawn, Event, Session};
use super::{Answer, PromptError};
use crate::cut::cell;
use crate::keys::{Key, lone};

const MORE: &str = "Space: more. q: back.";
const END: &str = "The end. q: back.";

/// How the reading ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Paged<T> {
    /// Back to the question.
    Back {
        /// Whether all of it was shown.
        to_end: bool,
    },
    /// The question is answered with it.
    Ended(Answer<T>),
}

/// Shows `text` page by page below what is on the screen. Enter does not answer anything here, and only turns the page.
pub(super) fn page<T, W: Write + AsFd>(
    session: &mut Session<'_, '_, W>,
    text: &str,
) -> Result<Paged<T>, PromptError> {
    let mut at = 0;
    let mut shown = show(session, text, at, "\n")?;
    let mut to_end = shown == text.len();
    loop {
        let keys = match session.next()? {
            Event::Keys(keys) => keys,
            Event::Resized(_) => {
                shown = show(session, text, at, "\n")?;
                to_end |= shown == text.len();
                continue;
            }
            Event::Closed => return Ok(Paged::Ended(Answer::Ended)),
            Event::Cancelled => return Ok(Paged::Ended(Answer::Cancelled)),
        };
        match lone(&keys, leaves) {
            Some(key) if back(key) => {
                session.draw("\r\x1b[K\n")?;
                return Ok(Paged::Back { to_end });
            }
            Some(Key::Char(' ') | Key::Enter | Key::Down | Key::PageDown) if shown < text.len() => {
                at = shown;
                shown = show(session, text, at, "\r\x1b[K")?;
                to_end |= shown == text.len();
            }
            Some(key) => {
                if let Some(answer) = ending(key) {
                    return Ok(Paged::Ended(answer));
                }
            }
            None => {}
        }
    }
}

fn back(key: &Key) -> bool {
    matches!(key, Key::Escape | Key::Char('q' | 'Q'))
}

fn leaves(key: &Key) -> bool {
    back(key) || ending::<()>(key).is_some()
}

/// Shows the page that starts at byte `from`, and gives where it ends.
fn show<W: Write + AsFd>(
    session: &mut Session<'_, '_, W>,
    text: &str,
    from: usize,
    before: &str,
) -> Result<usize, PromptError> {
    let (rows, end) = rows(text, from, session.screen());
    let status = if end < text.len() { MORE } else { END };
    let status = cell(status, session.screen().outer());
    // Keys that were held down while the page before stood do not turn this one.
    let page = Drawn {
        body: format!("{before}{rows}"),
        ready: status,
    };
    session.turn(&page, leaves)?;
    Ok(end)
}

/// One page, and where it ends. The last row is left for the status.
fn rows(text: &str, from: usize, screen: Screen) -> (String, usize) {
    let mut page = String::new();
    let mut end = from;
    let height = screen.rows.saturating_sub(1).max(1);
    for row in Rows::new(&text[from..], screen.inner()).take(height) {
        end += row.len();
        page.push_str(&margin(row));
    }
    (page, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_together_are_the_whole_on_any_screen() {
        let text = "nats 'stream rm' 深圳 --force ".repeat(20);
        for columns in [1, 2, 3, 4, 10, 80] {
            for height in [1, 2, 5, 24] {
                let screen = Screen {
                    columns,
                    rows: height,
                };
                let (mut at, mut all) = (0, String::new());
                while at < text.len() {
                    let (page, end) = rows(&text, at, screen);
                    assert!(end > at);
                    assert!(page.lines().count() <= height.saturating_sub(1).max(1));
                    all.extend(page.lines().map(|row| &row["│ ".len()..]));
                    at = end;
                }
                assert_eq!(all, text);
            }
        }
    }
}
