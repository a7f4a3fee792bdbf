//! Approved actions and a server that is killed.

use fuse_e2e::{Server, Settings, Store, each_store, until};
use serde_json::{Value, json};

each_store!(
    an_action_under_way_at_the_kill_is_settled_as_in_doubt,
    a_graceful_stop_does_not_wait_for_commands,
    a_create_that_was_cut_off_leaves_nothing,
    grants_survive_a_restart_also_where_content_is_sealed,
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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_approved_while_its_server_was_away_runs_after_the_restart() {
    // Two servers share one database, so it is PostgreSQL.
    let store = Store::Postgres;
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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_runs_once_however_many_servers_see_it() {
    let server = Server::start(Store::Postgres);
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

// check: WAIT-5, GATE-15
async fn a_graceful_stop_does_not_wait_for_commands(store: Store) {
    let server = Server::start(store);
    let env = server.env(block()).await;
    let held = id(&env
        .hold(&["sh", "-c", "echo begun >> /tmp/log; sleep 20"])
        .await);
    env.api.approve(&held, json!({})).await.ok(200);
    until("it has begun", async || {
        (env.run(&["cat", "/tmp/log"]).await["stdout"] == "begun\n").then_some(())
    })
    .await;
    let free = tokio::spawn({
        let (api, path) = (
            env.api.clone(),
            format!("/v1/environments/{}?action=exec", env.id),
        );
        async move {
            api.try_send("POST", &path, Some(br#"{"cmd":["sleep","20"]}"#.to_vec()))
                .await
        }
    });
    let waiter = tokio::spawn({
        let (api, held) = (env.api.clone(), held.clone());
        async move { api.wait(&held, "50s").await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let (status, took) = tokio::task::block_in_place(|| server.stop());
    assert!(
        status.success() && took < std::time::Duration::from_secs(5),
        "{status} after {took:?}"
    );
    let between = waiter.await.expect("it waits");
    assert_eq!(between["state"], "approved");
    assert!(between.get("result").is_none(), "{between}");
    let free = free.await.expect("it ends");
    assert!(
        free.is_err() || free.is_ok_and(|reply| reply.status == 503),
        "its caller is not left without a word"
    );
    server.restart();
    let settled = env.api.wait(&held, "50s").await;
    let error = settled["result"]["error"].as_str().unwrap_or_default();
    assert!(error.contains("may or may not have run"), "{settled}");
    assert_eq!(
        env.run(&["cat", "/tmp/log"]).await["stdout"],
        "begun\n",
        "it was not begun again"
    );
}

// check: ENV-3, ENV-5
async fn a_create_that_was_cut_off_leaves_nothing(store: Store) {
    let server = Server::start(store);
    let api = server.api();
    let request = json!({"task_id": "cut-off", "build": [{"run": "sleep 30"}]});
    let create = tokio::spawn({
        let api = api.clone();
        async move {
            api.try_send(
                "POST",
                "/v1/environments",
                Some(request.to_string().into_bytes()),
            )
            .await
            .is_err()
        }
    });
    until("its guest is there", async || {
        let folders = server.data().environment_folders();
        folders
            .iter()
            .any(|f| f.join("meta.json").exists())
            .then_some(())
    })
    .await;
    let path = "/v1/environments/fuse-cut-off";
    assert_eq!(api.get(path).await.ok(200)["state"], "provisioning");
    let refused = api
        .post(&format!("{path}?action=exec"), json!({"cmd": ["true"]}))
        .await;
    assert_eq!(
        refused.refused(409, "conflict")["details"]["state"],
        "provisioning"
    );
    server.kill9();
    assert!(create.await.expect("it ends"), "its connection broke");
    server.restart();
    until("it is gone", async || {
        (api.get(path).await.status == 404).then_some(())
    })
    .await;
    assert!(server.data().environment_folders().is_empty());
    let again = json!({"task_id": "cut-off"});
    api.post("/v1/environments", again).await.ok(201);
    api.delete(path).await.ok(204);
}

// check: ENV-5, INV-8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destroy_that_was_cut_off_is_finished() {
    // Two servers share one database, so it is PostgreSQL.
    let store = Store::Postgres;
    let server = Server::start(store);
    let other = server.elsewhere();
    let env = server.env(block()).await;
    let asked = env.ask("Q?").await;
    server.kill9();
    // Another machine takes it out of service; only its own can remove the guest.
    other
        .api()
        .delete(&format!("/v1/environments/{}", env.id))
        .await
        .ok(204);
    assert_eq!(other.api().read(&asked).await["state"], "cancelled");
    assert!(!server.data().environment_folders().is_empty());
    server.restart();
    until("it is gone", async || {
        (env.get().await.status == 404).then_some(())
    })
    .await;
    until("nothing of it is left", async || {
        server.data().environment_folders().is_empty().then_some(())
    })
    .await;
}

// check: GRANT-1, GRANT-2, SEAL-1
async fn grants_survive_a_restart_also_where_content_is_sealed(store: Store) {
    for settings in [Settings::default(), Settings::sealed()] {
        let server = Server::with(store, settings);
        let gate = json!({"name": "sh", "on": "exec", "match": {"program": "sh"}, "grant": "env"});
        let env = server.env(json!({ "gates": [gate] })).await;
        let argv = ["sh", "-c", "echo granted-argv"];
        let held = id(&env.hold(&argv).await);
        env.api.approve(&held, json!({})).await.ok(200);
        env.api.wait(&held, "50s").await;
        env.run(&argv).await;
        server.kill9();
        server.restart();
        assert_eq!(env.run(&argv).await["stdout"], "granted-argv\n");
        env.hold(&["sh", "-c", "echo another"]).await;
    }
}
