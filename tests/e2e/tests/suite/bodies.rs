//! Bodies of requests: strict, bounded, and refused with the place.

use fuse_e2e::{Server, both};
use serde_json::json;

both!(
    a_body_that_is_no_json_is_refused_with_the_place,
    a_body_over_its_limit_is_a_413_and_just_under_it_is_read,
    a_create_request_that_breaks_a_rule_names_the_field,
);

// check: HTTP-3, HTTP-4
async fn a_body_that_is_no_json_is_refused_with_the_place(server: &Server) {
    let env = server.env(json!({"requests": {"ask": {}}})).await;
    let api = server.api();
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_member = format!(
        "{{\"kind\":{}}}",
        "{\"a\":".repeat(500) + "1" + &"}".repeat(500)
    );
    let paths = [
        "/v1/environments".to_owned(),
        format!("/v1/environments/{}?action=exec", env.id),
        format!("/v1/environments/{}?action=request", env.id),
        format!("/v1/interventions/{}?action=approve", env.ask("Q?").await),
        "/v1/api-keys".to_owned(),
    ];
    let bodies: Vec<(Vec<u8>, &str)> = vec![
        (b"{".to_vec(), "body"),
        (b"{}}".to_vec(), "body"),
        (b"nonsense".to_vec(), "body"),
        (b"{\"a\":}".to_vec(), "body"),
        (b"{'a':1}".to_vec(), "body"),
        (b"{\"a\":1,}".to_vec(), "body"),
        (b"\xef\xbb\xbf{}".to_vec(), "body"),
        (b"[]".to_vec(), "body"),
        (b"null".to_vec(), "body"),
        (b"\"{}\"".to_vec(), "body"),
        (b"{\"\xff\":1}".to_vec(), "body"),
        (b"{\"x\":\"\\ud800\"}".to_vec(), "body"),
        (b"{\"x\":1e999}".to_vec(), "body"),
        (b"{\"x\":\x001}".to_vec(), "body"),
        (b"{\"unknown\":1}".to_vec(), "unknown"),
        (b"{\"a\":1,\"a\":1}".to_vec(), "a"),
        (b"{\"x\":\"a\\u0000b\"}".to_vec(), "x"),
        (deep.into_bytes(), "body"),
        (deep_member.into_bytes(), ""),
    ];
    for path in &paths {
        for (body, place) in &bodies {
            let reply = api.send("POST", path, Some(body.clone())).await;
            let message = reply.invalid();
            assert!(
                message.starts_with(place),
                "{path} {:?}: {message}",
                String::from_utf8_lossy(&body[..body.len().min(60)])
            );
            assert!(message.len() < 1000, "{message}");
        }
    }
    for path in &paths[..3] {
        assert!(
            api.send("POST", path, Some(Vec::new()))
                .await
                .invalid()
                .starts_with("body: is empty")
        );
    }
    let path = format!("/v1/environments/{}?action=request", env.id);
    let twice = br#"{"kind":"ask","question":"a","question":"b"}"#.to_vec();
    let message = api.send("POST", &path, Some(twice)).await.invalid();
    assert_eq!(message, "question: the key stands there twice");
}

// check: HTTP-5
async fn a_body_over_its_limit_is_a_413_and_just_under_it_is_read(server: &Server) {
    let env = server.env(json!({"requests": {"ask": {}}})).await;
    let limit = 2 * 1024 * 1024;
    let path = format!("/v1/environments/{}?action=request", env.id);
    let sized = |size: usize| {
        let frame = r#"{"kind":"ask","question":""}"#;
        let fill = "x".repeat(size - frame.len());
        format!(r#"{{"kind":"ask","question":"{fill}"}}"#).into_bytes()
    };
    for (size, status) in [(limit, 400), (limit + 1, 413), (8 * limit, 413)] {
        let reply = server.api().send("POST", &path, Some(sized(size))).await;
        assert_eq!(reply.status, status, "{size}: {}", reply.text);
    }
    for path in ["/v1/environments", "/v1/api-keys", &path] {
        let reply = server
            .api()
            .send("POST", path, Some(vec![b' '; limit + 1]))
            .await;
        reply.refused(413, "payload_too_large");
        let reply = server
            .api()
            .anonymous()
            .send("POST", path, Some(vec![b' '; limit + 1]))
            .await;
        reply.refused(401, "unauthorized");
    }
    assert!(env.interventions().await.is_empty());
}

// check: ENV-2, ENV-8, ENV-9, ENV-18
async fn a_create_request_that_breaks_a_rule_names_the_field(server: &Server) {
    let api = server.api();
    for (member, path) in [
        (json!({"task_id": ""}), "task_id"),
        (json!({"task_id": "Upper"}), "task_id"),
        (json!({"task_id": "-a"}), "task_id"),
        (json!({"task_id": "a-"}), "task_id"),
        (json!({"task_id": "a.b"}), "task_id"),
        (json!({"task_id": "a".repeat(64)}), "task_id"),
        (json!({"spec": {"cpus": 0}}), "spec.cpus"),
        (json!({"spec": {"cpus": "two"}}), "spec.cpus"),
        (json!({"spec": {"ram_mb": 1}}), "spec.ram_mb"),
        (json!({"spec": {"max_processes": 4}}), "spec.max_processes"),
        (json!({"spec": {"storage_gb": 0}}), "spec.storage_gb"),
        (
            json!({"spec": {"idle_timeout_seconds": 59}}),
            "spec.idle_timeout_seconds",
        ),
        (
            json!({"spec": {"max_runtime_seconds": 0}}),
            "spec.max_runtime_seconds",
        ),
        (json!({"spec": {"network": "bridge"}}), "spec.network"),
        (json!({"spec": {"image": "../../etc"}}), "spec.image"),
        (json!({"spec": {"image": "no-such-image"}}), "spec.image"),
        (json!({"spec": {"host_id": "elsewhere"}}), "spec.host_id"),
        (json!({"spec": {"colour": "red"}}), "spec.colour"),
        (json!({"files": {"relative": ""}}), "files"),
        (json!({"files": {"/fuse/x": ""}}), "files"),
        (json!({"files": {"/a/../b": ""}}), "files"),
        (json!({"files": {"/a": "not base64!"}}), "files"),
        (json!({"files": {"/a": "A".repeat(700_000)}}), "files"),
        (json!({"env": {"A": {"secret": "unknown"}}}), "env.A"),
        (json!({"env": {"A": {}}}), "env.A"),
        (
            json!({"env": {"A": {"value": "x", "secret": "y"}}}),
            "env.A",
        ),
        (json!({"env": {"1A": {"value": "x"}}}), "env"),
        (json!({"env": {"A": "x"}}), "env.A"),
        (json!({"secrets": {"a": ""}}), "secrets.a"),
        (json!({"build": [{"run": ""}]}), "build[0].run"),
        (
            json!({"build": [{"run": "true", "workdir": "x"}]}),
            "build[0].workdir",
        ),
        (json!({"build": [{}]}), "build[0].run"),
        (json!({"run": ""}), "run"),
        (json!({"run": []}), "run"),
        (json!({"run": {"cmd": "x"}}), "run"),
        (json!({"workspace": "relative"}), "workspace"),
        (
            json!({"desktop": {"width": 319, "height": 600}}),
            "desktop.width",
        ),
        (json!({"desktop": {"width": 800}}), "desktop.height"),
        (
            json!({"startup_script_timeout_seconds": -1}),
            "startup_script_timeout_seconds",
        ),
        (json!({"hitl": []}), "hitl"),
        (json!({"colour": "red"}), "colour"),
    ] {
        let mut request = member.clone();
        if request.get("task_id").is_none() {
            request["task_id"] = json!(fuse_e2e::unique("bad"));
        }
        let message = api.post("/v1/environments", request).await.invalid();
        assert!(
            message.starts_with(path),
            "{:.120}: {message}",
            member.to_string()
        );
    }
}
