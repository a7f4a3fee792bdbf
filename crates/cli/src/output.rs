//! Where things are printed. Data goes to standard output, everything else to standard error.

use std::io::{self, IsTerminal as _, Write as _};

use fuse_client::Error;
use fuse_terminal::{ColourChoice, Style, is_dangerous, strip};
use serde::Serialize;

use crate::failure::Failure;

/// Prints data as it is.
pub fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints a line of data.
pub fn line(text: &str) -> Result<(), Failure> {
    data(&format!("{text}\n"))
}

/// Prints a value as JSON, indented.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Failure::said(error.to_string()))?;
    line(&visible_json(&text))
}

/// Prints a value as JSON in a line of its own.
pub fn json_line(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::said(error.to_string()))?;
    line(&visible_json(&text))
}

/// Tells the person something. Where that fails there is nobody to tell.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The same JSON, with characters that a terminal would obey or not show written as escapes.
///
/// JSON has such characters in strings alone, but for the line feeds and blanks between tokens.
pub fn visible_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c >= ' ' && is_dangerous(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Colour for standard output.
pub fn colour() -> ColourChoice {
    ColourChoice::of_process(stdout_is_terminal())
}

/// Columns and rows of the terminal that standard output is; none where it is no terminal.
pub fn screen() -> Option<(usize, usize)> {
    let (columns, rows) = terminal_size::terminal_size_of(io::stdout())?;
    Some((usize::from(columns.0).max(20), usize::from(rows.0).max(5)))
}

/// Says on standard error why a command failed.
pub fn failure(failure: &Failure) {
    match failure {
        Failure::Usage(text) | Failure::Said(text) => error(text),
        Failure::Silent | Failure::Closed => {}
        Failure::Client(failed) => client(failed),
    }
}

/// `error: …` in one line.
pub fn error(text: &str) {
    let mark = ColourChoice::of_process(stderr_is_terminal())
        .paint(Style::Red, "error:")
        .into_owned();
    note(&format!("{mark} {}", strip(text)));
}

fn client(failed: &Error) {
    match failed {
        // The words that the agent's side of the contract names.
        Error::InterventionRejected { reason, .. } => note(&format!("rejected: {}", strip(reason))),
        Error::Api {
            message,
            details,
            request_id,
            ..
        } => {
            error(message);
            for (name, value) in details {
                note(&format!("  {}: {}", strip(name), strip(value)));
            }
            if let Some(id) = request_id {
                note(&format!("  request: {}", strip(id)));
            }
        }
        Error::Locked {
            intervention_id,
            kind,
            message,
        } => {
            error(message);
            note(&format!("  {}: {intervention_id}", strip(kind)));
        }
        Error::Transport { source, .. } => {
            let mut text = failed.to_string();
            let mut cause = std::error::Error::source(failed);
            while let Some(inner) = cause {
                text = format!("{text}: {inner}");
                cause = inner.source();
            }
            error(&text);
            if !source.is_connect() {
                note(
                    "  the server was reached: it is not known whether it did what it was asked to",
                );
            }
        }
        other => error(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_a_terminal_means_the_same_and_hides_nothing() {
        let value = serde_json::json!({"q": "a\u{202e}b\u{9b}31m\u{e0041}é\n"});
        let text = visible_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(
            text.contains("\\u202e") && text.contains("\\u009b") && text.contains("\\udb40\\udc41"),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}
