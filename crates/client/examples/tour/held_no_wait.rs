use fuse_client::{Client, Error};

/// A gate holds `rm`: the agent does something else meanwhile and reads later that it was refused.
pub async fn held_no_wait(client: &Client, env: &str) -> Result<String, Error> {
    let run = client
        .environments()
        .exec(env, ["rm", "-rf", "/tmp/new"])
        .no_wait();
    let held = match run.await {
        Err(Error::PendingIntervention { intervention }) => intervention,
        Err(error) => return Err(error),
        Ok(result) => panic!("it ran: {result:?}"),
    };

    client
        .interventions()
        .reject(&held.id, "not on a Friday")
        .await?;

    let settled = client.interventions().wait(&held.id).await?;
    assert!(!settled.approved());
    match client.interventions().wait_exec(&held.id).await {
        Err(Error::InterventionRejected { reason, .. }) => Ok(reason),
        Err(error) => Err(error),
        Ok(result) => panic!("it ran: {result:?}"),
    }
}
