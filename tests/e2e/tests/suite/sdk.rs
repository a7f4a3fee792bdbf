//! The Rust SDK against a real server.

use std::process::{Command, Stdio};
use std::time::Duration;

use fuse_client::{Error, HumanRequest};
use fuse_e2e::{Server, Store, both, each_store};
use serde_json::json;

both!(every_documented_example_runs);
each_store!(the_sdk_waits_over_a_server_that_is_killed);

/// The example program, which is built along with the tests of the client.
fn tour() -> std::path::PathBuf {
    let own = std::env::current_exe().expect("this program has a path");
    let target = own
        .parent()
        .and_then(|deps| deps.parent())
        .expect("it lies in target");
    let path = target.join("examples/tour");
    assert!(
        path.is_file(),
        "{} is not there: build it with `cargo build -p fuse-client --examples`, or run the tests with `cargo xtask test`",
        path.display()
    );
    path
}

// check: WAIT-6, WAIT-7
async fn every_documented_example_runs(server: &Server) {
    let mut command = Command::new(tour());
    command
        .env("FUSE_URL", server.url())
        .env("FUSE_TOKEN", server.token())
        .stdin(Stdio::null());
    let ran = tokio::task::spawn_blocking(move || command.output())
        .await
        .expect("it runs")
        .expect("it starts");
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

// check: WAIT-6, WAIT-8, INV-11
async fn the_sdk_waits_over_a_server_that_is_killed(store: Store) {
    let server = Server::start(store);
    let env = server
        .env(json!({"requests": {"ask": {}}, "gates": [{"name": "echo", "on": "exec", "match": {"program": "echo"}}]}))
        .await;
    let client = server.client();
    let ask = tokio::spawn({
        let (client, env) = (client.clone(), env.id.clone());
        async move {
            client
                .environments()
                .request_human(&env, HumanRequest::ask("Q?"))
                .await
        }
    });
    let exec = tokio::spawn({
        let (client, env) = (client.clone(), env.id.clone());
        async move { client.environments().exec(&env, ["echo", "approved"]).await }
    });
    let refused = tokio::spawn({
        let (client, env) = (client.clone(), env.id.clone());
        async move { client.environments().exec(&env, ["echo", "refused"]).await }
    });
    let pending = fuse_e2e::until("all are held", async || {
        let all = env.interventions().await;
        (all.len() == 3).then_some(all)
    })
    .await;
    server.kill9();
    tokio::time::sleep(Duration::from_millis(700)).await;
    server.restart();
    for held in &pending {
        let id = held["id"].as_str().expect("an id");
        if held["payload"]["exec"]["argv"][1] == "refused" {
            env.api.reject(id, "not now").await.ok(200);
        } else if held["kind"] == "ask" {
            env.api.approve(id, json!({"answer": "yes"})).await.ok(200);
        } else {
            env.api.approve(id, json!({})).await.ok(200);
        }
    }
    let limit = Duration::from_secs(60);
    let asked = tokio::time::timeout(limit, ask)
        .await
        .expect("in time")
        .expect("it ends")
        .expect("an answer");
    assert_eq!(asked.answer(), "yes");
    let ran = tokio::time::timeout(limit, exec)
        .await
        .expect("in time")
        .expect("it ends")
        .expect("a result");
    assert_eq!(ran.stdout, "approved\n");
    match tokio::time::timeout(limit, refused)
        .await
        .expect("in time")
        .expect("it ends")
    {
        Err(Error::InterventionRejected { reason, .. }) => assert_eq!(reason, "not now"),
        other => panic!("{other:?}"),
    }
}
