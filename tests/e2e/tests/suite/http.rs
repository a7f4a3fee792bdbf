//! HTTP: whatever comes in gets an answer of its own.

use std::time::Duration;

use fuse_e2e::{Server, Settings, both, until};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

both!(
    a_query_that_is_not_understood_is_refused,
    an_id_that_is_none_is_a_404,
    an_unknown_route_is_a_404,
    another_method_on_a_known_path_is_a_405_that_names_those_it_takes,
    what_later_releases_serve_is_a_501,
    request_ids_are_taken_over_or_made,
    pages_show_everything_once,
    bytes_that_are_no_http_harm_nobody,
    probes_and_figures_need_no_credential,
);

// check: HTTP-6
async fn a_query_that_is_not_understood_is_refused(server: &Server) {
    let env = server.env(json!({"requests": {"ask": {}}})).await;
    let id = env.ask("Q?").await;
    let api = server.api();
    for path in [
        "/v1/environments?x=1".to_owned(),
        "/v1/environments?limit=1&limit=2".to_owned(),
        "/v1/environments?limit=%zz".to_owned(),
        "/v1/environments?limit=-1".to_owned(),
        "/v1/environments?limit=1e2".to_owned(),
        "/v1/environments?cursor=!!!".to_owned(),
        "/v1/environments?cursor=AAAA".to_owned(),
        format!("/v1/environments/{}?verbose=1", env.id),
        format!("/v1/environments/{}/events?since=1", env.id),
        format!("/v1/interventions/{id}?wait=1s&x=1"),
        format!("/v1/interventions/{id}?Wait=1s"),
        "/v1/interventions?state=%00".to_owned(),
        "/v1/interventions?actor=%ff".to_owned(),
        "/v1/api-keys?state=all".to_owned(),
        "/v1/hitl/audit?since=1d".to_owned(),
    ] {
        api.get(&path).await.invalid();
    }
    for (path, word) in [
        (format!("/v1/environments/{}", env.id), "exec"),
        (format!("/v1/environments/{}?action=", env.id), "exec"),
        (format!("/v1/environments/{}?action=Exec", env.id), "exec"),
        (
            format!("/v1/environments/{}?action=exec&action=exec", env.id),
            "action",
        ),
        (format!("/v1/environments/{}?action=exec&x=1", env.id), "x"),
        (format!("/v1/interventions/{id}"), "approve"),
        (format!("/v1/interventions/{id}?action=answer"), "approve"),
    ] {
        let message = api.post(&path, json!({})).await.invalid();
        assert!(message.contains(word), "{path}: {message}");
    }
    api.post("/v1/environments?dry=1", json!({"task_id": "x"}))
        .await
        .invalid();
    api.delete(&format!("/v1/environments/{}?force=1", env.id))
        .await
        .invalid();
    env.get().await.ok(200);
}

// check: HTTP-7
async fn an_id_that_is_none_is_a_404(server: &Server) {
    let api = server.api();
    let long = "a".repeat(5000);
    for id in [
        "fuse-none",
        "none",
        "FUSE-A",
        "fuse-",
        "%00",
        "%ff",
        "a%2fb",
        "..%2f..%2fetc",
        "'--",
        &long,
    ] {
        api.get(&format!("/v1/environments/{id}"))
            .await
            .refused(404, "not_found");
        api.delete(&format!("/v1/environments/{id}"))
            .await
            .refused(404, "not_found");
        api.get(&format!("/v1/environments/{id}/events"))
            .await
            .refused(404, "not_found");
        let path = format!("/v1/environments/{id}?action=exec");
        api.post(&path, json!({"cmd": ["true"]}))
            .await
            .refused(404, "not_found");
        api.get(&format!("/v1/interventions/{id}"))
            .await
            .refused(404, "not_found");
        api.get(&format!("/v1/interventions/{id}?wait=50s"))
            .await
            .refused(404, "not_found");
        api.delete(&format!("/v1/api-keys/{id}"))
            .await
            .refused(404, "not_found");
    }
}

// check: HTTP-7
async fn an_unknown_route_is_a_404(server: &Server) {
    let api = server.api();
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v2/environments",
        "/v1/environment",
        "/v1/environments/",
        "/v1/environments/a/b",
        "/V1/environments",
        "/v1//environments",
        "/v1/hitl",
        "/admin",
        "/%2e%2e",
    ] {
        for method in ["GET", "POST", "OPTIONS"] {
            api.send(method, path, None)
                .await
                .refused(404, "route_not_found");
        }
        api.anonymous()
            .get(path)
            .await
            .refused(404, "route_not_found");
    }
}

// check: HTTP-17
async fn another_method_on_a_known_path_is_a_405_that_names_those_it_takes(server: &Server) {
    let api = server.api();
    for (method, path, allowed) in [
        ("PUT", "/v1/environments", "GET, HEAD, POST"),
        (
            "PATCH",
            "/v1/environments/fuse-a",
            "DELETE, GET, HEAD, POST",
        ),
        ("DELETE", "/v1/interventions", "GET, HEAD"),
        ("POST", "/health", "GET, HEAD"),
        ("POST", "/v1/hitl/audit", "GET, HEAD"),
        ("GET", "/v1/api-keys/ak_1", "DELETE"),
        ("HEAD", "/v1/api-keys/ak_1", "DELETE"),
        ("OPTIONS", "/v1/environments", "GET, HEAD, POST"),
        ("BREW", "/v1/environments", "GET, HEAD, POST"),
    ] {
        for api in [&api, &api.anonymous()] {
            let reply = api.send(method, path, Some(b"{}".to_vec())).await;
            assert_eq!(reply.header("allow"), Some(allowed), "{method} {path}");
            if method == "HEAD" {
                assert_eq!((reply.status, reply.text.as_str()), (405, ""));
            } else {
                let error = reply.refused(405, "method_not_allowed");
                let message = error["message"].as_str().unwrap_or_default();
                assert!(message.contains(allowed), "{error}");
            }
        }
    }
    let head = api.send("HEAD", "/v1/environments", None).await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
    assert_eq!(head.header("content-type"), Some("application/json"));
    let stranger = api.anonymous().send("HEAD", "/v1/environments", None).await;
    assert_eq!(stranger.status, 401);
}

// check: HTTP-9, ENV-10
async fn what_later_releases_serve_is_a_501(server: &Server) {
    let env = server.env(json!(null)).await;
    for action in [
        "fork",
        "migrate",
        "drain",
        "rotate-token",
        "takeover",
        "release",
    ] {
        env.act(action, json!({}))
            .await
            .refused(501, "unimplemented");
    }
    let api = server.api();
    for path in ["attach", "computer", "computer/stream"] {
        api.get(&format!("/v1/environments/{}/{path}", env.id))
            .await
            .refused(501, "unimplemented");
    }
    api.get("/v1/snapshots").await.refused(501, "unimplemented");
    for (member, name) in [
        (json!({"expose": {"port": 80}}), "expose"),
        (json!({"healthcheck": {"path": "/"}}), "healthcheck"),
        (json!({"manifest_inline": "x"}), "manifest_inline"),
        (json!({"gateway_url": "https://g"}), "gateway_url"),
        (json!({"gateway_token": "t"}), "gateway_token"),
        (json!({"egress": {"allow": ["a"]}}), "egress"),
        (json!({"spec": {"gpus": 1}}), "spec.gpus"),
        (json!({"spec": {"gpu_kind": "a100"}}), "spec.gpu_kind"),
    ] {
        let mut request = member;
        request["task_id"] = json!("never-made");
        let error = api
            .post("/v1/environments", request)
            .await
            .refused(501, "unimplemented");
        assert!(
            error["message"].as_str().is_some_and(|m| m.contains(name)),
            "{error}"
        );
    }
    let fine = json!({"expose": null, "healthcheck": {}, "manifest_inline": "", "gateway_url": null, "egress": [], "spec": {"gpus": 0, "gpu_kind": ""}});
    server.env_of(fine).await.get().await.ok(200);
}

// check: HTTP-2
async fn request_ids_are_taken_over_or_made(server: &Server) {
    let api = server.api();
    let long = "a".repeat(129);
    let most = "Z".repeat(128);
    for path in [
        "/health",
        "/v1/environments",
        "/v1/environments/fuse-none",
        "/nowhere",
    ] {
        for good in ["a", "A-Za_z09", most.as_str()] {
            let reply = api.with_header("X-Request-ID", good).get(path).await;
            assert_eq!(reply.header("x-request-id"), Some(good));
        }
        let mut made = Vec::new();
        for bad in ["", "a b", "a/b", "é", long.as_str()] {
            let reply = api.with_header("X-Request-ID", bad).get(path).await;
            let id = reply
                .header("x-request-id")
                .expect("one is made")
                .to_owned();
            assert!(
                id != bad
                    && !id.is_empty()
                    && id
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            );
            made.push(id);
        }
        made.sort();
        made.dedup();
        assert_eq!(made.len(), 5, "each is new");
    }
    // A call that went well and quickly has a line for those alone who ask for it.
    let talking = Settings::default().with("RUST_LOG", "info,fuse_orchestrator=debug");
    let server = Server::with(server.data().store(), talking);
    let id = "find-me-in-the-log-please";
    server
        .api()
        .with_header("X-Request-ID", id)
        .get("/v1/environments/fuse-none")
        .await
        .refused(404, "not_found");
    // The line is on its way through a pipe when the answer is here.
    until("the log names the request", async || {
        server.log().text().contains(id).then_some(())
    })
    .await;
}

// check: HTTP-8
async fn pages_show_everything_once(server: &Server) {
    let env = server.env(json!({"requests": {"ask": {}}})).await;
    let mut raised = Vec::new();
    for i in 0..11 {
        raised.push(env.ask(&format!("{i}?")).await);
    }
    raised.reverse();
    for limit in [1, 3, 11, 200] {
        let path = format!("/v1/interventions?env={}&limit={limit}", env.id);
        let first = env.api.get(&path).await.ok(200);
        assert_eq!(
            first["interventions"].as_array().map(Vec::len),
            Some(limit.min(11))
        );
        assert_eq!(first.get("next_cursor").is_some(), limit < 11, "{limit}");
        let seen = env.api.all(&path, "interventions").await;
        let ids: Vec<_> = seen
            .iter()
            .map(|i| i["id"].as_str().unwrap_or_default())
            .collect();
        assert_eq!(ids, raised, "{limit}");
    }
    // What is raised between two pages moves nothing.
    let path = format!("/v1/interventions?env={}&limit=4", env.id);
    let first = env.api.get(&path).await.ok(200);
    env.ask("in between").await;
    let cursor = first["next_cursor"].as_str().expect("there is more");
    let second = env
        .api
        .get(&format!("{path}&cursor={cursor}"))
        .await
        .ok(200);
    let ids: Vec<_> = second["interventions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|i| i["id"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(ids, raised[4..8]);
    for other in [
        "limit=4&state=all",
        "limit=4&state=approved",
        "limit=4&kind=ask",
    ] {
        let reply = env
            .api
            .get(&format!(
                "/v1/interventions?env={}&{other}&cursor={cursor}",
                env.id
            ))
            .await;
        assert!(reply.invalid().starts_with("cursor"), "{other}");
    }
    env.api
        .get(&format!("/v1/environments?cursor={cursor}"))
        .await
        .invalid();
    let mut altered = cursor.to_owned().into_bytes();
    altered[0] ^= 1;
    let altered = String::from_utf8_lossy(&altered).into_owned();
    let reply = env.api.get(&format!("{path}&cursor={altered}")).await;
    assert!([200, 400].contains(&reply.status), "{}", reply.text);
}

async fn speak(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address())
        .await
        .expect("a connection");
    // The server may close it while bytes still come.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
    assert!(
        read.is_ok() || !answer.is_empty(),
        "a hang: {:?}",
        String::from_utf8_lossy(&bytes[..bytes.len().min(80)])
    );
    String::from_utf8_lossy(&answer).into_owned()
}

// check: HTTP-12
async fn bytes_that_are_no_http_harm_nobody(server: &Server) {
    let token = server.token();
    let close = "Connection: close\r\n\r\n";
    for bytes in [
        b"\0\0\0\0\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(20),
        [b"GET /health HTTP/1.1\r\nX: ".to_vec(), vec![b'a'; 200_000], b"\r\n\r\n".to_vec()].concat(),
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n{close}", "a".repeat(100_000)).into_bytes(),
        format!("GET /health HTTP/1.1\r\n{}{close}", "X-A: b\r\n".repeat(500)).into_bytes(),
        format!("POST /v1/api-keys HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").into_bytes(),
        format!("POST /v1/api-keys HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n{close}").into_bytes(),
        format!("POST /v1/api-keys HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n{close}hello").into_bytes(),
    ] {
        let answer = speak(server, &bytes).await;
        let status: String = answer.chars().skip(9).take(3).collect();
        assert!(answer.is_empty() || status.starts_with('4'), "{answer:.200}");
    }
    let old = speak(server, b"GET /health HTTP/1.0\r\n\r\n").await;
    assert!(old.contains(" 200 "), "{old}");
    server.api().get("/v1/environments").await.ok(200);
}

// check: HTTP-10, HTTP-15, HTTP-11
async fn probes_and_figures_need_no_credential(server: &Server) {
    let api = server.api().anonymous();
    assert_eq!(api.get("/health").await.ok(200), json!({"status": "ok"}));
    assert_eq!(api.get("/ready").await.ok(200), json!({"status": "ok"}));
    let version = api.get("/v1/version").await.ok(200);
    assert_eq!(version["service"], "fuse-orchestrator");
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    let document = api.get("/v1/openapi.json").await.ok(200);
    assert!(
        document["openapi"]
            .as_str()
            .is_some_and(|v| v.starts_with("3.1"))
    );
    let paths = document["paths"].as_object().expect("paths");
    for row in fuse_api::routes::ROUTES {
        let method = row.method.to_lowercase();
        assert!(
            paths
                .get(row.path)
                .is_some_and(|p: &Value| p.get(&method).is_some()),
            "{row:?}"
        );
    }
    let figures = api.get("/metrics").await;
    assert_eq!(figures.status, 200);
    assert!(
        figures
            .header("content-type")
            .is_some_and(|t| t.starts_with("application/openmetrics-text"))
    );
    for name in [
        "fuse_http_requests",
        "fuse_interventions_pending",
        "fuse_audit_chain_broken",
    ] {
        assert!(figures.text.contains(name), "{name}: {}", figures.text);
    }
    assert!(figures.text.ends_with("# EOF\n"));
}
