//! What the verbs answer from memory, and when they look again. No loop runs here, so nothing is heard of what the store is
//! told behind the app's back: that is another orchestrator whose notices are still on their way.

use super::*;
use crate::assemble::test_app;
use crate::known::FRESH;
use fuse_api::environment::{EnvState, Spec};
use fuse_api::ids::{EnvId, KeyId, TaskId};
use fuse_api::intervention::{ApproveRequest, RaiseRequest, RejectRequest, State};
use fuse_domain::access::{Caller, Credential, Presented, actor};
use fuse_domain::intervention::{EnvUid, decide, end};
use fuse_store::{EnvironmentRow, KeyRow};
use std::time::{Duration, Instant};

struct Bed {
    app: Arc<App>,
    env: EnvironmentRow,
    _dir: tempfile::TempDir,
}

fn master() -> Presented {
    Presented {
        credential: Credential::Master,
        actor: None,
        remote_addr: String::new(),
    }
}

fn somebody_else() -> Caller {
    Caller {
        credential: Credential::Master,
        actor: actor::system(),
        remote_addr: String::new(),
    }
}

impl Bed {
    async fn new() -> Self {
        let dir = tempfile::tempdir().expect("folder");
        let app = Arc::new(test_app(dir.path()).await);
        let id = EnvId::parse("fuse-a").expect("id");
        let now = app.now();
        let env = EnvironmentRow {
            uid: EnvUid("fuse-a-1".into()),
            id,
            task_id: TaskId::parse("a").expect("id"),
            host_id: app.host_id.clone(),
            state: EnvState::Running,
            url: String::new(),
            spec: Spec::default(),
            hitl: Some(serde_json::from_str(r#"{"requests": {"ask": {}}}"#).expect("a block")),
            has_task: false,
            error: None,
            created_at: now,
            updated_at: now,
            started_at: Some(now),
            last_activity: now,
        };
        app.store.insert_environment(&env).await.expect("stored");
        Self {
            app,
            env,
            _dir: dir,
        }
    }

    async fn ask(&self) -> AppResult<Arc<crate::known::Shown>> {
        let body = RaiseRequest {
            kind: "ask".into(),
            question: Some("Q?".into()),
            ..RaiseRequest::default()
        };
        self.app.raise(&master(), &self.env.id, body).await
    }

    /// Another orchestrator rejects it.
    async fn rejected_elsewhere(&self, record: &Record) {
        let body = RejectRequest {
            reason: Some("no".into()),
            ..RejectRequest::default()
        };
        let change = decide::reject(record, &body, &somebody_else(), self.app.now());
        let done = self.app.store.commit(change.expect("it may")).await;
        assert!(matches!(done, Ok(Committed::Done(_))));
    }

    async fn approve(&self, record: &Record, body: ApproveRequest) -> AppError {
        let done = self.app.approve(&master(), &record.view.id, body).await;
        done.map(|shown| shown.record.view.state)
            .expect_err("it is decided already")
    }
}

fn is_decided_already(error: &AppError) -> bool {
    matches!(error, AppError::Refused(Refusal::Conflict { details, .. })
        if details.get("state").is_some_and(|state| state == "rejected"))
}

// check: STORE-10
#[tokio::test]
async fn a_decision_over_what_was_decided_elsewhere_is_not_taken() {
    let bed = Bed::new().await;
    let asked = bed.ask().await.expect("raised");
    bed.rejected_elsewhere(&asked.record).await;
    let known = bed.app.known.record(&asked.record.view.id, Instant::now());
    assert_eq!(known.expect("kept").0.record.view.state, State::Pending);
    let answer = ApproveRequest {
        answer: Some("yes".into()),
        ..ApproveRequest::default()
    };
    let refused = bed.approve(&asked.record, answer).await;
    assert!(is_decided_already(&refused), "{refused:?}");
}

// check: STORE-10
#[tokio::test]
async fn a_refusal_over_what_may_have_changed_is_looked_at_again() {
    let bed = Bed::new().await;
    let asked = bed.ask().await.expect("raised");
    bed.rejected_elsewhere(&asked.record).await;
    // Over what is in memory this would be refused for its content.
    let refused = bed.approve(&asked.record, ApproveRequest::default()).await;
    assert!(is_decided_already(&refused), "{refused:?}");
}

#[tokio::test]
async fn a_plain_read_does_not_tell_a_pending_one_from_memory() {
    let bed = Bed::new().await;
    let asked = bed.ask().await.expect("raised");
    bed.rejected_elsewhere(&asked.record).await;
    let id = &asked.record.view.id;
    let read = bed.app.get_intervention(&master(), id).await;
    let read = read.expect("read");
    assert_eq!(read.record.view.state, State::Rejected);
    let again = bed.app.get_intervention(&master(), id).await;
    assert!(Arc::ptr_eq(&read, &again.expect("read")), "it is settled");
}

#[tokio::test]
async fn what_is_not_heard_of_is_read_each_time() {
    let bed = Bed::new().await;
    let asked = bed.ask().await.expect("raised");
    bed.rejected_elsewhere(&asked.record).await;
    bed.app.known.begin(0);
    bed.app.known.committed(&asked.record);
    let wait = Duration::from_secs(20);
    let read = bed.app.wait(&master(), &asked.record.view.id, wait).await;
    let read = read.expect("read");
    assert_eq!(read.record.view.state, State::Rejected);
}

#[tokio::test]
async fn a_raise_over_what_was_destroyed_elsewhere_says_so() {
    let bed = Bed::new().await;
    bed.ask().await.expect("raised");
    let from = [EnvState::Running];
    let gone = end::close(
        bed.env.uid.clone(),
        &from,
        EnvState::Destroyed,
        "gone",
        bed.app.now(),
    );
    bed.app.store.commit(gone).await.expect("destroyed");
    let kept = bed.app.known.environments.get(&bed.env.id, Instant::now());
    assert_eq!(kept.expect("kept").0.state, EnvState::Running);
    let refused = bed.ask().await.map(|_| ()).expect_err("it is gone");
    assert!(matches!(
        refused,
        AppError::Refused(Refusal::NotFound(What::Environment))
    ));
}

#[tokio::test]
async fn a_raise_into_the_next_life_of_an_environment_finds_it() {
    let bed = Bed::new().await;
    bed.ask().await.expect("raised");
    let from = [EnvState::Running];
    let gone = end::close(
        bed.env.uid.clone(),
        &from,
        EnvState::Destroyed,
        "gone",
        bed.app.now(),
    );
    bed.app.store.commit(gone).await.expect("destroyed");
    let next = EnvironmentRow {
        uid: EnvUid("fuse-a-2".into()),
        ..bed.env.clone()
    };
    bed.app.store.insert_environment(&next).await.expect("made");
    let asked = bed.ask().await.expect("raised in the next one");
    assert_eq!(asked.record.env_uid, next.uid);
}

async fn key_of(app: &Arc<App>) -> (KeyId, String) {
    let body = serde_json::from_str(r#"{"label": "ci"}"#).expect("a body");
    let made = app.create_key(&master(), body).await.expect("made");
    (made.info.id, made.key.0)
}

fn is_unauthenticated(done: &AppResult<Credential>) -> bool {
    matches!(done, Err(AppError::Refused(Refusal::Unauthenticated)))
}

#[tokio::test]
async fn a_key_that_is_revoked_here_is_refused_at_once() {
    let bed = Bed::new().await;
    let (id, secret) = key_of(&bed.app).await;
    assert!(bed.app.authenticate(Some(&secret)).await.is_ok());
    bed.app.revoke_key(&master(), &id).await.expect("revoked");
    let refused = bed.app.authenticate(Some(&secret)).await;
    assert!(is_unauthenticated(&refused));
}

// check: ACCESS-20
#[tokio::test]
async fn a_revocation_that_is_not_heard_of_is_in_force_a_second_later() {
    let bed = Bed::new().await;
    let (id, secret) = key_of(&bed.app).await;
    assert!(bed.app.authenticate(Some(&secret)).await.is_ok());
    let now = bed.app.now();
    bed.app.store.revoke_key(&id, now).await.expect("revoked");
    tokio::time::sleep(FRESH + Duration::from_millis(50)).await;
    let refused = bed.app.authenticate(Some(&secret)).await;
    assert!(is_unauthenticated(&refused));
}

#[tokio::test]
async fn a_key_from_memory_ends_with_its_time() {
    let bed = Bed::new().await;
    let (_, secret) = key_of(&bed.app).await;
    bed.app.authenticate(Some(&secret)).await.expect("valid");
    let digest = digest(&secret);
    let (row, _) = bed
        .app
        .known
        .keys
        .get(&digest, Instant::now())
        .expect("kept");
    let mut key = KeyRow::clone(&row);
    key.key.expires_at = Some(bed.app.now());
    let now = Instant::now();
    bed.app
        .known
        .keys
        .put(digest, Arc::new(key), 1, now, |_| true);
    let refused = bed.app.authenticate(Some(&secret)).await;
    assert!(is_unauthenticated(&refused));
}

#[tokio::test]
async fn a_token_that_nobody_has_is_looked_for_each_time() {
    let bed = Bed::new().await;
    let secret = format!("{}{}", fuse_api::keys::KeySecret::PREFIX, "0".repeat(64));
    assert!(is_unauthenticated(
        &bed.app.authenticate(Some(&secret)).await
    ));
    let (_, other) = key_of(&bed.app).await;
    let info = bed.app.list_keys(&master(), 1, None).await.expect("keys");
    let row = KeyRow {
        key: fuse_api::keys::Key {
            id: KeyId::from_uuid(uuid::Uuid::now_v7()),
            ..info.api_keys[0].clone()
        },
        env_uid: None,
        first_used_at: None,
    };
    let stored = bed.app.store.insert_key(&row, &digest(&secret)).await;
    stored.expect("stored");
    assert!(bed.app.authenticate(Some(&secret)).await.is_ok());
    assert!(bed.app.authenticate(Some(&other)).await.is_ok());
}
