//! The house rules, checked: `cargo xtask tidy`. Each finding is `FILE:LINE: what is wrong`.

mod circles;
mod documents;
mod file;
mod layers;
mod lexer;
mod rules;
mod sources;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use self::file::File;
use crate::workspace::{cargo_command, root};
use crate::{generated, proc};

/// Prints every finding; true when there is none. `built` is a `fuse` of this state of the tree, where there is one.
pub fn run(built: Option<&Path>) -> Result<bool> {
    let files = tree()?;
    let mut findings = Vec::new();
    let specification =
        fs::read_to_string(root().join("SPECIFICATION.md")).context("SPECIFICATION.md")?;
    findings.extend(rules::findings(&specification, &files));
    findings.extend(layers::findings(&metadata()?, &files));
    let architecture =
        fs::read_to_string(root().join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    findings.extend(layers::documented(&architecture));
    for file in &files {
        findings.extend(sources::findings(file));
    }
    findings.extend(circles::findings(&files));
    findings.extend(documents::findings(&files));
    findings.extend(generated::differences(built));
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    Ok(findings.is_empty())
}

/// Every file that is checked in or would be.
fn tree() -> Result<Vec<File>> {
    let mut command = std::process::Command::new("git");
    command
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root());
    let listed = proc::capture(&mut command)?;
    let mut files = Vec::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        // A file that was removed but not yet committed is still listed, and binary data has no lines to check.
        if let Ok(text) = fs::read_to_string(root().join(path)) {
            files.push(File {
                path: path.to_owned(),
                text,
            });
        }
    }
    Ok(files)
}

fn metadata() -> Result<serde_json::Value> {
    let text = proc::capture(&mut cargo_command(&[
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
        "--offline",
    ]))?;
    serde_json::from_str(&text).context("cargo metadata")
}
