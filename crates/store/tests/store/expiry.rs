//! Many deadlines at once.

use crate::bed::Bed;
use crate::build::{ask, at, done, environment, insert, raise, verified_log};
use fuse_api::audit::AuditEvent;
use fuse_api::intervention::State;
use fuse_domain::intervention::end;
use fuse_store::{InterventionFilter, Store};
use std::time::Instant;

both!(all_that_share_a_deadline_expire_together);

/// How many; a measurement asks for more by `FUSE_TEST_EXPIRE`.
fn many() -> usize {
    std::env::var("FUSE_TEST_EXPIRE").map_or(4_000, |n| n.parse().expect("a number"))
}

async fn fill(store: &Store, count: usize) {
    for n in 0..count.div_ceil(1_000) {
        let env = environment(&format!("e{n}"));
        insert(store, &env).await;
        let batch = (0..1_000.min(count - n * 1_000)).map(|_| raise(&ask(&env, "?")));
        for answer in store.commit_all(batch.collect()).await {
            done(answer.expect("commits"));
        }
    }
}

// check: INV-6
// check: INV-20
async fn all_that_share_a_deadline_expire_together(bed: &Bed) {
    let store = bed.open().await;
    let count = many();
    fill(&store, count).await;
    assert!(store.due(at(599), 10).await.expect("reads").is_empty());
    let begun = Instant::now();
    let mut expired = 0;
    loop {
        let due = store.due(at(600), 8_000).await.expect("reads");
        if due.is_empty() {
            break;
        }
        let batch = due.iter().map(|due| end::expire(due, at(600))).collect();
        for answer in store.commit_all(batch).await {
            done(answer.expect("commits"));
            expired += 1;
        }
    }
    println!("{count} expired in {:?}", begun.elapsed());
    assert_eq!(expired, count);
    let left = bed
        .number("SELECT COUNT(*) FROM interventions WHERE state <> 'expired'")
        .await;
    assert_eq!(left, 0);
    let filter = InterventionFilter {
        state: Some(State::Expired),
        ..InterventionFilter::default()
    };
    let page = store
        .list_interventions(&filter, 10, None)
        .await
        .expect("lists");
    for record in page.items {
        let decision = record.view.decision.expect("a decision");
        assert_eq!(decision.decided_by.id, "system");
        assert!(!decision.reason.trim().is_empty());
    }
    let log = verified_log(&store).await;
    let entries = log.iter().filter(|e| e.event == AuditEvent::Expired);
    assert_eq!(entries.count(), count);
}
