//! An intervention as its row: what is sealed stays sealed until somebody wants to read it.

use crate::error::StoreError;
use crate::seal::{Place, Sealer};
use crate::sql::Cells;
use crate::unreadable;
use fuse_api::ids::{EnvId, InterventionId, KeyId};
use fuse_api::intervention::{
    Actor, ActorSource, Decision, Intervention, Kind, Mode, Outcome, State,
};
use fuse_api::time::Timestamp;
use fuse_domain::intervention::{EnvUid, InstanceId, Record, Resolve, RunState, run};
use serde::de::DeserializeOwned;

pub(crate) const TABLE: &str = "interventions";

/// Every column but the payload.
pub(crate) const COLUMNS: &str = "id, env_uid, env_id, kind, state, version, deadline, created_at, resolved_at, gate, mode, \
    on_timeout, require_actor, run, run_instance, raised_id, raised_name, raised_source, raised_key, payload_len, outcome, \
    granted, decided_at, decided_id, decided_name, decided_source, decided_key, answer, reason, edited_argv, edited_text, result";

/// A payload beyond this many stored bytes is loaded only where somebody reads it.
pub(crate) const INLINE: i64 = 16 * 1024;

/// What the result of an action says whose stored result does not open.
const LOST_RESULT: &str = "the action ended, but what is stored of its result cannot be read";

/// One row of `interventions`.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub id: InterventionId,
    pub env_uid: EnvUid,
    pub env_id: EnvId,
    pub kind: Kind,
    pub state: State,
    pub version: i64,
    pub deadline: Timestamp,
    pub created_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
    pub gate: Option<String>,
    pub mode: Option<Mode>,
    pub on_timeout: String,
    pub require_actor: bool,
    pub run: RunState,
    pub raised_by: Actor,
    /// Sealed; absent where it was not loaded.
    pub payload: Option<Vec<u8>>,
    pub payload_len: i64,
    pub decision: Option<SealedDecision>,
    pub result: Option<Vec<u8>>,
}

/// A decision with its content sealed.
#[derive(Debug, Clone)]
pub(crate) struct SealedDecision {
    pub outcome: Outcome,
    pub granted: Option<String>,
    pub at: Timestamp,
    pub by: Actor,
    pub answer: Option<Vec<u8>>,
    pub reason: Option<Vec<u8>>,
    pub edited_argv: Option<Vec<u8>>,
    pub edited_text: Option<Vec<u8>>,
}

/// What content is sealed with, and whose row it is.
#[derive(Clone, Copy)]
pub(crate) struct Seal<'a> {
    pub sealer: &'a Sealer,
    pub id: &'a InterventionId,
}

impl<'a> Seal<'a> {
    fn place(&self, column: &'static str) -> Place<'a> {
        Place {
            table: TABLE,
            row: self.id.as_str(),
            column,
        }
    }

    fn corrupt(&self, column: &'static str) -> StoreError {
        StoreError::corrupt(TABLE, self.id.as_str(), column)
    }

    fn text(&self, column: &'static str, text: &str) -> Result<Option<Vec<u8>>, StoreError> {
        // Nothing is stored as nothing, so that an expiry seals a reason and no more.
        (!text.is_empty())
            .then(|| self.sealer.seal(self.place(column), text.as_bytes()))
            .transpose()
    }

    fn json<T: serde::Serialize>(
        &self,
        column: &'static str,
        value: &T,
    ) -> Result<Vec<u8>, StoreError> {
        let json = serde_json::to_vec(value).map_err(|_| self.corrupt(column))?;
        self.sealer.seal(self.place(column), &json)
    }

    fn open_text(&self, column: &'static str, stored: Option<&[u8]>) -> Result<String, StoreError> {
        let Some(stored) = stored else {
            return Ok(String::new());
        };
        String::from_utf8(self.sealer.open(self.place(column), stored)?)
            .map_err(|_| self.corrupt(column))
    }

    fn open_json<T: DeserializeOwned>(
        &self,
        column: &'static str,
        stored: Option<&[u8]>,
    ) -> Result<Option<T>, StoreError> {
        let Some(stored) = stored else {
            return Ok(None);
        };
        let json = self.sealer.open(self.place(column), stored)?;
        serde_json::from_slice(&json).map_err(|_| self.corrupt(column))
    }

    pub fn decision(&self, decision: &Decision) -> Result<SealedDecision, StoreError> {
        Ok(SealedDecision {
            outcome: decision.outcome,
            granted: decision.grant.map(|reach| reach.to_string()),
            at: decision.decided_at,
            by: decision.decided_by.clone(),
            answer: self.text("answer", &decision.answer)?,
            reason: self.text("reason", &decision.reason)?,
            edited_argv: decision
                .edited_argv
                .as_ref()
                .map(|argv| self.json("edited_argv", argv))
                .transpose()?,
            edited_text: decision
                .edited_text
                .as_ref()
                .map(|text| self.json("edited_text", text))
                .transpose()?,
        })
    }

    /// Who, when and how is always told. An answer that cannot be read must not look like an empty one, so the reason says it.
    fn open_decision(&self, sealed: &SealedDecision, bad: &mut bool) -> Decision {
        let answer = kept(self.open_text("answer", sealed.answer.as_deref()), bad);
        let reason = kept(self.open_text("reason", sealed.reason.as_deref()), bad);
        let edited_argv = self.open_json("edited_argv", sealed.edited_argv.as_deref());
        let edited_text = self.open_json("edited_text", sealed.edited_text.as_deref());
        let grant = sealed.granted.as_deref().map(str::parse).transpose();
        let (edited_argv, edited_text) = (kept(edited_argv, bad), kept(edited_text, bad));
        let lost: Vec<&str> = [
            ("answer", answer.is_none()),
            ("reason", reason.is_none()),
            ("edited argv", edited_argv.is_none()),
            ("edited text", edited_text.is_none()),
        ]
        .into_iter()
        .filter_map(|(name, lost)| lost.then_some(name))
        .collect();
        let note = (!lost.is_empty()).then(|| {
            let lost = lost.join(" and ");
            format!("[what is stored of the {lost} cannot be read]")
        });
        let reason = reason.filter(|reason| !reason.is_empty());
        let said: Vec<String> = note.into_iter().chain(reason).collect();
        Decision {
            outcome: sealed.outcome,
            answer: answer.unwrap_or_default(),
            reason: said.join(" "),
            decided_by: sealed.by.clone(),
            decided_at: sealed.at,
            edited_argv: edited_argv.flatten(),
            edited_text: edited_text.flatten(),
            grant: kept(grant.map_err(|_| self.corrupt("granted")), bad).flatten(),
        }
    }

    pub fn result<T: serde::Serialize>(&self, result: &T) -> Result<Vec<u8>, StoreError> {
        self.json("result", result)
    }
}

/// What could be read. What could not is noted.
fn kept<T>(read: Result<T, StoreError>, bad: &mut bool) -> Option<T> {
    read.inspect_err(|error| {
        *bad = true;
        unreadable::note(error);
    })
    .ok()
}

impl Row {
    /// Seals a record's content.
    pub fn seal(sealer: &Sealer, record: &Record) -> Result<Self, StoreError> {
        let view = &record.view;
        let seal = Seal {
            sealer,
            id: &view.id,
        };
        // The hash goes with what it names: beside it in the clear it would let short questions be guessed.
        let payload = seal.json("payload", &(&view.payload_hash, &view.payload))?;
        Ok(Self {
            id: view.id.clone(),
            env_uid: record.env_uid.clone(),
            env_id: view.env_id.clone(),
            kind: view.kind,
            state: view.state,
            version: record.version,
            deadline: view.deadline,
            created_at: view.created_at,
            resolved_at: view.resolved_at,
            gate: view.gate.clone(),
            mode: view.mode,
            on_timeout: on_timeout_text(record.on_timeout).to_owned(),
            require_actor: record.require_actor,
            run: record.run.clone(),
            raised_by: view.triggered_by.clone(),
            payload_len: i64::try_from(payload.len()).unwrap_or(i64::MAX),
            payload: Some(payload),
            decision: view
                .decision
                .as_ref()
                .map(|d| seal.decision(d))
                .transpose()?,
            result: view.result.as_ref().map(|r| seal.result(r)).transpose()?,
        })
    }

    /// Leaves `pending`.
    pub fn resolve(&mut self, resolve: &Resolve, decision: SealedDecision) {
        self.state = resolve.state;
        self.resolved_at = Some(decision.at);
        self.decision = Some(decision);
        self.run = resolve.run.clone();
        self.version += 1;
    }

    /// Reads the content. What does not open is left out, and the record says so: one altered value must not hide the others
    /// of a list, or keep a waiter from its outcome.
    pub fn open(&self, sealer: &Sealer) -> Record {
        let seal = Seal {
            sealer,
            id: &self.id,
        };
        let mut bad = false;
        let payload = seal
            .open_json("payload", self.payload.as_deref())
            .and_then(|payload| payload.ok_or_else(|| seal.corrupt("payload")));
        let (payload_hash, payload) = kept(payload, &mut bad).unwrap_or_default();
        let decision = self.decision.as_ref();
        let decision = decision.map(|sealed| seal.open_decision(sealed, &mut bad));
        let result = seal.open_json("result", self.result.as_deref());
        let result = kept(result, &mut bad).unwrap_or_else(|| Some(run::failed(LOST_RESULT)));
        let on_timeout =
            parse_on_timeout(&self.on_timeout).ok_or_else(|| seal.corrupt("on_timeout"));
        let on_timeout = kept(on_timeout, &mut bad).unwrap_or(OnTimeout::Reject);
        Record {
            view: Intervention {
                id: self.id.clone(),
                env_id: self.env_id.clone(),
                kind: self.kind,
                state: self.state,
                deadline: self.deadline,
                created_at: self.created_at,
                resolved_at: self.resolved_at,
                gate: self.gate.clone(),
                mode: self.mode,
                triggered_by: self.raised_by.clone(),
                payload,
                payload_hash,
                unreadable: bad,
                decision,
                result,
            },
            env_uid: self.env_uid.clone(),
            on_timeout,
            require_actor: self.require_actor,
            run: self.run.clone(),
            version: self.version,
        }
    }

    /// Reads a row of [`COLUMNS`] and a column `payload`.
    pub fn read(cells: &dyn Cells) -> Result<Self, StoreError> {
        let id = cells.text("id")?;
        let bad = |column| StoreError::corrupt(TABLE, &id, column);
        let name = |column, parsed: Option<_>| parsed.ok_or_else(|| bad(column));
        let outcome = cells.text_opt("outcome")?;
        let decision = match outcome {
            None => None,
            Some(outcome) => Some(SealedDecision {
                outcome: Outcome::parse(&outcome).ok_or_else(|| bad("outcome"))?,
                granted: cells.text_opt("granted")?,
                at: Timestamp::from_micros(cells.int("decided_at")?),
                by: actor(cells, "decided").ok_or_else(|| bad("decided_source"))?,
                answer: cells.bytes_opt("answer")?,
                reason: cells.bytes_opt("reason")?,
                edited_argv: cells.bytes_opt("edited_argv")?,
                edited_text: cells.bytes_opt("edited_text")?,
            }),
        };
        let run = run_from(&cells.text("run")?, cells.text_opt("run_instance")?);
        let env_id = EnvId::parse(&cells.text("env_id")?).map_err(|_| bad("env_id"))?;
        Ok(Self {
            env_uid: EnvUid(cells.text("env_uid")?),
            env_id,
            kind: Kind::parse(&cells.text("kind")?).ok_or_else(|| bad("kind"))?,
            state: name("state", State::parse(&cells.text("state")?))?,
            version: cells.int("version")?,
            deadline: Timestamp::from_micros(cells.int("deadline")?),
            created_at: Timestamp::from_micros(cells.int("created_at")?),
            resolved_at: cells.int_opt("resolved_at")?.map(Timestamp::from_micros),
            gate: cells.text_opt("gate")?,
            mode: match cells.text_opt("mode")? {
                None => None,
                Some(mode) => Some(Mode::parse(&mode).ok_or_else(|| bad("mode"))?),
            },
            on_timeout: cells.text("on_timeout")?,
            require_actor: cells.int("require_actor")? != 0,
            run: run.ok_or_else(|| bad("run"))?,
            raised_by: actor(cells, "raised").ok_or_else(|| bad("raised_source"))?,
            payload: cells.bytes_opt("payload")?,
            payload_len: cells.int("payload_len")?,
            decision,
            result: cells.bytes_opt("result")?,
            id: InterventionId::parse(&id).map_err(|_| bad("id"))?,
        })
    }
}

/// Reads the four columns of an actor.
fn actor(cells: &dyn Cells, prefix: &str) -> Option<Actor> {
    let column = |name: &str| format!("{prefix}_{name}");
    let key_id = match cells.text_opt(&column("key")).ok()? {
        None => None,
        Some(key) => Some(KeyId::parse(&key).ok()?),
    };
    Some(Actor {
        id: cells.text(&column("id")).ok()?,
        name: cells.text(&column("name")).ok()?,
        source: ActorSource::parse(&cells.text(&column("source")).ok()?)?,
        key_id,
    })
}

pub(crate) use fuse_api::hitl::OnTimeout;

pub(crate) const fn on_timeout_text(on_timeout: OnTimeout) -> &'static str {
    match on_timeout {
        OnTimeout::Reject => "reject",
        OnTimeout::Allow => "allow",
    }
}

pub(crate) fn parse_on_timeout(text: &str) -> Option<OnTimeout> {
    [OnTimeout::Reject, OnTimeout::Allow]
        .into_iter()
        .find(|value| on_timeout_text(*value) == text)
}

/// The two columns of a run state.
pub(crate) fn run_columns(run: &RunState) -> (&'static str, Option<&str>) {
    match run {
        RunState::Nothing => ("nothing", None),
        RunState::Ready => ("ready", None),
        RunState::Started(InstanceId(instance)) => ("started", Some(instance)),
        RunState::Done => ("done", None),
    }
}

fn run_from(run: &str, instance: Option<String>) -> Option<RunState> {
    match (run, instance) {
        ("nothing", None) => Some(RunState::Nothing),
        ("ready", None) => Some(RunState::Ready),
        ("started", Some(instance)) => Some(RunState::Started(InstanceId(instance))),
        ("done", None) => Some(RunState::Done),
        _ => None,
    }
}
