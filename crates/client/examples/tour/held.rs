use std::future::IntoFuture;

use fuse_client::api::intervention::ApproveRequest;
use fuse_client::{Client, Error, Waiting};

/// A gate holds `rm`: a person is told of it and approves, and the command runs.
pub async fn held(client: &Client, env: &str) -> Result<i32, Error> {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let run = client
        .environments()
        .exec(env, ["rm", "-f", "/tmp/old"])
        .on_wait(move |waiting| {
            if let Waiting::Held(intervention) = waiting {
                let _ = tell.send(intervention.clone());
            }
        });
    let approve = async {
        let Some(held) = told.recv().await else {
            return Ok(());
        };
        let approval = ApproveRequest {
            // Refused if this is no longer what the person saw.
            payload_hash: Some(held.payload_hash),
            ..ApproveRequest::default()
        };
        client
            .interventions()
            .approve_with(&held.id, &approval)
            .await?;
        Ok(())
    };
    let (result, ()) = tokio::try_join!(run.into_future(), approve)?;
    Ok(result.exit_code)
}
