//! Every call of the SDK, one after the other, against the server that `FUSE_URL` and `FUSE_TOKEN` name.
//!
//! Each step is also the example in the documentation of its calls. The person who decides is played by a second task
//! with the same credential: the master token may decide what it raised itself.

mod actor;
mod api_keys;
mod ask;
mod connect;
mod decide;
mod environment;
mod events;
mod exec;
mod held;
mod held_no_wait;
mod review;
mod service;

use std::process::ExitCode;

use fuse_client::api::environment::CreateEnvironment;
use fuse_client::{Client, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    if let Err(error) = tour().await {
        eprintln!("the tour failed: {error}");
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            eprintln!("  because: {inner}");
            cause = inner.source();
        }
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

async fn tour() -> Result<(), Error> {
    let client = connect::connect().await?;
    environment::environment(&client, &format!("tour-{}-a", std::process::id())).await?;
    api_keys::api_keys(&client).await?;
    service::service(&client).await?;

    let request: CreateEnvironment = serde_json::from_value(serde_json::json!({
        "task_id": format!("tour-{}-b", std::process::id()),
        "hitl": {
            "timeout_seconds": 120,
            "requests": { "ask": {}, "review": {} },
            "gates": [{ "name": "delete", "on": "exec", "match": { "program": "rm" } }],
        },
    }))
    .expect("a create request");
    let env = client.environments().create(&request).await?.id;
    let outcome = steps(&client, env.as_str()).await;
    client.environments().destroy(&env).await?;
    outcome
}

async fn steps(client: &Client, env: &str) -> Result<(), Error> {
    assert_eq!(exec::exec(client, env).await?, "hello\n");

    let (deploy, seen) = tokio::try_join!(ask::ask(client, env), decide::decide(client, env))?;
    assert!(deploy);
    assert_eq!(seen, "Deploy build 812 to prod?");

    assert_eq!(review::review(client, env).await?, "use an index instead");
    assert_eq!(held::held(client, env).await?, 0);
    assert_eq!(
        held_no_wait::held_no_wait(client, env).await?,
        "not on a Friday"
    );
    assert_eq!(actor::actor(client, env).await?, "alice@corp.com");
    events::events(client, env).await
}
