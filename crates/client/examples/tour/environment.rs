use fuse_client::api::environment::CreateEnvironment;
use fuse_client::{Client, EnvironmentFilter, Error};

/// An environment from its creation to its end.
pub async fn environment(client: &Client, task_id: &str) -> Result<(), Error> {
    let environments = client.environments();
    let made = environments
        .create(&CreateEnvironment {
            task_id: task_id.to_owned(),
            ..CreateEnvironment::default()
        })
        .await?;

    let read = environments.get(&made.id).await?;
    assert_eq!(read.id, made.id);

    let filter = EnvironmentFilter {
        task_id: Some(made.task_id),
        ..EnvironmentFilter::default()
    };
    assert_eq!(environments.list(&filter).await?.environments.len(), 1);

    environments.destroy(&made.id).await?;
    let gone = environments.get(&made.id).await.expect_err("it is gone");
    assert_eq!(gone.status(), Some(404));
    Ok(())
}
