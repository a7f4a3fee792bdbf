//! `fuse environment exec`.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use fuse_api::exec::ExecResult;
use fuse_api::intervention::Intervention;
use fuse_client::{Client, Error, Waiting};
use fuse_terminal::{strip, strip_lines};

use crate::args::{Face, duration};
use crate::failure::{Done, Failure};
use crate::output::{self, note};
use crate::progress::Progress;
use crate::time::relative;

/// What shells answer for a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

#[derive(Args)]
pub struct ExecArgs {
    /// The environment's id.
    id: String,
    /// How long the command may run: 60s unless set, 600s at most. The wait for a person is not counted.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// The command is one line for `sh -c`.
    #[arg(long)]
    shell: bool,
    /// Do not wait for a person: print the intervention's id and exit with 1. The command still runs once it is approved.
    #[arg(long)]
    no_wait: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

pub async fn exec(client: &Client, args: ExecArgs, face: &Face) -> Done {
    let environments = client.environments();
    let mut call = if args.shell {
        let [line] = args.command.as_slice() else {
            return Err(Failure::Usage(
                "--shell takes one argument after --: the whole command line".to_owned(),
            ));
        };
        environments.exec_shell(&args.id, line.as_str())
    } else {
        environments.exec(&args.id, args.command)
    };
    if let Some(timeout) = args.timeout {
        call = call.timeout(timeout);
    }
    if args.no_wait {
        call = call.no_wait();
    }
    let progress = Arc::new(Progress::start(format!("running in {}", strip(&args.id))));
    let waits_on = Arc::new(Mutex::new(None));
    let (teller, waits) = (Arc::clone(&progress), Arc::clone(&waits_on));
    let call = call.on_wait(move |waiting| {
        let id = match waiting {
            Waiting::Held(intervention) => {
                teller.say(&held(intervention));
                teller.turn_to(format!(
                    "waiting for a person, deadline {}",
                    relative(intervention.deadline)
                ));
                intervention.id.to_string()
            }
            Waiting::Locked {
                intervention_id,
                kind,
            } => {
                teller.say(&format!(
                    "locked by a {}: waiting on intervention {intervention_id}",
                    strip(kind)
                ));
                teller.turn_to("waiting for the lock to lift");
                String::new()
            }
        };
        *waits.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
    });
    let outcome = tokio::select! {
        outcome = call => outcome,
        _ = tokio::signal::ctrl_c() => {
            let waits = waits_on.lock().unwrap_or_else(PoisonError::into_inner).take();
            progress.say(&interrupted(waits.as_deref()));
            return Ok(INTERRUPTED);
        }
    };
    // The last word before the command's own output.
    drop(progress);
    finish(outcome, face)
}

fn finish(outcome: Result<ExecResult, Error>, face: &Face) -> Done {
    match outcome {
        Ok(result) => {
            show(&result, face)?;
            // What is no exit code here cannot have been a success.
            Ok(u8::try_from(result.exit_code).unwrap_or(u8::MAX))
        }
        Err(Error::PendingIntervention { intervention }) => {
            note(&held(&intervention));
            if face.is_json() {
                output::json(&intervention)?;
            } else {
                output::line(intervention.id.as_str())?;
            }
            Ok(1)
        }
        Err(error) => Err(error.into()),
    }
}

/// The line that others look for.
fn held(intervention: &Intervention) -> String {
    let gate = intervention.gate.as_deref().map(strip).unwrap_or_default();
    format!(
        "held by hitl gate {gate}: waiting on intervention {}",
        intervention.id
    )
}

fn interrupted(waits_on: Option<&str>) -> String {
    match waits_on {
        None => "interrupted; the command may go on in the environment".to_owned(),
        Some("") => "interrupted before the command was run".to_owned(),
        Some(id) => format!(
            "interrupted; intervention {id} stays pending, and the command runs if it is approved (fuse hitl reject {id} --reason …)"
        ),
    }
}

fn show(result: &ExecResult, face: &Face) -> Result<(), Failure> {
    if face.is_json() {
        return output::json(result);
    }
    copy(
        &result.stdout,
        output::stdout_is_terminal(),
        &mut io::stdout().lock(),
    )?;
    copy(
        &result.stderr,
        output::stderr_is_terminal(),
        &mut io::stderr().lock(),
    )?;
    if result.truncated {
        note("output beyond 1 MiB was dropped");
    }
    if result.timed_out {
        note("the command was stopped at its timeout");
    }
    Ok(())
}

/// A terminal gets no escape sequence of the guest's; files and programs get every byte.
fn copy(text: &str, to_terminal: bool, out: &mut impl Write) -> Result<(), Failure> {
    let written = if to_terminal {
        out.write_all(strip_lines(text).as_bytes())
    } else {
        out.write_all(text.as_bytes())
    };
    match written.and_then(|()| out.flush()) {
        // The command ran: its exit code counts, whoever reads its output.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_escapes_and_a_file_gets_everything() {
        let text = "\u{1b}[31mred\u{1b}[0m\n\tand\u{7} more\n";
        let (mut terminal, mut file) = (Vec::new(), Vec::new());
        copy(text, true, &mut terminal).unwrap();
        copy(text, false, &mut file).unwrap();
        assert_eq!(String::from_utf8(terminal).unwrap(), "red\n\tand more\n");
        assert_eq!(String::from_utf8(file).unwrap(), text);
    }

    #[test]
    fn leaving_a_wait_says_what_becomes_of_it() {
        assert!(interrupted(Some("int_1")).contains("int_1 stays pending"));
        assert!(interrupted(None).contains("may go on"));
    }
}
