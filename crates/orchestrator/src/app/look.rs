//! A record as a verb needs it: from memory where that is enough, else from the database.

use super::{ATTEMPTS, App, AppError, AppResult, Outcome};
use crate::known::{FRESH, Shown};
use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::State;
use fuse_domain::intervention::end;
use fuse_domain::refusal::{Refusal, What};
use fuse_store::EnvironmentRow;
use std::sync::Arc;
use std::time::Instant;

/// What a verb may go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rely {
    /// Whatever is known: a commit proves it by its version, and what is refused is looked at again.
    Proven,
    /// What was so a moment ago, by somebody who hears of every change since.
    Recent,
    /// What is on record now; only what never changes again needs no look.
    Database,
}

/// A record, and where it comes from.
pub(crate) struct Seen {
    pub shown: Arc<Shown>,
    remembered: bool,
}

impl Seen {
    /// Whether the record may have been decided since by somebody else.
    pub(crate) fn may_be_out_of_date(&self) -> bool {
        self.remembered && self.shown.record.view.state == State::Pending
    }
}

impl App {
    /// Whether what is in memory counts: this process hears of every change elsewhere, and has since all of it was read.
    fn memory_counts(&self) -> bool {
        self.known.holds(self.store.hearing())
    }

    /// The record, as far as `rely` allows from memory.
    async fn look(&self, id: &InterventionId, rely: Rely) -> AppResult<Seen> {
        let now = Instant::now();
        if self.memory_counts()
            && let Some((shown, age)) = self.known.record(id, now)
        {
            let enough = match rely {
                Rely::Proven => true,
                Rely::Recent => age <= FRESH || shown.record.is_settled(),
                Rely::Database => shown.record.is_settled(),
            };
            if enough {
                return Ok(Seen {
                    shown,
                    remembered: true,
                });
            }
        }
        self.read(id).await?.map_or_else(
            || Err(Refusal::NotFound(What::Intervention).into()),
            |shown| {
                Ok(Seen {
                    shown,
                    remembered: false,
                })
            },
        )
    }

    /// Reads a record, and remembers it.
    pub(crate) async fn read(&self, id: &InterventionId) -> AppResult<Option<Arc<Shown>>> {
        let ticket = self.known.before_reading(id, Instant::now());
        let record = self.store.get_intervention(id).await?;
        Ok(record.map(|record| self.known.read(record, ticket)))
    }

    /// The record as it stands, expired on the spot where its deadline has passed.
    pub(crate) async fn current(&self, id: &InterventionId, mut rely: Rely) -> AppResult<Seen> {
        for _ in 0..ATTEMPTS {
            let seen = self.look(id, rely).await?;
            let record = &seen.shown.record;
            let now = self.now();
            if !record.is_due(now) {
                return Ok(seen);
            }
            let expiry = end::expire(&end::Due::from(&**record), now);
            if let Outcome::Done(mut records) = self.commit(expiry).await?
                && let Some(expired) = records.pop()
            {
                return Ok(Seen {
                    shown: self.known.committed(&expired),
                    remembered: false,
                });
            }
            rely = Rely::Database;
        }
        Err(too_many_changes())
    }

    /// The living environment of that id, and whether it is told from memory.
    pub(crate) async fn environment_seen(
        &self,
        id: &EnvId,
        rely: Rely,
    ) -> AppResult<(Arc<EnvironmentRow>, bool)> {
        let now = Instant::now();
        if rely != Rely::Database
            && self.memory_counts()
            && let Some((row, age)) = self.known.environments.get(id, now)
            && age <= FRESH
        {
            return Ok((row, true));
        }
        let ticket = self.known.environments.ticket(id, now);
        let row = Arc::new(self.environment(id).await?);
        self.known
            .environments
            .learn(id.clone(), Arc::clone(&row), 1, ticket, |_| true);
        Ok((row, false))
    }
}

/// Others changed it each time before this could.
pub(crate) fn too_many_changes() -> AppError {
    AppError::Unavailable("too many changes at once to the same intervention; try again".into())
}
