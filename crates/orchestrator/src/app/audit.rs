//! Reading the audit log (spec: "Audit log").

use super::{App, AppResult};
use fuse_api::audit::AuditPage;
use fuse_api::ids::EnvId;
use fuse_api::keys::Scope;
use fuse_api::routes::Access;
use fuse_api::time::Timestamp;
use fuse_domain::access::Presented;

/// Which entries a page shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// Of this environment only.
    pub env: Option<EnvId>,
    /// Of this actor only.
    pub actor: Option<String>,
    /// From this time on only.
    pub since: Option<Timestamp>,
    /// How many at most.
    pub limit: u32,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl App {
    /// A page of the audit log, oldest first.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn audit(&self, who: &Presented, filter: AuditFilter) -> AppResult<AuditPage> {
        who.admit(Access::Scoped(Scope::Read))?;
        let page = self
            .store
            .audit_page(
                &fuse_store::AuditFilter {
                    env_id: filter.env,
                    actor: filter.actor,
                    since: filter.since,
                },
                filter.limit,
                filter.cursor.as_deref(),
            )
            .await?;
        Ok(AuditPage {
            entries: page.items,
            next_cursor: page.next,
        })
    }
}
