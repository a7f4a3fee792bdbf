//! Who changes what wakes whom.

use crate::bed::Bed;
use crate::build::{approve, ask, at, destroy, done, environment, insert, raised};
use fuse_api::environment::EnvState;
use fuse_api::intervention::State;
use fuse_domain::intervention::end;
use fuse_domain::transition::Committed;
use fuse_store::{EnvironmentChange, Notice, Notices, Store};
use std::time::Duration;
use tokio::time::timeout;

shared!(
    a_change_elsewhere_is_told_by_its_id,
    an_environments_states_are_told_elsewhere,
);

both!(
    a_change_here_is_told_with_the_record,
    an_environments_states_are_told_here,
    one_store_hears_nothing_of_its_own_commits_twice,
    large_content_is_told_by_its_id_where_nobody_asked_for_it,
);

/// The next notice that is wanted. Resyncs that come before it are what a fresh listener starts with.
async fn next(notices: &mut Notices) -> Notice {
    loop {
        let notice = timeout(Duration::from_secs(5), notices.recv()).await;
        match notice
            .expect("a notice in time")
            .expect("the store is open")
        {
            Notice::Resync => {}
            other => return other,
        }
    }
}

async fn a_change_here_is_told_with_the_record(bed: &Bed) {
    let (store, mut notices) = bed.open_with_notices().await;
    let env = environment("agent");
    insert(&store, &env).await;
    assert!(matches!(
        next(&mut notices).await,
        Notice::Environment { .. }
    ));
    let record = raised(&store, ask(&env, "?")).await;
    let approved = done(store.commit(approve(&record, "p")).await.expect("commits")).remove(0);
    let cancelled = raised(&store, ask(&env, "?")).await;
    done(store.commit(destroy(&env)).await.expect("commits"));
    let told = async |notices: &mut Notices| match next(notices).await {
        Notice::Changed(record) => record,
        other => panic!("{other:?}"),
    };
    assert_eq!(told(&mut notices).await, record);
    assert_eq!(told(&mut notices).await, approved);
    assert_eq!(told(&mut notices).await, cancelled);
    assert_eq!(told(&mut notices).await.view.state, State::Cancelled);
    let last = next(&mut notices).await;
    assert!(matches!(
        last,
        Notice::Environment {
            state: EnvState::Destroyed,
            ..
        }
    ));
}

// check: INV-7
async fn a_change_elsewhere_is_told_by_its_id(bed: &Bed) {
    let (one, _mine) = bed.open_with_notices().await;
    let (two, mut theirs) = bed.open_with_notices().await;
    settle(&mut theirs).await;
    let env = environment("agent");
    insert(&one, &env).await;
    let record = raised(&one, ask(&env, "?")).await;
    let id = record.view.id.clone();
    assert!(matches!(
        next(&mut theirs).await,
        Notice::Environment { .. }
    ));
    assert!(matches!(next(&mut theirs).await, Notice::Remote(told) if told == id));
    settle(&mut theirs).await;
    done(one.commit(approve(&record, "p")).await.expect("commits"));
    assert!(matches!(next(&mut theirs).await, Notice::Remote(told) if told == id));
    let settled = two.settled_among(std::slice::from_ref(&id)).await;
    assert_eq!(settled.expect("reads"), [id]);
}

/// Takes what comes until nothing has come for a while.
async fn settle(notices: &mut Notices) {
    while timeout(Duration::from_millis(500), notices.recv())
        .await
        .is_ok()
    {}
}

async fn an_environments_states_are_told_here(bed: &Bed) {
    let (store, mut notices) = bed.open_with_notices().await;
    states_are_told(&store, &mut notices).await;
}

async fn an_environments_states_are_told_elsewhere(bed: &Bed) {
    let (one, _mine) = bed.open_with_notices().await;
    let (_two, mut theirs) = bed.open_with_notices().await;
    states_are_told(&one, &mut theirs).await;
}

async fn states_are_told(store: &Store, notices: &mut Notices) {
    settle(notices).await;
    let mut env = environment("agent");
    env.state = EnvState::Provisioning;
    insert(store, &env).await;
    let change = EnvironmentChange {
        state: Some(EnvState::Running),
        ..EnvironmentChange::default()
    };
    let from = [EnvState::Provisioning];
    let updated = store
        .update_environment(&env.uid, &from, change, at(1))
        .await;
    assert!(updated.expect("updates").is_some());
    for expected in [EnvState::Provisioning, EnvState::Running] {
        match next(notices).await {
            Notice::Environment { uid, id, state } => {
                assert_eq!(
                    (uid, id, state),
                    (env.uid.clone(), env.id.clone(), expected)
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn one_store_hears_nothing_of_its_own_commits_twice(bed: &Bed) {
    let (store, mut notices) = bed.open_with_notices().await;
    settle(&mut notices).await;
    let env = environment("agent");
    insert(&store, &env).await;
    raised(&store, ask(&env, "?")).await;
    assert!(matches!(
        next(&mut notices).await,
        Notice::Environment { .. }
    ));
    assert!(matches!(next(&mut notices).await, Notice::Changed(_)));
    let more = timeout(Duration::from_millis(500), notices.recv()).await;
    assert!(more.is_err(), "{more:?}");
}

async fn large_content_is_told_by_its_id_where_nobody_asked_for_it(bed: &Bed) {
    let (store, mut notices) = bed.open_with_notices().await;
    let env = environment("agent");
    insert(&store, &env).await;
    let large = "x".repeat(100_000);
    let expired = raised(&store, ask(&env, &large)).await;
    let cancelled = raised(&store, ask(&env, &large)).await;
    for _ in 0..3 {
        next(&mut notices).await;
    }
    let expire = end::expire(&(&*expired).into(), at(700));
    let answers = store.commit_all(vec![expire]).await;
    assert!(matches!(&answers[..], [Ok(Committed::Done(records))] if records.is_empty()));
    let destroyed = store.commit(destroy(&env)).await.expect("commits");
    assert!(done(destroyed).is_empty());
    for record in [expired, cancelled] {
        let told = next(&mut notices).await;
        assert!(matches!(told, Notice::Remote(id) if id == record.view.id));
        let read = store
            .get_intervention(&record.view.id)
            .await
            .expect("reads");
        assert_eq!(
            read.map(|r| r.view.payload),
            Some(record.view.payload.clone())
        );
    }
}
