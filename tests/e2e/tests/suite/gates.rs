//! Gates: what is held, recorded and refused, and what an approval then does.

use fuse_e2e::{Env, Server, both, until};
use serde_json::{Value, json};

both!(
    a_held_command_runs_once_it_is_approved_exactly_as_asked,
    a_rejected_command_never_runs,
    a_denied_command_is_refused_with_the_gates_words_and_recorded,
    a_noted_command_runs_and_leaves_a_record_born_approved,
    deny_beats_ask_beats_notify_and_every_note_is_kept,
    several_ask_gates_make_one_intervention,
    wrappers_and_shells_hide_nothing,
    checks_come_before_gates,
    build_steps_and_tasks_pass_no_gates,
    an_approved_command_that_cannot_run_says_so,
);

fn gate(name: &str, program: &str, mode: &str) -> Value {
    json!({"name": name, "on": "exec", "match": {"program": program}, "mode": mode})
}

fn id(value: &Value) -> String {
    value["id"].as_str().expect("an id").to_owned()
}

/// The gates that concerned a command, by the records that it left: name, mode and state.
async fn records(env: &Env) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = env.interventions().await;
    let mut found: Vec<_> = all
        .iter()
        .map(|i| (text(&i["gate"]), text(&i["mode"]), text(&i["state"])))
        .collect();
    found.sort();
    found
}

// check: GATE-9, GATE-11, GATE-12, GATE-13, GATE-20, GATE-21
async fn a_held_command_runs_once_it_is_approved_exactly_as_asked(server: &Server) {
    let hold = json!({"name": "hold", "on": "exec", "match": {"program": "sh"}, "timeout_seconds": 120, "reason": "shells are looked at"});
    let env = server
        .env(json!({"timeout_seconds": 600, "gates": [hold]}))
        .await;
    let argv = [
        "sh",
        "-c",
        "echo \"$0|$1\" >> /tmp/ran; echo out; echo err >&2; exit 5",
        "a b",
        "$HOME '\u{1f980}",
    ];
    let held = env
        .act("exec", json!({"cmd": argv, "timeout_ms": 30_000}))
        .await
        .held();
    let id = id(&held);
    assert_eq!(
        (&held["kind"], &held["gate"], &held["mode"]),
        (&json!("exec"), &json!("hold"), &json!("ask"))
    );
    assert_eq!(
        held["payload"]["exec"],
        json!({"argv": argv, "timeout_ms": 30_000})
    );
    assert_eq!(held["payload"]["gate_reason"], "shells are looked at");
    assert!(held["payload"].get("gates").is_none());
    assert_eq!(
        env.run(&["cat", "/tmp/ran"]).await["exit_code"],
        1,
        "nothing has run"
    );
    let waits = tokio::spawn({
        let (api, id) = (env.api.clone(), id.clone());
        async move { api.wait(&id, "50s").await }
    });
    let approved = env
        .api
        .approve(&id, json!({"reason": "fine"}))
        .await
        .ok(200);
    assert_eq!(approved["decision"]["grant"], "once");
    let settled = waits.await.expect("it waits");
    assert_eq!(settled["state"], "approved");
    assert_eq!(
        settled["result"],
        json!({"exec": {"exit_code": 5, "stdout": "out\n", "stderr": "err\n"}})
    );
    assert_eq!(
        env.run(&["cat", "/tmp/ran"]).await["stdout"],
        "a b|$HOME '\u{1f980}\n",
        "once, as asked"
    );
    assert_eq!(env.api.wait(&id, "50s").await, settled);
    assert_eq!(env.api.audited(&env.id).await, ["raised", "decided"]);
    // The same again is held again.
    env.hold(&argv).await;
}

// check: GATE-16
async fn a_rejected_command_never_runs(server: &Server) {
    let env = server
        .env(json!({"gates": [gate("touch", "touch", "ask")]}))
        .await;
    let id = id(&env.hold(&["touch", "/tmp/ran"]).await);
    let rejected = env
        .api
        .reject(&id, "push to a branch instead")
        .await
        .ok(200);
    assert_eq!(rejected["decision"]["reason"], "push to a branch instead");
    assert!(rejected.get("result").is_none() && rejected["decision"].get("grant").is_none());
    assert_eq!(
        env.api.wait(&id, "50s").await,
        rejected,
        "a waiter does not wait for a result"
    );
    assert_ne!(env.run(&["ls", "/tmp/ran"]).await["exit_code"], 0);
    env.hold(&["touch", "/tmp/ran"]).await;
}

// check: GATE-6, GATE-7, GATE-8, GATE-19
async fn a_denied_command_is_refused_with_the_gates_words_and_recorded(server: &Server) {
    let mut spoken = gate("no-rm", "rm", "deny");
    spoken["reason"] = json!("this disk is not yours to empty");
    let env = server
        .env(json!({"gates": [spoken, gate("no-touch", "touch", "deny")]}))
        .await;
    for (argv, gate, message) in [
        (["rm", "/tmp/x"], "no-rm", "this disk is not yours to empty"),
        (
            ["touch", "/tmp/x"],
            "no-touch",
            "refused by hitl gate no-touch",
        ),
    ] {
        let error = env.exec(&argv).await.refused(403, "forbidden");
        assert_eq!(error["message"], message);
        assert_eq!(
            (&error["details"]["reason"], &error["details"]["gate"]),
            (&json!("hitl_denied"), &json!(gate))
        );
        let record = env
            .api
            .read(error["details"]["intervention_id"].as_str().expect("an id"))
            .await;
        assert_eq!(
            (&record["state"], &record["mode"]),
            (&json!("rejected"), &json!("deny"))
        );
        assert_eq!(record["payload"]["exec"]["argv"], json!(argv));
        assert_eq!(record["decision"]["reason"], message);
        assert_eq!(
            record["decision"]["decided_by"],
            json!({"id": format!("gate:{gate}"), "source": "gate"})
        );
        env.api
            .approve(record["id"].as_str().expect("an id"), json!({}))
            .await
            .refused(409, "conflict");
    }
    assert_ne!(env.run(&["ls", "/tmp/x"]).await["exit_code"], 0);
    assert_eq!(
        env.api.audited(&env.id).await,
        ["raised", "decided", "raised", "decided"]
    );
}

// check: GATE-5, GATE-19
async fn a_noted_command_runs_and_leaves_a_record_born_approved(server: &Server) {
    let env = server
        .env(json!({"gates": [gate("watch", "echo", "notify")]}))
        .await;
    assert_eq!(env.run(&["echo", "seen"]).await["stdout"], "seen\n");
    let all = env.interventions().await;
    assert_eq!(all.len(), 1);
    assert_eq!(
        (&all[0]["state"], &all[0]["mode"]),
        (&json!("approved"), &json!("notify"))
    );
    assert_eq!(all[0]["decision"]["outcome"], "approve");
    assert_eq!(
        all[0]["decision"]["decided_by"],
        json!({"id": "gate:watch", "source": "gate"})
    );
    assert!(
        all[0].get("result").is_none(),
        "it is a record, not a held action"
    );
    assert_eq!(all[0]["resolved_at"], all[0]["created_at"]);
}

// check: GATE-4, GATE-5, GATE-3
async fn deny_beats_ask_beats_notify_and_every_note_is_kept(server: &Server) {
    let with = |name: &str, args: Value, mode: &str| json!({"name": name, "on": "exec", "match": {"program": "git", "args": args}, "mode": mode});
    let env = server
        .env(json!({"gates": [
            with("note-1", json!(["push"]), "notify"),
            with("ask", json!(["push", "--force"]), "ask"),
            with("deny", json!(["push", "--force", "main"]), "deny"),
            with("note-2", json!(["--force"]), "notify"),
        ]}))
        .await;
    env.run(&["git", "push"]).await;
    let text = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
    assert_eq!(records(&env).await, [text("note-1", "notify", "approved")]);
    env.hold(&["git", "push", "-v", "--force", "dev"]).await;
    assert_eq!(
        records(&env).await,
        [
            text("ask", "ask", "pending"),
            text("note-1", "notify", "approved"),
            text("note-1", "notify", "approved"),
            text("note-2", "notify", "approved")
        ]
    );
    let error = env
        .exec(&["git", "push", "--force", "origin", "main"])
        .await
        .refused(403, "forbidden");
    assert_eq!(error["details"]["gate"], "deny");
    assert_eq!(
        records(&env).await.len(),
        7,
        "two notes and the denial, no second hold"
    );
}

// check: GATE-10
async fn several_ask_gates_make_one_intervention(server: &Server) {
    let timed = |name: &str, seconds: u64| {
        let mut gate = gate(name, "rm", "ask");
        gate["timeout_seconds"] = json!(seconds);
        gate
    };
    let env = server
        .env(json!({"gates": [timed("first", 300), timed("second", 60), timed("third", 120)]}))
        .await;
    let held = env.hold(&["rm", "x"]).await;
    assert_eq!(held["gate"], "first");
    assert_eq!(
        held["payload"]["gates"],
        json!(["first", "second", "third"])
    );
    let time = |name: &str| {
        fuse_api::time::Timestamp::parse(held[name].as_str().unwrap_or_default())
            .expect("a time")
            .as_micros()
    };
    assert_eq!(
        time("deadline") - time("created_at"),
        60_000_000,
        "the shortest"
    );
    assert_eq!(env.interventions().await.len(), 1);
}

// check: GATE-1, GATE-2, GATE-17, GATE-18, WRAP-1, WRAP-2, WRAP-5, WRAP-6
async fn wrappers_and_shells_hide_nothing(server: &Server) {
    let env = server
        .env(json!({"gates": [
            {"name": "push", "on": "exec", "match": {"program": "git", "args": ["push", "--force"]}},
            {"name": "shell", "on": "exec", "match": {"shell": true}},
        ]}))
        .await;
    for argv in [
        vec!["git", "push", "--force"],
        vec!["/usr/bin/git", "push", "origin", "--force"],
        vec!["env", "GIT_TRACE=1", "git", "push", "--force"],
        vec!["sudo", "-u", "root", "git", "push", "--force"],
        vec![
            "nice", "-n", "5", "timeout", "10", "nohup", "git", "push", "--force",
        ],
        vec!["stdbuf", "-oL", "env", "-i", "git", "push", "--force"],
        vec!["xargs", "git", "push"],
        vec!["bash", "-lc", "true"],
        vec!["/bin/sh", "-ec", "true"],
        vec!["timeout", "5", "dash", "-c", "true"],
    ] {
        let held = env.exec(&argv).await;
        assert_eq!(held.status, 202, "{argv:?}: {}", held.text);
    }
    env.act("exec", json!({"shell": "true"})).await.held();
    env.sh_file().await;
    for argv in [
        vec!["git", "--force", "push"],
        vec!["git", "push", "--force-with-lease"],
        vec!["echo", "git", "push", "--force"],
        vec!["echo", "sh", "-c", "true"],
    ] {
        env.run(&argv).await;
    }
}

/// A shell that reads a script is no opaque shell.
trait ShellFile {
    async fn sh_file(&self);
}

impl ShellFile for Env {
    async fn sh_file(&self) {
        self.run(&["tee", "/tmp/script"]).await;
        let ran = self.run(&["sh", "/tmp/script", "-c"]).await;
        assert_eq!(ran["exit_code"], 0, "{ran}");
    }
}

// check: GATE-23
async fn checks_come_before_gates(server: &Server) {
    let env = server.env(json!({"gates": [gate("deny", "rm", "deny")], "exec": {"default": "deny", "allow": []}})).await;
    for bad in [
        json!({"cmd": []}),
        json!({"cmd": ["rm"], "shell": "rm"}),
        json!({"cmd": ["rm\u{0}"]}),
    ] {
        env.act("exec", bad).await.invalid();
    }
    assert!(
        env.interventions().await.is_empty(),
        "what makes no sense reaches no gate"
    );
    let nobody = env
        .api
        .post("/v1/environments/fuse-none?action=exec", json!({"cmd": []}))
        .await;
    nobody.invalid();
    let nobody = env
        .api
        .post(
            "/v1/environments/fuse-none?action=exec",
            json!({"cmd": ["rm"]}),
        )
        .await;
    nobody.refused(404, "not_found");
}

// check: GATE-26
async fn build_steps_and_tasks_pass_no_gates(server: &Server) {
    let env = server
        .env_of(json!({
            "hitl": {"gates": [gate("deny", "touch", "deny"), {"name": "shell", "on": "exec", "match": {"shell": true}, "mode": "deny"}]},
            "build": [{"run": "touch /tmp/build"}],
            "startup_script": "touch /tmp/startup",
            "run": "touch /tmp/run; sleep 100",
        }))
        .await;
    until("the task has run", async || {
        let seen = env
            .run(&["ls", "/tmp/build", "/tmp/startup", "/tmp/run"])
            .await;
        (seen["exit_code"] == 0).then_some(())
    })
    .await;
    assert!(env.interventions().await.is_empty());
    env.exec(&["touch", "/tmp/x"])
        .await
        .refused(403, "forbidden");
}

// check: GATE-14
async fn an_approved_command_that_cannot_run_says_so(server: &Server) {
    let env = server.env(json!({"gates": [gate("all", "no-such-program", "ask"), gate("sleep", "sleep", "ask")]})).await;
    let missing = id(&env.hold(&["no-such-program"]).await);
    env.api.approve(&missing, json!({})).await.ok(200);
    assert_eq!(
        env.api.wait(&missing, "50s").await["result"]["exec"]["exit_code"],
        127
    );
    let held = env
        .act("exec", json!({"cmd": ["sleep", "60"], "timeout_ms": 300}))
        .await
        .held();
    env.api.approve(&id(&held), json!({})).await.ok(200);
    let result = env.api.wait(&id(&held), "50s").await["result"]["exec"].clone();
    assert_eq!(
        (&result["exit_code"], &result["timed_out"]),
        (&json!(124), &json!(true))
    );
    // The environment goes while the approved command runs.
    let held = id(&env.hold(&["sleep", "60"]).await);
    env.api.approve(&held, json!({})).await.ok(200);
    until("it runs", async || {
        let seen = env.run(&["sh", "-c", "cat /proc/[0-9]*/comm"]).await;
        seen["stdout"]
            .as_str()
            .is_some_and(|s| s.contains("sleep"))
            .then_some(())
    })
    .await;
    env.destroy().await.ok(204);
    let settled = env.api.wait(&held, "50s").await;
    assert_eq!(settled["state"], "approved");
    assert!(
        settled["result"]["error"]
            .as_str()
            .is_some_and(|e| !e.is_empty()),
        "{settled}"
    );
}
