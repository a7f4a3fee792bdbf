//! Every route with every kind of credential, and the life of keys.

use fuse_api::routes::{Access, ROUTES, Route, Served};
use fuse_e2e::{Api, Server, Store, both};
use serde_json::{Value, json};

both!(
    every_route_admits_what_the_table_says,
    keys_are_made_listed_and_revoked,
    a_key_that_asks_for_more_is_refused
);

fn path(row: &Route) -> String {
    let id = match row.path {
        p if p.starts_with("/v1/environments") => "fuse-nobody-has-this",
        p if p.starts_with("/v1/interventions") => "int_00000000000000000000000000000000",
        p if p.starts_with("/v1/api-keys") => "ak_00000000000000000000000000000000",
        p if p.starts_with("/v1/hitl/recordings") => "rec_00000000000000000000000000000000",
        _ => "snap_00000000000000000000000000000000",
    };
    let path = row.path.replace("{id}", id);
    match row.action {
        Some(action) => format!("{path}?action={action}"),
        None => path,
    }
}

/// A body that the call takes, so that the credential is what is judged.
fn body(row: &Route) -> Option<Vec<u8>> {
    let body = match (row.path, row.action) {
        ("/v1/environments", None) if row.method == "POST" => json!({"task_id": "Not A Label"}),
        (_, Some("exec")) => json!({"cmd": ["true"]}),
        (_, Some("request")) => json!({"kind": "ask", "question": "Q?"}),
        (_, Some("approve")) => json!({}),
        (_, Some("reject")) => json!({"reason": "no"}),
        ("/v1/api-keys", _) if row.method == "POST" => json!({"label": "x".repeat(129)}),
        _ => return None,
    };
    Some(body.to_string().into_bytes())
}

fn is_admitted(status: u16, error: &Value) -> bool {
    !matches!(
        (status, error["details"]["reason"].as_str()),
        (401, _) | (403, _)
    )
}

// check: ACCESS-1, ACCESS-2, ACCESS-3, ACCESS-7, HTTP-9, HTTP-10
async fn every_route_admits_what_the_table_says(server: &Server) {
    let master = server.api();
    let (_, full) = master.key("full").await;
    let (revoked_id, revoked) = master.key("revoked").await;
    master
        .delete(&format!("/v1/api-keys/{revoked_id}"))
        .await
        .ok(204);
    let last = if server.token().ends_with('0') {
        "1"
    } else {
        "0"
    };
    let near = format!("{}{last}", &server.token()[..server.token().len() - 1]);
    let none: Vec<(&str, Api)> = vec![
        ("none", master.anonymous()),
        ("wrong", master.with_token("wrong")),
        ("almost the master token", master.with_token(&near)),
        (
            "an unknown key",
            master.with_token(&format!("fuse_sk_{}", "0".repeat(64))),
        ),
        ("a revoked key", master.with_token(&revoked)),
        (
            "a part of a key",
            master.with_token(&full[..full.len() - 1]),
        ),
        (
            "another scheme",
            master
                .anonymous()
                .with_header("Authorization", format!("Basic {}", server.token())),
        ),
        (
            "two credentials",
            master.with_header("Authorization", format!("Bearer {}", server.token())),
        ),
    ];
    for row in ROUTES {
        let path = path(row);
        let send = async |api: &Api| api.send(row.method, &path, body(row)).await;
        let public = row.access == Access::Public;
        for (name, api) in &none {
            let reply = send(api).await;
            if public {
                assert!(
                    reply.status == 200,
                    "{} {path} with {name}: {}",
                    row.method,
                    reply.text
                );
            } else {
                reply.refused(401, "unauthorized");
                assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            }
        }
        if public {
            continue;
        }
        let by_master = send(&master).await;
        let error =
            serde_json::from_str::<Value>(&by_master.text).unwrap_or_default()["error"].clone();
        assert!(
            is_admitted(by_master.status, &error),
            "{} {path}: {}",
            row.method,
            by_master.text
        );
        if row.served == Served::Later {
            by_master.refused(501, "unimplemented");
        }
        let by_key = send(&master.with_token(&full)).await;
        let error =
            serde_json::from_str::<Value>(&by_key.text).unwrap_or_default()["error"].clone();
        // A thing that is not there is a 404 for every valid credential.
        let absent = row.path.contains("{id}") && row.served == Served::Yes && row.method != "GET"
            || by_key.status == 404;
        match row.access {
            _ if absent => assert!(
                [403, 404].contains(&by_key.status),
                "{} {path}: {}",
                row.method,
                by_key.text
            ),
            Access::Master => {
                by_key.refused(403, "unauthorized");
            }
            Access::Scoped(fuse_api::keys::Scope::Read) | Access::Full | Access::Public => {
                assert!(
                    is_admitted(by_key.status, &error),
                    "{} {path}: {}",
                    row.method,
                    by_key.text
                );
            }
            Access::Scoped(scope) => {
                let error = by_key.refused(403, "forbidden");
                assert_eq!(error["details"]["scope"], scope.as_str(), "{error}");
            }
            Access::Mint => {
                let error = by_key.refused(403, "forbidden");
                assert_eq!(error["details"]["reason"], "mint_escalation");
            }
        }
    }
}

// check: ACCESS-4, ACCESS-5, ACCESS-6
async fn keys_are_made_listed_and_revoked(server: &Server) {
    let api = server.api();
    let made = api
        .post("/v1/api-keys", json!({"label": "ci \u{1f980}"}))
        .await
        .ok(201);
    let (id, secret) = (
        made["id"].as_str().expect("an id"),
        made["key"].as_str().expect("a key"),
    );
    assert!(id.starts_with("ak_") && secret.starts_with("fuse_sk_") && secret.len() > 40);
    assert_eq!(
        (&made["label"], &made["scopes"]),
        (&json!("ci \u{1f980}"), &json!([]))
    );
    for empty in ["env_id", "expires_at", "actor"] {
        assert_eq!(made[empty], Value::Null, "{made}");
    }
    let key = api.with_token(secret);
    key.get("/v1/environments").await.ok(200);
    key.get("/v1/interventions").await.ok(200);
    let listed = api.all("/v1/api-keys?limit=1", "api_keys").await;
    let mine = listed.iter().find(|k| k["id"] == id).expect("it is listed");
    assert!(mine.get("key").is_none() && mine.get("revoked_at").is_none());
    let all = api.get("/v1/api-keys?limit=200").await.text;
    assert!(
        !all.contains(secret) && !all.contains(&secret[8..]),
        "the secret is shown once"
    );
    for _ in 0..2 {
        api.delete(&format!("/v1/api-keys/{id}")).await.ok(204);
        key.get("/v1/environments")
            .await
            .refused(401, "unauthorized");
    }
    let listed = api.all("/v1/api-keys?limit=200", "api_keys").await;
    let mine = listed
        .iter()
        .find(|k| k["id"] == id)
        .expect("it stays listed");
    assert!(mine["revoked_at"].is_string());
    for bad in [
        "ak_1",
        "int_00000000000000000000000000000000",
        "ak_00000000000000000000000000000000",
    ] {
        api.delete(&format!("/v1/api-keys/{bad}"))
            .await
            .refused(404, "not_found");
    }
    let raw = server.data().raw();
    assert!(
        !raw.holds(secret).await && !raw.holds(&secret[8..]).await,
        "only its digest is stored"
    );
    let bare = api.send("POST", "/v1/api-keys", None).await.ok(201);
    assert_eq!(bare["label"], "");
    api.post("/v1/api-keys", json!({"label": "x".repeat(128)}))
        .await
        .ok(201);
}

// check: ACCESS-6
async fn a_key_that_asks_for_more_is_refused(server: &Server) {
    let api = server.api();
    for (body, path) in [
        (json!({"label": "x".repeat(129)}), "label"),
        (json!({"label": 7}), "label"),
        (json!({"ttl_seconds": 60}), "ttl_seconds"),
        (json!({"env_id": "fuse-a"}), "env_id"),
        (json!({"actor": {"id": "ann"}}), "actor"),
        (json!({"scope": ["hitl:read"]}), "scope"),
    ] {
        let message = api.post("/v1/api-keys", body.clone()).await.invalid();
        assert!(message.starts_with(path), "{body}: {message}");
    }
    // Scoped keys belong to a later release: known, and not served.
    let scoped = json!({"scopes": ["hitl:decide"], "ttl_seconds": 60});
    let reply = api.post("/v1/api-keys", scoped).await;
    assert!([400, 501].contains(&reply.status), "{}", reply.text);
}

// check: ACCESS-12, BOX-7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_credential_and_no_content_gets_into_the_log() {
    for store in [Store::Sqlite, Store::Postgres] {
        let settings = fuse_e2e::Settings::sealed().with("RUST_LOG", "trace");
        let key = settings.key.clone().expect("a key");
        let server = Server::with(store, settings);
        let api = server.api();
        let (_, secret) = api.key("agent").await;
        let env = server
            .env_of(json!({"secrets": {"gh": "a-secret-of-the-request"}, "env": {"GH": {"secret": "gh"}},
                "hitl": {"requests": {"ask": {}}, "gates": [{"name": "echo", "on": "exec", "match": {"program": "echo"}}]}}))
            .await;
        let id = env.ask("a-question-for-one-person").await;
        api.with_token("a-token-that-is-wrong")
            .get("/v1/environments")
            .await
            .refused(401, "unauthorized");
        api.with_token(&secret)
            .approve(&id, json!({}))
            .await
            .refused(403, "forbidden");
        api.approve(
            &id,
            json!({"answer": "an-answer-for-one-agent", "reason": "a-reason-for-one-agent"}),
        )
        .await
        .ok(200);
        let held = env.hold(&["echo", "an-argument-of-a-command"]).await;
        let held = held["id"].as_str().expect("an id");
        api.approve(held, json!({})).await.ok(200);
        api.wait(held, "50s").await;
        let body = json!({"task_id": "x", "env": {"A": "a-value-in-the-wrong-place"}});
        api.post("/v1/environments", body).await.invalid();
        env.destroy().await.ok(204);
        server.stop();
        let log = server.log().text();
        assert!(log.lines().count() > 50, "it logs at all: {log}");
        for word in [
            server.token(),
            &secret,
            &key,
            "a-secret-of-the-request",
            "a-token-that-is-wrong",
            "a-question-for-one-person",
            "an-answer-for-one-agent",
            "a-reason-for-one-agent",
            "an-argument-of-a-command",
            "a-value-in-the-wrong-place",
        ] {
            if let Some(line) = log.lines().find(|line| line.contains(word)) {
                panic!("{store:?}: {word} is in the log: {line}");
            }
        }
    }
}
