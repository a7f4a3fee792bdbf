//! Files that are checked in and must equal what the code prints.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::proc;
use crate::workspace::{cargo_command, root};

/// The checked-in file, and the subcommand of `fuse` that prints it.
const FILES: [(&str, &str); 2] = [
    ("openapi/fuse-v1.json", "openapi"),
    ("docs/fusefile.schema.json", "schema"),
];

/// The command that runs `fuse`: the one that is built already, or one built for it.
fn fuse(built: Option<&Path>) -> Command {
    match built {
        Some(built) => Command::new(built),
        None => cargo_command(&[
            "run",
            "--quiet",
            "--package",
            "fuse-cli",
            "--bin",
            "fuse",
            "--",
        ]),
    }
}

fn printed(subcommand: &str, built: Option<&Path>) -> Result<String> {
    let text =
        proc::capture(fuse(built).arg(subcommand)).with_context(|| format!("fuse {subcommand}"))?;
    ensure!(!text.trim().is_empty(), "fuse {subcommand} printed nothing");
    Ok(text)
}

/// Writes them anew.
pub fn write() -> Result<bool> {
    for (path, subcommand) in FILES {
        let text = printed(subcommand, None)?;
        let path = root().join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(true)
}

/// One message per file that differs from the code, as `built` prints it or a `fuse` that is built for it.
pub fn differences(built: Option<&Path>) -> Vec<String> {
    let mut found = Vec::new();
    for (path, subcommand) in FILES {
        let Ok(stored) = fs::read_to_string(root().join(path)) else {
            found.push(format!(
                "{path}:1: is missing; run `cargo xtask regenerate`"
            ));
            continue;
        };
        match printed(subcommand, built) {
            Err(error) => {
                let whole = format!("{error:#}");
                // The first complaint is enough: the build itself shows the rest.
                let why = whole
                    .lines()
                    .find(|line| line.contains("error"))
                    .unwrap_or(&whole);
                found.push(format!("{path}:1: the code cannot print it: {why}"));
            }
            Ok(text) if text == stored => {}
            Ok(text) => {
                let line = 1 + text
                    .lines()
                    .zip(stored.lines())
                    .take_while(|(a, b)| a == b)
                    .count();
                found.push(format!(
                    "{path}:{line}: differs from the code; run `cargo xtask regenerate`"
                ));
            }
        }
    }
    found
}
