//! `fisk session`.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use fisk_domain::session::{Finish, Record};
use fuse_terminal::{strip, strip_lines};
use serde_json::{Value, json};

use crate::{
    cli::{SessionCommand, SessionsArgs},
    config::{self, DEFAULT_FILE},
    failure::{Done, Failure, error, warning},
    output,
    session::{Entry, State, Store, Summary, Warning},
};

/// The most of a result that is shown.
const SHOWN: usize = 4_000;

/// Works on sessions.
///
/// # Errors
/// They cannot be found or read.
pub fn run(command: SessionCommand) -> Done {
    match command {
        SessionCommand::Ls(args) => list(&args),
        SessionCommand::Show { id, sessions } => show(&id, &sessions),
        SessionCommand::Rm { ids, config } => remove(&ids, config),
    }
}

/// Where they are: a configuration may say so, and none is needed.
fn store(config: Option<PathBuf>) -> Result<Store, Failure> {
    let file = match config {
        Some(file) => Some(file),
        None => Some(PathBuf::from(DEFAULT_FILE)).filter(|file| Path::exists(file)),
    };
    let dir = match file {
        Some(file) => {
            config::load(&file)
                .map_err(Failure::Config)?
                .harness
                .sessions_dir
        }
        None => None,
    };
    Store::locate(dir.as_deref()).map_err(Failure::Said)
}

fn list(args: &SessionsArgs) -> Done {
    let sessions = store(args.config.clone())?.list().map_err(Failure::Said)?;
    let now = SystemTime::now();
    if args.json {
        let list: Vec<Value> = sessions.iter().map(as_json).collect();
        output::json(&Value::Array(list))?;
        return Ok(0);
    }
    if sessions.is_empty() {
        output::note("no sessions: `fisk run --checkpoint` makes one");
        return Ok(0);
    }
    let rows = sessions
        .iter()
        .map(|session| {
            vec![
                session.name.clone(),
                session.state.word().to_owned(),
                session.turns.to_string(),
                ago(now, session.updated),
            ]
        })
        .collect();
    output::data(&output::table(&["ID", "STATE", "TURNS", "UPDATED"], rows))?;
    for session in &sessions {
        if let Some(trouble) = &session.trouble {
            warning(trouble);
        }
    }
    Ok(0)
}

fn as_json(session: &Summary) -> Value {
    let since = session.updated.duration_since(SystemTime::UNIX_EPOCH);
    json!({
        "id": session.name,
        "state": session.state.word(),
        "turns": session.turns,
        "updated": since.map_or(0, |since| since.as_secs()),
    })
}

/// How long ago, in the largest unit that fits.
fn ago(now: SystemTime, then: SystemTime) -> String {
    let passed = now.duration_since(then).unwrap_or(Duration::ZERO).as_secs();
    match passed {
        0..=59 => format!("{passed}s ago"),
        60..=3_599 => format!("{}m ago", passed / 60),
        3_600..=86_399 => format!("{}h ago", passed / 3_600),
        _ => format!("{}d ago", passed / 86_400),
    }
}

fn show(id: &str, args: &SessionsArgs) -> Done {
    let store = store(args.config.clone())?;
    let (recorded, state) = store.read(id).map_err(Failure::Said)?;
    if let Some(Warning(text)) = &recorded.warning {
        // The record that a run is writing right now looks torn, too.
        if state != State::Running {
            warning(&format!("session {id:?}: {text}"));
        }
    }
    if args.json {
        let entries = serde_json::to_value(&recorded.entries)
            .map_err(|error| Failure::said(error.to_string()))?;
        output::json(&json!({"id": id, "state": state.word(), "entries": entries}))?;
        return Ok(0);
    }
    let mut text = format!("session {id}, {}\n", state.word());
    for entry in &recorded.entries {
        text.push_str(&told(entry));
    }
    let spent = recorded.replay.spent();
    text.push_str(&format!(
        "\n{} turns, {} tokens read, {} written\n",
        spent.iterations, spent.tokens.input, spent.tokens.output
    ));
    output::data(&text)?;
    Ok(0)
}

/// A record for people. All of it is somebody else's text, so it is stripped wherever it goes.
fn told(entry: &Entry) -> String {
    let block = |head: &str, text: &str| format!("\n{head}\n{}\n", indented(text));
    match &entry.record {
        Record::Started {
            fingerprint,
            prompt,
            ..
        } => {
            let model = strip(&fingerprint.model);
            block(&format!("operator (model {model})"), prompt)
        }
        Record::Reply { content, .. } => content.iter().map(told_block).collect(),
        Record::ToolStarted { .. } => String::new(),
        Record::ToolResult {
            content, is_error, ..
        } => block(if *is_error { "error" } else { "result" }, content),
        Record::Suspended { why } => format!("\nsuspended: {}\n", strip(why)),
        Record::Resumed => "\nresumed\n".to_owned(),
        Record::Ended { finish } => match finish {
            Finish::Answered(_) => "\nanswered\n".to_owned(),
            Finish::Refused(_) => "\nrefused\n".to_owned(),
            Finish::Stopped { reason, .. } => format!("\nended: {}\n", strip(reason)),
        },
    }
}

fn told_block(block: &Value) -> String {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match block["type"].as_str() {
        Some("text") => format!("\nmodel\n{}\n", indented(text("text"))),
        Some("thinking") => format!("\nmodel, thinking\n{}\n", indented(text("thinking"))),
        Some("tool_use") => {
            let input = match block["malformed"].as_str() {
                Some(raw) => raw.to_owned(),
                None => block["input"].to_string(),
            };
            format!("\ncall of {}\n{}\n", strip(text("name")), indented(&input))
        }
        Some(_) | None => String::new(),
    }
}

/// Stripped, cut, and two blanks before each line, so that no line of it can pass for one of ours.
fn indented(text: &str) -> String {
    let text = strip_lines(text);
    let cut: String = text.chars().take(SHOWN).collect();
    let mark = if cut.len() < text.len() { "\n…" } else { "" };
    format!("{cut}{mark}")
        .lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn remove(ids: &[String], config: Option<PathBuf>) -> Done {
    let store = store(config)?;
    let mut code = 0;
    for id in ids {
        if let Err(why) = store.remove(id) {
            error(&why);
            code = 1;
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_largest_unit() {
        let now = SystemTime::now();
        for (seconds, text) in [
            (5, "5s ago"),
            (90, "1m ago"),
            (7_200, "2h ago"),
            (200_000, "2d ago"),
        ] {
            assert_eq!(ago(now, now - Duration::from_secs(seconds)), text);
        }
        assert_eq!(ago(now, now + Duration::from_secs(5)), "0s ago");
    }

    // check: FISK-67
    #[test]
    fn a_transcript_shows_no_control_of_others_and_none_of_their_lines_as_ours() {
        let entry = Entry {
            at: 0,
            record: Record::ToolResult {
                call: "1".into(),
                content: "a\u{1b}[31m\nsuspended: no\u{202e}\r\nanswered".into(),
                is_error: false,
            },
        };
        let text = told(&entry);
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{text:?}");
        assert!(
            text.lines().skip(2).all(|line| line.starts_with("  ")),
            "{text}"
        );
    }
}
