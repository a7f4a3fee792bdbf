//! What is sent, what is sent again, and what a failure tells.

mod support;

use fuse_client::api::environment::CreateEnvironment;
use fuse_client::api::error::ErrorCode;
use fuse_client::{ActorLabel, Client, Error, HumanRequest, InterventionFilter, StateFilter};
use serde_json::json;
use support::{ENV, INT, Server, Step, decided, ok, pending, ran, refused, soon};

// check: WAIT-8
#[tokio::test]
async fn a_read_is_tried_again_and_gives_up_in_the_end() {
    let server = Server::start([Step::Drop, Step::Text(503, "down"), ok(pending("ask"))]).await;
    let read = soon(server.client().interventions().get(INT))
        .await
        .expect("an answer");
    assert_eq!(read.id.as_str(), INT);

    let server = Server::start([Step::Text(503, "down"), Step::Text(503, "down")]).await;
    let client = server.builder().tries(2).build().expect("a client");
    let error = soon(client.interventions().get(INT))
        .await
        .expect_err("it is down");
    assert_eq!(error.status(), Some(503));
    assert!(server.is_done());
}

// check: WAIT-8
#[tokio::test]
async fn a_command_whose_answer_was_lost_is_not_sent_again() {
    for step in [
        Step::Drop,
        Step::Half,
        Step::Text(502, "gone"),
        refused(503, "unavailable", json!({})),
    ] {
        let server = Server::start([step, ok(ran())]).await;
        let client = server.client();
        soon(client.environments().exec(ENV, ["true"]))
            .await
            .expect_err("no answer");
        assert_eq!(server.seen().len(), 1);
    }
}

// check: WAIT-8
#[tokio::test]
async fn nothing_that_changes_something_is_sent_again() {
    let server = Server::start([Step::Drop, Step::Drop, Step::Drop, Step::Drop]).await;
    let client = server.client();
    soon(client.environments().create(&CreateEnvironment::default()))
        .await
        .expect_err("lost");
    soon(client.environments().destroy(ENV))
        .await
        .expect_err("lost");
    soon(client.interventions().approve(INT, "yes", ""))
        .await
        .expect_err("lost");
    soon(
        client
            .environments()
            .request_human(ENV, HumanRequest::ask("?")),
    )
    .await
    .expect_err("lost");
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn a_command_that_never_left_is_tried_again_until_a_server_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let client = Client::builder(format!("http://{address}"))
        .tries(2)
        .build()
        .expect("a client");
    let error = soon(client.environments().exec(ENV, ["true"]))
        .await
        .expect_err("nobody listens");
    assert!(matches!(&error, Error::Transport { url, .. } if url.contains(&address.to_string())));

    let client = Client::builder(format!("http://{address}"))
        .tries(10)
        .build()
        .expect("a client");
    let exec = tokio::spawn(async move { client.environments().exec(ENV, ["true"]).await });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let server = Server::start_at(&address.to_string(), [ok(ran())]).await;
    assert_eq!(
        soon(exec)
            .await
            .expect("a task")
            .expect("a result")
            .exit_code,
        7
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn token_and_actor_travel_as_headers() {
    let server = Server::start([
        ok(decided("ask", "approved", "approve", "")),
        ok(pending("ask")),
    ])
    .await;
    let client = server.client();
    let alice = client.with_actor(ActorLabel::new("alice@corp.com").name("Alice Ñg"));
    soon(alice.interventions().approve(INT, "yes", ""))
        .await
        .expect("an answer");
    soon(client.interventions().get(INT))
        .await
        .expect("an answer");
    let seen = server.seen();
    assert_eq!(seen[0].header("authorization"), Some("Bearer fuse_sk_test"));
    assert_eq!(seen[0].header("fuse-actor"), Some("alice@corp.com"));
    assert_eq!(seen[0].header("fuse-actor-name"), Some("Alice Ñg"));
    assert_eq!(seen[0].body, json!({ "answer": "yes" }));
    assert_eq!(seen[1].header("fuse-actor"), None);
}

#[tokio::test]
async fn an_actor_that_cannot_be_sent_is_refused_before_anything_is() {
    let server = Server::start([]).await;
    let client = server.client().with_actor(ActorLabel::new("a\r\nx: y"));
    let error = soon(client.interventions().get(INT))
        .await
        .expect_err("a refusal");
    assert!(matches!(error, Error::Config(_)));
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn an_id_that_cannot_be_one_never_reaches_the_server() {
    let server = Server::start([]).await;
    let client = server.client();
    for id in ["", "..", "fuse-a/../b", "fuse-a?x", "agent"] {
        let error = soon(client.environments().destroy(id))
            .await
            .expect_err("a refusal");
        assert!(matches!(error, Error::Id { .. }), "{id}");
        soon(client.environments().exec(id, ["true"]))
            .await
            .expect_err("a refusal");
    }
    soon(client.interventions().get("int_1"))
        .await
        .expect_err("a refusal");
    soon(client.api_keys().revoke("ak_1"))
        .await
        .expect_err("a refusal");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_failure_tells_what_the_server_said() {
    let server = Server::start([refused(409, "conflict", json!({ "state": "approved" }))]).await;
    match soon(server.client().interventions().reject(INT, "no")).await {
        Err(Error::Api {
            status,
            code,
            message,
            details,
            request_id,
        }) => {
            assert_eq!((status, code), (409, Some(ErrorCode::Conflict)));
            assert_eq!(message, "no such luck");
            assert_eq!(details["state"], "approved");
            assert_eq!(request_id.as_deref(), Some("req-1"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_that_is_not_the_servers_own_is_told_by_its_status() {
    for (step, expected) in [
        (Step::Text(404, "<html>"), Some(404)),
        (Step::Text(302, ""), Some(302)),
        (Step::Text(200, "<html>"), None),
    ] {
        let server = Server::start([step]).await;
        let error = soon(server.client().interventions().get(INT))
            .await
            .expect_err("nonsense");
        assert_eq!(error.status(), expected, "{error:?}");
    }
}

#[tokio::test]
async fn a_filter_becomes_a_query() {
    let empty = || ok(json!({ "interventions": [] }));
    let server = Server::start([empty(), empty()]).await;
    let client = server.client();
    soon(client.interventions().list(&InterventionFilter::default()))
        .await
        .expect("a page");
    let filter = InterventionFilter {
        env: Some(ENV.to_owned()),
        state: StateFilter::All,
        actor: Some("a&b c".to_owned()),
        limit: Some(5),
        ..InterventionFilter::default()
    };
    soon(client.interventions().list(&filter))
        .await
        .expect("a page");
    assert_eq!(
        server.lines(),
        [
            "GET /v1/interventions?state=pending",
            "GET /v1/interventions?env=fuse-agent&state=all&actor=a%26b+c&limit=5",
        ]
    );
}

#[tokio::test]
async fn a_path_in_the_url_is_kept() {
    let server = Server::start([ok(pending("ask"))]).await;
    let client = Client::builder(format!("{}/fuse/", server.url))
        .build()
        .expect("a client");
    soon(client.interventions().get(INT))
        .await
        .expect("an answer");
    assert_eq!(
        server.lines(),
        [format!("GET /fuse/v1/interventions/{INT}")]
    );
    assert_eq!(server.seen()[0].header("authorization"), None);
}

fn event(state: &str) -> String {
    format!(r#"{{"id":"1","event":"state","vm_id":"{ENV}","state":"{state}"}}"#)
}

#[tokio::test]
async fn an_event_stream_goes_on_over_a_lost_connection_and_ends_with_the_environment() {
    let first = format!(": keepalive\n\ndata: {}\n\n", event("running"));
    let second = format!(
        "data: {}\n\ndata: {}\n\n",
        event("destroying"),
        event("destroyed")
    );
    let server = Server::start([
        Step::Events(first.leak()),
        Step::Text(502, "restarting"),
        Step::Events(second.leak()),
    ])
    .await;
    let mut events = soon(server.client().environments().events(ENV))
        .await
        .expect("a stream");
    let mut states = Vec::new();
    while let Some(event) = soon(events.next()).await {
        states.push(event.expect("an event").state.as_str());
    }
    assert_eq!(states, ["running", "destroying", "destroyed"]);
    assert!(soon(events.next()).await.is_none());
}

#[tokio::test]
async fn an_event_stream_ends_where_the_environment_is_gone() {
    let first = format!("data: {}\n\n", event("running"));
    let server = Server::start([
        Step::Events(first.leak()),
        refused(404, "not_found", json!({})),
    ])
    .await;
    let mut events = soon(server.client().environments().events(ENV))
        .await
        .expect("a stream");
    assert!(matches!(soon(events.next()).await, Some(Ok(_))));
    assert!(soon(events.next()).await.is_none());
}

#[tokio::test]
async fn an_event_without_an_end_is_given_up() {
    let endless = format!("data: {}", "x".repeat(2 * 1024 * 1024));
    let script = std::iter::once(Step::Events(endless.leak())).chain(std::iter::once(refused(
        401,
        "unauthorized",
        json!({}),
    )));
    let server = Server::start(script).await;
    let mut events = soon(server.client().environments().events(ENV))
        .await
        .expect("a stream");
    assert!(matches!(
        soon(events.next()).await,
        Some(Err(Error::Api { status: 401, .. }))
    ));
    assert!(soon(events.next()).await.is_none());
}
