//! A command that an agent asks for (spec: "Gates"): its form, and how long it may run.

use super::decide::check_argv;
use crate::refusal::Refusal;
use fuse_api::exec::ExecRequest;
use fuse_api::intervention::ExecPayload;
use std::time::Duration;

/// How long a command may run where the caller does not say.
const DEFAULT_TIMEOUT_MS: u64 = 60_000;
/// The longest a command may run.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// The command that is asked for, once its form is in order.
///
/// # Errors
/// Names the member that is wrong.
pub fn asked(body: ExecRequest) -> Result<ExecPayload, Refusal> {
    match (&body.cmd, &body.shell) {
        (Some(_), Some(_)) | (None, None) => {
            return Err(Refusal::invalid("cmd", "give exactly one of cmd and shell"));
        }
        (Some(argv), None) => check_argv("cmd", argv)?,
        (None, Some(line)) => {
            if line.trim().is_empty() {
                return Err(Refusal::invalid(
                    "shell",
                    "is blank; it needs a command line",
                ));
            }
            if line.contains('\0') {
                return Err(Refusal::invalid("shell", "holds a NUL character"));
            }
        }
    }
    Ok(ExecPayload {
        argv: body.cmd,
        shell: body.shell,
        // Nought asks for the default, and nothing runs beyond the ceiling. What is shown is what counts.
        timeout_ms: body
            .timeout_ms
            .filter(|ms| *ms > 0)
            .map(|ms| ms.min(MAX_TIMEOUT_MS)),
    })
}

/// How long a command may run.
#[must_use]
pub fn timeout(exec: &ExecPayload) -> Duration {
    Duration::from_millis(exec.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(timeout_ms: Option<u64>) -> Option<u64> {
        let body = ExecRequest {
            cmd: Some(vec!["true".into()]),
            shell: None,
            timeout_ms,
        };
        asked(body).expect("in order").timeout_ms
    }

    // check: EXEC-3
    #[test]
    fn a_timeout_is_the_default_or_what_was_asked_up_to_the_ceiling() {
        assert_eq!(kept(None), None);
        let unsaid = ExecPayload {
            argv: None,
            shell: Some("true".into()),
            timeout_ms: None,
        };
        assert_eq!(timeout(&unsaid), Duration::from_secs(60));
        assert_eq!(kept(Some(0)), None);
        assert_eq!(kept(Some(1)), Some(1));
        assert_eq!(kept(Some(600_001)), Some(600_000));
        assert_eq!(kept(Some(u64::MAX)), Some(600_000));
    }

    // check: GATE-22
    #[test]
    fn a_command_is_exactly_one_of_argv_and_shell_and_names_a_program() {
        let argv = |words: &[&str]| Some(words.iter().map(|w| (*w).to_owned()).collect());
        let bad: [(Option<Vec<String>>, Option<&str>); 7] = [
            (None, None),
            (argv(&["ls"]), Some("ls")),
            (argv(&[]), None),
            (argv(&["", "x"]), None),
            (argv(&["ls", "a\0b"]), None),
            (None, Some("  ")),
            (None, Some("ls\0")),
        ];
        for (cmd, shell) in bad {
            let body = ExecRequest {
                cmd: cmd.clone(),
                shell: shell.map(str::to_owned),
                timeout_ms: None,
            };
            assert!(asked(body).is_err(), "{cmd:?} {shell:?}");
        }
    }
}
