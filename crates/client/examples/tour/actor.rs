use fuse_client::{ActorLabel, Client, Error, HumanRequest};

/// Names the person that a call is made for.
pub async fn actor(client: &Client, env: &str) -> Result<String, Error> {
    let question = HumanRequest::ask("May I?").no_wait();
    let raised = client.environments().request_human(env, question).await?;

    let alice = client.with_actor(ActorLabel::new("alice@corp.com").name("Alice Ng"));
    let decided = alice
        .interventions()
        .approve(&raised.id, "", "fine")
        .await?;
    Ok(decided
        .decision
        .map(|decision| decision.decided_by.id)
        .unwrap_or_default())
}
