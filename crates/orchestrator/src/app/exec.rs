//! A command: gates first, then the guest (spec: "Gates").

use super::homes::{Home, require_running};
use super::{App, AppError, AppResult, Outcome};
use fuse_api::exec::{ExecRequest, ExecResult};
use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::{Actor, ExecPayload, Intervention, Kind, Mode, Outcome as Decided};
use fuse_api::routes::Access;
use fuse_api::time::Timestamp;
use fuse_backend::{CallError, Command, ExecOutcome, ExecSpec};
use fuse_domain::access::{Caller, Presented, actor};
use fuse_domain::intervention::raise::{Draft, exec_payload, transition};
use fuse_domain::intervention::{Record, decide, end};
use fuse_domain::policy::{PolicyGate, Severity, Verdict, deadline_for};
use fuse_domain::refusal::Refusal;
use fuse_domain::transition::{Grant, Transition};
use fuse_store::EnvironmentRow;
use std::sync::Arc;
use std::time::Duration;

/// How long a command may run where the caller does not say.
const DEFAULT_TIMEOUT_MS: u64 = 60_000;
/// The longest a command may run.
const MAX_TIMEOUT_MS: u64 = 600_000;

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
        let home = self.home(&row)?;
        if let Some(policy) = &home.policy {
            let verdict = policy.judge_exec(decide::action_of(&asked));
            if verdict.severity() > Severity::Pass
                && let Some(held) = self.gated(&caller, &home, &asked, &verdict, now).await?
            {
                return Ok(ExecAnswer::Held(Box::new(held.view.clone())));
            }
        }
        self.store.touch(&row.uid, now);
        let command_id = uuid::Uuid::now_v7().simple().to_string();
        let begun = std::time::Instant::now();
        let outcome = self.run_in_guest(&row, &asked, command_id).await;
        self.store.touch(&row.uid, self.now());
        self.metrics.exec_ran(begun.elapsed());
        match outcome? {
            Ok(done) => Ok(ExecAnswer::Done(done)),
            Err(error) => Err(call_failed(&row, &error)),
        }
    }

    /// Puts what the gates say on record. Gives the held intervention, or nothing where the command may run.
    async fn gated(
        &self,
        caller: &Caller,
        home: &Home,
        asked: &ExecPayload,
        verdict: &Verdict<'_>,
        now: Timestamp,
    ) -> AppResult<Option<Arc<Record>>> {
        let mut records = Vec::new();
        for gate in &verdict.notifies {
            records.push(notify_record(home, caller.actor.clone(), asked, gate, now));
        }
        if let Some(gate) = verdict.deny {
            let reason = gate.denial();
            let id = fresh_id();
            records.push(
                draft(id.clone(), caller, asked, gate, Mode::Deny, Vec::new(), now).resolved(
                    &home.raise,
                    Decided::Reject,
                    reason.clone(),
                    actor::gate(&gate.name),
                ),
            );
            self.put(transition(records, caller)).await?;
            self.metrics.denied();
            return Err(Refusal::denied(&gate.name, reason, &id).into());
        }
        let (holding, used) = self.without_granted(home, asked, &verdict.asks).await?;
        let mut change;
        if let Some(first) = holding.first() {
            let gates = holding.iter().map(|g| g.name.clone()).collect();
            let mut held = draft(fresh_id(), caller, asked, first, Mode::Ask, gates, now);
            held.timeout_seconds = deadline_for(&holding).unwrap_or_default();
            records.push(held.pending(&home.raise));
            change = transition(records, caller);
            let mut records = self.put(change).await?;
            self.metrics.held();
            return records
                .pop()
                .map(Some)
                .ok_or_else(|| AppError::Internal("a hold committed without its record".into()));
        }
        change = transition(records, caller);
        for grant in &used {
            let env_id = &home.raise.env_id;
            change
                .audit
                .push(end::grant_used(env_id, grant, Kind::Exec, caller, now));
        }
        if !change.audit.is_empty() {
            // What lets an action through is on record before the action is performed.
            self.put(change).await?;
        }
        Ok(None)
    }

    /// The ask gates that still hold the command, and the grants that let it past the others.
    async fn without_granted<'g>(
        &self,
        home: &Home,
        asked: &ExecPayload,
        asks: &[&'g PolicyGate],
    ) -> AppResult<(Vec<&'g PolicyGate>, Vec<Grant>)> {
        if asks.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let grants = self
            .store
            .live_grants(
                &home.raise.env_uid,
                &[decide::exec_digest(asked)],
                self.now(),
            )
            .await?;
        let granted = |gate: &PolicyGate| grants.iter().find(|g| g.gate == gate.name).cloned();
        let used = asks.iter().filter_map(|gate| granted(gate)).collect();
        let holding = asks
            .iter()
            .filter(|gate| granted(gate).is_none())
            .copied()
            .collect();
        Ok((holding, used))
    }

    async fn put(&self, change: Transition) -> AppResult<Vec<Arc<Record>>> {
        match self.commit(change).await? {
            Outcome::Done(records) => Ok(records),
            Outcome::Conflict => Err(AppError::Internal(
                "a fresh intervention id was taken".into(),
            )),
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
            .map(|gate| notify_record(home, by.clone(), &edited, gate, now))
            .collect();
        if notes.is_empty() {
            return;
        }
        let caller = Caller {
            credential: fuse_domain::access::Credential::Master,
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
        spec.timeout = Duration::from_millis(timeout_of(exec));
        Ok(guest.exec(spec).await.map(result_of))
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

fn timeout_of(exec: &ExecPayload) -> u64 {
    match exec.timeout_ms {
        None | Some(0) => DEFAULT_TIMEOUT_MS,
        Some(ms) => ms.min(MAX_TIMEOUT_MS),
    }
}

/// Why a command has no result, as an answer to its caller.
fn call_failed(row: &EnvironmentRow, error: &CallError) -> AppError {
    match error {
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
        timeout_ms: body.timeout_ms,
    })
}

fn fresh_id() -> InterventionId {
    InterventionId::from_uuid(uuid::Uuid::now_v7())
}

fn draft(
    id: InterventionId,
    caller: &Caller,
    asked: &ExecPayload,
    gate: &PolicyGate,
    mode: Mode,
    gates: Vec<String>,
    now: Timestamp,
) -> Draft {
    Draft {
        id,
        kind: Kind::Exec,
        gate: Some((gate.name.clone(), mode)),
        triggered_by: caller.actor.clone(),
        payload: exec_payload(asked, gates, reason_of(gate)),
        now,
        timeout_seconds: gate.timeout_seconds,
    }
}

fn notify_record(
    home: &Home,
    by: Actor,
    asked: &ExecPayload,
    gate: &PolicyGate,
    now: Timestamp,
) -> Record {
    Draft {
        id: fresh_id(),
        kind: Kind::Exec,
        gate: Some((gate.name.clone(), Mode::Notify)),
        triggered_by: by,
        payload: exec_payload(asked, Vec::new(), reason_of(gate)),
        now,
        timeout_seconds: gate.timeout_seconds,
    }
    .resolved(
        &home.raise,
        Decided::Approve,
        format!("let through and recorded by gate {}", gate.name),
        actor::gate(&gate.name),
    )
}

fn reason_of(gate: &PolicyGate) -> Option<String> {
    Some(gate.reason.clone()).filter(|reason| !reason.is_empty())
}
