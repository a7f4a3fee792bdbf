//! Tables and labelled lines for people. Whatever comes in is safe already.

use comfy_table::{ContentArrangement, Table, presets::NOTHING};
use fuse_terminal::{ColourChoice, Style};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::failure::Failure;
use crate::output;

/// Prints rows under headings. The last column takes what room the terminal leaves and is cut there; without a terminal nothing is cut.
pub fn print(headings: &[&str], mut rows: Vec<Vec<String>>) -> Result<(), Failure> {
    if let Some((columns, _)) = output::screen()
        && let Some(last) = headings.len().checked_sub(1)
    {
        let widest = |n: usize| {
            rows.iter()
                .map(|row| row[n].width())
                .chain([headings[n].len()])
                .max()
                .unwrap_or(0)
        };
        let before: usize = (0..last).map(|n| widest(n) + 2).sum();
        let room = columns.saturating_sub(before + 1).max(16);
        for row in &mut rows {
            row[last] = fuse_terminal::cell(&row[last], room);
        }
    }
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().copied());
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = String::new();
    for line in table.to_string().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    output::data(&text)
}

const LABEL: usize = 13;

/// Labelled lines.
pub struct Sheet {
    text: String,
    /// Columns of the terminal it is for, so that a long value goes on under itself and cannot pass for a label.
    columns: Option<usize>,
}

impl Sheet {
    pub fn new(columns: Option<usize>) -> Self {
        Self {
            text: String::new(),
            columns,
        }
    }

    /// Adds a label and its value, which may have several lines.
    pub fn row(&mut self, label: &str, value: &str) {
        let lines: Vec<String> = value
            .split('\n')
            .flat_map(|line| self.wrapped(line))
            .collect();
        for (n, line) in lines.iter().enumerate() {
            let label = if n == 0 { label } else { "" };
            self.text
                .push_str(format!("{label:<LABEL$}{line}").trim_end());
            self.text.push('\n');
        }
    }

    /// Adds a label and a short value in a style.
    pub fn styled(&mut self, label: &str, value: &str, colour: ColourChoice, style: Style) {
        let painted = colour.paint(style, value);
        self.text.push_str(&format!("{label:<LABEL$}{painted}\n"));
    }

    fn wrapped(&self, line: &str) -> Vec<String> {
        let Some(room) = self
            .columns
            .map(|columns| columns.saturating_sub(LABEL).max(8))
        else {
            return vec![line.to_owned()];
        };
        let mut lines = vec![String::new()];
        let mut used = 0;
        for grapheme in line.graphemes(true) {
            let width = if grapheme == "\t" {
                8
            } else {
                grapheme.width()
            };
            if used + width > room {
                lines.push(String::new());
                used = 0;
            }
            used += width;
            if let Some(last) = lines.last_mut() {
                last.push_str(grapheme);
            }
        }
        lines
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_goes_on_under_itself() {
        let mut sheet = Sheet::new(Some(LABEL + 10));
        sheet.row("question", "0123456789state approved");
        sheet.row("kind", "ask");
        let text = sheet.into_text();
        assert!(
            text.lines().all(|line| !line.starts_with("state")),
            "{text}"
        );
        assert_eq!(text.lines().count(), 4);
    }
}
