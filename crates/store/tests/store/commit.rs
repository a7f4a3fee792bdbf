//! Transitions: all or nothing, once, and none at the cost of another.

use crate::bed::Bed;
use crate::build::{
    actor, approve, ask, at, decision, destroy, done, entry, environment, insert, raise, raised,
    running, verified_log,
};
use fuse_api::audit::AuditEvent;
use fuse_api::environment::EnvState;
use fuse_api::exec::ExecResult;
use fuse_api::hitl::GrantReach;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{ActionResult, Kind, Outcome, State};
use fuse_domain::intervention::{InstanceId, RunState, end, run};
use fuse_domain::transition::{Committed, Grant, MAX_PENDING, Transition};
use fuse_store::{Store, StoreError};
use std::sync::Arc;
use tokio::task::JoinSet;

both!(
    what_was_raised_reads_back_as_it_was,
    one_of_fifty_deciders_wins,
    a_stale_version_changes_nothing,
    a_failed_transition_of_a_batch_leaves_the_others_unharmed,
    what_the_database_refuses_fails_alone,
    two_changes_of_one_intervention_in_one_batch_are_taken_in_order,
    a_run_is_started_once_and_keeps_its_result,
    closing_an_environment_cancels_what_is_pending,
    an_idle_environment_is_spared_while_something_is_pending,
    an_environment_that_is_gone_takes_no_interventions,
    the_thousand_and_first_pending_intervention_is_refused,
    a_large_payload_is_stored_and_comes_back_when_it_is_decided,
    a_transition_without_effect_is_taken,
);

async fn what_was_raised_reads_back_as_it_was(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let mut record = ask(&env, "Größe? \u{202e}");
    record.view.gate = Some("g".into());
    record.view.decision = Some(decision(Outcome::Reject, "gate:g"));
    record.view.state = State::Rejected;
    record.view.resolved_at = Some(at(2));
    record.view.mode = Some(fuse_api::intervention::Mode::Deny);
    if let Some(decision) = &mut record.view.decision {
        decision.edited_argv = Some(vec!["a".into(), String::new()]);
        decision.edited_text = Some(String::new());
        decision.grant = Some(GrantReach::Ttl(1_800_000_000_000));
    }
    record.view.result = Some(run::failed("why"));
    record.run = RunState::Started(InstanceId("i".into()));
    record.require_actor = true;
    let shown = raised(&store, record.clone()).await;
    assert_eq!(*shown, record);
    let read = store.get_intervention(&record.view.id).await;
    assert_eq!(read.expect("reads"), Some(record));
}

// check: INV-3
// check: INV-18
// check: STORE-2
async fn one_of_fifty_deciders_wins(bed: &Bed) {
    let store = Arc::new(bed.open().await);
    let env = running(&store).await;
    let record = raised(&store, ask(&env, "?")).await;
    let mut deciders = JoinSet::new();
    for n in 0..50 {
        let (store, record) = (Arc::clone(&store), Arc::clone(&record));
        deciders.spawn(async move {
            let by = format!("p{n}");
            let committed = store.commit(approve(&record, &by)).await.expect("commits");
            (by, committed)
        });
    }
    let mut winners = Vec::new();
    while let Some(decided) = deciders.join_next().await {
        let (by, committed) = decided.expect("decides");
        match committed {
            Committed::Done(_) => winners.push(by),
            other => assert_eq!(other, Committed::Conflict),
        }
    }
    assert_eq!(winners.len(), 1);
    let read = store.get_intervention(&record.view.id).await;
    let decision = read.expect("reads").and_then(|r| r.view.decision);
    assert_eq!(decision.map(|d| d.decided_by.id), winners.pop());
    let log = verified_log(&store).await;
    let decided = log.iter().filter(|e| e.event == AuditEvent::Decided);
    assert_eq!(decided.count(), 1);
}

// check: INV-19
async fn a_stale_version_changes_nothing(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let record = raised(&store, ask(&env, "?")).await;
    let mut stale = approve(&record, "p");
    if let Some(resolve) = &mut stale.resolve {
        resolve.expected_version += 1;
    }
    stale.raise.push(ask(&env, "along with it"));
    stale.grants.push(grant(&env.uid, &record.view.id));
    let along = stale.raise[0].view.id.clone();
    assert_eq!(
        store.commit(stale).await.expect("answers"),
        Committed::Conflict
    );
    assert_eq!(store.get_intervention(&along).await.expect("reads"), None);
    let read = store
        .get_intervention(&record.view.id)
        .await
        .expect("reads");
    assert_eq!(read.as_ref(), Some(&*record));
    assert_eq!(verified_log(&store).await.len(), 1);
    let grants = store.live_grants(&env.uid, &["k".into()], at(0)).await;
    assert_eq!(grants.expect("reads"), []);
}

fn grant(env_uid: &fuse_domain::intervention::EnvUid, id: &InterventionId) -> Grant {
    Grant {
        env_uid: env_uid.clone(),
        gate: "g".into(),
        key: "k".into(),
        reach: GrantReach::Env,
        expires_at: None,
        intervention_id: id.clone(),
        created_at: at(0),
    }
}

// check: STORE-3
// check: STORE-4
async fn a_failed_transition_of_a_batch_leaves_the_others_unharmed(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let gone = environment("gone");
    let taken = raised(&store, ask(&env, "?")).await;
    done(store.commit(approve(&taken, "p")).await.expect("commits"));
    let records: Vec<_> = (0..30).map(|n| ask(&env, &format!("q{n}"))).collect();
    let mut batch = Vec::new();
    for record in &records {
        batch.push(raise(record));
        batch.push(approve(&taken, "late"));
        batch.push(raise(&ask(&gone, "nowhere")));
    }
    let answers = store.commit_all(batch).await;
    for three in answers.chunks(3) {
        assert!(matches!(three[0], Ok(Committed::Done(_))));
        assert!(matches!(three[1], Ok(Committed::Conflict)));
        assert!(matches!(three[2], Ok(Committed::EnvironmentGone)));
    }
    let log = verified_log(&store).await;
    let raised: Vec<_> = log[2..].iter().map(|e| e.intervention_id.clone()).collect();
    let expected: Vec<_> = records.iter().map(|r| Some(r.view.id.clone())).collect();
    assert_eq!(raised, expected, "in the order in which they waited");
}

// check: STORE-4
async fn what_the_database_refuses_fails_alone(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let first = raised(&store, ask(&env, "?")).await;
    // The id is taken, which is found by the database alone.
    let good: Vec<_> = (0..10).map(|n| ask(&env, &format!("q{n}"))).collect();
    let mut batch: Vec<_> = good.iter().map(raise).collect();
    batch.insert(5, raise(&first));
    let answers = store.commit_all(batch).await;
    for (n, answer) in answers.iter().enumerate() {
        match answer {
            Ok(Committed::Done(_)) => assert_ne!(n, 5),
            Err(StoreError::Internal(_)) => assert_eq!(n, 5),
            other => panic!("{n}: {other:?}"),
        }
    }
    assert_eq!(verified_log(&store).await.len(), 11);
}

// check: STORE-3
async fn two_changes_of_one_intervention_in_one_batch_are_taken_in_order(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let mut held = ask(&env, "?");
    held.view.kind = Kind::Exec;
    let held = raised(&store, held).await;
    let approved = |version| {
        let mut record = (*held).clone();
        record.version = version;
        record
    };
    let batch = vec![
        approve(&held, "first"),
        approve(&held, "second"),
        run::start(&approved(2), InstanceId("me".into())),
        run::finish(&approved(3), run::failed("x")),
    ];
    let answers = store.commit_all(batch).await;
    let states: Vec<_> = answers
        .into_iter()
        .map(|answer| match answer.expect("answers") {
            Committed::Done(records) => Some(records[0].run.clone()),
            _ => None,
        })
        .collect();
    let started = RunState::Started(InstanceId("me".into()));
    let expected = [
        Some(RunState::Ready),
        None,
        Some(started),
        Some(RunState::Done),
    ];
    assert_eq!(states, expected);
    let read = store.get_intervention(&held.view.id).await.expect("reads");
    assert_eq!(read.map(|r| (r.version, r.run)), Some((4, RunState::Done)));
}

async fn a_run_is_started_once_and_keeps_its_result(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let mut held = ask(&env, "?");
    held.view.kind = Kind::Exec;
    let held = raised(&store, held).await;
    let early = store
        .commit(run::start(&held, InstanceId("me".into())))
        .await;
    assert_eq!(
        early.expect("answers"),
        Committed::Conflict,
        "nobody approved it yet"
    );

    let approved = done(store.commit(approve(&held, "p")).await.expect("commits")).remove(0);
    let start = |me: &str| store.commit(run::start(&approved, InstanceId(me.into())));
    let (one, two) = tokio::join!(start("one"), start("two"));
    let starts = [one.expect("answers"), two.expect("answers")];
    assert_eq!(
        starts
            .iter()
            .filter(|c| matches!(c, Committed::Done(_)))
            .count(),
        1
    );

    let started = store
        .get_intervention(&held.view.id)
        .await
        .expect("reads")
        .expect("is there");
    let result = ActionResult {
        exec: Some(ExecResult {
            exit_code: 3,
            stdout: "out".into(),
            ..ExecResult::default()
        }),
        ..ActionResult::default()
    };
    let finished = store
        .commit(run::finish(&started, result.clone()))
        .await
        .expect("commits");
    assert!(done(finished)[0].is_settled());
    let read = store
        .get_intervention(&held.view.id)
        .await
        .expect("reads")
        .expect("is there");
    assert_eq!(read.view.result, Some(result));
    assert_eq!(read.view.decision, approved.view.decision);
}

// check: INV-8
// check: INV-13
// check: INV-17
// check: GRANT-7
async fn closing_an_environment_cancels_what_is_pending(bed: &Bed) {
    let store = bed.open().await;
    let (env, other) = (environment("agent"), environment("other"));
    insert(&store, &env).await;
    insert(&store, &other).await;
    let mut granting = approve(&*raised(&store, ask(&env, "decided")).await, "p");
    let id = granting.resolve.as_ref().expect("resolves").id.clone();
    granting.grants = vec![grant(&env.uid, &id), grant(&other.uid, &id)];
    done(store.commit(granting).await.expect("commits"));
    let pending = [
        raised(&store, ask(&env, "1")).await,
        raised(&store, ask(&env, "2")).await,
    ];
    let elsewhere = raised(&store, ask(&other, "3")).await;

    let cancelled = done(store.commit(destroy(&env)).await.expect("commits"));
    let ids = |records: &[Arc<fuse_domain::intervention::Record>]| {
        let mut ids: Vec<_> = records.iter().map(|r| r.view.id.clone()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&cancelled), ids(&pending));
    for record in &cancelled {
        let read = store
            .get_intervention(&record.view.id)
            .await
            .expect("reads");
        assert_eq!(read.as_ref(), Some(&**record));
        assert_eq!(record.view.state, State::Cancelled);
        let decision = record.view.decision.as_ref().expect("a decision");
        assert_eq!(decision.outcome, Outcome::Reject);
        assert_eq!(decision.decided_by.id, "system");
    }
    let keys = ["k".to_owned()];
    assert_eq!(
        store
            .live_grants(&env.uid, &keys, at(0))
            .await
            .expect("reads"),
        []
    );
    assert_eq!(
        store
            .live_grants(&other.uid, &keys, at(0))
            .await
            .expect("reads")
            .len(),
        1
    );
    let untouched = store
        .get_intervention(&elsewhere.view.id)
        .await
        .expect("reads");
    assert_eq!(untouched.map(|r| r.view.state), Some(State::Pending));
    let log = verified_log(&store).await;
    assert!(
        log[log.len() - 2..]
            .iter()
            .all(|e| e.event == AuditEvent::Cancelled)
    );
    let again = store.commit(destroy(&env)).await.expect("answers");
    assert_eq!(again, Committed::Conflict);
}

async fn an_environment_that_is_gone_takes_no_interventions(bed: &Bed) {
    let store = bed.open().await;
    for state in [EnvState::Destroying, EnvState::Destroyed, EnvState::Failed] {
        let mut env = environment(state.as_str());
        env.state = state;
        insert(&store, &env).await;
        let refused = store.commit(raise(&ask(&env, "?"))).await.expect("answers");
        assert_eq!(refused, Committed::EnvironmentGone, "{state:?}");
    }
    for state in [
        EnvState::Provisioning,
        EnvState::Running,
        EnvState::Draining,
    ] {
        let mut env = environment(state.as_str());
        env.state = state;
        insert(&store, &env).await;
        raised(&store, ask(&env, "?")).await;
    }
    let unknown = environment("unknown");
    let refused = store
        .commit(raise(&ask(&unknown, "?")))
        .await
        .expect("answers");
    assert_eq!(refused, Committed::EnvironmentGone);
}

// check: INV-16
async fn the_thousand_and_first_pending_intervention_is_refused(bed: &Bed) {
    let store: Store = bed.open().await;
    let env = running(&store).await;
    let batch = (0..MAX_PENDING)
        .map(|n| raise(&ask(&env, &n.to_string())))
        .collect();
    let mut taken = Vec::new();
    for answer in store.commit_all(batch).await {
        taken.extend(done(answer.expect("commits")));
    }
    assert_eq!(taken.len(), 1_000);
    let refused = store
        .commit(raise(&ask(&env, "one more")))
        .await
        .expect("answers");
    assert_eq!(refused, Committed::TooManyPending);
    done(
        store
            .commit(approve(&taken[7], "p"))
            .await
            .expect("commits"),
    );
    raised(&store, ask(&env, "room again")).await;
}

async fn a_large_payload_is_stored_and_comes_back_when_it_is_decided(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let record = raised(&store, ask(&env, &"x".repeat(1024 * 1024))).await;
    let decided = done(store.commit(approve(&record, "p")).await.expect("commits"));
    assert_eq!(decided[0].view.payload, record.view.payload);
    let read = store
        .get_intervention(&record.view.id)
        .await
        .expect("reads");
    assert_eq!(read.as_ref(), Some(&*decided[0]));
}

async fn a_transition_without_effect_is_taken(bed: &Bed) {
    let store = bed.open().await;
    let committed = store.commit(Transition::default()).await;
    assert_eq!(committed.expect("commits"), Committed::Done(Vec::new()));
    let env = environment("nowhere");
    let note = Transition {
        audit: vec![entry(
            AuditEvent::GrantUsed,
            &ask(&env, "?"),
            &actor("a").id,
        )],
        ..Transition::default()
    };
    done(store.commit(note).await.expect("commits"));
    assert_eq!(verified_log(&store).await.len(), 1);
}

// check: INV-9
async fn an_idle_environment_is_spared_while_something_is_pending(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let record = raised(&store, ask(&env, "still here?")).await;
    let reap = || {
        let from = [EnvState::Running];
        end::close_idle(env.uid.clone(), &from, EnvState::Destroying, "idle", at(3))
    };
    let spared = store.commit(reap()).await.expect("answers");
    assert_eq!(spared, Committed::Conflict);
    let still = store.get_intervention(&record.view.id).await;
    assert_eq!(
        still.expect("reads").expect("is there").view.state,
        State::Pending
    );
    done(
        store
            .commit(approve(&record, "alice"))
            .await
            .expect("commits"),
    );
    done(store.commit(reap()).await.expect("commits"));
}
