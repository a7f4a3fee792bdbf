//! The audit log: one chain, whoever writes.

use crate::bed::Bed;
use crate::build::{approve, ask, done, log, raised, running, verified_log};
use fuse_domain::audit::{Broken, GENESIS};
use fuse_store::{AuditFilter, CursorError, Store, StoreError};
use std::sync::Arc;
use tokio::task::JoinSet;

shared!(the_chain_holds_while_two_stores_write_at_once);

both!(
    the_log_starts_at_one_from_the_genesis_hash,
    pages_are_filtered_and_go_on_where_they_ended,
    the_tail_check_finds_what_was_altered,
    a_log_that_was_cut_shows_it_and_a_head_that_was_set_back_goes_on,
);

// check: AUDIT-3
// check: STORE-5
// check: STORE-3
async fn the_chain_holds_while_two_stores_write_at_once(bed: &Bed) {
    let stores = [Arc::new(bed.open().await), Arc::new(bed.open().await)];
    let env = running(&stores[0]).await;
    let mut writers = JoinSet::new();
    for n in 0..40 {
        let (store, env) = (Arc::clone(&stores[n % 2]), env.clone());
        writers.spawn(async move {
            for _ in 0..5 {
                let record = raised(&store, ask(&env, "?")).await;
                done(store.commit(approve(&record, "p")).await.expect("commits"));
            }
        });
    }
    while let Some(written) = writers.join_next().await {
        written.expect("writes");
    }
    let entries = verified_log(&stores[0]).await;
    assert_eq!(entries.len(), 400);
    assert_eq!(log(&stores[1]).await, entries);
}

// check: AUDIT-4
async fn the_log_starts_at_one_from_the_genesis_hash(bed: &Bed) {
    let store = bed.open().await;
    let head = store.audit_head().await.expect("a head");
    assert_eq!((head.seq, head.hash.as_str()), (0, GENESIS));
    assert_eq!(store.check_tail(10).await.expect("checks"), Ok(head));
    let env = running(&store).await;
    raised(&store, ask(&env, "?")).await;
    let first = verified_log(&store).await.remove(0);
    assert_eq!((first.seq, first.prev_hash.as_str()), (1, GENESIS));
}

async fn pages_are_filtered_and_go_on_where_they_ended(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    for n in 0..10 {
        let record = raised(&store, ask(&env, "?")).await;
        let by = if n % 2 == 0 { "even" } else { "odd" };
        done(store.commit(approve(&record, by)).await.expect("commits"));
    }
    let filter = AuditFilter {
        actor: Some("odd".into()),
        env_id: Some(env.id.clone()),
        since: Some(crate::build::at(1)),
    };
    let first = store.audit_page(&filter, 3, None).await.expect("a page");
    let cursor = first.next.expect("more");
    let second = store
        .audit_page(&filter, 3, Some(&cursor))
        .await
        .expect("a page");
    assert_eq!(second.next, None);
    let seqs: Vec<_> = first
        .items
        .iter()
        .chain(&second.items)
        .map(|e| e.seq)
        .collect();
    assert_eq!(seqs, [4, 8, 12, 16, 20]);
    let late = AuditFilter {
        since: Some(crate::build::at(2)),
        ..filter.clone()
    };
    assert_eq!(
        store
            .audit_page(&late, 3, None)
            .await
            .expect("a page")
            .items,
        []
    );
    let misused = store
        .audit_page(&AuditFilter::default(), 3, Some(&cursor))
        .await;
    assert!(matches!(
        misused,
        Err(StoreError::Cursor(CursorError::OtherFilter))
    ));
}

async fn entries(store: &Store, n: usize) {
    let env = running(store).await;
    for _ in 0..n {
        raised(store, ask(&env, "?")).await;
    }
}

// check: AUDIT-6
// check: AUDIT-8
async fn the_tail_check_finds_what_was_altered(bed: &Bed) {
    let store = bed.open().await;
    entries(&store, 20).await;
    let head = store.audit_head().await.expect("a head");
    assert_eq!(store.check_tail(5).await.expect("checks"), Ok(head.clone()));
    assert_eq!(
        store.check_tail(1_000).await.expect("checks"),
        Ok(head.clone())
    );

    bed.alter("UPDATE audit_log SET actor_id = 'mallory' WHERE seq = 18")
        .await;
    assert_eq!(
        store.check_tail(5).await.expect("checks"),
        Err(Broken::Edited(18))
    );
    assert_eq!(
        store.check_tail(1).await.expect("checks"),
        Ok(head),
        "it lies before the tail"
    );
    bed.alter("UPDATE audit_log SET actor_source = 'nonsense' WHERE seq = 18")
        .await;
    assert_eq!(
        store.check_tail(5).await.expect("checks"),
        Err(Broken::Edited(18))
    );
    bed.alter("DELETE FROM audit_log WHERE seq = 18").await;
    assert_eq!(
        store.check_tail(5).await.expect("checks"),
        Err(Broken::Missing(18))
    );
}

// check: AUDIT-8
async fn a_log_that_was_cut_shows_it_and_a_head_that_was_set_back_goes_on(bed: &Bed) {
    let store = bed.open().await;
    entries(&store, 5).await;
    bed.alter("DELETE FROM audit_log WHERE seq = 5").await;
    assert_eq!(
        store.check_tail(3).await.expect("checks"),
        Err(Broken::Shorter(5))
    );
    store.close().await;

    bed.alter("UPDATE chain_head SET seq = 2").await;
    let store = bed.open().await;
    let env = store.list_environments(&Default::default(), 1, None).await;
    let env = env.expect("lists").items.remove(0);
    raised(&store, ask(&env, "?")).await;
    let last = log(&store).await.pop().expect("an entry");
    assert_eq!(last.seq, 5, "it goes on from the last row that is there");
    verified_log(&store).await;
}
