//! Calls about the audit log.

use fuse_api::audit::AuditPage;

use crate::builder::Client;
use crate::error::Error;
use crate::transport::Call;

/// Which entries of the audit log to read.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Those of this environment.
    pub env: Option<String>,
    /// Those of this actor.
    pub actor: Option<String>,
    /// Those since then: an RFC 3339 time, or a duration before now such as `24h`.
    pub since: Option<String>,
    /// At most so many, 1 to 200; 50 by default.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl Client {
    /// Reads the audit log, oldest first, one page.
    ///
    /// # Errors
    /// [`Error::Api`] where the filter is wrong or the credential may not read.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/service.rs")]
    /// ```
    pub async fn audit(&self, filter: &AuditFilter) -> Result<AuditPage, Error> {
        let call = Call::get("/v1/hitl/audit")
            .maybe("env", filter.env.as_deref())
            .maybe("actor", filter.actor.as_deref())
            .maybe("since", filter.since.as_deref())
            .maybe("limit", filter.limit)
            .maybe("cursor", filter.cursor.as_deref());
        self.send(&call).await?.json()
    }
}
