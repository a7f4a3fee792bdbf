//! Where things are printed: the answer and data go to standard output, everything else to standard error.

use std::io::{self, IsTerminal as _, Write as _};

use comfy_table::{ContentArrangement, Table, presets::NOTHING};
use fuse_terminal::{is_dangerous, strip_lines};
use serde_json::Value;

use crate::failure::Failure;

/// Prints text as it is.
///
/// # Errors
/// Standard output fails.
pub fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints what a model or a command wrote: raw into a pipe or a file, stripped onto a terminal. It ends with a line feed.
///
/// # Errors
/// Standard output fails.
pub fn foreign(text: &str) -> Result<(), Failure> {
    let mut text = match io::stdout().is_terminal() {
        true => strip_lines(text),
        false => text.to_owned(),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    data(&text)
}

/// Prints JSON; what a terminal would obey or not show is written as an escape.
///
/// # Errors
/// Standard output fails.
pub fn json(value: &Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        match c {
            '\n' => safe.push(c),
            c if is_dangerous(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    safe.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => safe.push(c),
        }
    }
    safe.push('\n');
    data(&safe)
}

/// Tells the operator something. Where that fails there is nobody to tell.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Rows under headings. Whatever comes in is safe already.
pub fn table(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headings.iter().copied())
        .add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = String::new();
    for line in table.to_string().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Whether a full screen can be drawn, and nothing of it would end in a pipe.
pub fn all_terminals() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}
