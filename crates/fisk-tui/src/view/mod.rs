//! The state as it is drawn.

mod help;
pub(crate) mod panel;

use std::time::Duration;

use fuse_terminal::{cell, is_dangerous};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};
use unicode_segmentation::UnicodeSegmentation;

use crate::{
    app::{Activity, App},
    question::{Form, Open, Pager},
    scroll::Scroll,
    transcript::Look,
    view::panel::{MARGIN, Size, panel},
    wrap::{grapheme_width, width},
};

/// Draws the whole state on `area`. A state whose [size](App::on_resize) is another one is cut, and nothing is agreed to then.
pub fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    let mut paint = Paint {
        area: area.intersection(buffer.area),
        buffer,
        colour: app.colour,
    };
    if app.size.is_too_small() && (app.open.is_some() || app.help) {
        paint.put(0, 0, "too small; Esc: no", Look::Warning);
        return;
    }
    if app.help {
        help::draw(app, &mut paint);
        return;
    }
    if let Some(open) = &app.open
        && let (Some(pager), Some(whole)) = (&open.pager, open.form.whole())
    {
        draw_pager(pager, whole, app.size, &mut paint);
        return;
    }
    let window = app.window();
    for (y, row) in window.visible(app.scroll).iter().enumerate() {
        let x = width(row.gutter);
        paint.put(0, y, row.gutter, Look::Dim);
        paint.put(x, y, &row.text, row.look);
    }
    if let Some(open) = &app.open {
        draw_panel(open, app.size, window.height, &mut paint);
    }
    draw_status(app, &mut paint);
}

struct Paint<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    colour: bool,
}

impl Paint<'_> {
    fn style(&self, look: Look) -> Style {
        let colour = |style: Style, colour| {
            if self.colour { style.fg(colour) } else { style }
        };
        let plain = Style::new();
        match look {
            Look::Plain => plain,
            Look::Dim => plain.add_modifier(Modifier::DIM),
            Look::Command => plain.add_modifier(Modifier::BOLD),
            Look::Good => colour(plain, Color::Green),
            Look::Bad => colour(plain, Color::Red),
            Look::Warning => colour(plain.add_modifier(Modifier::BOLD), Color::Yellow),
            Look::Selected => plain.add_modifier(Modifier::BOLD | Modifier::REVERSED),
        }
    }

    fn put(&mut self, x: usize, y: usize, text: &str, look: Look) -> usize {
        let style = self.style(look);
        self.put_styled(x, y, text, style)
    }

    /// Writes safe text into one row, and gives the column behind it. Each cell is checked once more: whatever went wrong before,
    /// nothing that drives the terminal reaches it.
    fn put_styled(&mut self, x: usize, y: usize, text: &str, style: Style) -> usize {
        let (right, bottom) = (usize::from(self.area.width), usize::from(self.area.height));
        let mut x = x;
        if y >= bottom {
            return x;
        }
        for grapheme in text.graphemes(true) {
            let (symbol, columns) = if grapheme.chars().any(is_dangerous) {
                ("\u{fffd}", 1)
            } else {
                (grapheme, grapheme_width(grapheme))
            };
            if columns == 0 {
                continue;
            }
            if x + columns > right {
                break;
            }
            for (n, column) in (x..x + columns).enumerate() {
                let (Ok(column), Ok(row)) = (u16::try_from(column), u16::try_from(y)) else {
                    return x;
                };
                let at = (self.area.x + column, self.area.y + row);
                if let Some(cell) = self.buffer.cell_mut(at) {
                    cell.reset();
                    if n == 0 {
                        cell.set_symbol(symbol);
                    }
                    cell.set_style(style);
                }
            }
            x += columns;
        }
        x
    }

    fn bar(&mut self, y: usize, text: &str, style: Style) {
        let columns = usize::from(self.area.width);
        let text = cell(text, columns);
        let blanks = columns.saturating_sub(width(&text));
        self.put_styled(0, y, &format!("{text}{}", " ".repeat(blanks)), style);
    }
}

fn draw_panel(open: &Open, size: Size, top: usize, paint: &mut Paint<'_>) {
    let panel = panel(open, size);
    let title = match &open.form {
        Form::Approve { .. } => "APPROVAL",
        Form::Confirm { .. } | Form::Select { .. } | Form::Input { .. } => "QUESTION",
    };
    let more = if panel.complete {
        ""
    } else if open.form.whole().is_some() {
        " (there is more: v)"
    } else {
        " (there is more: Up, Down)"
    };
    let style = paint.style(Look::Warning).add_modifier(Modifier::REVERSED);
    paint.bar(top, &format!(" {title}{more}"), style);
    let mut y = top + 1;
    for row in &panel.body {
        let look = if row.chosen {
            Look::Selected
        } else if row.theirs {
            Look::Command
        } else {
            Look::Plain
        };
        let x = if row.theirs {
            paint.put(0, y, MARGIN, Look::Warning)
        } else {
            0
        };
        paint.put(x, y, &row.text, look);
        y += 1;
    }
    if let Form::Input { editor, .. } = &open.form {
        draw_input(editor.before(), editor.after(), size, y, paint);
        y += 1;
    }
    for row in &panel.keys {
        paint.put(0, y, row, Look::Warning);
        y += 1;
    }
}

/// The text that is typed, moved so that its cursor can be seen.
fn draw_input(before: &str, after: &str, size: Size, y: usize, paint: &mut Paint<'_>) {
    let room = size.columns().saturating_sub(5);
    let mut used = 0;
    let from = before
        .grapheme_indices(true)
        .rev()
        .take_while(|(_, grapheme)| {
            used += grapheme_width(grapheme);
            used <= room
        })
        .last()
        .map_or(before.len(), |(at, _)| at);
    let x = paint.put(0, y, "> ", Look::Warning);
    let x = paint.put(x, y, &before[from..], Look::Plain);
    let mut graphemes = after.graphemes(true);
    let under = graphemes.next().unwrap_or(" ");
    let x = paint.put(x, y, under, Look::Selected);
    paint.put(x, y, graphemes.as_str(), Look::Plain);
}

fn draw_pager(pager: &Pager, text: &str, size: Size, paint: &mut Paint<'_>) {
    let rows = Pager::rows(text, size.inner());
    let height = size.page();
    let top = pager.top(&rows, height);
    let end = (top + height).min(rows.len());
    let title = format!(" THE WHOLE: rows {}-{end} of {}", top + 1, rows.len());
    let style = paint.style(Look::Warning).add_modifier(Modifier::REVERSED);
    paint.bar(0, &title, style);
    for (y, (from, to)) in (1..).zip(&rows[top..end]) {
        let x = paint.put(0, y, MARGIN, Look::Warning);
        paint.put(x, y, &text[*from..*to], Look::Command);
    }
    let keys = match (end == rows.len(), size.is_wide()) {
        (false, true) => "Space, PageDown, arrows: more. v, q, Escape: back. n, Ctrl-C: no.",
        (true, true) => "The end. v, q, Escape: back. n, Ctrl-C: no.",
        (false, false) => "Space more, q back",
        (true, false) => "The end. q back",
    };
    paint.put(0, size.rows().saturating_sub(1), keys, Look::Warning);
}

fn draw_status(app: &App, paint: &mut Paint<'_>) {
    let activity = if app.open.is_some() {
        "WAITING FOR YOU"
    } else {
        match app.activity {
            Activity::Starting => "starting",
            Activity::Working => "working",
            Activity::Retrying => "retrying",
            Activity::Answered => "done",
            Activity::Failed => "failed",
            Activity::Suspended => "suspended",
        }
    };
    let mut parts = vec![activity.to_owned()];
    if app.scroll != Scroll::Follow {
        parts.push("more below (End)".to_owned());
    }
    if app.turn > 0 {
        parts.push(format!("turn {}", app.turn));
    }
    if let Some(tokens) = app.tokens {
        parts.push(format!(
            "{}/{} tokens",
            tokens.input.saturating_add(tokens.output),
            tokens.budget
        ));
    }
    parts.push(clock(app.elapsed));
    parts.push("? help".to_owned());
    if !app.title.is_empty() {
        parts.push(app.title.clone());
    }
    let style = if app.open.is_some() {
        paint.style(Look::Warning).add_modifier(Modifier::REVERSED)
    } else {
        Style::new().add_modifier(Modifier::REVERSED)
    };
    let y = app.size.rows().saturating_sub(1);
    paint.bar(y, &format!(" {}", parts.join(" · ")), style);
}

fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}
