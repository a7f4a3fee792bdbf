//! The audit log: complete, chained, and loud when somebody alters it.

use fuse_api::audit::AuditEntry;
use fuse_domain::audit::Verifier;
use fuse_e2e::{Server, Settings, Store, both, each_store};
use serde_json::{Value, json};

both!(
    each_event_leaves_its_entry_and_no_content,
    a_log_is_filtered_and_paged_oldest_first
);
each_store!(
    the_chain_holds_over_restarts_and_many_writers,
    a_tampered_log_is_said_loudly_and_goes_on
);

/// Walks the whole chain, and gives its length.
pub async fn verify(server: &Server) -> i64 {
    let mut walk = Verifier::default();
    for entry in server.api().audit().await {
        let entry: AuditEntry = serde_json::from_value(entry).expect("an entry");
        walk.next(&entry).expect("the chain holds");
    }
    walk.finish().expect("the chain is whole").seq
}

// check: AUDIT-1, AUDIT-2, AUDIT-5, AUDIT-7
async fn each_event_leaves_its_entry_and_no_content(server: &Server) {
    let gates = json!([
        {"name": "hold", "on": "exec", "match": {"program": "echo"}},
        {"name": "deny", "on": "exec", "match": {"program": "rm"}, "mode": "deny"},
        {"name": "note", "on": "exec", "match": {"program": "ls"}, "mode": "notify"},
    ]);
    let env = server
        .env(json!({"requests": {"ask": {}}, "gates": gates}))
        .await;
    let (key_id, secret) = env.api.key("agent").await;
    let body = json!({"kind": "ask", "question": "q-content"});
    let ask = env
        .act_as(&env.api.with_token(&secret), "request", body)
        .await
        .ok(201);
    let ask = ask["id"].as_str().expect("an id");
    env.api
        .with_actor("ann")
        .with_header("Fuse-Actor-Name", "Ann")
        .approve(ask, json!({"answer": "a-content"}))
        .await
        .ok(200);
    let held = env.hold(&["echo", "argv-content"]).await;
    env.api
        .reject(held["id"].as_str().expect("an id"), "r-content")
        .await
        .ok(200);
    env.exec(&["rm", "argv-content"])
        .await
        .refused(403, "forbidden");
    env.run(&["ls", "/"]).await;
    let pending = env.ask("q-content").await;
    env.destroy().await.ok(204);
    let path = format!("/v1/hitl/audit?limit=200&env={}", env.id);
    let log = env.api.all(&path, "entries").await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let told: Vec<_> = log
        .iter()
        .map(|e| {
            (
                text(&e["event"]),
                text(&e["on"]),
                text(&e["gate"]),
                text(&e["actor"]["id"]),
            )
        })
        .collect();
    let key = format!("key:{key_id}");
    let expected = [
        ("raised", "ask", "", key.as_str()),
        ("decided", "ask", "", "ann"),
        ("raised", "exec", "hold", "master"),
        ("decided", "exec", "hold", "master"),
        ("raised", "exec", "deny", "master"),
        ("decided", "exec", "deny", "gate:deny"),
        ("raised", "exec", "note", "master"),
        ("decided", "exec", "note", "gate:note"),
        ("raised", "ask", "", "master"),
        ("cancelled", "ask", "", "system"),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(a, b, c, d)| {
            (
                (*a).to_owned(),
                (*b).to_owned(),
                (*c).to_owned(),
                (*d).to_owned(),
            )
        })
        .collect();
    assert_eq!(told, expected);
    assert_eq!(log[0]["intervention_id"], ask);
    assert_eq!(log[9]["intervention_id"], json!(pending));
    assert_eq!(
        log[0]["actor"],
        json!({"id": key, "name": "agent", "source": "key", "key_id": key_id})
    );
    assert_eq!(
        log[1]["actor"],
        json!({"id": "ann", "name": "Ann", "source": "asserted"})
    );
    for entry in &log {
        assert_eq!(entry["env_id"], env.id);
        let by_system = ["gate", "system"].contains(&text(&entry["actor"]["source"]).as_str());
        assert_eq!(entry["remote_addr"] == "127.0.0.1", !by_system, "{entry}");
        let members = entry.as_object().expect("an object");
        assert!(
            members.values().all(|v| !v.is_null() && v != ""),
            "nothing empty: {entry}"
        );
        assert!(!entry.to_string().contains("content"), "{entry}");
    }
}

// check: AUDIT-9, HTTP-6
async fn a_log_is_filtered_and_paged_oldest_first(server: &Server) {
    let env = server.env(json!({"requests": {"ask": {}}})).await;
    let ann = env.api.with_actor("ann-of-this-test");
    for i in 0..5 {
        let id = env.ask(&format!("{i}?")).await;
        ann.reject(&id, "no").await.ok(200);
    }
    let all = env
        .api
        .all(&format!("/v1/hitl/audit?limit=3&env={}", env.id), "entries")
        .await;
    assert_eq!(all.len(), 10);
    let seqs: Vec<i64> = all
        .iter()
        .map(|e| e["seq"].as_i64().expect("a number"))
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let by_ann = env
        .api
        .all(
            &format!(
                "/v1/hitl/audit?limit=2&env={}&actor=ann-of-this-test",
                env.id
            ),
            "entries",
        )
        .await;
    assert_eq!(by_ann.len(), 5);
    assert!(by_ann.iter().all(|e| e["event"] == "decided"));
    let since = async |since: &str| {
        env.api
            .all(
                &format!("/v1/hitl/audit?env={}&since={since}", env.id),
                "entries",
            )
            .await
            .len()
    };
    assert_eq!(since("1h").await, 10);
    assert_eq!(since("0s").await, 0);
    assert_eq!(since(all[4]["at"].as_str().expect("a time")).await, 6);
    assert_eq!(since("2100-01-01T00:00:00Z").await, 0);
    let page = env
        .api
        .get(&format!("/v1/hitl/audit?limit=2&env={}", env.id))
        .await
        .ok(200);
    let cursor = page["next_cursor"].as_str().expect("there is more");
    let other = env
        .api
        .get(&format!(
            "/v1/hitl/audit?limit=2&env=fuse-other&cursor={cursor}"
        ))
        .await
        .invalid();
    assert!(other.starts_with("cursor"), "{other}");
    env.api
        .get(&format!("/v1/interventions?cursor={cursor}"))
        .await
        .invalid();
    for bad in [
        "since=yesterday",
        "since=5",
        "since=-1h",
        "env=x",
        "limit=0",
        "event=raised",
        "cursor=",
        "cursor=%00",
    ] {
        env.api
            .get(&format!("/v1/hitl/audit?{bad}"))
            .await
            .invalid();
    }
}

// check: AUDIT-3, AUDIT-4, STORE-5
async fn the_chain_holds_over_restarts_and_many_writers(store: Store) {
    let one = Server::start(store);
    // A SQLite file takes one server: there the other writers are other connections.
    let two = matches!(store, Store::Postgres).then(|| one.beside());
    let env = one.env(json!({"requests": {"ask": {}}})).await;
    let there = two.as_ref().unwrap_or(&one).api();
    let raise = |i: usize| {
        let api = if i.is_multiple_of(2) {
            &env.api
        } else {
            &there
        };
        let env = &env;
        async move {
            let raised = env
                .act_as(api, "request", json!({"kind": "ask", "question": "Q?"}))
                .await
                .ok(201);
            api.approve(raised["id"].as_str().expect("an id"), json!({}))
                .await
                .ok(200);
        }
    };
    futures_util::future::join_all((0..40).map(raise)).await;
    assert_eq!(verify(&one).await, 80);
    let hash = one.api().audit().await[0]["prev_hash"].clone();
    assert_eq!(hash, "0".repeat(64));
    one.kill9();
    if let Some(two) = &two {
        two.stop();
    }
    one.restart();
    futures_util::future::join_all([0, 2, 4].map(raise)).await;
    assert_eq!(verify(&one).await, 86);
}

// check: AUDIT-6, AUDIT-8, HTTP-15
async fn a_tampered_log_is_said_loudly_and_goes_on(store: Store) {
    let server = Server::start(store);
    let env = server.env(json!({"requests": {"ask": {}}})).await;
    for _ in 0..3 {
        let id = env.ask("Q?").await;
        env.api.approve(&id, json!({})).await.ok(200);
    }
    assert!(
        server
            .api()
            .get("/metrics")
            .await
            .text
            .contains("chain_broken 0")
    );
    let raw = server.data().raw();
    for (alter, back, sentence) in [
        (
            "UPDATE audit_log SET actor_id = 'mallory' WHERE seq = 4",
            "UPDATE audit_log SET actor_id = 'master' WHERE seq = 4",
            "audit chain broken at seq 4: row content does not match its hash (the row was edited)",
        ),
        (
            "CREATE TABLE kept AS SELECT * FROM audit_log WHERE seq = 3; DELETE FROM audit_log WHERE seq = 3",
            "INSERT INTO audit_log SELECT * FROM kept; DROP TABLE kept",
            "audit chain broken at seq 3: entry is missing (a row was deleted)",
        ),
        (
            "UPDATE audit_log SET seq = 102 WHERE seq = 2; UPDATE audit_log SET seq = 2 WHERE seq = 3; UPDATE audit_log SET seq = 3 WHERE seq = 102",
            "UPDATE audit_log SET seq = 102 WHERE seq = 2; UPDATE audit_log SET seq = 2 WHERE seq = 3; UPDATE audit_log SET seq = 3 WHERE seq = 102",
            "audit chain broken at seq 2:",
        ),
    ] {
        server.stop();
        let quiet = server.log().len();
        raw.run(alter).await;
        server.restart();
        let log = server.log().lines().split_off(quiet);
        assert!(
            log.iter()
                .any(|line| line.contains("ERROR") && line.contains(sentence)),
            "{alter}: {log:#?}"
        );
        assert!(
            server
                .api()
                .get("/metrics")
                .await
                .text
                .contains("chain_broken 1")
        );
        server.stop();
        raw.run(back).await;
        server.restart();
        assert!(
            server
                .api()
                .get("/metrics")
                .await
                .text
                .contains("chain_broken 0")
        );
    }
    // On a broken chain people still decide, and the log goes on from its last row.
    server.stop();
    raw.run("UPDATE audit_log SET actor_id = 'mallory' WHERE seq = 4")
        .await;
    server.restart();
    let id = env.ask("Does it go on?").await;
    env.api.approve(&id, json!({})).await.ok(200);
    let log = server.api().audit().await;
    assert_eq!(log.len(), 8);
    assert_eq!(log[6]["prev_hash"], log[5]["hash"]);
    let mut walk = Verifier::default();
    let broken = log.into_iter().find_map(|e| {
        walk.next(&serde_json::from_value(e).expect("an entry"))
            .err()
    });
    assert_eq!(
        broken.expect("it is found").to_string(),
        "audit chain broken at seq 4: row content does not match its hash (the row was edited)"
    );
}

// check: AUDIT-7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forwarded_address_counts_from_a_trusted_proxy_alone() {
    for (trusted, recorded) in [
        (None, "127.0.0.1"),
        (Some("127.0.0.0/8"), "203.0.113.7"),
        (Some("10.0.0.0/8"), "127.0.0.1"),
    ] {
        let settings = match trusted {
            Some(networks) => Settings::default().with("FUSE_TRUSTED_PROXIES", networks),
            None => Settings::default(),
        };
        let server = Server::with(Store::Sqlite, settings);
        let env = server.env(json!({"requests": {"ask": {}}})).await;
        let body = json!({"kind": "ask", "question": "Q?"});
        let api = env
            .api
            .with_header("X-Forwarded-For", "198.51.100.1, 203.0.113.7");
        env.act_as(&api, "request", body).await.ok(201);
        assert_eq!(
            server.api().audit().await[0]["remote_addr"],
            recorded,
            "{trusted:?}"
        );
    }
}
