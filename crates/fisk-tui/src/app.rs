//! The interface as a state machine.

use std::time::Duration;

use fisk_domain::event::Event;
use fuse_terminal::keys::Key;

use crate::{
    inbox::Lost,
    question::{Open, Question, Reply},
    scroll::{Scroll, Window},
    transcript::{Look, Transcript},
    view::panel::{Size, panel_height},
};

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The question of that number is answered, and no longer on the screen.
    Reply {
        /// As given to [`App::ask`].
        id: u64,
        /// The answer.
        reply: Reply,
    },
    /// Ctrl-C was pressed: an interrupt of the run, whatever it was besides.
    Interrupt,
}

/// What the run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Starting,
    Working,
    Retrying,
    Answered,
    Failed,
    Suspended,
}

/// Tokens that were used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    pub input: u64,
    pub output: u64,
    pub budget: u64,
}

/// All that the interface shows.
#[derive(Debug)]
pub struct App {
    pub(crate) title: String,
    pub(crate) colour: bool,
    pub(crate) transcript: Transcript,
    pub(crate) scroll: Scroll,
    pub(crate) thinking: bool,
    pub(crate) selected: Option<u64>,
    pub(crate) help: bool,
    pub(crate) open: Option<Open>,
    pub(crate) activity: Activity,
    pub(crate) turn: u32,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) elapsed: Duration,
    pub(crate) size: Size,
}

impl App {
    /// `title` is shown in the status line; without `colour` there are only bold, dim and reversed letters.
    pub fn new(title: &str, colour: bool) -> Self {
        Self {
            title: fuse_terminal::strip_and_cut(title, 40),
            colour,
            transcript: Transcript::default(),
            scroll: Scroll::Follow,
            thinking: false,
            selected: None,
            help: false,
            open: None,
            activity: Activity::Starting,
            turn: 0,
            tokens: None,
            elapsed: Duration::ZERO,
            size: Size::new(80, 24),
        }
    }

    /// Takes what happened in the run.
    pub fn on_event(&mut self, event: Event) {
        match event {
            Event::TurnStarted { turn } => {
                self.turn = turn;
                self.activity = Activity::Working;
            }
            Event::Text(text) => {
                self.activity = Activity::Working;
                self.transcript.say(&text);
            }
            Event::Thinking(text) => {
                self.activity = Activity::Working;
                self.transcript.think(&text);
            }
            Event::ToolCalled {
                id,
                tool,
                input,
                argv,
            } => self.transcript.call(id, &tool, &input, argv),
            Event::Waiting { id } => self.transcript.waiting(&id, true),
            Event::Started { id } => self.transcript.waiting(&id, false),
            Event::ToolEnded { id, result, ending } => self.transcript.ended(&id, &result, ending),
            Event::Retrying { reason, after_ms } => {
                self.activity = Activity::Retrying;
                let seconds = after_ms as f64 / 1000.0;
                self.transcript.note(
                    &format!("asking the model again in {seconds:.1} s: {reason}"),
                    Look::Warning,
                );
            }
            Event::Usage {
                input,
                output,
                budget,
            } => {
                self.tokens = Some(Tokens {
                    input,
                    output,
                    budget,
                });
            }
            Event::Notice(text) => self.transcript.note(&text, Look::Warning),
            // The answer was streamed as text, and is printed when the screen is left.
            Event::Answered(_) => self.activity = Activity::Answered,
            Event::Failed(why) => {
                self.activity = Activity::Failed;
                self.transcript.note(&why, Look::Bad);
            }
            Event::Suspended(session) => {
                self.activity = Activity::Suspended;
                let text = format!("suspended {session}");
                self.transcript.note(text.trim_end(), Look::Warning);
            }
        }
    }

    pub(crate) fn on_lost(&mut self, lost: Lost) {
        let text = format!("{} events came too fast and are not shown", lost.0);
        self.transcript.note(&text, Look::Warning);
    }

    /// Puts a question on the screen. Its keys count once it was [drawn](Self::drawn) and [armed](Self::arm). One question is open
    /// at a time; another one is refused.
    pub fn ask(&mut self, id: u64, question: Question) -> Option<Effect> {
        use fisk_domain::PromptFailure::Failed;
        let refused = |why| {
            Some(Effect::Reply {
                id,
                reply: Reply::Failed(why),
            })
        };
        if self.open.is_some() {
            return refused(Failed("another question is open".to_owned()));
        }
        match Open::new(id, question) {
            Ok(open) => {
                self.help = false;
                self.open = Some(open);
                None
            }
            Err(failure) => refused(failure),
        }
    }

    /// Takes the question of that number away, unanswered.
    pub fn withdraw(&mut self, id: u64) {
        if self.open.as_ref().is_some_and(|open| open.id == id) {
            self.open = None;
        }
    }

    /// The state is on the screen now.
    pub fn drawn(&mut self) {
        if self.help {
            return;
        }
        if let Some(open) = &mut self.open {
            open.drawn(self.size);
        }
    }

    /// Whether a question is open whose keys do not count yet.
    pub fn is_unarmed(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.armed)
    }

    /// What was typed before the question was on the screen is thrown away; keys count from here on.
    pub fn arm(&mut self) {
        if let Some(open) = &mut self.open {
            open.armed = true;
            open.changed();
        }
    }

    /// The time since the run began. Gives whether the screen changes by it.
    pub fn tick(&mut self, elapsed: Duration) -> bool {
        let changes = self.elapsed.as_secs() != elapsed.as_secs();
        self.elapsed = elapsed;
        changes
    }

    /// The screen has that size, in columns and rows.
    pub fn on_resize(&mut self, columns: u16, rows: u16) {
        self.size = Size::new(columns, rows);
        if let Some(open) = &mut self.open {
            open.changed();
        }
    }

    /// Takes keys that came in one piece.
    pub fn on_keys(&mut self, keys: &[Key]) -> Vec<Effect> {
        let mut effects: Vec<Effect> = keys
            .iter()
            .filter(|key| **key == Key::Interrupt)
            .map(|_| Effect::Interrupt)
            .collect();
        if self.help {
            self.on_help_keys(keys);
            let says_no = |key: &Key| matches!(key, Key::Interrupt | Key::EndOfInput);
            if !keys.iter().any(says_no) {
                return effects;
            }
        }
        if let Some(open) = &mut self.open {
            let can_page = open.form.whole().is_some();
            if open.armed && can_page && keys == [Key::Char('?')] {
                self.set_help(true);
            } else if let Some(reply) = open.on_keys(keys, self.size) {
                let id = open.id;
                self.open = None;
                effects.push(Effect::Reply { id, reply });
            } else if open.pager.is_none() {
                for key in keys {
                    if matches!(key, Key::PageUp | Key::PageDown) {
                        self.navigate(key);
                    }
                }
            }
            return effects;
        }
        for key in keys {
            self.navigate(key);
        }
        effects
    }

    fn set_help(&mut self, help: bool) {
        self.help = help;
        if let Some(open) = &mut self.open {
            open.changed();
        }
    }

    fn on_help_keys(&mut self, keys: &[Key]) {
        let closes = |key: &Key| {
            matches!(
                key,
                Key::Escape
                    | Key::Enter
                    | Key::Interrupt
                    | Key::EndOfInput
                    | Key::Char('?' | 'q' | 'Q')
            )
        };
        if keys.iter().any(closes) {
            self.set_help(false);
        }
    }

    fn navigate(&mut self, key: &Key) {
        let window = self.window();
        let page = window.height.saturating_sub(1).max(1);
        self.scroll = match key {
            Key::Up => window.up(self.scroll, 1),
            Key::Down => window.down(self.scroll, 1),
            Key::PageUp => window.up(self.scroll, page),
            Key::PageDown => window.down(self.scroll, page),
            Key::Home => window.home(),
            Key::End => Scroll::Follow,
            Key::Tab => return self.select(true),
            Key::BackTab => return self.select(false),
            Key::Char('t' | 'T') => {
                self.thinking = !self.thinking;
                return;
            }
            Key::Char('o' | 'O') => return self.transcript.toggle_output(self.selected),
            Key::Char('?') => {
                self.help = true;
                return;
            }
            Key::Escape => {
                self.selected = None;
                return;
            }
            Key::Char(_)
            | Key::Enter
            | Key::Interrupt
            | Key::EndOfInput
            | Key::Erase
            | Key::Delete
            | Key::EraseWord
            | Key::EraseLine
            | Key::Left
            | Key::Right
            | Key::Paste(_)
            | Key::Other => return,
        };
    }

    /// Selects the next or the previous tool call; at first the last one.
    fn select(&mut self, next: bool) {
        let tools = || {
            let entries = self.transcript.entries().iter();
            entries.filter(|entry| entry.is_tool()).map(|e| e.seq)
        };
        let found = match self.selected {
            None => tools().next_back(),
            Some(at) if next => tools().find(|seq| *seq > at),
            Some(at) => tools().rfind(|seq| *seq < at),
        };
        if let Some(seq) = found {
            self.selected = Some(seq);
            self.scroll = self.window().show(self.scroll, seq);
        }
    }

    /// The part of the screen that shows the transcript.
    pub(crate) fn window(&self) -> Window<'_> {
        let panel = self
            .open
            .as_ref()
            .map_or(0, |open| panel_height(open, self.size));
        Window {
            transcript: &self.transcript,
            thinking: self.thinking,
            selected: self.selected,
            columns: self.size.columns(),
            height: self.size.rows().saturating_sub(1 + panel),
        }
    }
}
