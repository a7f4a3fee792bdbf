use fuse_client::api::intervention::{RejectRequest, ReviewFormat};
use fuse_client::{Client, Error, ReviewRequest};

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
    let reject = async {
        let (id, seen) = loop {
            let page = client.interventions().list(&Default::default()).await?;
            let mut reviews = page
                .interventions
                .into_iter()
                .filter(|i| i.env_id.as_str() == env);
            if let Some(review) = reviews.next() {
                break (review.id, review.payload_hash);
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        };
        let verdict = RejectRequest {
            reason: Some("use an index instead".to_owned()),
            // Refused if this is no longer what the person saw.
            payload_hash: Some(seen),
            ..RejectRequest::default()
        };
        client.interventions().reject_with(&id, &verdict).await
    };
    let (verdict, _) = tokio::try_join!(submit, reject)?;
    assert!(!verdict.approved);
    Ok(verdict.comments)
}
