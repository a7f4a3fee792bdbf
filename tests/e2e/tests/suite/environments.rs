//! Environments: made, listed, watched, reaped, removed.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fuse_e2e::{Server, Store, both, unique, until, within};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

both!(
    an_environment_lives_from_its_create_to_its_destroy,
    a_create_request_gives_files_variables_steps_and_a_task,
    a_step_that_fails_is_told_and_leaves_nothing,
    a_live_name_is_taken_and_a_destroyed_one_is_free,
    a_list_filters_and_shows_the_newest_first,
    the_event_stream_tells_states_and_interventions_and_ends,
    the_end_of_an_environment_cancels_what_is_pending,
    a_stream_that_nobody_reads_holds_nothing_up,
);

fn id(value: &Value) -> &str {
    value["id"].as_str().expect("an id")
}

// check: ENV-1, ENV-4, ENV-5, EXEC-1, HTTP-14
async fn an_environment_lives_from_its_create_to_its_destroy(server: &Server) {
    let api = server.api();
    let name = unique("e2e");
    let request =
        json!({"task_id": name, "spec": {"labels": {"team": "a"}, "idle_timeout_seconds": 3600}});
    let made = api.post("/v1/environments", request).await.ok(201);
    assert_eq!(made["id"], format!("fuse-{name}"));
    assert_eq!(made["task_id"], name);
    assert_eq!(made["state"], "running");
    assert_eq!(made["url"], "");
    assert!(
        made["host_id"]
            .as_str()
            .is_some_and(|host| !host.is_empty())
    );
    assert_eq!(made["spec"]["labels"], json!({"team": "a"}));
    assert_eq!(made["spec"]["idle_timeout_seconds"], 3600);
    assert_eq!(
        (&made["spec"]["image"], &made["spec"]["network"]),
        (&json!("host"), &json!("none"))
    );
    for time in ["created_at", "updated_at"] {
        assert!(
            made[time].as_str().is_some_and(|t| t.ends_with('Z')),
            "{made}"
        );
    }
    let path = format!("/v1/environments/{}", id(&made));
    assert_eq!(api.get(&path).await.ok(200)["state"], "running");
    let body = json!({"cmd": ["sh", "-c", "echo out; echo err >&2; exit 3"]});
    let ran = api.post(&format!("{path}?action=exec"), body).await.ok(200);
    assert_eq!(
        ran,
        json!({"exit_code": 3, "stdout": "out\n", "stderr": "err\n"})
    );
    let gone = api.delete(&path).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    api.delete(&path).await.refused(404, "not_found");
    api.get(&path).await.refused(404, "not_found");
    let body = json!({"cmd": ["true"]});
    api.post(&format!("{path}?action=exec"), body)
        .await
        .refused(404, "not_found");
}

// check: ENV-6, ENV-7, ENV-8, ENV-9, ENV-19, ENV-21
async fn a_create_request_gives_files_variables_steps_and_a_task(server: &Server) {
    let file = BASE64_STANDARD.encode("from the request\n");
    let env = server
        .env_of(json!({
            "secrets": {"gh": "s3cr3t-value"},
            "env": {"PLAIN": {"value": "a b"}, "GH_TOKEN": {"secret": "gh"}},
            "files": {"/srv/in.txt": file, "/workspace/deep/in.txt": file},
            "build": [
                {"run": "cat /srv/in.txt deep/in.txt > built && echo \"$PLAIN\" >> built"},
                {"run": "pwd > where", "workdir": "/tmp"},
            ],
            "startup_script": "test -f built && echo started >> built",
            "run": "cat built > /tmp/task; echo \"$GH_TOKEN\" >> /tmp/task; exec sleep 100",
        }))
        .await;
    let built = "from the request\nfrom the request\na b\nstarted\n";
    assert_eq!(env.sh("cat built").await, built);
    assert_eq!(env.sh("cat /tmp/where; pwd").await, "/tmp\n/workspace\n");
    let task = format!("{built}s3cr3t-value\n");
    until("the task has written its file", async || {
        let seen = env.run(&["cat", "/tmp/task"]).await;
        (seen["stdout"] == task).then_some(())
    })
    .await;
    assert_eq!(env.sh("echo \"$GH_TOKEN\"").await, "s3cr3t-value\n");
    let shown = env.get().await;
    assert!(
        !shown.text.contains("s3cr3t-value"),
        "a secret is never given back"
    );

    let argv = server
        .env_of(json!({"run": ["sh", "-c", "echo $0 \"$1\" > /tmp/argv", "a b", "$PLAIN"], "workspace": "/home/agent"}))
        .await;
    until("the task has run", async || {
        let seen = argv.run(&["cat", "/tmp/argv"]).await;
        (seen["stdout"] == "a b $PLAIN\n").then_some(())
    })
    .await;
    assert_eq!(argv.sh("pwd").await, "/home/agent\n");
}

// check: ENV-6
async fn a_step_that_fails_is_told_and_leaves_nothing(server: &Server) {
    let api = server.api();
    for (stage, member) in [
        (
            "build step 1",
            json!({"build": [{"run": "true"}, {"run": "echo the reason >&2; exit 7"}]}),
        ),
        (
            "startup",
            json!({"startup_script": "echo the reason; exit 7"}),
        ),
    ] {
        let name = unique("e2e");
        let mut request = member;
        request["task_id"] = json!(name);
        let error = api
            .post("/v1/environments", request)
            .await
            .refused(409, "conflict");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(
            message.contains(stage) || message.contains("build step 2"),
            "{message}"
        );
        assert_eq!(error["details"]["exit_code"], "7", "{error}");
        let output = error["details"]["output"].as_str().unwrap_or_default();
        assert!(output.contains("the reason"), "{error}");
        let path = format!("/v1/environments/fuse-{name}");
        api.get(&path).await.refused(404, "not_found");
        let found = api
            .get(&format!("/v1/environments?task_id={name}"))
            .await
            .ok(200);
        assert_eq!(found["environments"], json!([]));
        let folders = server.data().environment_folders();
        assert!(
            folders.iter().all(|f| !f.to_string_lossy().contains(&name)),
            "{folders:?}"
        );
    }
}

// check: ENV-3
async fn a_live_name_is_taken_and_a_destroyed_one_is_free(server: &Server) {
    let api = server.api();
    let name = unique("e2e");
    let request = json!({"task_id": name, "hitl": {"requests": {"ask": {}}}});
    let (one, two) = tokio::join!(
        api.post("/v1/environments", request.clone()),
        api.post("/v1/environments", request.clone())
    );
    let mut answers = [one.status, two.status];
    answers.sort_unstable();
    assert_eq!(answers, [201, 409], "{} {}", one.text, two.text);
    let taken = api
        .post("/v1/environments", request.clone())
        .await
        .refused(409, "conflict");
    assert_eq!(taken["details"]["env_id"], format!("fuse-{name}"));
    let path = format!("/v1/environments/fuse-{name}");
    let file = json!({"cmd": ["touch", "/tmp/first-life"]});
    api.post(&format!("{path}?action=exec"), file).await.ok(200);
    api.delete(&path).await.ok(204);
    api.post("/v1/environments", request).await.ok(201);
    let look = json!({"cmd": ["ls", "/tmp/first-life"]});
    let seen = api.post(&format!("{path}?action=exec"), look).await.ok(200);
    assert_ne!(seen["exit_code"], 0, "nothing of the first life is there");
    api.delete(&path).await.ok(204);
}

// check: ENV-4, HTTP-8
async fn a_list_filters_and_shows_the_newest_first(server: &Server) {
    let api = server.api();
    let (one, two) = (server.env(json!(null)).await, server.env(json!(null)).await);
    let all = api.all("/v1/environments?limit=1", "environments").await;
    let at = |wanted: &str| {
        all.iter()
            .position(|e| id(e) == wanted)
            .expect("it is listed")
    };
    assert!(at(&two.id) < at(&one.id), "newest first");
    let mut ids: Vec<&str> = all.iter().map(id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "nothing is listed twice");
    let task = one.id.strip_prefix("fuse-").expect("a prefix");
    let found = api
        .get(&format!("/v1/environments?task_id={task}&state=running"))
        .await
        .ok(200);
    assert_eq!(found["environments"].as_array().map(Vec::len), Some(1));
    assert_eq!(id(&found["environments"][0]), one.id);
    let none = api
        .get(&format!("/v1/environments?task_id={task}&state=failed"))
        .await
        .ok(200);
    assert_eq!(none["environments"], json!([]));
    let host = one.get().await.ok(200)["host_id"]
        .as_str()
        .expect("a host")
        .to_owned();
    let here = api
        .get(&format!("/v1/environments?task_id={task}&host_id={host}"))
        .await
        .ok(200);
    assert_eq!(here["environments"].as_array().map(Vec::len), Some(1));
    let there = api.get("/v1/environments?host_id=elsewhere").await.ok(200);
    assert_eq!(there["environments"], json!([]));
    for bad in [
        "state=done",
        "state=",
        "task_id=Not_A_Label",
        "limit=0",
        "limit=201",
        "colour=red",
    ] {
        api.get(&format!("/v1/environments?{bad}")).await.invalid();
    }
}

// check: ENV-11, ENV-12
async fn the_event_stream_tells_states_and_interventions_and_ends(server: &Server) {
    let env = server.env(json!({"requests": {"ask": {}}})).await;
    let mut events = env.api.events(&env.id).await;
    let first = events.next().await.expect("the state comes first");
    assert_eq!(
        (&first["event"], &first["state"]),
        (&json!("state"), &json!("running"))
    );
    assert_eq!(first["vm_id"], env.id);
    let asked = env.ask("what-nobody-else-may-read").await;
    env.api
        .approve(&asked, json!({"answer": "an-answer-not-to-be-told"}))
        .await
        .ok(200);
    for state in ["pending", "approved"] {
        let event = events.next().await.expect("an event");
        assert_eq!(event["event"], "intervention", "{event}");
        assert_eq!(
            event["intervention"],
            json!({"id": asked, "kind": "ask", "state": state})
        );
        let text = event.to_string();
        assert!(
            !text.contains("nobody-else") && !text.contains("not-to-be-told"),
            "{text}"
        );
    }
    let pending = env.ask("and this?").await;
    assert_eq!(
        events.next().await.expect("an event")["intervention"]["id"],
        json!(pending)
    );
    env.destroy().await.ok(204);
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        match event["event"].as_str() {
            Some("state") => seen.push(event["state"].as_str().unwrap_or_default().to_owned()),
            _ => assert_eq!(event["intervention"]["state"], "cancelled", "{event}"),
        }
    }
    assert_eq!(
        seen.last().map(String::as_str),
        Some("destroyed"),
        "{seen:?}"
    );
}

// check: INV-8, INV-13, INV-17
async fn the_end_of_an_environment_cancels_what_is_pending(server: &Server) {
    let env = server
        .env(json!({"requests": {"ask": {}}, "gates": [{"name": "rm", "on": "exec", "match": {"program": "rm"}}]}))
        .await;
    let asked = env.ask("Go on?").await;
    let held = env.hold(&["rm", "/tmp/x"]).await;
    let api = env.api.clone();
    let waits = tokio::spawn({
        let (api, asked) = (api.clone(), asked.clone());
        async move { api.wait(&asked, "50s").await }
    });
    env.destroy().await.ok(204);
    let woken = tokio::time::timeout(Duration::from_secs(10), waits).await;
    assert_eq!(
        woken.expect("the waiter is woken").expect("waits")["state"],
        "cancelled"
    );
    for cancelled in [&asked, &id(&held).to_owned()] {
        let read = api.read(cancelled).await;
        assert_eq!(read["state"], "cancelled");
        assert_eq!(read["decision"]["outcome"], "reject");
        assert_eq!(
            read["decision"]["decided_by"],
            json!({"id": "system", "source": "system"})
        );
        let reason = read["decision"]["reason"].as_str().unwrap_or_default();
        assert!(!reason.trim().is_empty(), "{read}");
        assert!(read.get("result").is_none_or(Value::is_null), "{read}");
        let late = api
            .approve(cancelled, json!({}))
            .await
            .refused(409, "conflict");
        assert_eq!(late["details"]["state"], "cancelled");
    }
}

// check: ENV-20
async fn a_stream_that_nobody_reads_holds_nothing_up(server: &Server) {
    let env = server.env(json!({"requests": {"ask": {}}})).await;
    let mut deaf = tokio::net::TcpStream::connect(server.address())
        .await
        .expect("a connection");
    let request = format!(
        "GET /v1/environments/{}/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n\r\n",
        env.id,
        server.token()
    );
    deaf.write_all(request.as_bytes())
        .await
        .expect("it is sent");
    let ask = async |i: usize| env.ask(&format!("{i}?")).await;
    let raised = stream::iter(0..900).map(ask).buffer_unordered(32).count();
    let raised = tokio::time::timeout(Duration::from_secs(60), raised).await;
    assert_eq!(raised.expect("nothing is held up"), 900);
    let mut events = env.api.events(&env.id).await;
    events.next().await.expect("the state");
    let last = env.ask("Is somebody listening?").await;
    assert_eq!(
        events.next().await.expect("an event")["intervention"]["id"],
        json!(last)
    );
    env.destroy().await.ok(204);
}

/// All of it at once, since nothing is shorter than a minute here.
// check: ENV-13, ENV-14, INV-9, INV-10, LIFE-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reapers_take_the_idle_and_the_overdue_and_spare_what_a_person_decides_on() {
    let servers = [
        Server::shared(Store::Sqlite),
        Server::shared(Store::Postgres),
    ];
    let [one, two] = &servers;
    tokio::join!(reaping(one), reaping(two));
}

async fn reaping(server: &Server) {
    let api = server.api();
    let idle = json!({"spec": {"idle_timeout_seconds": 60}});
    let quiet = server.env_of(idle.clone()).await;
    let busy = server.env_of(idle.clone()).await;
    let mut quiet_events = api.events(&busy.id).await;
    let keepalive = tokio::spawn(async move {
        while let Some(line) = quiet_events.line().await {
            if line == ": keepalive" {
                return true;
            }
        }
        false
    });
    let mut asking = idle;
    asking["hitl"] = json!({"requests": {"ask": {}}});
    let asking = server.env_of(asking).await;
    let question = asking.ask("Shall it live?").await;
    // The reaper asks no gate.
    let keep =
        json!({"name": "keep", "on": "lifecycle", "match": {"action": "destroy"}, "mode": "deny"});
    let overdue = server
        .env_of(json!({"spec": {"max_runtime_seconds": 3}, "hitl": {"requests": {"ask": {}}, "gates": [keep]}, "run": "sleep 100"}))
        .await;
    let bare = server
        .env_of(json!({"spec": {"max_runtime_seconds": 3}}))
        .await;
    let useless = overdue.ask("Can this hold it?").await;
    let gone = async |id: &str| {
        let read = api.get(&format!("/v1/environments/{id}")).await;
        (read.status == 404).then_some(())
    };
    within(Duration::from_secs(20), "max_runtime ends it", async || {
        gone(&overdue.id).await.and(gone(&bare.id).await)
    })
    .await;
    assert_eq!(api.read(&useless).await["state"], "cancelled");
    within(
        Duration::from_secs(90),
        "idle_timeout ends it",
        async || {
            // Reading it is no activity; a command is.
            busy.run(&["true"]).await;
            gone(&quiet.id).await
        },
    )
    .await;
    assert_eq!(busy.get().await.ok(200)["state"], "running");
    assert!(
        keepalive.await.expect("it reads"),
        "a quiet stream says that it lives"
    );
    // It is as idle as the other one was, but for its question.
    assert_eq!(asking.get().await.ok(200)["state"], "running");
    api.reject(&question, "no").await.ok(200);
    within(
        Duration::from_secs(90),
        "nothing holds it any more",
        async || gone(&asking.id).await,
    )
    .await;
}
