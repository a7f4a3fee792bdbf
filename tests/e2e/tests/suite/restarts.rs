//! Approved actions and a server that is killed.

use fuse_e2e::{Server, Store, each_store, until};
use serde_json::{Value, json};

each_store!(
    an_action_under_way_at_the_kill_is_settled_as_in_doubt,
    an_action_approved_while_its_server_was_away_runs_after_the_restart,
    an_action_runs_once_however_many_servers_see_it,
);

fn block() -> Value {
    json!({"requests": {"ask": {}}, "gates": [{"name": "sh", "on": "exec", "match": {"program": "sh"}}]})
}

fn id(value: &Value) -> String {
    value["id"].as_str().expect("an id").to_owned()
}

// check: GATE-15, GATE-12, INV-11
async fn an_action_under_way_at_the_kill_is_settled_as_in_doubt(store: Store) {
    let server = Server::start(store);
    let env = server.env(block()).await;
    let held = id(&env
        .hold(&[
            "sh",
            "-c",
            "echo begun >> /tmp/log; sleep 2; echo ended >> /tmp/log",
        ])
        .await);
    env.api.approve(&held, json!({})).await.ok(200);
    until("it has begun", async || {
        (env.run(&["cat", "/tmp/log"]).await["stdout"] == "begun\n").then_some(())
    })
    .await;
    server.kill9();
    server.restart();
    let settled = env.api.wait(&held, "50s").await;
    assert_eq!(
        (&settled["state"], &settled["decision"]["outcome"]),
        (&json!("approved"), &json!("approve"))
    );
    let error = settled["result"]["error"].as_str().expect("an error");
    assert!(error.contains("may or may not have run"), "{error}");
    assert!(settled["result"].get("exec").is_none());
    // The guest carried it on, and nobody ran it a second time.
    until("it has ended", async || {
        (env.run(&["cat", "/tmp/log"]).await["stdout"] == "begun\nended\n").then_some(())
    })
    .await;
    server.stop();
    server.restart();
    assert_eq!(env.api.read(&held).await, settled);
    assert_eq!(
        env.run(&["cat", "/tmp/log"]).await["stdout"],
        "begun\nended\n"
    );
}

// check: GATE-27, STORE-5
async fn an_action_approved_while_its_server_was_away_runs_after_the_restart(store: Store) {
    let server = Server::start(store);
    let env = server.env(block()).await;
    let other = server.elsewhere();
    let held = id(&env
        .hold(&["sh", "-c", "echo ran >> /tmp/log; echo out"])
        .await);
    let refused = id(&env.hold(&["sh", "-c", "echo refused >> /tmp/log"]).await);
    server.kill9();
    let there = other.api();
    let approved = there.approve(&held, json!({"reason": "go"})).await.ok(200);
    assert_eq!(approved["state"], "approved");
    there.reject(&refused, "no").await.ok(200);
    let between = there.wait(&held, "1500ms").await;
    assert!(
        between.get("result").is_none(),
        "another machine cannot run it: {between}"
    );
    let error = there
        .post(
            &format!("/v1/environments/{}?action=exec", env.id),
            json!({"cmd": ["true"]}),
        )
        .await;
    error.refused(503, "unavailable");
    server.restart();
    let (here, elsewhere) = tokio::join!(env.api.wait(&held, "50s"), there.wait(&held, "50s"));
    assert_eq!(
        here["result"]["exec"],
        json!({"exit_code": 0, "stdout": "out\n", "stderr": ""}),
        "{here}"
    );
    assert_eq!(elsewhere, here);
    assert_eq!(env.run(&["cat", "/tmp/log"]).await["stdout"], "ran\n");
}

// check: GATE-12, STORE-5
async fn an_action_runs_once_however_many_servers_see_it(store: Store) {
    let server = Server::start(store);
    let (two, three) = (server.beside(), server.beside());
    let env = server.env(block()).await;
    let apis = [server.api(), two.api(), three.api()];
    let mut held = Vec::new();
    for i in 0..12 {
        held.push(id(&env
            .hold(&["sh", "-c", &format!("echo {i} >> /tmp/log")])
            .await));
    }
    let all = held.iter().enumerate().map(|(i, id)| {
        let (one, two, third) = (&apis[i % 3], &apis[(i + 1) % 3], &apis[(i + 2) % 3]);
        async move {
            let (a, b) = tokio::join!(one.approve(id, json!({})), two.approve(id, json!({})));
            let mut answers = [a.status, b.status];
            answers.sort_unstable();
            assert_eq!(answers, [200, 409]);
            let settled = third.wait(id, "50s").await;
            assert_eq!(settled["result"]["exec"]["exit_code"], 0, "{settled}");
        }
    });
    futures_util::future::join_all(all).await;
    let log = env.run(&["cat", "/tmp/log"]).await;
    let mut lines: Vec<u32> = log["stdout"]
        .as_str()
        .unwrap_or_default()
        .lines()
        .map(|l| l.parse().expect("a number"))
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..12).collect::<Vec<_>>(), "each exactly once");
    crate::audit::verify(&server).await;
}
