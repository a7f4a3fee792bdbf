//! Questions: raised, refused, listed.

use fuse_domain::audit::canonical_hash;
use fuse_e2e::{Server, both};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

both!(
    a_question_is_raised_answered_and_read_again,
    choices_bind_the_answer_and_a_free_question_takes_any,
    a_question_that_breaks_a_rule_is_refused_by_name,
    a_timeout_only_shortens_the_deadline,
    an_undeclared_kind_is_refused,
    a_list_filters_by_environment_state_kind_and_actor,
    a_thousand_pending_are_the_most,
    a_block_that_breaks_a_rule_is_refused_with_its_path,
);

fn ask_block() -> Value {
    json!({"requests": {"ask": {}}})
}

fn micros(time: &Value) -> i64 {
    let text = time.as_str().expect("a time");
    fuse_api::time::Timestamp::parse(text)
        .expect("RFC 3339")
        .as_micros()
}

// check: ASK-6, ASK-7, ASK-11, ASK-13, INV-1, INV-2
async fn a_question_is_raised_answered_and_read_again(server: &Server) {
    let env = server.env(ask_block()).await;
    let body =
        json!({"kind": "ask", "question": "Deploy build 812 to prod?", "choices": ["yes", "no"]});
    let raised = env.request(body).await.ok(201);
    let id = raised["id"].as_str().expect("an id");
    assert!(id.starts_with("int_") && id.len() == 36, "{id}");
    assert_eq!(raised["env_id"], env.id);
    assert_eq!(
        (&raised["kind"], &raised["state"]),
        (&json!("ask"), &json!("pending"))
    );
    assert_eq!(
        raised["triggered_by"],
        json!({"id": "master", "source": "key"})
    );
    let payload =
        json!({"ask": {"question": "Deploy build 812 to prod?", "choices": ["yes", "no"]}});
    assert_eq!(raised["payload"], payload);
    assert_eq!(raised["payload_hash"], canonical_hash(&payload));
    assert_eq!(
        micros(&raised["deadline"]) - micros(&raised["created_at"]),
        600_000_000
    );
    assert_eq!(raised["resolved_at"], Value::Null);
    for absent in ["decision", "result", "gate", "mode"] {
        assert!(raised.get(absent).is_none(), "{absent}: {raised}");
    }
    assert_eq!(env.api.read(id).await, raised);

    let body =
        json!({"answer": "yes", "reason": "QA is green", "payload_hash": raised["payload_hash"]});
    let decided = env.api.approve(id, body).await.ok(200);
    assert_eq!(decided["state"], "approved");
    let decision = &decided["decision"];
    assert_eq!(decision["outcome"], "approve");
    assert_eq!(
        (&decision["answer"], &decision["reason"]),
        (&json!("yes"), &json!("QA is green"))
    );
    assert_eq!(
        decision["decided_by"],
        json!({"id": "master", "source": "key"})
    );
    assert_eq!(decision["decided_at"], decided["resolved_at"]);
    assert!(micros(&decision["decided_at"]) >= micros(&raised["created_at"]));
    assert!(decision.get("grant").is_none());
    assert_eq!(env.api.read(id).await, decided);
    assert_eq!(
        env.api.wait(id, "50s").await,
        decided,
        "a settled one is told at once"
    );
}

// check: ASK-3, ASK-4
async fn choices_bind_the_answer_and_a_free_question_takes_any(server: &Server) {
    let env = server.env(ask_block()).await;
    let body = json!({"kind": "ask", "question": "Which?", "choices": ["red", "blue "]});
    let chosen = env.request(body).await.ok(201)["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    for bad in [
        json!({}),
        json!({"answer": ""}),
        json!({"answer": "green"}),
        json!({"answer": "Red"}),
        json!({"answer": "blue"}),
        json!({"answer": null}),
    ] {
        let message = env.api.approve(&chosen, bad).await.invalid();
        assert!(
            message.starts_with("answer") && message.contains("red"),
            "{message}"
        );
    }
    env.api
        .approve(&chosen, json!({"answer": "blue "}))
        .await
        .ok(200);
    let most = "x".repeat(64 * 1024);
    for answer in ["", "anything \u{1f980}", most.as_str()] {
        let asked = env.ask("And?").await;
        let decided = env
            .api
            .approve(&asked, json!({"answer": answer}))
            .await
            .ok(200);
        assert_eq!(decided["decision"]["answer"], answer);
    }
    let asked = env.ask("And?").await;
    env.api
        .approve(&asked, json!({"answer": format!("{most}x")}))
        .await
        .invalid();
    env.api
        .approve(&asked, json!({"answer": "a\u{0}b"}))
        .await
        .invalid();
    assert_eq!(
        env.api.approve(&asked, json!({})).await.ok(200)["decision"]["answer"],
        ""
    );
}

// check: ASK-1, ASK-2
async fn a_question_that_breaks_a_rule_is_refused_by_name(server: &Server) {
    let env = server.env(ask_block()).await;
    let long = "x".repeat(16 * 1024 + 1);
    let many: Vec<String> = (0..26).map(|i| i.to_string()).collect();
    let q = |more: Value| {
        let mut body = json!({"kind": "ask", "question": "Q?"});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        body
    };
    for (body, path) in [
        (json!({"kind": "ask"}), "question"),
        (json!({"question": "Q?"}), "kind"),
        (json!({"kind": "", "question": "Q?"}), "kind"),
        (json!({"kind": "exec", "question": "Q?"}), "kind"),
        (json!({"kind": "Ask", "question": "Q?"}), "kind"),
        (q(json!({"question": ""})), "question"),
        (q(json!({"question": " \n\t"})), "question"),
        (q(json!({"question": long})), "question"),
        (q(json!({"question": "a\u{0}b"})), "question"),
        (q(json!({"question": 7})), "question"),
        (q(json!({"choices": []})), "choices"),
        (q(json!({"choices": many})), "choices"),
        (q(json!({"choices": [""]})), "choices[0]"),
        (q(json!({"choices": ["a", "b", "a"]})), "choices[2]"),
        (q(json!({"choices": ["x".repeat(501)]})), "choices[0]"),
        (q(json!({"choices": "yes"})), "choices"),
        (q(json!({"path": "/etc/passwd"})), "path"),
        (q(json!({"content": "x"})), "content"),
        (q(json!({"target": "x"})), "target"),
        (q(json!({"answer": "x"})), "answer"),
    ] {
        let message = env.request(body.clone()).await.invalid();
        assert!(message.starts_with(path), "{body:.80}: {message}");
    }
    assert!(
        env.interventions().await.is_empty(),
        "nothing of it was raised"
    );
    let full: Vec<String> = (0..25).map(|i| format!("{i:0>500}")).collect();
    env.request(json!({"kind": "ask", "question": "x".repeat(16 * 1024), "choices": full}))
        .await
        .ok(201);
}

// check: ASK-5
async fn a_timeout_only_shortens_the_deadline(server: &Server) {
    let env = server
        .env(json!({"timeout_seconds": 120, "requests": {"ask": {}}}))
        .await;
    let q = |seconds: Value| json!({"kind": "ask", "question": "Q?", "timeout_seconds": seconds});
    for (asked, seconds) in [
        (json!(null), 120),
        (json!(10), 10),
        (json!(119), 119),
        (json!(120), 120),
    ] {
        let raised = env.request(q(asked)).await.ok(201);
        assert_eq!(
            micros(&raised["deadline"]) - micros(&raised["created_at"]),
            seconds * 1_000_000
        );
    }
    let message = env.request(q(json!(121))).await.invalid();
    assert!(
        message.contains("121") && message.contains("120"),
        "both numbers: {message}"
    );
    for bad in [
        json!(9),
        json!(0),
        json!(-1),
        json!(1.5),
        json!("30s"),
        json!(u64::MAX),
    ] {
        let message = env.request(q(bad.clone())).await.invalid();
        assert!(message.starts_with("timeout_seconds"), "{bad}: {message}");
    }
}

// check: CONF-1, CONF-2
async fn an_undeclared_kind_is_refused(server: &Server) {
    let ask = json!({"kind": "ask", "question": "Q?"});
    let review = json!({"kind": "review", "content": "x"});
    let bare = server.env(json!(null)).await;
    let message = bare.request(ask.clone()).await.invalid();
    assert!(message.contains("without a hitl block"), "{message}");
    let other = server.env(json!({"requests": {"review": {}}})).await;
    let message = other.request(ask.clone()).await.invalid();
    assert!(
        message.contains("ask") && message.contains("not declared"),
        "{message}"
    );
    other.request(review).await.ok(201);
    let none = server.env(json!({})).await;
    none.request(ask).await.invalid();
    for kind in ["secret", "takeover"] {
        none.request(json!({"kind": kind})).await.invalid();
    }
    let later = server.env(json!({"requests": {"takeover": {}}})).await;
    later
        .request(json!({"kind": "takeover"}))
        .await
        .refused(501, "unimplemented");
}

// check: ASK-14, ACTOR-6
async fn a_list_filters_by_environment_state_kind_and_actor(server: &Server) {
    let gate = json!([{"name": "rm", "on": "exec", "match": {"program": "rm"}}]);
    let env = server
        .env(json!({"requests": {"ask": {}}, "gates": gate}))
        .await;
    let ann = env.api.with_actor("ann@corp.com");
    let first = env
        .act_as(&ann, "request", json!({"kind": "ask", "question": "1?"}))
        .await
        .ok(201);
    let second = env.ask("2?").await;
    let third = env.hold(&["rm", "x"]).await["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let first = first["id"].as_str().expect("an id");
    ann.reject(&second, "not this").await.ok(200);
    let list = async |query: &str| -> Vec<String> {
        let path = format!("/v1/interventions?limit=1&env={}{query}", env.id);
        let all = env.api.all(&path, "interventions").await;
        all.iter()
            .map(|i| i["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    assert_eq!(
        list("").await,
        [third.as_str(), first],
        "the pending ones, newest first"
    );
    assert_eq!(list("&state=pending").await, [third.as_str(), first]);
    assert_eq!(
        list("&state=all").await,
        [third.as_str(), second.as_str(), first]
    );
    assert_eq!(list("&state=rejected").await, [second.as_str()]);
    assert_eq!(list("&state=all&kind=exec").await, [third.as_str()]);
    assert_eq!(list("&state=all&kind=ask").await, [second.as_str(), first]);
    assert_eq!(
        list("&state=all&actor=ann@corp.com").await,
        [second.as_str(), first],
        "raised or decided"
    );
    assert_eq!(
        list("&state=all&actor=ann").await,
        Vec::<String>::new(),
        "byte for byte"
    );
    assert_eq!(list("&state=expired").await, Vec::<String>::new());
    let elsewhere = env
        .api
        .get("/v1/interventions?env=fuse-nobody-has-this")
        .await
        .ok(200);
    assert_eq!(elsewhere, json!({"interventions": []}));
    for bad in [
        "state=done",
        "state=",
        "kind=who",
        "env=agent",
        "env=",
        "limit=0",
        "cursor=x",
        "actors=a",
        "state=all&state=all",
    ] {
        env.api
            .get(&format!("/v1/interventions?{bad}"))
            .await
            .invalid();
    }
}

// check: INV-16
async fn a_thousand_pending_are_the_most(server: &Server) {
    let env = server.env(json!({"requests": {"ask": {}}, "gates": [{"name": "rm", "on": "exec", "match": {"program": "rm"}}]})).await;
    let answers: Vec<u16> = stream::iter(0..1003)
        .map(|i| {
            let env = &env;
            async move {
                env.request(json!({"kind": "ask", "question": format!("{i}?")}))
                    .await
                    .status
            }
        })
        .buffer_unordered(32)
        .collect()
        .await;
    assert_eq!(
        answers.iter().filter(|status| **status == 201).count(),
        1000
    );
    assert_eq!(answers.iter().filter(|status| **status == 409).count(), 3);
    env.exec(&["rm", "x"]).await.refused(409, "conflict");
    let some = env.interventions().await[7]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    env.api.approve(&some, json!({})).await.ok(200);
    env.ask("one more has room").await;
    env.request(json!({"kind": "ask", "question": "but not two"}))
        .await
        .refused(409, "conflict");
    // Paging over all of them shows each once.
    let mut ids: Vec<String> = env
        .interventions()
        .await
        .iter()
        .map(|i| i["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 1001);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 1001);
}

// check: CONF-3, CONF-4, CONF-5, CONF-6, CONF-8, CONF-9, CONF-11, CONF-16, CONF-22, CONF-28
async fn a_block_that_breaks_a_rule_is_refused_with_its_path(server: &Server) {
    let gate = |gate: Value| json!({"gates": [{"name": "ok", "on": "exec", "match": {"program": "ok"}}, gate]});
    for (block, path) in [
        (json!({"timeout_seconds": 9}), "hitl.timeout_seconds"),
        (json!({"timeout_seconds": 86_401}), "hitl.timeout_seconds"),
        (json!({"on_timeout": "maybe"}), "hitl.on_timeout"),
        (json!({"requests": {"asks": {}}}), "hitl.requests.asks"),
        (
            json!({"requests": {"ask": {"x": 1}}}),
            "hitl.requests.ask.x",
        ),
        (json!({"require": true}), "hitl.require"),
        (
            gate(json!({"name": "ok", "on": "exec", "match": {"program": "x"}})),
            "hitl.gates[1].name",
        ),
        (
            gate(json!({"name": "No Good", "on": "exec", "match": {"program": "x"}})),
            "hitl.gates[1].name",
        ),
        (
            gate(json!({"name": "exec.default", "on": "exec", "match": {"program": "x"}})),
            "hitl.gates[1].name",
        ),
        (
            gate(json!({"name": "x", "on": "exec", "match": {}})),
            "hitl.gates[1].match",
        ),
        (
            gate(json!({"name": "x", "on": "disk", "match": {"program": "x"}})),
            "hitl.gates[1].on",
        ),
        (
            gate(json!({"name": "x", "on": "exec", "match": {"shell": true, "program": "x"}})),
            "hitl.gates[1].match",
        ),
        (
            gate(json!({"name": "x", "on": "exec", "match": {"shel": true}})),
            "hitl.gates[1].match.shel",
        ),
        (
            gate(json!({"name": "x", "on": "exec", "match": {"program": "/bin/x"}})),
            "hitl.gates[1].match.program",
        ),
        (
            gate(json!({"name": "x", "on": "exec", "match": {"program": "x"}, "mode": "warn"})),
            "hitl.gates[1].mode",
        ),
        (
            gate(
                json!({"name": "x", "on": "exec", "match": {"program": "x"}, "mode": "deny", "grant": "env"}),
            ),
            "hitl.gates[1].grant",
        ),
        (
            gate(json!({"name": "x", "on": "exec", "match": {"program": "x"}, "grant": "ttl:1s"})),
            "hitl.gates[1].grant",
        ),
        (
            gate(json!({"name": "x", "on": "lifecycle", "match": {"action": "reboot"}})),
            "hitl.gates[1].match.action",
        ),
        (
            gate(
                json!({"name": "x", "on": "exec", "match": {"program": "x"}, "timeout_seconds": 5}),
            ),
            "hitl.gates[1].timeout_seconds",
        ),
        (
            gate(
                json!({"name": "x", "on": "exec", "match": {"program": "x"}, "decide": {"url": "https://d.example", "secret": "nope"}}),
            ),
            "hitl.gates[1].decide.secret",
        ),
        (
            json!({"exec": {"default": "allow", "allow": ["ls"]}}),
            "hitl.exec.default",
        ),
        (
            json!({"exec": {"default": "ask", "allow": ["l*"]}}),
            "hitl.exec.allow[0]",
        ),
        (
            json!({"requests": {"secret": {"targets": [{"env": "A", "label": "a"}]}}}),
            "hitl.requests.secret",
        ),
    ] {
        let request = json!({"task_id": fuse_e2e::unique("e2e"), "hitl": block});
        let message = server
            .api()
            .post("/v1/environments", request)
            .await
            .invalid();
        assert!(message.starts_with(path), "{block}: {message}");
    }
}
