use fuse_client::api::environment::EnvState;
use fuse_client::{Client, Error, HumanRequest};

/// Follows an environment until something is asked in it.
pub async fn events(client: &Client, env: &str) -> Result<(), Error> {
    let mut events = client.environments().events(env).await?;
    if let Some(first) = events.next().await {
        assert_eq!(first?.state, EnvState::Running);
    }
    let question = HumanRequest::ask("Still there?").no_wait();
    let raised = client.environments().request_human(env, question).await?;
    while let Some(event) = events.next().await {
        if let Some(hint) = event?.intervention
            && hint.id == raised.id
        {
            break;
        }
    }
    Ok(())
}
