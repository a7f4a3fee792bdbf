//! How a question stands on the screen.

use crate::{
    question::{Form, Open},
    wrap::{Wrap, rows, width},
};

/// Stands before each row of a text that is not ours, so that none of it can pass for a row of ours.
pub(crate) const MARGIN: &str = "│ ";
/// On less nothing can be agreed to.
const SMALLEST: (usize, usize) = (20, 6);
/// From here on there is room for whole sentences.
const WIDE: usize = 60;

/// The size of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    columns: u16,
    rows: u16,
}

impl Size {
    pub fn new(columns: u16, rows: u16) -> Self {
        Self { columns, rows }
    }

    pub fn columns(self) -> usize {
        self.columns.into()
    }

    pub fn rows(self) -> usize {
        self.rows.into()
    }

    /// Columns of a text behind the margin.
    pub fn inner(self) -> usize {
        self.columns().saturating_sub(width(MARGIN)).max(1)
    }

    /// Rows of a page of the pager, between its title and its keys.
    pub fn page(self) -> usize {
        self.rows().saturating_sub(2).max(1)
    }

    pub fn is_too_small(self) -> bool {
        self.columns() < SMALLEST.0 || self.rows() < SMALLEST.1
    }

    pub fn is_wide(self) -> bool {
        self.columns() >= WIDE
    }
}

/// A row of a question.
#[derive(Debug)]
pub(crate) struct BodyRow {
    /// Whether the margin stands before it.
    pub theirs: bool,
    pub text: String,
    pub chosen: bool,
}

/// A question, laid out.
#[derive(Debug)]
pub(crate) struct Panel {
    pub body: Vec<BodyRow>,
    pub input: bool,
    pub keys: Vec<String>,
    /// Whether all of the body is there.
    pub complete: bool,
}

impl Panel {
    /// With the line above it.
    pub fn height(&self) -> usize {
        1 + self.body.len() + usize::from(self.input) + self.keys.len()
    }
}

/// Rows that the question takes, at most all but the status line.
pub(crate) fn panel_height(open: &Open, size: Size) -> usize {
    panel(open, size)
        .height()
        .min(size.rows().saturating_sub(1))
}

/// Whether all that is agreed to is on the screen at once.
pub(crate) fn fits(open: &Open, size: Size) -> bool {
    let whole = match &open.form {
        Form::Approve { mark, .. } => mark.is_none(),
        Form::Confirm { .. } | Form::Select { .. } | Form::Input { .. } => true,
    };
    whole && !size.is_too_small() && laid_out(open, size, keys(open, size, true)).complete
}

/// Lays the question out.
pub(crate) fn panel(open: &Open, size: Size) -> Panel {
    let read = open.is_read(size);
    laid_out(open, size, keys(open, size, read))
}

fn laid_out(open: &Open, size: Size, keys: Vec<String>) -> Panel {
    let input = matches!(open.form, Form::Input { .. });
    let room = size
        .rows()
        .saturating_sub(2 + usize::from(input) + keys.len());
    let mut body = body(open, size);
    let complete = body.len() <= room;
    if !complete {
        let skip = match &open.form {
            Form::Approve { .. } | Form::Confirm { .. } => 0,
            // What Enter would take is always to be seen.
            Form::Select { .. } => body
                .iter()
                .rposition(|row| row.chosen)
                .map_or(0, |last| (last + 1).saturating_sub(room)),
            Form::Input { top, .. } => (*top).min(body.len() - room),
        };
        body.drain(..skip);
        body.truncate(room);
    }
    Panel {
        body,
        input,
        keys,
        complete,
    }
}

fn ours(out: &mut Vec<BodyRow>, text: &str, size: Size) {
    out.extend(rows(text, size.columns(), Wrap::Words).map(|row| BodyRow {
        theirs: false,
        text: row.to_owned(),
        chosen: false,
    }));
}

fn theirs(out: &mut Vec<BodyRow>, text: &str, size: Size, wrap: Wrap, chosen: bool) {
    out.extend(rows(text, size.inner(), wrap).map(|row| BodyRow {
        theirs: true,
        text: row.to_owned(),
        chosen,
    }));
}

fn body(open: &Open, size: Size) -> Vec<BodyRow> {
    let mut out = Vec::new();
    let asked = |out: &mut Vec<BodyRow>, question: &str| {
        ours(out, "The agent asks:", size);
        theirs(out, question, size, Wrap::Words, false);
    };
    match &open.form {
        Form::Approve {
            title, line, mark, ..
        } => {
            theirs(&mut out, title, size, Wrap::Words, false);
            theirs(&mut out, line, size, Wrap::Exact, false);
            if let Some(mark) = mark {
                ours(&mut out, mark, size);
            }
        }
        Form::Confirm {
            question,
            suggestion,
        } => {
            asked(&mut out, question);
            match suggestion {
                Some(true) => ours(&mut out, "It suggests: yes", size),
                Some(false) => ours(&mut out, "It suggests: no", size),
                None => {}
            }
        }
        Form::Select {
            question,
            options,
            suggestion,
            chosen,
        } => {
            asked(&mut out, question);
            if let Some(suggestion) = suggestion {
                ours(&mut out, "It suggests:", size);
                theirs(&mut out, suggestion, size, Wrap::Words, false);
            }
            ours(&mut out, "Options:", size);
            for (number, option) in (1..).zip(options) {
                let is_chosen = number == *chosen;
                let marker = if is_chosen { '>' } else { ' ' };
                let text = format!("{marker}{number:2}  {option}");
                theirs(&mut out, &text, size, Wrap::Exact, is_chosen);
            }
        }
        Form::Input {
            question, default, ..
        } => {
            asked(&mut out, question);
            if let Some(default) = default {
                ours(&mut out, "It suggests:", size);
                theirs(&mut out, default, size, Wrap::Words, false);
            }
        }
    }
    out
}

/// What the keys do. Where there is no room for sentences, the help has them.
fn keys(open: &Open, size: Size, read: bool) -> Vec<String> {
    // Until then they do nothing.
    if !open.armed {
        return vec![String::new()];
    }
    let text = match (&open.form, size.is_wide()) {
        (Form::Approve { .. }, true) if read => {
            "y: run it once. s: run it, and this command again until the run ends. v: page the whole command line. \
             n, Enter, Escape, Ctrl-C and Ctrl-D: deny it. Other keys do nothing."
        }
        (Form::Approve { .. }, true) => {
            "It is longer than what is shown here: y (once) and s (for the session) count once v has shown all of it. \
             n, Enter, Escape, Ctrl-C and Ctrl-D: deny it. Other keys do nothing."
        }
        (Form::Approve { .. }, false) if read => {
            "y once, s session, v whole. n Enter Esc ^C ^D deny"
        }
        (Form::Approve { .. }, false) => "Read all: v. Then y, s. n Enter Esc ^C ^D deny",
        (Form::Confirm { .. }, true) if read => {
            "y: yes. n, Enter, Escape, Ctrl-C and Ctrl-D: no. v: page the whole question. Other keys do nothing."
        }
        (Form::Confirm { .. }, true) => {
            "y counts once v has shown the whole question. n, Enter, Escape, Ctrl-C and Ctrl-D: no. Other keys do nothing."
        }
        (Form::Confirm { .. }, false) if read => "y yes, v whole. n Enter Esc ^C ^D no",
        (Form::Confirm { .. }, false) => "Read all: v. Then y. n Enter Esc ^C ^D no",
        (Form::Select { .. }, true) => {
            "Type a number, or move with the arrows, and press Enter. v: page the whole question. \
             Enter with no number, Escape, Ctrl-C and Ctrl-D: none of them. Other keys do nothing."
        }
        (Form::Select { .. }, false) => "Number or arrows, Enter. Esc ^C ^D none",
        (Form::Input { default: None, .. }, true) => {
            "Enter: send it. Enter alone, Escape, Ctrl-C and Ctrl-D: no value. Up and Down: read the question."
        }
        (Form::Input { .. }, true) => {
            "Enter: send it; alone it takes the suggestion. Escape, Ctrl-C and Ctrl-D: no value. Up and Down: read the question."
        }
        (Form::Input { .. }, false) => "Enter send. Esc ^C ^D no value",
    };
    rows(text, size.columns(), Wrap::Words)
        .map(str::to_owned)
        .collect()
}
