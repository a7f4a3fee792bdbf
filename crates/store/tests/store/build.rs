//! What tests put on record.

use fuse_api::audit::{AuditEntry, AuditEvent};
use fuse_api::environment::{EnvState, Spec};
use fuse_api::hitl::OnTimeout;
use fuse_api::ids::{InterventionId, TaskId};
use fuse_api::intervention::{
    Actor, ActorSource, AskPayload, Decision, Intervention, Kind, Outcome, Payload, State,
};
use fuse_api::time::Timestamp;
use fuse_domain::audit::{AuditDraft, Verifier};
use fuse_domain::intervention::{EnvUid, Record, Resolve, RunState, end, payload_hash};
use fuse_domain::transition::{Committed, Transition};
use fuse_store::{AuditFilter, EnvironmentRow, Inserted, Store};
use std::sync::Arc;

pub const SECOND: i64 = 1_000_000;

/// A time so many seconds after the start of the tests' calendar.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000 * SECOND).plus_seconds(seconds)
}

pub fn actor(id: &str) -> Actor {
    Actor {
        id: id.to_owned(),
        name: format!("The {id}"),
        source: ActorSource::Asserted,
        key_id: None,
    }
}

/// An environment that runs.
pub fn environment(task: &str) -> EnvironmentRow {
    let task_id = TaskId::parse(task).expect("a task id");
    EnvironmentRow {
        uid: EnvUid(uuid::Uuid::now_v7().simple().to_string()),
        id: task_id.env_id(),
        task_id,
        host_id: "host".to_owned(),
        state: EnvState::Running,
        url: String::new(),
        spec: Spec::default(),
        hitl: None,
        has_task: false,
        error: None,
        created_at: at(0),
        updated_at: at(0),
        started_at: Some(at(0)),
        last_activity: at(0),
    }
}

pub async fn insert(store: &Store, row: &EnvironmentRow) {
    let inserted = store.insert_environment(row).await;
    assert_eq!(inserted.expect("inserts"), Inserted::Done);
}

/// A store's first environment.
pub async fn running(store: &Store) -> EnvironmentRow {
    let row = environment("agent");
    insert(store, &row).await;
    row
}

/// A pending ask.
pub fn ask(env: &EnvironmentRow, question: &str) -> Record {
    let payload = Payload {
        ask: Some(AskPayload {
            question: question.to_owned(),
            choices: Vec::new(),
        }),
        ..Payload::default()
    };
    Record {
        view: Intervention {
            id: InterventionId::from_uuid(uuid::Uuid::now_v7()),
            env_id: env.id.clone(),
            kind: Kind::Ask,
            state: State::Pending,
            deadline: at(600),
            created_at: at(0),
            resolved_at: None,
            gate: None,
            mode: None,
            triggered_by: actor("agent"),
            payload_hash: payload_hash(&payload),
            unreadable: false,
            payload,
            decision: None,
            result: None,
        },
        env_uid: env.uid.clone(),
        on_timeout: OnTimeout::Reject,
        require_actor: false,
        run: RunState::Nothing,
        version: 1,
    }
}

pub fn entry(event: AuditEvent, record: &Record, by: &str) -> AuditDraft {
    AuditDraft {
        event,
        at: at(1),
        env_id: Some(record.view.env_id.clone()),
        intervention_id: Some(record.view.id.clone()),
        on: record.view.kind.as_str().to_owned(),
        gate: record.view.gate.clone().unwrap_or_default(),
        actor: actor(by),
        remote_addr: "127.0.0.1".to_owned(),
        recording_id: None,
    }
}

pub fn raise(record: &Record) -> Transition {
    Transition {
        audit: vec![entry(AuditEvent::Raised, record, "agent")],
        raise: vec![record.clone()],
        ..Transition::default()
    }
}

pub fn decision(outcome: Outcome, by: &str) -> Decision {
    Decision {
        outcome,
        answer: format!("answer of {by}"),
        reason: format!("reason of {by}"),
        decided_by: actor(by),
        decided_at: at(2),
        edited_argv: None,
        edited_text: None,
        grant: None,
    }
}

pub fn approve(record: &Record, by: &str) -> Transition {
    let run = match record.view.kind {
        Kind::Exec | Kind::Lifecycle | Kind::Computer => RunState::Ready,
        Kind::Ask | Kind::Review | Kind::Secret | Kind::Takeover | Kind::Stall | Kind::Expiry => {
            RunState::Nothing
        }
    };
    Transition {
        resolve: Some(Resolve {
            id: record.view.id.clone(),
            expected_version: record.version,
            state: State::Approved,
            decision: decision(Outcome::Approve, by),
            run,
        }),
        audit: vec![entry(AuditEvent::Decided, record, by)],
        ..Transition::default()
    }
}

pub fn destroy(env: &EnvironmentRow) -> Transition {
    let from = [EnvState::Running, EnvState::Draining];
    let uid = env.uid.clone();
    end::close(
        uid,
        &from,
        EnvState::Destroyed,
        "the environment was destroyed",
        at(3),
    )
}

/// The records of a transition that was taken.
#[track_caller]
pub fn done(committed: Committed) -> Vec<Arc<Record>> {
    match committed {
        Committed::Done(records) => records,
        other @ (Committed::Conflict | Committed::EnvironmentGone | Committed::TooManyPending) => {
            panic!("not taken: {other:?}")
        }
    }
}

/// Raises an ask and gives it as it stands.
pub async fn raised(store: &Store, record: Record) -> Arc<Record> {
    let committed = store.commit(raise(&record)).await.expect("commits");
    done(committed).remove(0)
}

/// The whole audit log, in pages of an odd size.
pub async fn log(store: &Store) -> Vec<AuditEntry> {
    let mut entries = Vec::new();
    let mut cursor = None;
    loop {
        let page = store
            .audit_page(&AuditFilter::default(), 97, cursor.as_deref())
            .await
            .expect("a page");
        entries.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return entries;
        }
    }
}

/// Holds the whole audit log against its chain, and gives it.
pub async fn verified_log(store: &Store) -> Vec<AuditEntry> {
    let entries = log(store).await;
    let head = store.audit_head().await.expect("a head");
    let mut verifier = Verifier::with_noted_head(Some(head.clone()));
    for entry in &entries {
        verifier.next(entry).expect("the chain holds");
    }
    assert_eq!(verifier.finish(), Ok(head));
    entries
}
