//! The help.

use ratatui::style::Modifier;

use super::Paint;
use crate::{
    app::App,
    transcript::Look,
    wrap::{Wrap, rows},
};

const HELP: &[&str] = &[
    "At a question",
    "y: yes, once.  s: yes, for this command until the run ends.  v: read the whole.",
    "n, Enter, Escape, Ctrl-C, Ctrl-D: no. A terminal that is closed says no as well. Other keys do nothing.",
    "Keys that come at once, or are pasted, agree to nothing. What was typed before the question was drawn is thrown away.",
    "PageUp, PageDown: the transcript.",
    "",
    "Otherwise",
    "Up, Down, PageUp, PageDown, Home, End: scroll. At the end it follows what comes.",
    "t: thinking.  Tab, Shift-Tab: select a tool call.  o: the output of the selected or the last one.",
    "Ctrl-C: ends the run after the running command; twice ends it at once.",
    "?: this help. Any of ?, q, Escape, Enter leaves it. There is no key that quits: Ctrl-C does.",
];

pub(super) fn draw(app: &App, paint: &mut Paint<'_>) {
    let style = paint.style(Look::Warning).add_modifier(Modifier::REVERSED);
    let title = if app.open.is_some() {
        " HELP (a question waits)"
    } else {
        " HELP"
    };
    paint.bar(0, title, style);
    let all = HELP
        .iter()
        .flat_map(|line| rows(line, app.size.columns(), Wrap::Words));
    for (y, row) in (1..).zip(all) {
        paint.put(0, y, row, Look::Plain);
    }
}
