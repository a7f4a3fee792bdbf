//! A question to the operator while it stands on the screen.

use fisk_domain::{Approval, PromptFailure};
use fisk_operator::{ApprovalRequest, Confirm, Input, Select};
use fuse_terminal::{
    MAX_TEXT,
    keys::{Ending, Key, chosen as after, is_no, lone},
    options, strip_and_cut,
};

use crate::{
    edit::Editor,
    view::panel::{Size, fits},
    wrap::{Wrap, rows},
};

/// What is asked.
#[derive(Debug, Clone)]
pub enum Question {
    /// Whether a gated command may run.
    Approve(ApprovalRequest),
    /// Yes or no.
    Confirm(Confirm),
    /// One of several.
    Select(Select),
    /// A text.
    Input(Input),
}

/// The operator's answer, of the same kind as its [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To [`Question::Approve`].
    Approve(Approval),
    /// To [`Question::Confirm`].
    Confirm(bool),
    /// To [`Question::Select`].
    Select(Option<usize>),
    /// To [`Question::Input`].
    Input(Option<String>),
    /// To any of them: there is no answer, which is a no.
    Failed(PromptFailure),
}

/// A question as it is drawn: every text of it is safe.
#[derive(Debug)]
pub(crate) enum Form {
    Approve {
        title: String,
        /// At most as much as is shown at once.
        line: String,
        /// What is said about the rest, where there is one.
        mark: Option<String>,
        whole: String,
    },
    Confirm {
        question: String,
        suggestion: Option<bool>,
    },
    Select {
        question: String,
        options: Vec<String>,
        suggestion: Option<String>,
        /// Counted from 1, as on the screen; 0 is none.
        chosen: usize,
    },
    Input {
        question: String,
        default: Option<String>,
        editor: Editor,
        /// The first row of the question that is shown.
        top: usize,
    },
}

impl Form {
    /// # Errors
    /// Where the options of a choice cannot be told apart.
    fn new(question: Question) -> Result<Self, PromptFailure> {
        let cut = |text: &str| strip_and_cut(text, MAX_TEXT);
        let suggested = |text: Option<String>| {
            text.map(|text| strip_and_cut(&text, MAX_TEXT))
                .filter(|text| !text.trim().is_empty())
        };
        Ok(match question {
            Question::Approve(request) => {
                let shown = request.command.to_string();
                // The mark of a cut is ours: no command line holds a line feed.
                let (line, mark) = match shown.split_once('\n') {
                    Some((line, mark)) => (line.to_owned(), Some(mark.to_owned())),
                    None => (shown, None),
                };
                let tags = if request.tags.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", request.tags.join(", "))
                };
                Self::Approve {
                    title: cut(&format!("May this command run? {}{tags}", request.tool)),
                    line,
                    mark,
                    whole: request.command.whole().to_owned(),
                }
            }
            Question::Confirm(confirm) => Self::Confirm {
                question: cut(&confirm.question),
                suggestion: confirm.default,
            },
            Question::Select(select) => Self::Select {
                question: cut(&select.question),
                options: options(&select.options)
                    .map_err(|error| PromptFailure::Failed(error.to_string()))?,
                suggestion: suggested(select.default),
                chosen: 0,
            },
            Question::Input(input) => Self::Input {
                question: cut(&input.question),
                default: suggested(input.default),
                editor: Editor::default(),
                top: 0,
            },
        })
    }

    /// What `v` pages, where typing is not what is asked for.
    pub fn whole(&self) -> Option<&str> {
        match self {
            Self::Approve { whole, .. } => Some(whole),
            Self::Confirm { question, .. } | Self::Select { question, .. } => Some(question),
            Self::Input { .. } => None,
        }
    }
}

/// Reading a text whole, on the full screen.
#[derive(Debug)]
pub(crate) struct Pager {
    /// The byte that the top row shows.
    at: usize,
    /// How much of it was on the screen, from its start and without a gap.
    seen: usize,
}

impl Pager {
    /// The rows of `text` as byte offsets.
    pub fn rows(text: &str, columns: usize) -> Vec<(usize, usize)> {
        let mut end = 0;
        rows(text, columns, Wrap::Exact)
            .map(|row| {
                let start = end;
                end += row.len();
                (start, end)
            })
            .collect()
    }

    /// Which row is on top of `height` ones.
    pub fn top(&self, rows: &[(usize, usize)], height: usize) -> usize {
        let at = rows.partition_point(|(start, _)| *start <= self.at);
        at.saturating_sub(1).min(rows.len().saturating_sub(height))
    }

    fn scroll(&mut self, text: &str, size: Size, key: &Key) {
        let height = size.page();
        let rows = Self::rows(text, size.inner());
        let top = self.top(&rows, height);
        let last = rows.len().saturating_sub(height);
        let to = match key {
            Key::Up => top.saturating_sub(1),
            Key::PageUp => top.saturating_sub(height),
            Key::Down => top + 1,
            Key::PageDown | Key::Enter | Key::Char(' ') => top + height,
            Key::Home => 0,
            Key::End => last,
            _ => return,
        };
        self.at = rows.get(to.min(last)).map_or(0, |(start, _)| *start);
    }

    /// It was drawn on a screen of that size.
    fn drawn(&mut self, text: &str, size: Size) {
        let height = size.page();
        let rows = Self::rows(text, size.inner());
        let top = self.top(&rows, height);
        let shown = rows.get(top..(top + height).min(rows.len()));
        if let Some([(start, _), ..]) = shown
            && *start <= self.seen
        {
            let end = shown.and_then(<[_]>::last).map_or(0, |(_, end)| *end);
            self.seen = self.seen.max(end);
        }
    }

    /// Whether all of it was on the screen.
    pub fn is_read(&self, text: &str) -> bool {
        self.seen >= text.len()
    }
}

/// The question that stands on the screen.
#[derive(Debug)]
pub(crate) struct Open {
    pub id: u64,
    pub form: Form,
    pub pager: Option<Pager>,
    /// What was typed before the operator could see it is thrown away; from here on keys count.
    pub armed: bool,
    /// Whether what is on the screen is this state. Nothing is agreed to that is not.
    fresh: bool,
    /// Whether the pager has shown all of it.
    read: bool,
}

impl Open {
    /// # Errors
    /// Where it cannot be asked.
    pub fn new(id: u64, question: Question) -> Result<Self, PromptFailure> {
        Ok(Self {
            id,
            form: Form::new(question)?,
            pager: None,
            armed: false,
            fresh: false,
            read: false,
        })
    }

    /// Whether the operator could read all that they agree to.
    pub fn is_read(&self, size: Size) -> bool {
        self.read || fits(self, size)
    }

    /// What is on the screen is no longer this.
    pub fn changed(&mut self) {
        self.fresh = false;
    }

    /// It is on the screen now.
    pub fn drawn(&mut self, size: Size) {
        self.fresh = true;
        if let (Some(pager), Some(whole)) = (&mut self.pager, self.form.whole())
            && !size.is_too_small()
        {
            pager.drawn(whole, size);
            self.read |= pager.is_read(whole);
        }
    }

    /// Takes keys that came in one piece. One that approves counts only where it comes alone: several at once are a paste, or were
    /// typed by nobody. A choice and a text take them in their order.
    pub fn on_keys(&mut self, keys: &[Key], size: Size) -> Option<Reply> {
        if !self.armed {
            // Whoever wants out does not have to wait until they may answer.
            let wants_out = keys.contains(&Key::Interrupt);
            return wants_out.then_some(Reply::Failed(PromptFailure::Interrupted));
        }
        if self.pager.is_some() {
            return self.paging(keys, size);
        }
        if let Some(failure) = keys.iter().find_map(ending) {
            return Some(Reply::Failed(failure));
        }
        // What cannot be seen cannot be agreed to.
        let seen = self.fresh && !size.is_too_small();
        // One that agrees is never taken from among several.
        let agreeable = seen && self.is_read(size);
        let lone = lone(keys, is_no);
        match &mut self.form {
            Form::Approve { .. } => match lone? {
                Key::Enter | Key::Char('n' | 'N') => {
                    Some(Reply::Approve(Approval::Denied { reason: None }))
                }
                Key::Char('y' | 'Y') if agreeable => Some(Reply::Approve(Approval::Once)),
                Key::Char('s' | 'S') if agreeable => Some(Reply::Approve(Approval::Session)),
                Key::Char('v' | 'V') => self.page(),
                _ => None,
            },
            Form::Confirm { .. } => match lone? {
                Key::Enter | Key::Char('n' | 'N') => Some(Reply::Confirm(false)),
                Key::Char('y' | 'Y') if agreeable => Some(Reply::Confirm(true)),
                Key::Char('v' | 'V') => self.page(),
                _ => None,
            },
            Form::Select {
                options, chosen, ..
            } => {
                if let [Key::Char('v' | 'V')] = keys {
                    return self.page();
                }
                let before = *chosen;
                for key in keys {
                    if *key == Key::Enter {
                        match chosen.checked_sub(1) {
                            None => return Some(Reply::Select(None)),
                            Some(index) if seen => return Some(Reply::Select(Some(index))),
                            Some(_) => return None,
                        }
                    }
                    *chosen = after(*chosen, options.len(), key);
                }
                if *chosen != before {
                    self.changed();
                }
                None
            }
            Form::Input {
                default,
                editor,
                top,
                ..
            } => {
                for key in keys {
                    match key {
                        Key::Enter if editor.text().is_empty() && default.is_none() => {
                            return Some(Reply::Input(None));
                        }
                        Key::Enter if seen => {
                            let text = editor.take();
                            let text = if text.is_empty() {
                                default.take()
                            } else {
                                Some(text)
                            };
                            return Some(Reply::Input(text));
                        }
                        Key::Up => *top = top.saturating_sub(1),
                        Key::Down => *top = (*top + 1).min(MAX_TEXT),
                        key => edit(editor, key),
                    }
                }
                self.changed();
                None
            }
        }
    }

    fn page(&mut self) -> Option<Reply> {
        self.pager = Some(Pager { at: 0, seen: 0 });
        self.changed();
        None
    }

    fn paging(&mut self, keys: &[Key], size: Size) -> Option<Reply> {
        let lone = match keys {
            [key] => Some(key),
            keys => keys
                .iter()
                .find(|key| ending(key).is_some() || matches!(key, Key::Char('n' | 'N'))),
        };
        match lone? {
            Key::Escape | Key::Char('q' | 'Q' | 'v' | 'V') => {
                self.pager = None;
                self.changed();
                None
            }
            Key::Char('n' | 'N') => Some(match self.form {
                Form::Approve { .. } => Reply::Approve(Approval::Denied { reason: None }),
                Form::Confirm { .. } => Reply::Confirm(false),
                Form::Select { .. } => Reply::Select(None),
                Form::Input { .. } => Reply::Input(None),
            }),
            key => {
                if let Some(failure) = ending(key) {
                    return Some(Reply::Failed(failure));
                }
                // Keys that were held down while the page before stood do not turn this one.
                if self.fresh
                    && let (Some(pager), Some(whole)) = (&mut self.pager, self.form.whole())
                {
                    pager.scroll(whole, size, key);
                    self.changed();
                }
                None
            }
        }
    }
}

/// The failure that a key is at every question.
fn ending(key: &Key) -> Option<PromptFailure> {
    key.ending().map(|ending| match ending {
        Ending::Escaped => PromptFailure::Dismissed,
        Ending::Interrupted => PromptFailure::Interrupted,
        Ending::Ended => PromptFailure::EndOfInput,
    })
}

fn edit(editor: &mut Editor, key: &Key) {
    match key {
        Key::Char(c) => editor.type_char(*c),
        Key::Paste(text) => editor.paste(text),
        Key::Erase => editor.erase(),
        Key::Delete => editor.delete(),
        Key::EraseWord => editor.erase_word(),
        Key::EraseLine => editor.erase_line(),
        Key::Left => editor.left(),
        Key::Right => editor.right(),
        Key::Home => editor.home(),
        Key::End => editor.end(),
        _ => {}
    }
}
