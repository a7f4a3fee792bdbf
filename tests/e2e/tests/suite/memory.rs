//! What a server keeps in memory is right beside another server on the same database.

use std::time::Duration;

use fuse_e2e::{Server, Store, within};
use serde_json::json;

async fn two() -> (Server, Server) {
    let one = Server::start(Store::Postgres);
    let other = one.beside();
    (one, other)
}

// check: STORE-10, WAIT-3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_knows_another_one_decides_or_destroys() {
    let (one, other) = two().await;
    let env = one.env(json!({"requests": {"ask": {}}})).await;
    // The one that raised it knows it; the other one decides it.
    let id = env.ask("Q?").await;
    other
        .api()
        .approve(&id, json!({"answer": "a"}))
        .await
        .ok(200);
    let refused = one.api().approve(&id, json!({"answer": "b"})).await;
    refused.refused(409, "conflict");
    let refused = one.api().approve(&id, json!({})).await;
    refused.refused(409, "conflict");
    assert_eq!(one.api().wait(&id, "20s").await["decision"]["answer"], "a");
    // Parked over what is in memory.
    let id = env.ask("Q?").await;
    let (api, other_api) = (one.api(), other.api());
    let (waited, ()) = tokio::join!(api.wait(&id, "50s"), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        other_api.approve(&id, json!({"answer": "c"})).await.ok(200);
    });
    assert_eq!(waited["decision"]["answer"], "c");
    env.ask("Q?").await;
    let path = format!("/v1/environments/{}", env.id);
    assert_eq!(other.api().delete(&path).await.status, 204);
    let refused = env.request(json!({"kind": "ask", "question": "Q?"})).await;
    assert!([404, 409].contains(&refused.status), "{}", refused.status);
}

// check: ACCESS-20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_one_server_revokes_ends_on_the_other_also_where_that_hears_nothing() {
    let (one, other) = two().await;
    for deaf in [false, true] {
        let (id, secret) = one.api().key("ci").await;
        let theirs = other.api().with_token(&secret);
        theirs.get("/v1/environments").await.ok(200);
        if deaf {
            one.data()
                .raw()
                .run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND query ILIKE 'listen %' AND pid <> pg_backend_pid()",
                )
                .await;
        }
        let path = format!("/v1/api-keys/{id}");
        assert_eq!(one.api().delete(&path).await.status, 204);
        within(Duration::from_secs(10), "it is refused", async || {
            (theirs.get("/v1/environments").await.status == 401).then_some(())
        })
        .await;
    }
}
