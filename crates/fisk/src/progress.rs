//! A run in lines on standard error.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fisk_domain::event::{Ending, Event, Watcher};
use fuse_terminal::{ColourChoice, Exact, Style, strip, strip_and_cut, strip_lines};

use crate::output;

/// The most characters of a retry's reason.
const REASON: usize = 300;

/// Tells what happens, line by line. Without a terminal only what somebody has to know is told.
#[derive(Debug)]
pub struct Lines {
    terminal: bool,
    colour: ColourChoice,
    said: Mutex<String>,
    /// A call that is told once it starts or ends: a question about it shows it itself.
    call: Mutex<Option<String>>,
}

impl Lines {
    /// On the standard error of this process.
    pub fn of_process() -> Self {
        let terminal = output::stderr_is_terminal();
        Self {
            terminal,
            colour: ColourChoice::of_process(terminal),
            said: Mutex::default(),
            call: Mutex::default(),
        }
    }

    /// The lines of an event.
    fn lines(&self, event: Event) -> Option<String> {
        match event {
            Event::Retrying { reason, after_ms } => {
                self.forget();
                #[expect(clippy::cast_precision_loss, reason = "for people")]
                let seconds = after_ms as f64 / 1000.0;
                let reason = strip_and_cut(&reason, REASON);
                Some(format!("{reason}; asking again in {seconds:.1} s"))
            }
            Event::Notice(text) => Some(strip(&text)),
            Event::Text(text) if self.terminal => {
                self.said
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push_str(&text);
                None
            }
            Event::ToolCalled { tool, argv, .. } if self.terminal => {
                let call = match argv {
                    // Not a question: it may be cut here.
                    Some(argv) => Exact::argv(argv).to_string(),
                    None => strip_and_cut(&tool, REASON),
                };
                let arrow = self.colour.paint(Style::Cyan, "→").into_owned();
                *self.call() = Some(format!("{arrow} {call}"));
                self.narration()
            }
            Event::Started { .. } if self.terminal => self.call().take(),
            Event::ToolEnded { ending, result, .. } if self.terminal => {
                let (style, word) = match ending {
                    Ending::Ran(None) => (Style::Dim, "answered".to_owned()),
                    Ending::Ran(Some(0)) => (Style::Green, "done".to_owned()),
                    Ending::Ran(Some(code)) => (Style::Yellow, format!("exit code {code}")),
                    Ending::Denied => (Style::Red, "denied".to_owned()),
                    Ending::Error => (Style::Red, strip_and_cut(&result, REASON)),
                };
                let word = format!("  {}", self.colour.paint(style, &word));
                Some(match self.call().take() {
                    Some(call) => format!("{call}\n{word}"),
                    None => word,
                })
            }
            Event::Answered(_) | Event::Failed(_) | Event::Suspended(_) => {
                self.forget();
                None
            }
            Event::TurnStarted { .. } => {
                self.forget();
                None
            }
            Event::Text(_)
            | Event::ToolCalled { .. }
            | Event::ToolEnded { .. }
            | Event::Started { .. }
            | Event::Thinking(_)
            | Event::Waiting { .. }
            | Event::Usage { .. } => None,
        }
    }

    /// What the model said before it called a tool. What it says at the end is the answer, and stands on standard output.
    fn narration(&self) -> Option<String> {
        let said = self.forget();
        match strip_lines(&said).trim() {
            "" => None,
            text => Some(self.colour.paint(Style::Dim, text).into_owned()),
        }
    }

    fn call(&self) -> MutexGuard<'_, Option<String>> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self) -> String {
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Watcher for Lines {
    fn event(&self, event: Event) {
        if let Some(lines) = self.lines(event) {
            output::note(&lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(terminal: bool) -> Lines {
        Lines {
            terminal,
            colour: ColourChoice::Plain,
            said: Mutex::default(),
            call: Mutex::default(),
        }
    }

    // check: FISK-67
    #[test]
    fn nothing_that_the_model_wrote_reaches_the_terminal_raw() {
        let lines = lines(true);
        let hostile = "a\u{1b}]0;x\u{7}b\u{202e}c";
        lines.lines(Event::Text(hostile.into()));
        let mut told = lines
            .lines(Event::ToolCalled {
                id: "1".into(),
                tool: hostile.into(),
                input: serde_json::Value::Null,
                argv: Some(vec!["app".into(), hostile.into()]),
            })
            .unwrap();
        for event in [
            Event::ToolEnded {
                id: "1".into(),
                result: hostile.into(),
                ending: Ending::Error,
            },
            Event::Notice(hostile.into()),
            Event::Retrying {
                reason: hostile.into(),
                after_ms: 1500,
            },
        ] {
            told.push_str(&lines.lines(event).unwrap());
        }
        assert!(!told.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{told:?}");
        assert!(told.starts_with("abc→ app "), "{told}");
        assert!(told.contains("asking again in 1.5 s"), "{told}");
    }

    fn called() -> Event {
        Event::ToolCalled {
            id: "1".into(),
            tool: "t".into(),
            input: serde_json::Value::Null,
            argv: Some(vec!["app".into(), "rm".into()]),
        }
    }

    #[test]
    fn a_call_is_told_when_it_starts_or_ends_and_not_before_a_question_about_it() {
        let lines = lines(true);
        let id = || "1".to_owned();
        assert_eq!(lines.lines(called()), None);
        assert_eq!(lines.lines(Event::Waiting { id: id() }), None);
        let started = lines.lines(Event::Started { id: id() });
        assert_eq!(started.as_deref(), Some("→ app rm"));
        let ended = |ending| Event::ToolEnded {
            id: id(),
            result: String::new(),
            ending,
        };
        let told = lines.lines(ended(Ending::Ran(Some(0))));
        assert_eq!(told.as_deref(), Some("  done"));
        lines.lines(called());
        let told = lines.lines(ended(Ending::Denied));
        assert_eq!(told.as_deref(), Some("→ app rm\n  denied"));
    }

    #[test]
    fn without_a_terminal_only_notices_are_told() {
        let lines = lines(false);
        lines.lines(Event::Text("hm".into()));
        assert_eq!(lines.lines(called()), None);
        assert_eq!(lines.lines(Event::Started { id: "1".into() }), None);
        assert_eq!(
            lines.lines(Event::Notice("look".into())),
            Some("look".into())
        );
    }
}
