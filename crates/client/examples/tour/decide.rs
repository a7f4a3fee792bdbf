use std::time::Duration;

use fuse_client::{Client, Error, InterventionFilter};

/// A person answers the next question of an environment.
pub async fn decide(client: &Client, env: &str) -> Result<String, Error> {
    let filter = InterventionFilter {
        env: Some(env.to_owned()),
        ..InterventionFilter::default()
    };
    let pending = loop {
        let page = client.interventions().list(&filter).await?;
        if let Some(pending) = page.interventions.into_iter().next() {
            break pending;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let seen = client.interventions().get(&pending.id).await?;
    client
        .interventions()
        .approve(&pending.id, "yes", "nobody is on call before noon")
        .await?;
    Ok(seen.payload.ask.map(|ask| ask.question).unwrap_or_default())
}
