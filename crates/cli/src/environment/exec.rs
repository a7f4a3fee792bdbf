//! `fuse environment exec`.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use fuse_api::exec::ExecResult;
use fuse_client::{Client, Error};
use fuse_terminal::{strip, strip_lines};

use super::waiting::{Wait, pending};
use crate::args::{Face, duration};
use crate::failure::{Done, Failure};
use crate::output::{self, note};

/// What shells answer for a command that Ctrl-C ended.
pub(super) const INTERRUPTED: u8 = 130;

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
    let wait = Wait::start(format!("running in {}", strip(&args.id)));
    let call = call.on_wait(wait.teller());
    match wait.outlast(call, "the command").await {
        Some(outcome) => finish(outcome, face),
        None => Ok(INTERRUPTED),
    }
}

fn finish(outcome: Result<ExecResult, Error>, face: &Face) -> Done {
    match outcome {
        Ok(result) => {
            show(&result, face)?;
            // What is no exit code here cannot have been a success.
            Ok(u8::try_from(result.exit_code).unwrap_or(u8::MAX))
        }
        Err(Error::PendingIntervention { intervention }) => pending(&intervention, face),
        Err(error) => Err(error.into()),
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
}
