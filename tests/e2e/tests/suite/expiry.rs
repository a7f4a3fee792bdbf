//! Deadlines that pass. The shortest is ten seconds, so all of it waits at once.

use std::time::{Duration, Instant};

use fuse_e2e::{Env, Server, Store};
use serde_json::{Value, json};

fn block(on_timeout: &str) -> Value {
    json!({
        "timeout_seconds": 10,
        "on_timeout": on_timeout,
        "requests": {"ask": {}, "review": {}},
        "gates": [
            {"name": "touch", "on": "exec", "match": {"program": "touch"}, "grant": "env"},
            {"name": "destroy", "on": "lifecycle", "match": {"action": "destroy"}},
        ],
    })
}

struct Raised {
    ask: String,
    review: String,
    touch: String,
}

async fn raise(env: &Env) -> Raised {
    let review = env
        .request(json!({"kind": "review", "content": "x"}))
        .await
        .ok(201);
    let id = |value: &Value| value["id"].as_str().expect("an id").to_owned();
    Raised {
        ask: env.ask("Anybody?").await,
        review: id(&review),
        touch: id(&env.hold(&["touch", "/tmp/ran"]).await),
    }
}

fn late(read: &Value) -> i64 {
    let micros = |time: &Value| {
        let text = time.as_str().expect("a time");
        fuse_api::time::Timestamp::parse(text)
            .expect("RFC 3339")
            .as_micros()
    };
    micros(&read["resolved_at"]) - micros(&read["deadline"])
}

// check: INV-1, INV-4, INV-5, INV-6, INV-13, INV-20, INV-21, GATE-16, GRANT-8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_decides_expires_as_the_policy_says() {
    let (one, two) = (Server::start(Store::Sqlite), Server::start(Store::Postgres));
    tokio::join!(expire(&one), expire(&two));
}

async fn expire(server: &Server) {
    let (reject, allow) = (
        server.env(block("reject")).await,
        server.env(block("allow")).await,
    );
    let unread = server.env(block("reject")).await;
    let unread_ask = unread.ask("Does anybody read this?").await;
    let (no, yes) = (raise(&reject).await, raise(&allow).await);
    let begun = Instant::now();
    let waits = async {
        let (asked, held) = tokio::join!(
            reject.api.wait(&no.ask, "50s"),
            allow.api.wait(&yes.touch, "50s")
        );
        (asked, held, begun.elapsed())
    };
    let (asked, held, took) = waits.await;
    assert!(
        (Duration::from_secs(8)..Duration::from_secs(25)).contains(&took),
        "{took:?}"
    );

    let system = json!({"id": "system", "source": "system"});
    for read in [
        &asked,
        &reject.api.read(&no.review).await,
        &reject.api.read(&no.touch).await,
    ] {
        assert_eq!(
            (&read["state"], &read["decision"]["outcome"]),
            (&json!("expired"), &json!("reject"))
        );
        assert_eq!(read["decision"]["decided_by"], system);
        assert!(
            read["decision"]["reason"]
                .as_str()
                .is_some_and(|r| !r.trim().is_empty())
        );
        assert!(
            (0..5_000_000).contains(&late(read)),
            "{} µs late",
            late(read)
        );
    }
    for id in [&yes.ask, &yes.review] {
        let read = allow.api.read(id).await;
        assert_eq!(
            (&read["state"], &read["decision"]["outcome"]),
            (&json!("expired"), &json!("approve"))
        );
        assert_eq!(
            (&read["decision"]["answer"], &read["decision"]["decided_by"]),
            (&json!(""), &system)
        );
    }
    assert_eq!(held["state"], "expired", "{held}");
    assert_eq!(held["decision"]["grant"], "once", "silence grants nothing");
    assert_eq!(held["result"]["exec"]["exit_code"], 0, "{held}");
    assert_eq!(
        allow.run(&["ls", "/tmp/ran"]).await["exit_code"],
        0,
        "silence was a yes"
    );
    assert_ne!(
        reject.run(&["ls", "/tmp/ran"]).await["exit_code"],
        0,
        "silence was a no"
    );
    allow.hold(&["touch", "/tmp/ran"]).await;

    // A decision a moment after the deadline is too late.
    let error = reject
        .api
        .approve(&no.ask, json!({}))
        .await
        .refused(409, "conflict");
    assert_eq!(error["details"]["state"], "expired");
    let events = reject.api.audited(&reject.id).await;
    assert_eq!(
        events.iter().filter(|e| *e == "expired").count(),
        3,
        "{events:?}"
    );
    // What nobody read expired as well; the list of the expired shows it without any read of its own.
    let path = format!("/v1/interventions?state=expired&env={}", unread.id);
    let listed = unread.api.get(&path).await.ok(200);
    assert_eq!(listed["interventions"][0]["id"], json!(unread_ask));
    assert!(
        late(&listed["interventions"][0]) < 5_000_000,
        "the timer was late"
    );

    // The end of the environment is held, too, and silence ends it.
    let going = server.env(block("allow")).await;
    let path = format!("/v1/environments/{}", going.id);
    let held = going.api.delete(&path).await.held();
    let settled = going
        .api
        .wait(held["id"].as_str().expect("an id"), "50s")
        .await;
    assert_eq!(
        (&settled["state"], &settled["result"]),
        (&json!("expired"), &json!({})),
        "{settled}"
    );
    going.api.get(&path).await.refused(404, "not_found");
}

/// The deadline passes while no server runs: the first one that does settles it.
// check: INV-5, INV-6, GATE-27
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_that_passes_while_the_server_is_away_counts() {
    let servers = [Server::start(Store::Sqlite), Server::start(Store::Postgres)];
    let mut raised = Vec::new();
    for server in &servers {
        let (reject, allow) = (
            server.env(block("reject")).await,
            server.env(block("allow")).await,
        );
        let (no, yes) = (raise(&reject).await, raise(&allow).await);
        raised.push((reject, allow, no, yes));
    }
    servers.iter().for_each(Server::kill9);
    tokio::time::sleep(Duration::from_secs(11)).await;
    for (server, (reject, allow, no, yes)) in servers.iter().zip(&raised) {
        server.restart();
        let read = reject.api.read(&no.ask).await;
        assert_eq!(
            (&read["state"], &read["decision"]["outcome"]),
            (&json!("expired"), &json!("reject"))
        );
        assert_eq!(reject.api.read(&no.touch).await["state"], "expired");
        let held = allow.api.wait(&yes.touch, "50s").await;
        assert_eq!(held["result"]["exec"]["exit_code"], 0, "{held}");
        assert_eq!(allow.run(&["ls", "/tmp/ran"]).await["exit_code"], 0);
        assert_ne!(reject.run(&["ls", "/tmp/ran"]).await["exit_code"], 0);
    }
}
