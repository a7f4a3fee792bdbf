//! Waiting on an intervention, whatever happens to the connection.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuse_api::ids::InterventionId;
use fuse_api::intervention::{ActorSource, Intervention, Kind, Mode, State};
use fuse_api::time::Timestamp;

use crate::backoff::Backoff;
use crate::builder::Client;
use crate::error::Error;
use crate::transport::Call;

/// How long one poll may park: the longest that the server allows.
const PARK: Duration = Duration::from_secs(50);

/// How long after the deadline an unreachable server is still called: an action approved in the last moment may run for ten minutes.
const GRACE_SECONDS: i64 = 15 * 60;

/// An answer that comes faster than this did not park.
const AT_ONCE: Duration = Duration::from_secs(1);

impl Client {
    /// Polls until `done`. A lost connection, a restarting server and a passing refusal are waited out, up to the deadline.
    pub(crate) async fn poll(
        &self,
        id: &InterventionId,
        deadline: Option<Timestamp>,
        done: impl Fn(&Intervention) -> bool,
    ) -> Result<Intervention, Error> {
        let call = Call::get(format!("/v1/interventions/{id}"))
            .query("wait", format!("{}s", PARK.as_secs()))
            .timeout(PARK + Duration::from_secs(20));
        let mut deadline = deadline;
        let mut backoff = Backoff::new();
        loop {
            let started = Instant::now();
            let outcome = match deadline {
                // Not yet known to exist: a wrong address should not be tried for long.
                None => self.send(&call).await,
                Some(_) => self.once(&call).await,
            };
            match outcome.and_then(|answer| answer.json::<Intervention>()) {
                Ok(intervention) if done(&intervention) => return Ok(intervention),
                Ok(intervention) => deadline = Some(intervention.deadline),
                Err(error) => {
                    let in_time = deadline.is_some_and(|d| now() < d.plus_seconds(GRACE_SECONDS));
                    if !error.is_passing() || !in_time {
                        return Err(error);
                    }
                }
            }
            if started.elapsed() < AT_ONCE {
                backoff.pause().await;
            } else {
                backoff.reset();
            }
        }
    }
}

/// The latest deadline that an intervention can have which exists now.
pub(crate) fn latest_deadline() -> Timestamp {
    now().plus_seconds(24 * 60 * 60)
}

fn now() -> Timestamp {
    let micros = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros());
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// Whether nobody has to decide any more.
pub(crate) fn is_decided(intervention: &Intervention) -> bool {
    match intervention.state {
        State::Pending => false,
        State::Approved | State::Rejected | State::Expired | State::Cancelled => true,
    }
}

/// Whether there is nothing more to come: decided, and where an action was approved, carried out.
pub(crate) fn is_settled(intervention: &Intervention) -> bool {
    is_decided(intervention) && (intervention.result.is_some() || !will_run(intervention))
}

/// Whether the approval makes the server carry out a held action.
fn will_run(intervention: &Intervention) -> bool {
    let held = match intervention.kind {
        Kind::Exec | Kind::Lifecycle | Kind::Computer => true,
        Kind::Ask | Kind::Review | Kind::Secret | Kind::Takeover | Kind::Stall | Kind::Expiry => {
            false
        }
    };
    let by_rule = intervention.decision.as_ref().is_some_and(|decision| {
        match decision.decided_by.source {
            // Let through at once: nothing was held, so no result is stored.
            ActorSource::Gate | ActorSource::Decider => true,
            ActorSource::Pinned
            | ActorSource::Asserted
            | ActorSource::Key
            | ActorSource::System => false,
        }
    });
    held && !by_rule && intervention.mode != Some(Mode::Notify) && intervention.approved()
}
