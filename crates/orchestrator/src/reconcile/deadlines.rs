//! Deadlines: one timer for the process, set to the earliest of all, and a sweep that catches the rest.

use super::pause;
use crate::app::{App, AppError, AppResult};
use fuse_domain::intervention::end;
use fuse_domain::transition::Committed;
use std::sync::Arc;
use std::time::Duration;

/// How long the timer sleeps at most: another orchestrator may have raised something that is due earlier.
const LONGEST: Duration = Duration::from_secs(1);
/// How many are looked for at a time: a few transactions' worth, so that the next one is made ready while one commits, and no
/// more, since a person's decision waits behind them.
const BATCH: u32 = 6_000;

pub(super) async fn run(app: Arc<App>) {
    let mut wait = Duration::ZERO;
    while pause(&app, wait).await {
        wait = match app.expire_due().await {
            Ok(next) => next.min(LONGEST),
            Err(error) => {
                tracing::warn!(?error, "the sweep of deadlines failed; trying again");
                LONGEST
            }
        };
    }
}

impl App {
    /// Expires whatever is due, and tells how long it is to the next deadline.
    pub(crate) async fn expire_due(&self) -> AppResult<Duration> {
        let mut unseen = None;
        loop {
            let now = self.now();
            let Some(earliest) = self.store.earliest_deadline().await? else {
                self.metrics.set_overdue(0);
                return Ok(Duration::MAX);
            };
            let ahead = earliest.as_micros().saturating_sub(now.as_micros());
            if let Ok(micros @ 1..) = u64::try_from(ahead) {
                self.metrics.set_overdue(0);
                return Ok(Duration::from_micros(micros));
            }
            let due = self.store.due(now, BATCH).await?;
            if due.is_empty() {
                // Somebody else has just expired it; or it cannot be read, and is looked at again later.
                if unseen == Some(earliest) {
                    return Ok(LONGEST);
                }
                unseen = Some(earliest);
                continue;
            }
            let full = due.len() == BATCH as usize;
            self.metrics.set_overdue(due.len() as u64);
            let expiries = due.iter().map(|d| end::expire(d, now)).collect();
            for committed in self.store.commit_all(expiries).await {
                match committed? {
                    // On a conflict somebody decided or expired it first.
                    Committed::Done(_) | Committed::Conflict => {}
                    Committed::EnvironmentGone | Committed::TooManyPending => {
                        return Err(AppError::Internal(
                            "an expiry was refused as a raise".into(),
                        ));
                    }
                }
            }
            if !full {
                return Ok(Duration::ZERO);
            }
        }
    }
}
