//! What is put on record without a server: environments and interventions as the domain makes them.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use fuse_api::environment::{EnvState, Spec};
use fuse_api::hitl::{HitlBlock, OnTimeout};
use fuse_api::ids::{InterventionId, TaskId};
use fuse_api::intervention::{Actor, ActorSource, ApproveRequest, AskPayload, Kind, Payload};
use fuse_api::time::Timestamp;
use fuse_domain::access::{Caller, Credential};
use fuse_domain::intervention::raise::{Draft, Home, transition};
use fuse_domain::intervention::{EnvUid, Record, decide};
use fuse_domain::transition::{Committed, Transition};
use fuse_store::{EnvironmentRow, Inserted, Store};

/// The time now.
pub fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The master token at work.
pub fn caller() -> Caller {
    Caller {
        credential: Credential::Master,
        actor: Actor {
            id: "master".to_owned(),
            name: "master".to_owned(),
            source: ActorSource::Key,
            key_id: None,
        },
        remote_addr: "127.0.0.1".to_owned(),
    }
}

/// Puts an environment on record that runs on another host, so that no server looks after it.
pub async fn environment(store: &Store, task: &str) -> Result<Home> {
    let task_id = TaskId::parse(task)?;
    let at = now();
    let row = EnvironmentRow {
        uid: EnvUid(uuid::Uuid::now_v7().simple().to_string()),
        id: task_id.env_id(),
        task_id,
        host_id: "elsewhere".to_owned(),
        state: EnvState::Running,
        url: String::new(),
        spec: Spec::default(),
        hitl: Some(HitlBlock::default()),
        has_task: false,
        error: None,
        created_at: at,
        updated_at: at,
        started_at: Some(at),
        last_activity: at,
    };
    match store.insert_environment(&row).await? {
        Inserted::Done => Ok(home(&row)),
        Inserted::Taken => bail!("{} is taken", row.id),
    }
}

/// What raising needs of an environment.
pub fn home(row: &EnvironmentRow) -> Home {
    Home {
        env_id: row.id.clone(),
        env_uid: row.uid.clone(),
        on_timeout: OnTimeout::Reject,
        require_actor: false,
    }
}

/// A pending ask.
pub fn ask(home: &Home, caller: &Caller, timeout_seconds: i64) -> Record {
    let ask = AskPayload {
        question: "Deploy the release to production now?".to_owned(),
        choices: vec!["yes".to_owned(), "no".to_owned()],
    };
    Draft {
        id: InterventionId::from_uuid(uuid::Uuid::now_v7()),
        kind: Kind::Ask,
        gate: None,
        triggered_by: caller.actor.clone(),
        payload: Payload {
            ask: Some(ask),
            ..Payload::default()
        },
        now: now(),
        timeout_seconds,
    }
    .pending(home)
}

/// The raise of records.
pub fn raise(records: Vec<Record>, caller: &Caller) -> Transition {
    transition(records, caller)
}

/// The approval of an ask.
pub fn approve(record: &Record, caller: &Caller) -> Result<Transition> {
    let request = ApproveRequest {
        answer: Some("yes".to_owned()),
        ..ApproveRequest::default()
    };
    match decide::approve(record, &request, caller, None, now()) {
        Ok(transition) => Ok(transition),
        Err(refusal) => bail!("the domain refuses: {refusal:?}"),
    }
}

/// Commits what has to go through.
pub async fn commit(store: &Store, transition: Transition) -> Result<()> {
    match store.commit(transition).await? {
        Committed::Done(_) => Ok(()),
        other => bail!("not committed: {other:?}"),
    }
}
