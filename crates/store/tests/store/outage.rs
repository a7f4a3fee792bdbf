//! The database goes away and comes back.

use crate::bed::{Bed, Kind, Raw};
use crate::build::{approve, ask, done, raise, raised, running, verified_log};
use fuse_api::audit::AuditEvent;
use fuse_domain::transition::Committed;
use fuse_store::{Notice, Store, StoreError};
use sqlx::Executor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

both!(
    a_locked_database_is_an_error_in_time_and_then_it_goes_on,
    closing_a_store_commits_what_waits,
);

/// Holds the lock that every writer needs for as long as the guard lives.
async fn locked(bed: &Bed) -> Box<dyn std::any::Any> {
    match &bed.raw {
        Raw::Sqlite(pool) => {
            let tx = pool.begin_with("BEGIN IMMEDIATE").await.expect("begins");
            Box::new(tx)
        }
        Raw::Postgres(pool) => {
            let mut tx = pool.begin().await.expect("begins");
            tx.execute("SELECT 1 FROM chain_head FOR UPDATE")
                .await
                .expect("locks");
            Box::new(tx)
        }
    }
}

async fn a_locked_database_is_an_error_in_time_and_then_it_goes_on(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let lock = locked(bed).await;
    let begun = Instant::now();
    let record = ask(&env, "?");
    let refused = store.commit(raise(&record)).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(12));
    assert_eq!(
        store
            .get_intervention(&record.view.id)
            .await
            .expect("readers go on"),
        None
    );
    drop(lock);
    recovered(&store, &env).await;
    verified_log(&store).await;
}

async fn recovered(store: &Store, env: &fuse_store::EnvironmentRow) {
    let begun = Instant::now();
    while store.commit(raise(&ask(env, "back?"))).await.is_err() {
        assert!(
            begun.elapsed() < Duration::from_secs(15),
            "it does not come back"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

// check: INV-11
async fn closing_a_store_commits_what_waits(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let record = ask(&env, "?");
    {
        // Polled once: it is in the queue, and nobody waits for its answer.
        let mut commit = std::pin::pin!(store.commit(raise(&record)));
        assert!(futures_util::poll!(commit.as_mut()).is_pending());
    }
    store.close().await;
    let closed = store.commit(raise(&ask(&env, "late"))).await;
    assert!(matches!(closed, Err(StoreError::Unavailable(_))));
    let read = store.get_intervention(&record.view.id).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))));
    let store = bed.open().await;
    assert!(
        store
            .get_intervention(&record.view.id)
            .await
            .expect("reads")
            .is_some()
    );
}

/// Ends every connection of the store again and again while many commit. What was told as done is on record, what was told
/// as undone is not, and what is ambiguous is one of the two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_connections_lose_no_answer() {
    let bed = Bed::new(Kind::Postgres).await;
    let (store, mut notices) = bed.open_with_notices().await;
    let store = Arc::new(store);
    let env = running(&store).await;
    let over = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for _ in 0..8 {
        let (store, env, over) = (Arc::clone(&store), env.clone(), Arc::clone(&over));
        writers.spawn(async move {
            let mut told = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let record = ask(&env, "?");
                match store.commit(raise(&record)).await {
                    Ok(Committed::Done(_)) => told.push((record.clone(), Some(true))),
                    Ok(other) => panic!("{other:?}"),
                    Err(StoreError::Unavailable(_)) => told.push((record, Some(false))),
                    Err(StoreError::Ambiguous) => told.push((record, None)),
                    Err(other) => panic!("{other:?}"),
                }
                if let Some((record, Some(true))) = told.last() {
                    let _ = store.commit(approve(record, "p")).await;
                }
            }
            told
        });
    }
    for _ in 0..20 {
        sleep(Duration::from_millis(60)).await;
        bed.alter(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
             AND application_name = 'fuse'",
        )
        .await;
    }
    over.store(true, Ordering::Relaxed);
    let (mut kept, mut failed) = (0, 0);
    while let Some(told) = writers.join_next().await {
        for (record, answer) in told.expect("writes") {
            let stored = loop {
                match store.get_intervention(&record.view.id).await {
                    Ok(stored) => break stored.is_some(),
                    Err(_) => sleep(Duration::from_millis(50)).await,
                }
            };
            match answer {
                Some(true) => kept += 1,
                Some(false) => failed += 1,
                None => {}
            }
            assert!(
                answer.is_none_or(|answer| answer == stored),
                "{answer:?} but {stored}"
            );
        }
    }
    assert!(kept > 0 && failed > 0, "{kept} kept, {failed} failed");
    recovered(&store, &env).await;
    let log = verified_log(&store).await;
    let raised = log.iter().filter(|e| e.event == AuditEvent::Raised).count();
    let rows = bed.number("SELECT COUNT(*) FROM interventions").await;
    assert_eq!(i64::try_from(raised).expect("fits"), rows);

    // The listener came back as well, and says that it may have missed something.
    let resync = async {
        while let Some(notice) = notices.recv().await {
            if matches!(notice, Notice::Resync) {
                break;
            }
        }
    };
    timeout(Duration::from_secs(10), resync)
        .await
        .expect("a resync");
    bed.remove().await;
}

/// A lost listener is made anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_hears_again_after_its_connection_was_lost() {
    let bed = Bed::new(Kind::Postgres).await;
    let (one, _) = bed.open_with_notices().await;
    let (_two, mut theirs) = bed.open_with_notices().await;
    let env = running(&one).await;
    bed.alter(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
         AND query LIKE 'LISTEN%'",
    )
    .await;
    sleep(Duration::from_secs(1)).await;
    let record = raised(&one, ask(&env, "?")).await;
    let heard = async {
        loop {
            match theirs.recv().await.expect("open") {
                Notice::Remote(id) if id == record.view.id => break,
                Notice::Remote(_)
                | Notice::Changed(_)
                | Notice::Environment { .. }
                | Notice::Key(_)
                | Notice::Resync => {}
            }
        }
    };
    timeout(Duration::from_secs(10), heard)
        .await
        .expect("heard");
    done(one.commit(approve(&record, "p")).await.expect("commits"));
    bed.remove().await;
}
