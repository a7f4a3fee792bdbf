//! Editing a held command in an editor.

use std::io::Write as _;

use fuse_api::intervention::Intervention;
use fuse_terminal::is_blank_lookalike;

use crate::failure::Failure;
use crate::output::visible_json;
use crate::pager::shell;

/// The lines before the argv. JSON has no comments, so they are taken off before it is read.
const HEAD: &str = "\
# What will run, as a JSON list: the program, then one argument per line.
# Save and leave the editor to go on. An empty file calls it off.
";

/// What the person makes of the held argv; none where it stays as it is.
pub fn argv(held: &Intervention) -> Result<Option<Vec<String>>, Failure> {
    let Some(exec) = &held.payload.exec else {
        return Err(Failure::said(format!(
            "{} is a {}: only a held command can be edited",
            held.id, held.kind
        )));
    };
    let before = match (&exec.argv, &exec.shell) {
        (Some(argv), _) => argv.clone(),
        (None, Some(line)) => vec!["sh".to_owned(), "-c".to_owned(), line.clone()],
        (None, None) => Vec::new(),
    };
    let after = read(&open(&written(&before)?)?)?;
    Ok(if after == before { None } else { Some(after) })
}

/// Opens a file of the person's own with this text in the editor, and returns what it holds afterwards.
fn open(text: &str) -> Result<String, Failure> {
    let mut file = tempfile::Builder::new()
        .prefix("fuse-argv-")
        .suffix(".json")
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|editor| !editor.trim().is_empty())
        .unwrap_or_else(|| "vi".to_owned());
    let status = shell(&editor)
        .arg(file.path())
        .status()
        .map_err(|error| Failure::said(format!("the editor cannot be started: {error}")))?;
    if !status.success() {
        return Err(Failure::said(format!(
            "the editor failed ({status}); nothing was approved"
        )));
    }
    // By its name: an editor may have put a new file in its place.
    std::fs::read_to_string(file.path())
        .map_err(|error| Failure::said(format!("what was edited cannot be read: {error}")))
}

/// One argument per line, and nothing in it that cannot be seen.
fn written(argv: &[String]) -> Result<String, Failure> {
    let json =
        serde_json::to_string_pretty(argv).map_err(|error| Failure::said(error.to_string()))?;
    let mut out = HEAD.to_owned();
    for c in visible_json(&json).chars() {
        if is_blank_lookalike(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out.push('\n');
    Ok(out)
}

fn read(text: &str) -> Result<Vec<String>, Failure> {
    let skipped = text
        .lines()
        .take_while(|line| line.trim_start().starts_with('#') || line.trim().is_empty())
        .count();
    let json: String = text
        .lines()
        .skip(skipped)
        .map(|line| format!("{line}\n"))
        .collect();
    if json.trim().is_empty() {
        return Err(Failure::said("called off; nothing was approved"));
    }
    let argv: Vec<String> = serde_json::from_str(&json).map_err(|error| {
        Failure::said(format!(
            "line {}: not a JSON list of texts, nothing was approved: {error}",
            skipped + error.line()
        ))
    })?;
    match argv.first() {
        Some(program) if !program.is_empty() => Ok(argv),
        Some(_) | None => Err(Failure::said(
            "there is no program to run; nothing was approved",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(argv: &[&str]) -> Vec<String> {
        argv.iter().map(|&a| a.to_owned()).collect()
    }

    // check: CLI-10
    #[test]
    fn every_argv_survives_the_editor_untouched() {
        for argv in [
            &["git", "push", "--force"][..],
            &["sh", "-c", "a\nb\tc \"d\" 'e' \\"],
            &[
                "#",
                "# not a comment",
                "",
                "\u{202e}\u{a0}\u{2003}\u{e0041}\u{7f}",
            ],
        ] {
            let argv = strings(argv);
            let text = written(&argv).unwrap();
            assert!(text.chars().all(|c| c == '\n' || !fuse_terminal::is_dangerous(c) && !is_blank_lookalike(c)), "{text}");
            assert_eq!(read(&text).unwrap(), argv);
        }
    }

    #[test]
    fn an_emptied_or_broken_file_approves_nothing() {
        for text in [
            "",
            "# only a comment\n",
            "[]",
            "[\"\"]",
            "git push",
            "[1]",
            "{\"a\":1}",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
