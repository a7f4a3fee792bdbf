use std::time::Duration;

use fuse_client::api::intervention::{RejectRequest, ReviewFormat};
use fuse_client::{Client, Error, InterventionFilter, ReviewRequest};

/// An agent submits a file and gets a verdict on it.
pub async fn review(client: &Client, env: &str) -> Result<String, Error> {
    let file = "/tmp/0042_add_index.sql";
    let environments = client.environments();
    environments
        .exec_shell(env, format!("echo 'SELECT 1;' > {file}"))
        .await?;

    let submitted = ReviewRequest::path(file)
        .format(ReviewFormat::Text)
        .message("safe to run online?");
    let submit = environments.request_review(env, submitted);

    // What a person does meanwhile.
    let reject = async {
        let filter = InterventionFilter {
            env: Some(env.to_owned()),
            ..InterventionFilter::default()
        };
        let seen = loop {
            let page = client.interventions().list(&filter).await?;
            if let Some(review) = page.interventions.into_iter().next() {
                break review;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let verdict = RejectRequest {
            reason: Some("use an index instead".to_owned()),
            // Refused if this is no longer what the person saw.
            payload_hash: Some(seen.payload_hash),
            ..RejectRequest::default()
        };
        client.interventions().reject_with(&seen.id, &verdict).await
    };
    let (verdict, _) = tokio::try_join!(submit, reject)?;
    assert!(!verdict.approved);
    Ok(verdict.comments)
}
