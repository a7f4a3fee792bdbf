//! Names, paths and texts of the block.

use super::TEXT;

const FORBIDDEN: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

pub(super) fn bounded(text: &str) -> Result<(), String> {
    if text.len() > TEXT {
        return Err(format!(
            "has {} bytes; at most {TEXT} are allowed",
            text.len()
        ));
    }
    Ok(())
}

pub(super) fn gate_name(name: &str) -> Result<(), String> {
    let allowed =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
    if name.is_empty() || name.len() > 64 || !name.bytes().all(allowed) {
        return Err(format!(
            "is {}; 1 to 64 of a-z 0-9 - _ . are allowed",
            shown(name)
        ));
    }
    if name == super::super::EXEC_DEFAULT || name == "system" {
        return Err(format!(
            "is {name}, which Fuse uses itself; take another name"
        ));
    }
    Ok(())
}

/// A program as a gate names it.
pub(super) fn program(name: &str) -> Result<(), String> {
    if is_program(name) {
        return Ok(());
    }
    Err(format!(
        "is {}; the plain basename of a program is allowed, without a slash, blanks or globs",
        shown(name)
    ))
}

pub(super) fn allow_entry(entry: &str) -> Result<(), String> {
    let valid = match entry.strip_prefix('/') {
        Some(_) => clean_path(entry) && entry.rsplit('/').next().is_some_and(is_program),
        None => is_program(entry),
    };
    if valid
        && !entry.contains('=')
        && (entry == "[" || entry == "/usr/bin/[" || !entry.contains(FORBIDDEN))
    {
        return Ok(());
    }
    Err(format!(
        "is {}; a program's basename or its absolute path is allowed, without arguments or globs",
        shown(entry)
    ))
}

fn is_program(name: &str) -> bool {
    let plain = name == "[" || !name.contains(FORBIDDEN);
    plain
        && !matches!(name, "" | "." | "..")
        && name.len() <= 255
        && !name.contains(|c: char| c == '/' || c == '=' || c.is_whitespace() || c.is_control())
}

pub(super) fn variable_name(name: &str) -> Result<(), String> {
    let first = name.bytes().next();
    if name.len() <= 255
        && first.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    {
        return Ok(());
    }
    Err(format!(
        "is {}; a variable name of letters, digits and _ that starts with no digit is allowed",
        shown(name)
    ))
}

/// A place for a secret file.
pub(super) fn guest_file(path: &str) -> Result<(), String> {
    if !clean_path(path) {
        return Err(format!(
            "is {}; an absolute path is allowed, without . or .. or empty parts",
            shown(path)
        ));
    }
    if path == "/fuse" || path.starts_with("/fuse/") {
        return Err(format!(
            "is {}, where Fuse keeps its own credentials; a path outside /fuse is allowed",
            shown(path)
        ));
    }
    Ok(())
}

fn clean_path(path: &str) -> bool {
    path.len() <= 4096
        && !path.contains(char::is_control)
        && path.strip_prefix('/').is_some_and(|rest| {
            rest.split('/')
                .all(|part| !matches!(part, "" | "." | "..") && part.len() <= 255)
        })
}

/// A text as it may be repeated in a message.
pub(super) fn shown(text: &str) -> String {
    if text.is_empty() {
        return "empty".to_owned();
    }
    let cut: String = text.chars().take(80).collect();
    let more = if cut.len() < text.len() { " (cut)" } else { "" };
    format!("{cut:?}{more}")
}
