//! Long text for a person at a terminal.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::output;

/// Prints text; where it does not fit the screen, through `$PAGER` (`less` unless set). `text` has to be safe.
pub fn show(text: &str) -> Result<(), Failure> {
    let fits = |(_, rows): (usize, usize)| text.lines().count() < rows;
    match output::screen() {
        None => output::data(text),
        Some(screen) if fits(screen) => output::data(text),
        Some(_) => through(text),
    }
}

/// Shows text through the pager, whatever its length; printed where there is none.
pub fn through(text: &str) -> Result<(), Failure> {
    let pager = match std::env::var("PAGER") {
        Ok(pager) if !pager.trim().is_empty() => pager,
        Ok(_) | Err(_) if is_there("less") => "less".to_owned(),
        Ok(_) | Err(_) => return output::data(text),
    };
    let mut command = shell(&pager);
    if std::env::var_os("LESS").is_none() {
        // Colours pass, and the screen is left as it is afterwards.
        command.env("LESS", "RX");
    }
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else {
        return output::data(text);
    };
    if let Some(mut input) = child.stdin.take() {
        // A person who has seen enough leaves before the end.
        let _ = input.write_all(text.as_bytes());
    }
    match child.wait()?.code() {
        // The shell's words for a program that is not there.
        Some(126 | 127) => output::data(text),
        Some(_) | None => Ok(()),
    }
}

/// Whether the search path has such a program.
fn is_there(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

/// A command that a person set, which may have arguments, and room for more.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{line} \"$@\"")).arg("sh");
    command
}
