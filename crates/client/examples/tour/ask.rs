use std::time::Duration;

use fuse_client::{Client, Error, HumanRequest};

/// An agent asks and goes by the answer.
pub async fn ask(client: &Client, env: &str) -> Result<bool, Error> {
    let question = HumanRequest::ask("Deploy build 812 to prod?")
        .choices(["yes", "no"])
        .timeout(Duration::from_secs(60));
    let outcome = client.environments().request_human(env, question).await?;
    if outcome.approved() && outcome.answer() == "yes" {
        return Ok(true);
    }
    eprintln!("not deploying: {}", outcome.reason());
    Ok(false)
}
