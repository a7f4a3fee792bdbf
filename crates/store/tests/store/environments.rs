//! Environments and the reapers' questions.

use crate::bed::Bed;
use crate::build::{approve, ask, at, destroy, done, environment, insert, raised, running};
use fuse_api::environment::EnvState;
use fuse_store::{EnvironmentChange, EnvironmentFilter, EnvironmentRow, Inserted};
use std::collections::HashSet;

both!(
    an_environment_reads_back_as_it_was,
    a_live_id_is_taken_and_a_destroyed_one_is_free,
    an_update_counts_only_from_the_states_it_names,
    lists_show_what_lives_newest_first,
    the_idle_reaper_skips_what_is_active_or_has_something_pending,
    the_runtime_reaper_takes_what_ran_long_enough_with_a_task_or_without,
    environments_are_counted_by_state,
);

async fn an_environment_reads_back_as_it_was(bed: &Bed) {
    let store = bed.open().await;
    let mut row = environment("agent");
    row.spec.labels.insert("k".into(), "v".into());
    row.spec.cpus = Some(1.5);
    row.has_task = true;
    row.hitl = serde_json::from_str(r#"{"requests":{"ask":{}}}"#).expect("a block");
    assert!(row.hitl.is_some());
    row.started_at = None;
    row.error = Some("why".into());
    insert(&store, &row).await;
    assert_eq!(
        store.get_environment(&row.id).await.expect("reads"),
        Some(row.clone())
    );
    assert_eq!(
        store.get_environment_by_uid(&row.uid).await.expect("reads"),
        Some(row)
    );
}

async fn a_live_id_is_taken_and_a_destroyed_one_is_free(bed: &Bed) {
    let store = bed.open().await;
    let first = running(&store).await;
    let second = environment("agent");
    let taken = store.insert_environment(&second).await.expect("answers");
    assert_eq!(taken, Inserted::Taken);
    done(store.commit(destroy(&first)).await.expect("commits"));
    assert_eq!(store.get_environment(&first.id).await.expect("reads"), None);
    insert(&store, &second).await;
    let live = store.get_environment(&first.id).await.expect("reads");
    assert_eq!(live.map(|row| row.uid), Some(second.uid));
    let past = store
        .get_environment_by_uid(&first.uid)
        .await
        .expect("reads");
    assert_eq!(past.map(|row| row.state), Some(EnvState::Destroyed));
}

async fn an_update_counts_only_from_the_states_it_names(bed: &Bed) {
    let store = bed.open().await;
    let mut row = environment("agent");
    row.state = EnvState::Provisioning;
    row.started_at = None;
    insert(&store, &row).await;
    let change = EnvironmentChange {
        state: Some(EnvState::Running),
        started_at: Some(at(7)),
        ..EnvironmentChange::default()
    };
    let from = [EnvState::Provisioning];
    let updated = store
        .update_environment(&row.uid, &from, change.clone(), at(8))
        .await;
    let expected = EnvironmentRow {
        state: EnvState::Running,
        started_at: Some(at(7)),
        updated_at: at(8),
        ..row.clone()
    };
    assert_eq!(updated.expect("updates"), Some(expected.clone()));
    let again = store
        .update_environment(&row.uid, &from, change, at(9))
        .await;
    assert_eq!(again.expect("answers"), None);
    assert_eq!(
        store.get_environment(&row.id).await.expect("reads"),
        Some(expected)
    );
}

async fn lists_show_what_lives_newest_first(bed: &Bed) {
    let store = bed.open().await;
    let mut rows = Vec::new();
    for n in 0..6 {
        let mut row = environment(&format!("e{n}"));
        row.created_at = at(n);
        row.host_id = format!("h{}", n % 2);
        insert(&store, &row).await;
        rows.push(row);
    }
    done(store.commit(destroy(&rows[5])).await.expect("commits"));
    let all = EnvironmentFilter::default();
    let first = store.list_environments(&all, 3, None).await.expect("lists");
    let rest = store
        .list_environments(&all, 3, first.next.as_deref())
        .await
        .expect("lists");
    assert_eq!(rest.next, None);
    let listed: Vec<_> = first
        .items
        .into_iter()
        .chain(rest.items)
        .map(|r| r.created_at)
        .collect();
    assert_eq!(listed, [4, 3, 2, 1, 0].map(at));

    let count = async |filter: EnvironmentFilter| {
        store
            .list_environments(&filter, 10, None)
            .await
            .expect("lists")
            .items
            .len()
    };
    let host = EnvironmentFilter {
        host_id: Some("h1".into()),
        ..all.clone()
    };
    assert_eq!(count(host).await, 2);
    let task = EnvironmentFilter {
        task_id: Some(rows[2].task_id.clone()),
        ..all.clone()
    };
    assert_eq!(count(task).await, 1);
    let state = EnvironmentFilter {
        state: Some(EnvState::Destroyed),
        ..all
    };
    assert_eq!(count(state).await, 0);
    assert_eq!(store.live_on_host("h1").await.expect("reads").len(), 2);
}

// check: INV-9
async fn the_idle_reaper_skips_what_is_active_or_has_something_pending(bed: &Bed) {
    let store = bed.open().await;
    let idle = |task: &str, timeout| {
        let mut row = environment(task);
        row.spec.idle_timeout_seconds = timeout;
        row
    };
    let [one, busy, forever] = [
        idle("one", Some(60)),
        idle("busy", Some(60)),
        idle("forever", None),
    ];
    for row in [&one, &busy, &forever] {
        insert(&store, row).await;
    }
    let names = async |now| -> Vec<String> {
        let rows = store
            .idle_environments("host", at(now))
            .await
            .expect("reads");
        let mut names: Vec<_> = rows
            .into_iter()
            .map(|r| r.task_id.as_str().to_owned())
            .collect();
        names.sort();
        names
    };
    assert!(names(59).await.is_empty());
    assert_eq!(names(60).await, ["busy", "one"]);
    store.touch(&busy.uid, at(30));
    assert_eq!(names(60).await, ["one"]);
    assert_eq!(names(90).await, ["busy", "one"]);
    let pending = raised(&store, ask(&one, "?")).await;
    assert_eq!(names(90).await, ["busy"]);
    done(store.commit(approve(&pending, "p")).await.expect("commits"));
    assert_eq!(names(90).await, ["busy", "one"]);
    store.touch(&busy.uid, at(10));
    assert_eq!(names(90).await, ["busy", "one"], "activity never goes back");
    assert!(
        store
            .idle_environments("elsewhere", at(90))
            .await
            .expect("reads")
            .is_empty()
    );
}

// check: INV-10
// check: ENV-14
async fn the_runtime_reaper_takes_what_ran_long_enough_with_a_task_or_without(bed: &Bed) {
    let store = bed.open().await;
    let mut task = environment("task");
    task.spec.max_runtime_seconds = Some(100);
    task.has_task = true;
    task.created_at = at(10);
    // Its build steps do not count anew.
    task.started_at = Some(at(60));
    let mut bare = task.clone();
    bare.uid = environment("x").uid;
    bare.id = environment("bare").id;
    bare.has_task = false;
    let mut unbounded = environment("unbounded");
    unbounded.created_at = at(10);
    for row in [&task, &bare, &unbounded] {
        insert(&store, row).await;
    }
    raised(&store, ask(&task, "it does not hold it back")).await;
    assert!(
        store
            .overdue_environments("host", at(109))
            .await
            .expect("reads")
            .is_empty()
    );
    let overdue: HashSet<_> = store
        .overdue_environments("host", at(110))
        .await
        .expect("reads")
        .into_iter()
        .map(|row| row.uid)
        .collect();
    assert_eq!(overdue, HashSet::from([task.uid, bare.uid]));
}

async fn environments_are_counted_by_state(bed: &Bed) {
    let store = bed.open().await;
    for (task, state) in [
        ("a", EnvState::Running),
        ("b", EnvState::Running),
        ("c", EnvState::Failed),
        ("d", EnvState::Destroyed),
    ] {
        let mut row = environment(task);
        row.state = state;
        insert(&store, &row).await;
    }
    let mut counts = store.environments_by_state().await.expect("reads");
    counts.sort_by_key(|(state, _)| state.as_str());
    assert_eq!(counts, [(EnvState::Failed, 1), (EnvState::Running, 2)]);
}
