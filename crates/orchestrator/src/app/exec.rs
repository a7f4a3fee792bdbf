//! A command: gates first, then the guest (spec: "Gates").

use super::gated::Gated;
use super::homes::{Home, require_running};
use super::{App, AppError, AppResult};
use fuse_api::exec::{ExecRequest, ExecResult};
use fuse_api::ids::EnvId;
use fuse_api::intervention::{ExecPayload, Intervention};
use fuse_api::routes::Access;
use fuse_backend::{CallError, Command, ExecOutcome, ExecSpec, RefusalCode};
use fuse_domain::access::{Caller, Credential, Presented};
use fuse_domain::intervention::raise::transition;
use fuse_domain::intervention::{Record, decide};
use fuse_domain::refusal::Refusal;
use fuse_domain::transition::Transition;
use fuse_store::EnvironmentRow;
use std::time::Duration;

/// How long a command may run where the caller does not say.
const DEFAULT_TIMEOUT_MS: u64 = 60_000;
/// The longest a command may run.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// How often a running command is noted as activity; the shortest idle timeout is 60 seconds.
const ACTIVITY: Duration = Duration::from_secs(15);

/// What a command's call comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecAnswer {
    /// It ran.
    Done(ExecResult),
    /// It is held until a person decides.
    Held(Box<Intervention>),
}

impl App {
    /// Runs a command, or holds or refuses it.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn exec(
        &self,
        who: &Presented,
        env: &EnvId,
        body: ExecRequest,
    ) -> AppResult<ExecAnswer> {
        let now = self.now();
        let asked = payload_of(body)?;
        let row = self.environment(env).await?;
        let caller = who.admit(Access::Master)?;
        require_running(&row)?;
        self.require_local(&row)?;
        let home = self.home(&row)?;
        if let Some(policy) = &home.policy {
            let verdict = policy.judge_exec(decide::action_of(&asked));
            let action = Gated::exec(&asked);
            if let Some(held) = self.gated(&caller, &home, &action, &verdict, now).await? {
                return Ok(ExecAnswer::Held(Box::new(held.view.clone())));
            }
        }
        let command_id = uuid::Uuid::now_v7().simple().to_string();
        let begun = std::time::Instant::now();
        let outcome = self.run_in_guest(&row, &asked, command_id).await;
        self.metrics.exec_ran(begun.elapsed());
        match outcome? {
            Ok(done) => Ok(ExecAnswer::Done(done)),
            Err(error) => {
                self.metrics.exec_failed();
                Err(call_failed(&row, &error))
            }
        }
    }

    /// An edit's notify gates leave their records (settled: "Edits and grants").
    pub(crate) fn note_edit(&self, record: &Record, change: &mut Transition, home: &Home) {
        let Some(resolve) = &change.resolve else {
            return;
        };
        let (Some(argv), Some(policy)) = (&resolve.decision.edited_argv, &home.policy) else {
            return;
        };
        let edited = ExecPayload {
            argv: Some(argv.clone()),
            shell: None,
            timeout_ms: record.view.payload.exec.as_ref().and_then(|e| e.timeout_ms),
        };
        let now = resolve.decision.decided_at;
        let by = resolve.decision.decided_by.clone();
        let verdict = policy.judge_edit(argv);
        let notes: Vec<Record> = verdict
            .notifies
            .iter()
            .map(|gate| Gated::exec(&edited).noted(home, by.clone(), gate, now))
            .collect();
        if notes.is_empty() {
            return;
        }
        let caller = Caller {
            credential: Credential::Master,
            actor: by,
            remote_addr: String::new(),
        };
        let mut extra = transition(notes, &caller);
        change.raise.append(&mut extra.raise);
        change.audit.append(&mut extra.audit);
    }

    /// Runs a command in the guest. The outer error: it was not tried. The inner: the guest's answer is missing.
    pub(crate) async fn run_in_guest(
        &self,
        row: &EnvironmentRow,
        exec: &ExecPayload,
        command_id: String,
    ) -> AppResult<Result<ExecResult, CallError>> {
        let guest = self.guest(row).await?;
        let command = match (&exec.argv, &exec.shell) {
            (Some(argv), None) => Command::Argv(argv.clone()),
            (None, Some(line)) => Command::LoginShell(line.clone()),
            (Some(_), Some(_)) | (None, None) => {
                return Err(AppError::Internal(
                    "a command is neither argv nor shell".into(),
                ));
            }
        };
        let mut spec = ExecSpec::new(command_id, command);
        spec.timeout = Duration::from_millis(exec.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS));
        let mut running = guest.exec(spec);
        // A command that runs is activity for as long as it runs.
        let mut beat = tokio::time::interval(ACTIVITY);
        let outcome = loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                _ = beat.tick() => self.store.touch(&row.uid, self.now()),
            }
        };
        self.store.touch(&row.uid, self.now());
        Ok(outcome.map(result_of))
    }
}

fn result_of(outcome: ExecOutcome) -> ExecResult {
    ExecResult {
        exit_code: outcome.exit_code,
        stdout: lossy(outcome.stdout),
        stderr: lossy(outcome.stderr),
        timed_out: outcome.timed_out,
        truncated: outcome.truncated,
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    }
}

/// Why a command has no result, as an answer to its caller.
fn call_failed(row: &EnvironmentRow, error: &CallError) -> AppError {
    match error {
        // It is no fault of the command's: the same one goes through once others have ended.
        CallError::Refused(refusal) if refusal.code == RefusalCode::Busy => {
            AppError::Unavailable(format!(
                "the guest of {} runs as many commands as it can; nothing was run",
                row.id
            ))
        }
        CallError::Refused(refusal) => {
            Refusal::invalid("cmd", format!("the guest refuses it: {refusal}")).into()
        }
        CallError::NotSent(_) => AppError::Unavailable(format!(
            "the guest of {} did not get the command; nothing was run",
            row.id
        )),
        CallError::Lost(_) => AppError::Unavailable(format!(
            "the guest of {} was lost while it ran the command; it may or may not have run",
            row.id
        )),
    }
}

/// A request's command, once its form is in order.
fn payload_of(body: ExecRequest) -> Result<ExecPayload, Refusal> {
    match (&body.cmd, &body.shell) {
        (Some(_), Some(_)) | (None, None) => {
            return Err(Refusal::invalid("cmd", "give exactly one of cmd and shell"));
        }
        (Some(argv), None) => decide::check_argv("cmd", argv)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(asked: Option<u64>) -> Option<u64> {
        let body = ExecRequest {
            cmd: Some(vec!["true".into()]),
            shell: None,
            timeout_ms: asked,
        };
        payload_of(body).expect("in order").timeout_ms
    }

    // check: EXEC-3
    #[test]
    fn a_timeout_is_the_default_or_what_was_asked_up_to_the_ceiling() {
        assert_eq!(timeout(None), None);
        assert_eq!(timeout(Some(0)), None);
        assert_eq!(timeout(Some(1)), Some(1));
        assert_eq!(timeout(Some(600_001)), Some(600_000));
        assert_eq!(timeout(Some(u64::MAX)), Some(600_000));
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
            assert!(payload_of(body).is_err(), "{cmd:?} {shell:?}");
        }
    }
}
