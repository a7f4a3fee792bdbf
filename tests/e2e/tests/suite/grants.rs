//! Grants: approvals that cover repeats.

use fuse_e2e::{Env, Server, both, unique, within};
use serde_json::{Value, json};
use std::time::Duration;

both!(
    a_grant_lets_the_very_same_command_through_and_no_other,
    a_gates_own_grant_is_the_default_and_a_person_may_narrow_it,
    a_grant_is_kept_for_each_gate_that_held,
    a_grant_that_makes_no_sense_is_refused,
    grants_do_not_outlive_their_environment,
    a_timed_grant_ends,
);

fn gate(name: &str, grant: Option<&str>) -> Value {
    let mut gate = json!({"name": name, "on": "exec", "match": {"program": "echo"}});
    if let Some(grant) = grant {
        gate["grant"] = json!(grant);
    }
    gate
}

async fn approve(env: &Env, argv: &[&str], body: Value) -> Value {
    let held = env.hold(argv).await;
    let decided = env
        .api
        .approve(held["id"].as_str().expect("an id"), body)
        .await
        .ok(200);
    env.api
        .wait(held["id"].as_str().expect("an id"), "50s")
        .await;
    decided
}

// check: GRANT-1, GRANT-2, GRANT-5, GRANT-6
async fn a_grant_lets_the_very_same_command_through_and_no_other(server: &Server) {
    let env = server.env(json!({"gates": [gate("echo", None), {"name": "shell", "on": "exec", "match": {"shell": true}}]})).await;
    let decided = approve(&env, &["echo", "a", "b"], json!({"grant": "env"})).await;
    assert_eq!(decided["decision"]["grant"], "env");
    assert_eq!(env.run(&["echo", "a", "b"]).await["stdout"], "a b\n");
    env.act(
        "exec",
        json!({"cmd": ["echo", "a", "b"], "timeout_ms": 5000}),
    )
    .await
    .ok(200);
    for other in [
        vec!["echo", "a"],
        vec!["echo", "a b"],
        vec!["echo", "a", "b", ""],
        vec!["/bin/echo", "a", "b"],
        vec!["nice", "echo", "a", "b"],
    ] {
        env.hold(&other).await;
    }
    let log = env
        .api
        .all(
            &format!("/v1/hitl/audit?limit=200&env={}", env.id),
            "entries",
        )
        .await;
    let of = |event: &str| log.iter().filter(|e| e["event"] == event).count();
    assert_eq!((of("grant_created"), of("grant_used")), (1, 2));
    let created = log
        .iter()
        .find(|e| e["event"] == "grant_created")
        .expect("an entry");
    assert_eq!(
        (&created["gate"], &created["on"]),
        (&json!("echo"), &json!("exec"))
    );
    assert_eq!(created["intervention_id"], decided["id"]);

    let shell = env.act("exec", json!({"shell": "echo x"})).await.held();
    let id = shell["id"].as_str().expect("an id");
    env.api.approve(id, json!({"grant": "env"})).await.ok(200);
    env.api.wait(id, "50s").await;
    env.act("exec", json!({"shell": "echo x"})).await.ok(200);
    env.act("exec", json!({"shell": "echo x "})).await.held();
    env.exec(&["sh", "-c", "echo x"]).await.held();
}

// check: GRANT-3, GRANT-9
async fn a_gates_own_grant_is_the_default_and_a_person_may_narrow_it(server: &Server) {
    let env = server
        .env(json!({"gates": [gate("echo", Some("ttl:30m"))]}))
        .await;
    assert_eq!(
        approve(&env, &["echo", "1"], json!({})).await["decision"]["grant"],
        "ttl:30m"
    );
    env.run(&["echo", "1"]).await;
    assert_eq!(
        approve(&env, &["echo", "2"], json!({"grant": "once"})).await["decision"]["grant"],
        "once"
    );
    assert_eq!(
        approve(&env, &["echo", "2"], json!({"grant": "ttl:1h30m"})).await["decision"]["grant"],
        "ttl:1h30m"
    );
    env.run(&["echo", "2"]).await;
}

// check: GRANT-4
async fn a_grant_is_kept_for_each_gate_that_held(server: &Server) {
    let other = json!({"name": "with-x", "on": "exec", "match": {"args": ["x"]}});
    let env = server
        .env(json!({"gates": [gate("echo", Some("env")), other]}))
        .await;
    assert_eq!(
        approve(&env, &["echo", "x"], json!({})).await["decision"]["grant"],
        "once",
        "no further than any gate of the set"
    );
    env.hold(&["echo", "x"]).await;
    assert_eq!(
        approve(&env, &["echo", "x"], json!({"grant": "env"})).await["decision"]["grant"],
        "env"
    );
    env.run(&["echo", "x"]).await;
    let log = env
        .api
        .all(
            &format!("/v1/hitl/audit?limit=200&env={}", env.id),
            "entries",
        )
        .await;
    let gates = |event: &str| -> Vec<String> {
        let mut names: Vec<_> = log
            .iter()
            .filter(|e| e["event"] == event)
            .map(|e| e["gate"].as_str().unwrap_or_default().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(gates("grant_created"), ["echo", "with-x"]);
    assert_eq!(gates("grant_used"), ["echo", "with-x"]);
}

// check: EDIT-5, GRANT-9
async fn a_grant_that_makes_no_sense_is_refused(server: &Server) {
    let env = server.env(json!({"gates": [gate("echo", None)]})).await;
    let held = env.hold(&["echo", "x"]).await["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    for bad in [
        json!("forever"),
        json!(""),
        json!("ttl:"),
        json!("ttl:5s"),
        json!("ttl:25h"),
        json!("ttl:30"),
        json!("ttl:-1m"),
        json!("Env"),
        json!(7),
    ] {
        let message = env
            .api
            .approve(&held, json!({ "grant": bad }))
            .await
            .invalid();
        assert!(message.starts_with("grant"), "{bad}: {message}");
    }
    for grant in ["env", "ttl:30m"] {
        let message = env
            .api
            .approve(&held, json!({"grant": grant, "edited_argv": ["echo", "y"]}))
            .await
            .invalid();
        assert!(message.starts_with("grant"), "{message}");
    }
    let once = json!({"grant": "once", "edited_argv": ["echo", "y"]});
    env.api.approve(&held, once).await.ok(200);
}

// check: GRANT-7
async fn grants_do_not_outlive_their_environment(server: &Server) {
    let name = unique("e2e");
    let request = json!({"task_id": name, "hitl": {"gates": [gate("echo", Some("env"))]}});
    let env = server.env_of(request.clone()).await;
    approve(&env, &["echo", "x"], json!({})).await;
    env.run(&["echo", "x"]).await;
    env.destroy().await.ok(204);
    let again = server.env_of(request).await;
    again.hold(&["echo", "x"]).await;
}

// check: GRANT-2
async fn a_timed_grant_ends(server: &Server) {
    let env = server
        .env(json!({"gates": [gate("echo", Some("ttl:10s"))]}))
        .await;
    approve(&env, &["echo", "x"], json!({})).await;
    let begun = std::time::Instant::now();
    env.run(&["echo", "x"]).await;
    within(Duration::from_secs(20), "the grant ends", async || {
        (env.exec(&["echo", "x"]).await.status == 202).then_some(())
    })
    .await;
    assert!(begun.elapsed() > Duration::from_secs(8), "it ended early");
}
