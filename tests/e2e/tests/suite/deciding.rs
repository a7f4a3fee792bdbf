//! Deciding: who may, when it is too late, and what a decision may say.

use fuse_e2e::{Api, Env, Server, both};
use serde_json::{Value, json};

both!(
    what_is_resolved_cannot_be_decided_again,
    of_two_decisions_that_race_one_wins,
    a_rejection_needs_a_reason,
    a_decision_field_without_use_is_refused,
    a_decision_on_another_payload_than_was_seen_is_refused,
    refusals_come_in_the_settled_order,
    nobody_decides_what_that_person_raised,
    a_person_must_be_named_where_the_policy_demands_it,
    a_full_access_key_raises_and_does_not_decide,
    who_acted_is_recorded_from_credential_and_headers,
    an_actor_header_that_deceives_is_refused,
);

fn block() -> Value {
    json!({"requests": {"ask": {}, "review": {}}, "gates": [{"name": "rm", "on": "exec", "match": {"program": "rm"}}]})
}

async fn raise_as(env: &Env, api: &Api) -> String {
    let body = json!({"kind": "ask", "question": "Q?"});
    let raised = env.act_as(api, "request", body).await.ok(201);
    raised["id"].as_str().expect("an id").to_owned()
}

fn reason(error: &Value) -> &str {
    error["details"]["reason"].as_str().unwrap_or_default()
}

// check: ASK-9, INV-3
async fn what_is_resolved_cannot_be_decided_again(server: &Server) {
    let env = server.env(block()).await;
    let (yes, no) = (env.ask("1?").await, env.ask("2?").await);
    let approved = env.api.approve(&yes, json!({"answer": "a"})).await.ok(200);
    let rejected = env.api.reject(&no, "because").await.ok(200);
    for (id, state) in [(&yes, "approved"), (&no, "rejected")] {
        for late in [
            env.api.approve(id, json!({"answer": "b"})).await,
            env.api.reject(id, "late").await,
        ] {
            let error = late.refused(409, "conflict");
            assert_eq!(
                error["details"],
                json!({"intervention_id": id, "state": state})
            );
        }
    }
    assert_eq!(env.api.read(&yes).await, approved);
    assert_eq!(env.api.read(&no).await, rejected);
    assert_eq!(
        env.api.audited(&env.id).await,
        ["raised", "raised", "decided", "decided"]
    );
}

// check: INV-18, STORE-2
async fn of_two_decisions_that_race_one_wins(server: &Server) {
    let env = server.env(block()).await;
    for _ in 0..10 {
        let id = env.ask("Who is first?").await;
        let (one, two, three) = tokio::join!(
            env.api.approve(&id, json!({"answer": "one"})),
            env.api.reject(&id, "two"),
            env.api.approve(&id, json!({"answer": "three"}))
        );
        let mut all = [one.status, two.status, three.status];
        all.sort_unstable();
        assert_eq!(all, [200, 409, 409]);
        let winner = [&one, &two, &three]
            .into_iter()
            .find(|r| r.status == 200)
            .expect("one");
        assert_eq!(env.api.read(&id).await, winner.json());
    }
}

// check: ASK-8, INV-12
async fn a_rejection_needs_a_reason(server: &Server) {
    let env = server.env(block()).await;
    let id = env.ask("Q?").await;
    let path = format!("/v1/interventions/{id}?action=reject");
    for bad in [
        json!({}),
        json!({"reason": ""}),
        json!({"reason": " \n\t"}),
        json!({"reason": null}),
        json!({"reason": "x".repeat(65_537)}),
        json!({"reason": "a\u{0}"}),
    ] {
        let message = env.api.post(&path, bad).await.invalid();
        assert!(message.starts_with("reason"), "{message}");
    }
    env.api.send("POST", &path, None).await.invalid();
    assert_eq!(env.api.read(&id).await["state"], "pending");
    let most = "x".repeat(65_536);
    let rejected = env.api.reject(&id, &most).await.ok(200);
    assert_eq!(rejected["decision"]["reason"], json!(most));
    assert_eq!(rejected["decision"]["outcome"], "reject");
}

// check: ASK-10, SIGNAL-8, GRANT-9
async fn a_decision_field_without_use_is_refused(server: &Server) {
    let env = server.env(block()).await;
    let ask = env.ask("Q?").await;
    let exec = env.hold(&["rm", "x"]).await["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    for (id, body, field) in [
        (&ask, json!({"edited_argv": ["ls"]}), "edited_argv"),
        (&ask, json!({"edited_text": "x"}), "edited_text"),
        (&ask, json!({"grant": "once"}), "grant"),
        (&ask, json!({"extend_seconds": 60}), "extend_seconds"),
        (&exec, json!({"answer": "yes"}), "answer"),
        (&exec, json!({"edited_text": "x"}), "edited_text"),
        (&exec, json!({"extend_seconds": 60}), "extend_seconds"),
        (&exec, json!({"value": "x"}), "value"),
    ] {
        let message = env.api.approve(id, body).await.invalid();
        assert!(message.starts_with(field), "{message}");
        assert_eq!(env.api.read(id).await["state"], "pending");
    }
    let path = format!("/v1/interventions/{exec}?action=reject");
    let message = env
        .api
        .post(&path, json!({"reason": "no", "grant": "env"}))
        .await
        .invalid();
    assert!(message.starts_with("grant"), "{message}");
    let message = env
        .api
        .post(&path, json!({"reason": "no", "answer": "x"}))
        .await
        .invalid();
    assert!(message.starts_with("answer"), "{message}");
}

// check: ASK-12
async fn a_decision_on_another_payload_than_was_seen_is_refused(server: &Server) {
    let env = server.env(block()).await;
    let id = env.ask("Q?").await;
    let hash = env.api.read(&id).await["payload_hash"]
        .as_str()
        .expect("a hash")
        .to_owned();
    let other = env.ask("R?").await;
    let other = env.api.read(&other).await["payload_hash"].clone();
    let path = format!("/v1/interventions/{id}?action=reject");
    for wrong in [other, json!(""), json!(hash.to_uppercase())] {
        env.api
            .approve(&id, json!({"payload_hash": wrong}))
            .await
            .refused(409, "conflict");
        let body = json!({"reason": "no", "payload_hash": wrong});
        env.api.post(&path, body).await.refused(409, "conflict");
    }
    assert_eq!(env.api.read(&id).await["state"], "pending");
    env.api
        .post(&path, json!({"reason": "no", "payload_hash": hash}))
        .await
        .ok(200);
}

// check: ACCESS-8, ACCESS-2, HTTP-7
async fn refusals_come_in_the_settled_order(server: &Server) {
    let env = server
        .env(json!({"require_actor": true, "requests": {"ask": {}}}))
        .await;
    let (_, secret) = env.api.key("agent").await;
    let key = env.api.with_token(&secret);
    let own = raise_as(&env, &key).await;
    let bob = env.api.with_actor("bob");
    let raised_by_bob = raise_as(&env, &bob).await;
    let resolved = raise_as(&env, &bob).await;
    env.api
        .with_actor("ann")
        .reject(&resolved, "no")
        .await
        .ok(200);
    let unknown = format!("int_{}", "0".repeat(32));
    let path = |id: &str| format!("/v1/interventions/{id}?action=approve");
    let broken = Some(b"{".to_vec());

    // 401 before the body is looked at.
    let reply = env
        .api
        .anonymous()
        .send("POST", &path(&unknown), broken.clone())
        .await;
    reply.refused(401, "unauthorized");
    // 400 for what cannot be parsed, before 404.
    key.send("POST", &path(&unknown), broken).await.invalid();
    key.post(&path(&unknown), json!({"colour": 1}))
        .await
        .invalid();
    key.with_header("Fuse-Actor", " ")
        .post(&path(&unknown), json!({}))
        .await
        .invalid();
    // 404 before the scope.
    key.post(&path(&unknown), json!({}))
        .await
        .refused(404, "not_found");
    // The scope before actor headers, which come before the decision's own rules.
    let error = key
        .with_actor("ann")
        .post(&path(&own), json!({}))
        .await
        .refused(403, "forbidden");
    assert_eq!(reason(&error), "missing_scope");
    assert_eq!(error["details"]["scope"], "hitl:decide");
    // Self-approval before the demand for an actor, the state and the content.
    let error = bob
        .post(&path(&resolved), json!({"grant": "env"}))
        .await
        .refused(403, "forbidden");
    assert_eq!(reason(&error), "self_approval");
    // The demand for an actor before the state and the content.
    let error = env
        .api
        .post(&path(&resolved), json!({"grant": "env"}))
        .await
        .refused(403, "forbidden");
    assert_eq!(reason(&error), "actor_required");
    // The state before the content.
    let ann = env.api.with_actor("ann");
    ann.post(&path(&resolved), json!({"grant": "env"}))
        .await
        .refused(409, "conflict");
    ann.post(&path(&raised_by_bob), json!({"grant": "env"}))
        .await
        .invalid();
    ann.post(&path(&raised_by_bob), json!({})).await.ok(200);
    for malformed in [
        "int_1",
        "rec_00000000000000000000000000000000",
        "%00",
        "%ff",
        "int_",
        "..%2f",
    ] {
        ann.post(&path(malformed), json!({}))
            .await
            .refused(404, "not_found");
    }
}

// check: ACCESS-9, ACCESS-10, ACTOR-5
async fn nobody_decides_what_that_person_raised(server: &Server) {
    let env = server.env(block()).await;
    let bob = env.api.with_actor("bob");
    let id = raise_as(&env, &bob).await;
    for reply in [
        bob.approve(&id, json!({})).await,
        bob.reject(&id, "no").await,
    ] {
        let error = reply.refused(403, "forbidden");
        assert_eq!(reason(&error), "self_approval");
    }
    let held = env
        .act_as(&bob, "exec", json!({"cmd": ["rm", "x"]}))
        .await
        .held();
    let held = held["id"].as_str().expect("an id");
    let error = bob
        .with_header("Fuse-Actor-Name", "Bob")
        .approve(held, json!({}))
        .await;
    assert_eq!(reason(&error.refused(403, "forbidden")), "self_approval");
    assert_eq!(env.api.read(held).await["state"], "pending");
    // Another person may, and a name of other bytes is another person.
    env.api
        .with_actor("Bob")
        .approve(&id, json!({}))
        .await
        .ok(200);
    env.api.with_actor("ann").reject(held, "no").await.ok(200);
    // The bare master token may decide anything, its own requests too.
    let own = env.ask("Q?").await;
    env.api.approve(&own, json!({})).await.ok(200);
    let of_bob = raise_as(&env, &bob).await;
    env.api.approve(&of_bob, json!({})).await.ok(200);
}

// check: ACCESS-11
async fn a_person_must_be_named_where_the_policy_demands_it(server: &Server) {
    let mut block = block();
    block["require_actor"] = json!(true);
    let env = server.env(block).await;
    let ask = env.ask("Q?").await;
    let held = env.hold(&["rm", "x"]).await["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    for id in [&ask, &held] {
        for reply in [
            env.api.approve(id, json!({})).await,
            env.api.reject(id, "no").await,
        ] {
            assert_eq!(reason(&reply.refused(403, "forbidden")), "actor_required");
        }
        let decided = env.api.with_actor("ann").reject(id, "no").await.ok(200);
        assert_eq!(
            decided["decision"]["decided_by"],
            json!({"id": "ann", "source": "asserted"})
        );
    }
}

// check: ACCESS-2, ACTOR-2
async fn a_full_access_key_raises_and_does_not_decide(server: &Server) {
    let env = server.env(block()).await;
    let (key_id, secret) = env.api.key("the agent").await;
    let key = env.api.with_token(&secret);
    let id = raise_as(&env, &key).await;
    let read = key.read(&id).await;
    let actor = json!({"id": format!("key:{key_id}"), "name": "the agent", "source": "key", "key_id": key_id});
    assert_eq!(read["triggered_by"], actor);
    for reply in [
        key.approve(&id, json!({})).await,
        key.reject(&id, "no").await,
    ] {
        let error = reply.refused(403, "forbidden");
        assert_eq!(
            (reason(&error), &error["details"]["scope"]),
            ("missing_scope", &json!("hitl:decide"))
        );
    }
    let error = env
        .act_as(
            &key.with_actor("ann"),
            "request",
            json!({"kind": "ask", "question": "Q?"}),
        )
        .await;
    assert_eq!(
        reason(&error.refused(403, "forbidden")),
        "actor_not_allowed"
    );
    let exec = env.act_as(&key, "exec", json!({"cmd": ["true"]})).await;
    exec.refused(403, "unauthorized");
    env.api.approve(&id, json!({})).await.ok(200);
}

// check: ACTOR-1
async fn who_acted_is_recorded_from_credential_and_headers(server: &Server) {
    let env = server.env(block()).await;
    let ann = env
        .api
        .with_actor("  ann@corp.com\t")
        .with_header("Fuse-Actor-Name", "Ann Ñg".as_bytes());
    let id = raise_as(&env, &ann).await;
    let actor = json!({"id": "ann@corp.com", "name": "Ann Ñg", "source": "asserted"});
    assert_eq!(env.api.read(&id).await["triggered_by"], actor);
    let decided = env
        .api
        .with_actor("slack:U0123")
        .approve(&id, json!({}))
        .await
        .ok(200);
    assert_eq!(
        decided["decision"]["decided_by"],
        json!({"id": "slack:U0123", "source": "asserted"})
    );
    let log = env
        .api
        .all(
            &format!("/v1/hitl/audit?env={}&actor=ann@corp.com", env.id),
            "entries",
        )
        .await;
    assert_eq!(log.len(), 1);
    assert_eq!(log[0]["actor"], actor);
}

// check: ACTOR-3, ACTOR-4
async fn an_actor_header_that_deceives_is_refused(server: &Server) {
    let api = server.api();
    let get = "/v1/interventions";
    let long = "x".repeat(129);
    for (value, header) in [
        (b" ".to_vec(), "Fuse-Actor"),
        (long.clone().into_bytes(), "Fuse-Actor"),
        (b"a\xffb".to_vec(), "Fuse-Actor"),
        ("a\u{202e}b".into(), "Fuse-Actor"),
        ("a\u{85}b".into(), "Fuse-Actor"),
        ("a\u{200f}".into(), "Fuse-Actor"),
        (b"master".to_vec(), "Fuse-Actor"),
        (b"System".to_vec(), "Fuse-Actor"),
        (b"key:ak_1".to_vec(), "Fuse-Actor"),
        (b"gate:x".to_vec(), "Fuse-Actor"),
        (b"decider:x".to_vec(), "Fuse-Actor"),
    ] {
        let message = api
            .with_header("Fuse-Actor", value.clone())
            .get(get)
            .await
            .invalid();
        assert!(message.starts_with(header), "{value:?}: {message}");
        let name = api
            .with_actor("ann")
            .with_header("Fuse-Actor-Name", value.clone())
            .get(get)
            .await;
        let imitates = String::from_utf8(value)
            .is_ok_and(|v| v.is_ascii() && !v.trim().is_empty() && v.len() < 129);
        if imitates {
            name.ok(200);
        } else {
            assert!(name.invalid().starts_with("Fuse-Actor-Name"));
        }
    }
    let message = api
        .with_header("Fuse-Actor-Name", "Ann")
        .get(get)
        .await
        .invalid();
    assert!(message.starts_with("Fuse-Actor-Name"), "{message}");
    api.with_actor("ann")
        .with_actor("bob")
        .get(get)
        .await
        .invalid();
    api.with_actor(&"x".repeat(128)).get(get).await.ok(200);
}
