//! Calls about API keys.

use fuse_api::ids::KeyId;
use fuse_api::keys::{CreateKey, CreatedKey, KeyList};

use crate::builder::Client;
use crate::error::Error;
use crate::transport::Call;

/// Calls about API keys. Listing and revoking need the master token.
#[derive(Debug, Clone, Copy)]
pub struct ApiKeys<'a> {
    pub(crate) client: &'a Client,
}

impl Client {
    /// Calls about API keys.
    pub fn api_keys(&self) -> ApiKeys<'_> {
        ApiKeys { client: self }
    }
}

impl ApiKeys<'_> {
    /// Makes a key. Its secret is in the answer, this once.
    ///
    /// # Errors
    /// [`Error::Api`] where the request breaks a rule, or with the reason `mint_escalation` where the credential may not.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/api_keys.rs")]
    /// ```
    pub async fn create(&self, request: &CreateKey) -> Result<CreatedKey, Error> {
        let call = Call::post("/v1/api-keys", request)?;
        self.client.send(&call).await?.json()
    }

    /// Lists keys without their secrets, newest first, one page; `cursor` is where the page before ended.
    ///
    /// # Errors
    /// [`Error::Api`] with 403 for anything but the master token.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/api_keys.rs")]
    /// ```
    pub async fn list(&self, cursor: Option<&str>) -> Result<KeyList, Error> {
        let call = Call::get("/v1/api-keys").maybe("cursor", cursor);
        self.client.send(&call).await?.json()
    }

    /// Revokes a key. Doing so again is no error.
    ///
    /// # Errors
    /// [`Error::Api`] with 403 for anything but the master token.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/api_keys.rs")]
    /// ```
    pub async fn revoke(&self, id: impl AsRef<str>) -> Result<(), Error> {
        let text = id.as_ref();
        let id = KeyId::parse(text).map_err(|source| Error::Id {
            text: text.to_owned(),
            source,
        })?;
        let call = Call::delete(format!("/v1/api-keys/{id}")).repeatable();
        self.client.send(&call).await?.nothing()
    }
}
