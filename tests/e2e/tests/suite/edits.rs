//! Approving something else than was asked.

use fuse_e2e::{Server, both};
use serde_json::{Value, json};

both!(
    an_edit_runs_in_place_of_what_was_asked,
    an_edit_meets_the_deny_gates_again,
);

fn gate(name: &str, program: &str, mode: &str) -> Value {
    json!({"name": name, "on": "exec", "match": {"program": program}, "mode": mode})
}

fn id(value: &Value) -> String {
    value["id"].as_str().expect("an id").to_owned()
}

// check: EDIT-1, EDIT-3, EDIT-4, EDIT-6, GATE-22
async fn an_edit_runs_in_place_of_what_was_asked(server: &Server) {
    let env = server
        .env(json!({"gates": [
            {"name": "ask-echo", "on": "exec", "match": {"program": "echo"}, "grant": "env"},
            {"name": "ask-shell", "on": "exec", "match": {"shell": true}},
            {"name": "ask-printf", "on": "exec", "match": {"program": "printf"}},
            {"name": "note-printf", "on": "exec", "match": {"program": "printf"}, "mode": "notify"},
        ]}))
        .await;
    let held = id(&env.hold(&["echo", "asked"]).await);
    for bad in [
        json!([]),
        json!([""]),
        json!(["a\u{0}"]),
        json!("echo x"),
        json!([1]),
    ] {
        let message = env
            .api
            .approve(&held, json!({"edited_argv": bad}))
            .await
            .invalid();
        assert!(message.starts_with("edited_argv"), "{message}");
    }
    let edited = json!({"edited_argv": ["printf", "%s", "edited"]});
    let decided = env.api.approve(&held, edited).await.ok(200);
    assert_eq!(
        decided["decision"]["edited_argv"],
        json!(["printf", "%s", "edited"])
    );
    assert_eq!(
        decided["decision"]["grant"], "once",
        "an edit carries no grant, not even the gate's own"
    );
    assert_eq!(decided["payload"]["exec"]["argv"], json!(["echo", "asked"]));
    let settled = env.api.wait(&held, "50s").await;
    assert_eq!(settled["result"]["exec"]["stdout"], "edited");
    let notes: Vec<Value> = env
        .interventions()
        .await
        .into_iter()
        .filter(|i| i["gate"] == "note-printf")
        .collect();
    assert_eq!(notes.len(), 1, "the edit is noted, and not held again");
    assert_eq!(
        notes[0]["payload"]["exec"]["argv"],
        json!(["printf", "%s", "edited"])
    );
    env.hold(&["echo", "asked"]).await;

    let same = id(&env.hold(&["echo", "same"]).await);
    let decided = env
        .api
        .approve(&same, json!({"edited_argv": ["echo", "same"]}))
        .await
        .ok(200);
    assert!(
        decided["decision"].get("edited_argv").is_none(),
        "an equal edit is none"
    );
    assert_eq!(decided["decision"]["grant"], "env");

    let shell = env.act("exec", json!({"shell": "echo asked"})).await.held();
    assert_eq!(shell["payload"]["exec"], json!({"shell": "echo asked"}));
    env.api
        .approve(&id(&shell), json!({"edited_argv": ["echo", "argv"]}))
        .await
        .ok(200);
    assert_eq!(
        env.api.wait(&id(&shell), "50s").await["result"]["exec"]["stdout"],
        "argv\n"
    );
}

// check: EDIT-2
async fn an_edit_meets_the_deny_gates_again(server: &Server) {
    let env = server
        .env(json!({"gates": [gate("ask", "echo", "ask"), gate("deny", "rm", "deny")], "exec": {"default": "deny", "allow": ["echo", "rm", "ls"]}}))
        .await;
    let held = id(&env.hold(&["echo", "x"]).await);
    for (argv, gate) in [
        (json!(["env", "rm", "x"]), "deny"),
        (json!(["python3", "x"]), "exec.default"),
    ] {
        let error = env
            .api
            .approve(&held, json!({ "edited_argv": argv }))
            .await
            .refused(403, "forbidden");
        assert_eq!(
            (&error["details"]["reason"], &error["details"]["gate"]),
            (&json!("hitl_denied"), &json!(gate))
        );
        assert_eq!(env.api.read(&held).await["state"], "pending");
    }
    env.api
        .approve(&held, json!({"edited_argv": ["ls", "/"]}))
        .await
        .ok(200);
    assert_eq!(
        env.api.wait(&held, "50s").await["result"]["exec"]["exit_code"],
        0
    );
}
