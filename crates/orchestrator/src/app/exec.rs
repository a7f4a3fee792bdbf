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
use fuse_domain::intervention::{Record, decide, exec};
use fuse_domain::refusal::Refusal;
use fuse_domain::transition::Transition;
use fuse_store::EnvironmentRow;
use std::time::Duration;

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
        let asked = exec::asked(body)?;
        let row = self.environment(env).await?;
        let caller = who.admit(Access::Master)?;
        require_running(&row)?;
        self.require_local(&row)?;
        let home = self.home(&row)?;
        if let Some(policy) = &home.policy {
            let verdict = policy.judge_exec(decide::action_of(&asked));
            let action = Gated::exec(&asked).through(verdict.carrier.clone());
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
            .map(|gate| {
                Gated::exec(&edited).through(verdict.carrier.clone()).noted(
                    home,
                    by.clone(),
                    gate,
                    now,
                )
            })
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
        payload: &ExecPayload,
        command_id: String,
    ) -> AppResult<Result<ExecResult, CallError>> {
        let guest = self.guest(row).await?;
        let command = match (&payload.argv, &payload.shell) {
            (Some(argv), None) => Command::Argv(argv.clone()),
            (None, Some(line)) => Command::LoginShell(line.clone()),
            (Some(_), Some(_)) | (None, None) => {
                return Err(AppError::Internal(
                    "a command is neither argv nor shell".into(),
                ));
            }
        };
        let mut spec = ExecSpec::new(command_id, command);
        spec.timeout = exec::timeout(payload);
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
