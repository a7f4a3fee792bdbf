use fuse_client::api::keys::CreateKey;
use fuse_client::{Client, Error};

/// A key from its creation to its end.
pub async fn api_keys(client: &Client) -> Result<(), Error> {
    let made = client
        .api_keys()
        .create(&CreateKey {
            label: Some("ci".to_owned()),
            ..CreateKey::default()
        })
        .await?;
    // Hand `made.key` to whoever is to use it; it is not shown again.
    let keys = client.api_keys().list(None).await?;
    assert!(keys.api_keys.iter().any(|key| key.id == made.info.id));

    client.api_keys().revoke(&made.info.id).await
}
