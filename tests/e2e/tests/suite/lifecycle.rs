//! Allowlists, and gates on what is done to an environment.

use fuse_e2e::{Server, both, unique, until};
use serde_json::{Value, json};

both!(
    an_allowlist_holds_or_refuses_the_rest,
    the_destroy_of_an_environment_can_be_held_and_refused,
    nothing_of_the_policy_is_in_the_guest,
    a_create_whose_environment_is_destroyed_meanwhile_is_told_so,
);

fn id(value: &Value) -> String {
    value["id"].as_str().expect("an id").to_owned()
}

// check: ALLOW-1, ALLOW-2, ALLOW-3, ALLOW-4, ALLOW-5, ALLOW-6, ALLOW-7
async fn an_allowlist_holds_or_refuses_the_rest(server: &Server) {
    let git = json!({"name": "force", "on": "exec", "match": {"program": "git", "args": ["push"]}});
    let ask = server.env(json!({"exec": {"default": "ask", "allow": ["ls", "git", "/opt/tool"]}, "gates": [git]})).await;
    ask.run(&["ls", "/"]).await;
    ask.run(&["/usr/bin/ls", "/"]).await;
    ask.run(&["nice", "timeout", "5", "ls", "/"]).await;
    ask.run(&["/opt/tool"]).await;
    for argv in [
        vec!["cat", "/etc/passwd"],
        vec!["sh", "-c", "ls"],
        vec!["python3", "-c", "1"],
        vec!["/tmp/ls"],
        vec!["./ls"],
        vec!["tool"],
        vec!["sudo", "ls"],
        vec!["xargs", "ls"],
        vec!["A=1", "ls"],
        vec!["env", "PATH=/tmp", "ls"],
    ] {
        let reply = ask.exec(&argv).await;
        assert_eq!(reply.status, 202, "{argv:?}: {}", reply.text);
        assert_eq!(reply.held()["gate"], "exec.default", "{argv:?}");
    }
    assert_eq!(
        ask.act("exec", json!({"shell": "ls"})).await.held()["gate"],
        "exec.default"
    );
    assert_eq!(
        ask.hold(&["git", "push"]).await["gate"],
        "force",
        "gates apply on top"
    );
    let deny = server
        .env(json!({"exec": {"default": "deny", "allow": ["ls"]}}))
        .await;
    deny.run(&["ls"]).await;
    let error = deny.exec(&["cat", "x"]).await.refused(403, "forbidden");
    assert_eq!(
        (&error["details"]["reason"], &error["details"]["gate"]),
        (&json!("hitl_denied"), &json!("exec.default"))
    );
}

// check: ENV-1
async fn a_create_whose_environment_is_destroyed_meanwhile_is_told_so(server: &Server) {
    let name = unique("short");
    let create = tokio::spawn({
        let (api, name) = (server.api(), name.clone());
        let body = json!({"task_id": name, "build": [{"run": "sleep 30"}]});
        async move { api.post("/v1/environments", body).await }
    });
    let api = server.api();
    let path = format!("/v1/environments/fuse-{name}");
    until("it is being made", async || {
        let read = api.get(&path).await;
        (read.status == 200).then_some(())
    })
    .await;
    api.delete(&path).await.ok(204);
    let told = create.await.expect("it ends").refused(409, "conflict");
    assert_eq!(told["details"]["state"], "destroyed", "{told}");
    api.get(&path).await.refused(404, "not_found");
}

// check: LIFE-1
async fn the_destroy_of_an_environment_can_be_held_and_refused(server: &Server) {
    let on = |name: &str, mode: &str| json!({"name": name, "on": "lifecycle", "match": {"action": ["destroy", "migrate"]}, "mode": mode});
    let held_env = server
        .env(json!({"gates": [on("keep", "ask"), on("watch", "notify")]}))
        .await;
    let held = held_env.destroy().await.held();
    assert_eq!(
        (&held["kind"], &held["gate"]),
        (&json!("lifecycle"), &json!("keep"))
    );
    assert_eq!(held["payload"]["lifecycle"], json!({"action": "destroy"}));
    held_env.get().await.ok(200);
    held_env
        .api
        .reject(&id(&held), "it is needed")
        .await
        .ok(200);
    held_env.get().await.ok(200);
    let again = id(&held_env.destroy().await.held());
    let pending = id(&held_env.destroy().await.held());
    held_env.api.approve(&again, json!({})).await.ok(200);
    let settled = held_env.api.wait(&again, "50s").await;
    assert_eq!(settled["state"], "approved", "{settled}");
    assert_eq!(settled["result"], json!({}), "{settled}");
    until("it is gone", async || {
        (held_env.get().await.status == 404).then_some(())
    })
    .await;
    assert_eq!(held_env.api.read(&pending).await["state"], "cancelled");

    let mut words = on("no-self-destruct", "deny");
    words["reason"] = json!("this environment is not the agent's to destroy");
    let kept = server.env(json!({"gates": [words]})).await;
    let error = kept.destroy().await.refused(403, "forbidden");
    assert_eq!(
        error["message"],
        "this environment is not the agent's to destroy"
    );
    assert_eq!(
        (&error["details"]["reason"], &error["details"]["gate"]),
        (&json!("hitl_denied"), &json!("no-self-destruct"))
    );
    assert_eq!(kept.get().await.ok(200)["state"], "running");
    let (_, secret) = kept.api.key("agent").await;
    let key = kept.api.with_token(&secret);
    let path = format!("/v1/environments/{}", kept.id);
    key.delete(&path).await.refused(403, "forbidden");
}

// check: CONF-32
async fn nothing_of_the_policy_is_in_the_guest(server: &Server) {
    let mark = fuse_e2e::unique("telling-name");
    let gate = json!({"name": mark, "on": "exec", "match": {"program": "rm"}, "reason": "a-telling-reason"});
    let env = server
        .env_of(json!({"hitl": {"requests": {"ask": {}}, "gates": [gate]}, "run": "sleep 100"}))
        .await;
    let look = "for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\\0' '\\n' < $f; done 2>/dev/null; \
                grep -rsl -e telling-name -e telling-reason /etc /fuse /tmp /workspace /srv /opt /run /dev/shm; true";
    // The shell's own command line names what it looks for.
    let seen = env
        .sh(look)
        .await
        .replace("-e telling-name -e telling-reason", "");
    assert!(!seen.contains("telling-"), "{seen}");
    for folder in server.data().environment_folders() {
        let meta = std::fs::read_to_string(folder.join("meta.json")).unwrap_or_default();
        assert!(!meta.contains(&mark), "{meta}");
    }
}
