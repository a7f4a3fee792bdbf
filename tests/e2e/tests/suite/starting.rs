//! How a server starts, and when it does not.

use std::os::unix::fs::PermissionsExt;

use fuse_e2e::{Api, Data, Server, Settings, Store};
use serde_json::json;

// check: CLI-13, SEAL-6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_setting_is_one_line_and_leaves_nothing_behind() {
    for (name, value) in [
        ("TOKEN_ENCRYPTION_KEY", "too-short-a-key"),
        ("TOKEN_ENCRYPTION_KEY", ""),
        ("ORCH_AUTH_TOKEN", "has blanks in the middle of it"),
        ("ORCH_AUTH_TOKEN", "fuse_sk_0123456789012345678901234567"),
        ("FUSE_TRUSTED_PROXIES", "not-a-network"),
        ("FUSE_OUTBOUND_ALLOW", "10.0.0.0/99"),
        ("ORCH_PUBLIC_URL", "ftp://x"),
        ("FUSE_RESTATE_MODE", "self"),
        ("FUSE_LOG_FORMAT", "xml"),
        ("RUST_LOG", "fuse=loud"),
    ] {
        let data = Data::new(Store::Sqlite);
        let ended = Server::refuse(&data, &Settings::default().with(name, value));
        assert_eq!(ended.code, Some(2), "{name}: {}", ended.stderr);
        assert_eq!(ended.stderr.trim().lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(name), "{}", ended.stderr);
        if name.contains("TOKEN") && !value.is_empty() {
            assert!(
                !ended.stderr.contains(value),
                "the secret is told: {}",
                ended.stderr
            );
        }
        let written = std::fs::read_dir(data.folder()).expect("a folder").count();
        assert_eq!(written, 0, "{name}: something was written");
    }
    let data = Data::new(Store::Sqlite);
    for url in [
        "mysql://x/y",
        "sqlite:",
        "sqlite::memory:",
        "postgres://",
        "nonsense",
    ] {
        let settings = Settings {
            database_url: Some(url.to_owned()),
            ..Settings::default()
        };
        let ended = Server::refuse(&data, &settings);
        assert_eq!(ended.code, Some(2), "{url}: {}", ended.stderr);
    }
    let settings = Settings {
        database_url: Some("postgres://nobody:hunter2@127.0.0.1:1/none".to_owned()),
        ..Settings::default()
    };
    let ended = Server::refuse(&data, &settings);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
}

// check: CLI-14, CLI-15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_master_token_is_made_once_for_its_owner_alone() {
    let settings = Settings {
        own_token: true,
        ..Settings::default()
    };
    let server = Server::with(Store::Sqlite, settings);
    let file = server.data().folder().join("master-token");
    let mode = std::fs::metadata(&file)
        .expect("the file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        server.log().text().contains(&file.display().to_string()),
        "its path is told"
    );
    assert!(!server.log().text().contains(server.token()), "it is not");
    assert!(server.token().len() >= 32);
    server.api().get("/v1/environments").await.ok(200);
    for token in ["", "master", "null"] {
        let api = Api::new(&server.url()).with_token(token);
        api.get("/v1/environments")
            .await
            .refused(401, "unauthorized");
    }
    let before = server.token().to_owned();
    server.stop();
    server.restart();
    let after = std::fs::read_to_string(&file).expect("the file");
    assert_eq!(after.trim(), before);
    server.api().get("/v1/environments").await.ok(200);
}

// check: STORE-6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_at_once_share_one_database() {
    let first = Server::start(Store::Postgres);
    let starts: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..3).map(|_| scope.spawn(|| first.beside())).collect();
        all.into_iter()
            .map(|start| start.join().expect("it starts"))
            .collect()
    });
    let env = first.env(json!({"requests": {"ask": {}}})).await;
    for server in &starts {
        let seen = server
            .api()
            .get(&format!("/v1/environments/{}", env.id))
            .await
            .ok(200);
        assert_eq!(seen["state"], "running");
    }
}

// check: STORE-9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_one_sqlite_file_is_refused_until_the_first_is_gone() {
    let data = std::sync::Arc::new(Data::new(Store::Sqlite));
    let first = Server::on(std::sync::Arc::clone(&data), Settings::default());
    let refused = Server::refuse(&data, &Settings::default());
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for said in ["fuse.db", "in use by another server", "PostgreSQL"] {
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    first.api().get("/v1/environments").await.ok(200);
    // However it ends, its file is free again.
    first.kill9();
    first.restart();
    first.api().get("/v1/environments").await.ok(200);
}
