//! Limits: a greedy environment harms itself alone.

use super::{Bench, Ran, argv, must, sh, suite};
use crate::{CallError, ExecSpec};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

suite![
    memory_beyond_the_limit_is_not_given,
    a_fork_bomb_stays_inside_and_can_be_destroyed,
    a_file_cannot_outgrow_the_storage_limit,
    what_has_spent_its_processor_time_can_be_destroyed,
];

// check: BOX-10
async fn memory_beyond_the_limit_is_not_given(bench: Arc<Bench>) {
    let mut spec = bench.spec();
    spec.limits.ram_mb = 96;
    bench
        .with_spec(spec, |guest| async move {
            let hoard = "my @a; for (1..400) { push @a, 'x' x (1 << 20) } print 'got it'";
            let ran = Ran::new(must(guest.exec(argv(&["perl", "-e", hoard])).await, "exec"));
            assert_ne!(ran.code, 0, "{ran:?}");
            assert!(!ran.out.contains("got it"));
            // The environment itself is none the worse.
            sh(&guest, "true").await.ok();
        })
        .await;
}

// check: BOX-10
async fn a_fork_bomb_stays_inside_and_can_be_destroyed(bench: Arc<Bench>) {
    let mut spec = bench.spec();
    spec.limits.pids = 64;
    bench
        .with_spec(spec, |guest| async move {
            let bomb = ExecSpec {
                timeout: Duration::from_secs(2),
                ..super::shell("b() { b | b & }; b; while :; do b; done")
            };
            let bombing = Arc::clone(&guest);
            let running = tokio::spawn(async move { bombing.exec(bomb).await });
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let status = must(guest.status().await, "status under a fork bomb");
                assert!(status.processes <= 64, "{} processes", status.processes);
            }
            // Whatever the bomb leaves for others, each command gets a clear answer.
            match guest.exec(super::shell("true")).await {
                Ok(_) | Err(CallError::Refused(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
            let _ = running.await;
        })
        .await;
}

// check: BOX-10
async fn a_file_cannot_outgrow_the_storage_limit(bench: Arc<Bench>) {
    let mut spec = bench.spec();
    spec.limits.storage_gb = 1;
    bench
        .with_spec(spec, |guest| async move {
            sh(&guest, "truncate -s 2G /tmp/f").await.fails();
            sh(&guest, "truncate -s 1000M /tmp/f").await.ok();
        })
        .await;
}

// check: BOX-10
async fn what_has_spent_its_processor_time_can_be_destroyed(bench: Arc<Bench>) {
    let mut spec = bench.spec();
    spec.limits.cpus = 0.05;
    spec.limits.pids = 300;
    let id = spec.id.clone();
    let guest = bench.create(spec).await;
    let burning = Arc::clone(&guest);
    let running = tokio::spawn(async move {
        burning
            .exec(super::shell(
                "for i in $(seq 200); do (while :; do :; done) & done; wait",
            ))
            .await
    });
    tokio::time::sleep(Duration::from_secs(4)).await;
    let started = Instant::now();
    must(bench.backend().destroy(&id).await, "destroy");
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(running.await.is_ok());
}
