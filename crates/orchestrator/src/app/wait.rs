//! Reading and waiting. A read past the deadline expires the intervention on the spot (spec: "Invariants").

use super::{App, AppResult, Rely};
use crate::known::Shown;
use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::{InterventionList, Kind, State};
use fuse_api::keys::Scope;
use fuse_api::routes::Access;
use fuse_domain::access::Presented;
use std::sync::Arc;
use std::time::Duration;

/// Which interventions a list shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InterventionFilter {
    /// Of this environment only.
    pub env: Option<EnvId>,
    /// In this state only; none shows all.
    pub state: Option<State>,
    /// Of this kind only.
    pub kind: Option<Kind>,
    /// Raised or decided by this actor only.
    pub actor: Option<String>,
    /// How many at most.
    pub limit: u32,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl App {
    /// A page of interventions, newest first.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn list_interventions(
        &self,
        who: &Presented,
        filter: InterventionFilter,
    ) -> AppResult<InterventionList> {
        who.admit(Access::Scoped(Scope::Read))?;
        // What is due counts as expired in every answer, also in one that was asked for a moment after the deadline.
        self.expire_due().await?;
        let page = self
            .store
            .list_interventions(
                &fuse_store::InterventionFilter {
                    env_id: filter.env,
                    env_uids: None,
                    state: filter.state,
                    kind: filter.kind,
                    actor: filter.actor,
                },
                filter.limit,
                filter.cursor.as_deref(),
            )
            .await?;
        Ok(InterventionList {
            interventions: page.items.into_iter().map(|r| r.view).collect(),
            next_cursor: page.next,
        })
    }

    /// One intervention as it stands.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn get_intervention(
        &self,
        who: &Presented,
        id: &InterventionId,
    ) -> AppResult<Arc<Shown>> {
        let seen = self.current(id, Rely::Database).await?;
        who.admit(Access::Scoped(Scope::Read))?;
        Ok(seen.shown)
    }

    /// One intervention, as soon as there is something to say or the wait is over.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn wait(
        &self,
        who: &Presented,
        id: &InterventionId,
        wait: Duration,
    ) -> AppResult<Arc<Shown>> {
        // Listening comes before reading, so that no change falls between the two.
        let mut listener = self.wake.listen(id);
        // Boxed, so that a parked wait does not carry the room that reading took.
        let shown = Box::pin(self.current(id, Rely::Recent)).await?.shown;
        who.admit(Access::Scoped(Scope::Read))?;
        if shown.record.is_settled() {
            return Ok(shown);
        }
        let _parked = self.metrics.park();
        let heard = listener.settled(wait, &mut self.stopping()).await;
        drop(listener);
        let newest = heard.unwrap_or(shown);
        if newest.record.is_due(self.now()) {
            return Ok(Box::pin(self.current(id, Rely::Database)).await?.shown);
        }
        Ok(newest)
    }
}
