//! Long polls: woken by whatever settles, on whichever server.

use std::time::{Duration, Instant};

use fuse_e2e::{Server, Store, both, each_store, until};
use futures_util::future::join_all;
use serde_json::{Value, json};

both!(
    a_wait_ends_with_the_decision_or_with_its_time,
    every_waiter_of_an_id_is_woken_and_no_other
);
each_store!(
    a_graceful_stop_answers_whoever_waits,
    a_killed_server_loses_no_question
);

fn block() -> Value {
    json!({"requests": {"ask": {}}, "gates": [{"name": "sleep", "on": "exec", "match": {"program": "sleep"}}]})
}

// check: WAIT-1, WAIT-2
async fn a_wait_ends_with_the_decision_or_with_its_time(server: &Server) {
    let env = server.env(block()).await;
    let id = env.ask("Q?").await;
    let begun = Instant::now();
    assert_eq!(env.api.wait(&id, "700ms").await["state"], "pending");
    let took = begun.elapsed();
    assert!(
        (Duration::from_millis(700)..Duration::from_secs(5)).contains(&took),
        "{took:?}"
    );
    assert_eq!(env.api.wait(&id, "0s").await["state"], "pending");
    for bad in ["30", "-1s", "", "1d", "soon", "1s&wait=2s"] {
        let path = format!("/v1/interventions/{id}?wait={bad}");
        assert!(
            env.api.get(&path).await.invalid().starts_with("wait"),
            "{bad}"
        );
    }
    let (waited, ()) = tokio::join!(env.api.wait(&id, "24h"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        env.api.approve(&id, json!({"answer": "a"})).await.ok(200);
    });
    assert_eq!(waited["decision"]["answer"], "a");
    // An approved action is waited for until its result is there.
    let held = env.act("exec", json!({"cmd": ["sleep", "1"]})).await.held();
    let held = held["id"].as_str().expect("an id");
    env.api.approve(held, json!({})).await.ok(200);
    let between = env.api.wait(held, "100ms").await;
    assert_eq!(between["state"], "approved");
    assert!(between.get("result").is_none(), "it still sleeps");
    let begun = Instant::now();
    assert_eq!(
        env.api.wait(held, "50s").await["result"]["exec"]["exit_code"],
        0
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
}

// check: INV-7
async fn every_waiter_of_an_id_is_woken_and_no_other(server: &Server) {
    let env = server.env(block()).await;
    let (id, other) = (env.ask("Q?").await, env.ask("R?").await);
    let waits = join_all((0..40).map(|_| env.api.wait(&id, "50s")));
    let begun = Instant::now();
    let (woken, apart, ()) = tokio::join!(waits, env.api.wait(&other, "1500ms"), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        env.api.reject(&id, "no").await.ok(200);
    });
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(
        woken.iter().all(|seen| *seen == woken[0]),
        "all see the same"
    );
    assert_eq!(woken[0]["state"], "rejected");
    assert_eq!(apart["state"], "pending");
}

// check: WAIT-3, STORE-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_on_one_server_wakes_the_waiters_of_another() {
    let one = Server::start(Store::Postgres);
    let two = one.beside();
    let env = one.env(block()).await;
    let there = two.api();
    for _ in 0..5 {
        let id = env.ask("Q?").await;
        let waits = join_all((0..3).map(|_| there.wait(&id, "50s")));
        let (woken, took) = tokio::join!(waits, async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            env.api
                .approve(&id, json!({"answer": "here"}))
                .await
                .ok(200);
            Instant::now()
        });
        assert!(
            took.elapsed() < Duration::from_secs(5),
            "{:?}",
            took.elapsed()
        );
        assert!(
            woken
                .iter()
                .all(|seen| seen["decision"]["answer"] == "here")
        );
    }
    // What one holds the other may approve; the guest is reached by either.
    let held = env.hold(&["sleep", "0"]).await["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let (woken, _) = tokio::join!(env.api.wait(&held, "50s"), there.approve(&held, json!({})));
    let woken = if woken.get("result").is_some() {
        woken
    } else {
        env.api.wait(&held, "50s").await
    };
    assert_eq!(woken["result"]["exec"]["exit_code"], 0, "{woken}");
    let seen = two
        .api()
        .get(&format!("/v1/environments/{}", env.id))
        .await
        .ok(200);
    assert_eq!(seen["state"], "running");
    there
        .delete(&format!("/v1/environments/{}", env.id))
        .await
        .ok(204);
    env.get().await.refused(404, "not_found");
}

// check: WAIT-5
async fn a_graceful_stop_answers_whoever_waits(store: Store) {
    let server = Server::start(store);
    let env = server.env(block()).await;
    let id = env.ask("Q?").await;
    let waits: Vec<_> = (0..20)
        .map(|_| {
            let (api, id) = (env.api.clone(), id.clone());
            tokio::spawn(async move { api.wait(&id, "50s").await })
        })
        .collect();
    let mut events = env.api.events(&env.id).await;
    events.next().await.expect("the state");
    let parked = async || {
        let figures = env.api.get("/metrics").await.text;
        figures
            .lines()
            .any(|line| {
                line.starts_with("fuse_") && line.contains("parked") && line.ends_with(" 20")
            })
            .then_some(())
    };
    until("all are parked", parked).await;
    let (status, took) = tokio::task::block_in_place(|| server.stop());
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    for wait in waits {
        assert_eq!(
            wait.await.expect("it waits")["state"],
            "pending",
            "answered with what is"
        );
    }
    while events.next().await.is_some() {}
    server.restart();
    env.api
        .approve(&id, json!({"answer": "later"}))
        .await
        .ok(200);
}

// check: INV-11
async fn a_killed_server_loses_no_question(store: Store) {
    let server = Server::start(store);
    let env = server.env(block()).await;
    let id = env.ask("Q?").await;
    let held = env.hold(&["sleep", "0"]).await["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let path = format!("/v1/interventions/{id}?wait=50s");
    let cut = tokio::spawn({
        let api = env.api.clone();
        async move { api.try_send("GET", &path, None).await.is_err() }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.kill9();
    assert!(cut.await.expect("it waits"), "its connection broke");
    server.restart();
    assert_eq!(env.api.read(&id).await["state"], "pending");
    let (woken, _) = tokio::join!(
        env.api.wait(&id, "50s"),
        env.api.approve(&id, json!({"answer": "yes"}))
    );
    assert_eq!(woken["decision"]["answer"], "yes");
    env.api.approve(&held, json!({})).await.ok(200);
    assert_eq!(
        env.api.wait(&held, "50s").await["result"]["exec"]["exit_code"],
        0
    );
}
