//! Content at rest: nothing to read in the database with a key, and no way in with another.

use fuse_e2e::{Data, Server, Settings, Store, each_store};
use serde_json::{Value, json};

each_store!(
    nothing_of_the_content_is_readable_at_rest,
    a_wrong_or_missing_key_is_a_clear_error_at_start,
    without_a_key_there_is_one_warning_and_a_key_may_come_later,
);

const WORDS: [&str; 8] = [
    "question-9d1",
    "answer-9d2",
    "comment-9d3",
    "review-9d4",
    "argv-9d5",
    "output-9d6",
    "refusal-9d7",
    "edited-9d8",
];

/// Puts each of the words on record.
async fn fill(server: &Server) -> Vec<String> {
    let gates = json!([{"name": "sh", "on": "exec", "match": {"program": "sh"}, "grant": "env"}]);
    let env = server
        .env(json!({"requests": {"ask": {}, "review": {}}, "gates": gates}))
        .await;
    let ask = env.ask("question-9d1").await;
    env.api
        .approve(
            &ask,
            json!({"answer": "answer-9d2", "reason": "comment-9d3"}),
        )
        .await
        .ok(200);
    let review = env
        .request(json!({"kind": "review", "content": "review-9d4"}))
        .await
        .ok(201);
    let review = review["id"].as_str().expect("an id").to_owned();
    env.api.reject(&review, "refusal-9d7").await.ok(200);
    let id = |value: Value| value["id"].as_str().expect("an id").to_owned();
    let held = id(env
        .hold(&["sh", "-c", "echo output-9d$((5+1)) # argv-9d5"])
        .await);
    env.api.approve(&held, json!({})).await.ok(200);
    let settled = env.api.wait(&held, "50s").await;
    assert_eq!(settled["result"]["exec"]["stdout"], "output-9d6\n");
    let edited = id(env.hold(&["sh", "-c", "true"]).await);
    env.api
        .approve(&edited, json!({"edited_argv": ["echo", "edited-9d8"]}))
        .await
        .ok(200);
    env.api.wait(&edited, "50s").await;
    vec![ask, review, held, edited]
}

fn files_hold(data: &Data, word: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(data.folder()) else {
        return false;
    };
    entries
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("fuse.db"))
        .any(|entry| {
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            bytes
                .windows(word.len())
                .any(|window| window == word.as_bytes())
        })
}

// check: SEAL-1, SEAL-7
async fn nothing_of_the_content_is_readable_at_rest(store: Store) {
    let server = Server::with(store, Settings::sealed());
    let ids = fill(&server).await;
    server.stop();
    let raw = server.data().raw();
    for word in WORDS {
        assert!(!raw.holds(word).await, "{word} is in a row");
        assert!(!files_hold(server.data(), word), "{word} is in the file");
    }
    // The way that looks for them does find what is plain.
    assert!(raw.holds(&ids[0]).await);
    let states = raw
        .texts("SELECT DISTINCT state FROM interventions ORDER BY state")
        .await;
    assert_eq!(states, ["approved", "rejected"]);
    server.restart();
    let api = server.api();
    assert_eq!(
        api.read(&ids[0]).await["payload"]["ask"]["question"],
        "question-9d1"
    );
    assert_eq!(
        api.read(&ids[2]).await["result"]["exec"]["stdout"],
        "output-9d6\n"
    );
}

// check: SEAL-5
async fn a_wrong_or_missing_key_is_a_clear_error_at_start(store: Store) {
    let settings = Settings::sealed();
    let server = Server::with(store, settings.clone());
    let ids = fill(&server).await;
    server.stop();
    for (wrong, word) in [
        (Settings::sealed(), "TOKEN_ENCRYPTION_KEY"),
        (Settings::default(), "TOKEN_ENCRYPTION_KEY"),
    ] {
        let ended = Server::refuse(server.data(), &wrong);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        let key = wrong.key.unwrap_or_else(|| "no key".to_owned());
        assert!(
            !ended.stderr.contains(&key),
            "the key is no part of the error"
        );
    }
    server.restart_with(settings);
    assert_eq!(
        server.api().read(&ids[0]).await["decision"]["answer"],
        "answer-9d2"
    );
}

// check: SEAL-4
async fn without_a_key_there_is_one_warning_and_a_key_may_come_later(store: Store) {
    let server = Server::start(store);
    let warnings = |server: &Server| {
        server
            .log()
            .lines()
            .iter()
            .filter(|l| l.contains("TOKEN_ENCRYPTION_KEY"))
            .count()
    };
    assert_eq!(warnings(&server), 1, "{}", server.log().text());
    let ids = fill(&server).await;
    assert_eq!(warnings(&server), 1);
    assert!(
        server.data().raw().holds("question-9d1").await,
        "it is in the clear"
    );
    server.stop();
    let sealed = Settings::sealed();
    server.restart_with(sealed.clone());
    assert_eq!(
        server.api().read(&ids[0]).await["payload"]["ask"]["question"],
        "question-9d1"
    );
    let env = server.env(json!({"requests": {"ask": {}}})).await;
    let later = env.ask("question-of-later").await;
    assert!(!server.data().raw().holds("question-of-later").await);
    assert_eq!(
        env.api.read(&later).await["payload"]["ask"]["question"],
        "question-of-later"
    );
    server.stop();
    assert_eq!(
        Server::refuse(server.data(), &Settings::default()).code,
        Some(2)
    );
    server.restart_with(sealed);
}
