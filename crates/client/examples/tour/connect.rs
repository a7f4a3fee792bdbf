use fuse_client::{ActorLabel, Client, Error};

/// A client by hand, and one from the environment.
pub async fn connect() -> Result<Client, Error> {
    let url = std::env::var("FUSE_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".to_owned());
    let token = std::env::var("FUSE_TOKEN").unwrap_or_default();
    // The actor tags everything that this client raises.
    let run = Client::builder(url)
        .token(token)
        .actor(ActorLabel::new("run-17"))
        .tries(3)
        .build()?;
    run.environments().list(&Default::default()).await?;

    Client::from_env()
}
