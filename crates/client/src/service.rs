//! Calls about the server itself.

use serde::{Deserialize, Serialize};

use crate::builder::Client;
use crate::error::Error;
use crate::transport::Call;

/// What a server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// `fuse-orchestrator`.
    pub service: String,
    /// Its release.
    pub version: String,
}

impl Client {
    /// Asks the server what it is. No credential is needed.
    ///
    /// # Errors
    /// [`Error::Transport`] where nobody answers, [`Error::Protocol`] where whoever answers is no Fuse server.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/service.rs")]
    /// ```
    pub async fn version(&self) -> Result<Version, Error> {
        self.send(&Call::get("/v1/version")).await?.json()
    }
}
