//! Lists, what is due, grants and runs.

use crate::bed::Bed;
use crate::build::{
    SECOND, approve, ask, at, destroy, done, environment, insert, raise, raised, running,
};
use fuse_api::hitl::{GrantReach, OnTimeout};
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{Kind, State};
use fuse_domain::intervention::end::{self, Due};
use fuse_domain::intervention::{InstanceId, Record, RunState, run};
use fuse_domain::transition::{Grant, Transition};
use fuse_store::{CursorError, InterventionFilter, Store, StoreError};
use std::sync::Arc;

both!(
    lists_are_newest_first_and_go_on_where_they_ended,
    lists_are_narrowed_by_every_filter,
    a_cursor_fits_its_own_list_only,
    what_is_due_is_told_with_all_an_expiry_needs,
    reading_what_is_due_opens_nothing,
    the_earliest_deadline_is_of_what_is_pending,
    a_grant_is_live_until_it_ends,
    runs_are_found_by_their_host,
    what_is_settled_among_many_is_told,
    pending_interventions_are_counted_by_kind,
    an_unknown_intervention_is_none,
);

async fn lists_are_newest_first_and_go_on_where_they_ended(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let mut ids = Vec::new();
    for n in 0..25 {
        let mut record = ask(&env, "?");
        record.view.created_at = at(n);
        ids.push(record.view.id.clone());
        raised(&store, record).await;
    }
    ids.reverse();
    let filter = InterventionFilter::default();
    let mut listed = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = store
            .list_interventions(&filter, 7, cursor.as_deref())
            .await
            .expect("lists");
        assert!(page.items.len() <= 7);
        listed.extend(page.items.into_iter().map(|r| r.view.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, ids);
    let all = store
        .list_interventions(&filter, 25, None)
        .await
        .expect("lists");
    assert_eq!((all.items.len(), all.next), (25, None));
}

async fn lists_are_narrowed_by_every_filter(bed: &Bed) {
    let store = bed.open().await;
    let (one, two) = (environment("one"), environment("two"));
    insert(&store, &one).await;
    insert(&store, &two).await;
    let mut review = ask(&one, "r");
    review.view.kind = Kind::Review;
    review.view.triggered_by.id = "bob".into();
    let review = raised(&store, review).await;
    let decided = raised(&store, ask(&one, "d")).await;
    done(
        store
            .commit(approve(&decided, "bob"))
            .await
            .expect("commits"),
    );
    let left = raised(&store, ask(&two, "o")).await;

    let ids = async |filter: InterventionFilter| -> Vec<InterventionId> {
        let page = store
            .list_interventions(&filter, 10, None)
            .await
            .expect("lists");
        page.items.into_iter().map(|r| r.view.id).collect()
    };
    let [review, decided, other] = [&review, &decided, &left].map(|r| r.view.id.clone());
    let all = InterventionFilter::default;
    let env = InterventionFilter {
        env_id: Some(one.id.clone()),
        ..all()
    };
    assert_eq!(ids(env).await, [decided.clone(), review.clone()]);
    let uids = InterventionFilter {
        env_uids: Some(vec![two.uid.clone()]),
        ..all()
    };
    assert_eq!(ids(uids).await, std::slice::from_ref(&other));
    let nothing = InterventionFilter {
        env_uids: Some(Vec::new()),
        ..all()
    };
    assert_eq!(ids(nothing).await, []);
    let pending = InterventionFilter {
        state: Some(State::Pending),
        ..all()
    };
    assert_eq!(ids(pending).await, [other.clone(), review.clone()]);
    let approved = InterventionFilter {
        state: Some(State::Approved),
        ..all()
    };
    assert_eq!(ids(approved).await, std::slice::from_ref(&decided));
    let kind = InterventionFilter {
        kind: Some(Kind::Review),
        ..all()
    };
    assert_eq!(ids(kind).await, std::slice::from_ref(&review));
    let actor = InterventionFilter {
        actor: Some("bob".into()),
        ..all()
    };
    assert_eq!(ids(actor).await, [decided, review], "raised or decided by");
    let expired = end::expire(&(&*left).into(), at(700));
    done(store.commit(expired).await.expect("commits"));
    let nobody = InterventionFilter {
        actor: Some("system".into()),
        ..all()
    };
    assert_eq!(ids(nobody).await, [other]);
}

async fn a_cursor_fits_its_own_list_only(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    for _ in 0..3 {
        raised(&store, ask(&env, "?")).await;
    }
    let filter = InterventionFilter::default();
    let page = store
        .list_interventions(&filter, 1, None)
        .await
        .expect("lists");
    let cursor = page.next.expect("more");
    let pending = InterventionFilter {
        state: Some(State::Pending),
        ..filter.clone()
    };
    let other = store.list_interventions(&pending, 1, Some(&cursor)).await;
    assert!(matches!(
        other,
        Err(StoreError::Cursor(CursorError::OtherFilter))
    ));
    let environments = store
        .list_environments(&Default::default(), 1, Some(&cursor))
        .await;
    assert!(matches!(
        environments,
        Err(StoreError::Cursor(CursorError::OtherFilter))
    ));
    let malformed = store.list_interventions(&filter, 1, Some("x")).await;
    assert!(matches!(
        malformed,
        Err(StoreError::Cursor(CursorError::Malformed))
    ));
}

// check: STORE-8
async fn what_is_due_is_told_with_all_an_expiry_needs(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let mut gated = ask(&env, "gated");
    gated.view.kind = Kind::Exec;
    gated.view.gate = Some("g".into());
    gated.view.deadline = at(20);
    gated.on_timeout = OnTimeout::Allow;
    let mut first = ask(&env, "first");
    first.view.deadline = at(10);
    let mut later = ask(&env, "later");
    later.view.deadline = at(21);
    let mut decided = ask(&env, "decided");
    decided.view.deadline = at(5);
    let [gated, first, _, decided] = [
        raised(&store, gated).await,
        raised(&store, first).await,
        raised(&store, later).await,
        raised(&store, decided).await,
    ];
    done(store.commit(approve(&decided, "p")).await.expect("commits"));
    let due = store.due(at(20), 10).await.expect("reads");
    assert_eq!(due, [Due::from(&*first), Due::from(&*gated)]);
    assert_eq!(store.due(at(20), 1).await.expect("reads").len(), 1);
    assert_eq!(store.due(at(9), 10).await.expect("reads"), []);
}

async fn reading_what_is_due_opens_nothing(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    raised(&store, ask(&env, "?")).await;
    let spoiled = match bed.kind {
        crate::bed::Kind::Sqlite => "UPDATE interventions SET payload = X'01'",
        crate::bed::Kind::Postgres => r"UPDATE interventions SET payload = '\x01'",
    };
    bed.alter(spoiled).await;
    assert_eq!(store.due(at(601), 10).await.expect("reads").len(), 1);
}

async fn the_earliest_deadline_is_of_what_is_pending(bed: &Bed) {
    let store = bed.open().await;
    assert_eq!(store.earliest_deadline().await.expect("reads"), None);
    let env = running(&store).await;
    let mut soon = ask(&env, "soon");
    soon.view.deadline = at(10);
    let soon = raised(&store, soon).await;
    raised(&store, ask(&env, "late")).await;
    assert_eq!(
        store.earliest_deadline().await.expect("reads"),
        Some(at(10))
    );
    done(store.commit(approve(&soon, "p")).await.expect("commits"));
    assert_eq!(
        store.earliest_deadline().await.expect("reads"),
        Some(at(600))
    );
}

fn grant(env: &fuse_store::EnvironmentRow, key: &str, ends: Option<i64>) -> Grant {
    Grant {
        env_uid: env.uid.clone(),
        gate: "g".into(),
        key: key.into(),
        reach: ends.map_or(GrantReach::Env, |s| GrantReach::Ttl(s * SECOND * 1_000)),
        expires_at: ends.map(at),
        intervention_id: InterventionId::from_uuid(uuid::Uuid::now_v7()),
        created_at: at(0),
    }
}

// check: GRANT-2
async fn a_grant_is_live_until_it_ends(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let grants = vec![
        grant(&env, "for-life", None),
        grant(&env, "for-a-time", Some(100)),
        grant(&env, "not-asked", None),
    ];
    let transition = Transition {
        grants: grants.clone(),
        ..Transition::default()
    };
    done(store.commit(transition).await.expect("commits"));
    let keys = ["for-life", "for-a-time", "unknown"].map(str::to_owned);
    let mut live = store
        .live_grants(&env.uid, &keys, at(99))
        .await
        .expect("reads");
    live.sort_by_key(|grant| grant.expires_at);
    assert_eq!(live, grants[..2]);
    let live = store
        .live_grants(&env.uid, &keys, at(100))
        .await
        .expect("reads");
    assert_eq!(live, grants[..1]);
    assert_eq!(store.drop_ended_grants(at(100)).await.expect("drops"), 1);
    assert_eq!(bed.number("SELECT COUNT(*) FROM grants").await, 2);
    let other = environment("other");
    assert_eq!(
        store
            .live_grants(&other.uid, &keys, at(0))
            .await
            .expect("reads"),
        []
    );
}

async fn held(store: &Store, env: &fuse_store::EnvironmentRow) -> Arc<Record> {
    let mut record = ask(env, "?");
    record.view.kind = Kind::Exec;
    let record = raised(store, record).await;
    done(store.commit(approve(&record, "p")).await.expect("commits")).remove(0)
}

async fn runs_are_found_by_their_host(bed: &Bed) {
    let store = bed.open().await;
    let here = running(&store).await;
    let mut there = environment("there");
    there.host_id = "there".into();
    insert(&store, &there).await;
    let ready = held(&store, &here).await;
    let started = held(&store, &here).await;
    held(&store, &there).await;
    let ended = held(&store, &here).await;
    let instance = InstanceId("me".into());
    let started = store
        .commit(run::start(&started, instance.clone()))
        .await
        .expect("commits");
    let started = done(started).remove(0);
    done(store.commit(run::settle(&ended)).await.expect("commits"));

    assert_eq!(
        store.ready_runs("host", 10).await.expect("reads"),
        [(*ready).clone()]
    );
    let found = store.started_runs("host", 10).await.expect("reads");
    assert_eq!(found, [(*started).clone()]);
    assert_eq!(found[0].run, RunState::Started(instance));
    // What was approved is told also when its environment is gone: its result is still owed.
    done(store.commit(destroy(&here)).await.expect("commits"));
    assert_eq!(store.ready_runs("host", 10).await.expect("reads").len(), 1);
}

async fn what_is_settled_among_many_is_told(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let pending = raised(&store, ask(&env, "?")).await;
    let answered = raised(&store, ask(&env, "?")).await;
    done(
        store
            .commit(approve(&answered, "p"))
            .await
            .expect("commits"),
    );
    let approved = held(&store, &env).await;
    let unknown = ask(&env, "?");
    let ids = [&*pending, &*answered, &*approved, &unknown].map(|r| r.view.id.clone());
    let settled = store.settled_among(&ids).await.expect("reads");
    assert_eq!(
        settled,
        std::slice::from_ref(&answered.view.id),
        "a held action is settled by its result"
    );
    assert_eq!(store.settled_among(&[]).await.expect("reads"), []);
}

async fn pending_interventions_are_counted_by_kind(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let mut review = ask(&env, "?");
    review.view.kind = Kind::Review;
    let batch = vec![
        raise(&review),
        raise(&ask(&env, "1")),
        raise(&ask(&env, "2")),
    ];
    for answer in store.commit_all(batch).await {
        done(answer.expect("commits"));
    }
    held(&store, &env).await;
    let mut counts = store.pending_by_kind().await.expect("reads");
    counts.sort();
    assert_eq!(counts, [(Kind::Ask, 2), (Kind::Review, 1)]);
}

async fn an_unknown_intervention_is_none(bed: &Bed) {
    let store = bed.open().await;
    let id = InterventionId::from_uuid(uuid::Uuid::now_v7());
    assert_eq!(store.get_intervention(&id).await.expect("reads"), None);
}
