//! Tries again, within the time of the call.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    failure::Failure,
    types::{Delta, LlmError, Reply, Sink, Usage},
};

/// How a failed call is tried again: exponentially longer waits with jitter, all within the time of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The first wait; each further one is twice as long, plus up to as much again by chance.
    pub min_delay: Duration,
    /// The longest wait before the chance part. A provider's `retry-after` may be longer.
    pub max_delay: Duration,
    /// How often a call is tried again.
    pub retries: usize,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            min_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(20),
            retries: 8,
        }
    }
}

/// The end of a call whose time is more than the clock can hold.
const FAR: Duration = Duration::from_secs(365 * 24 * 3_600);

impl RetryPolicy {
    fn delays(self) -> impl Iterator<Item = Duration> + Send {
        ExponentialBuilder::new()
            .with_min_delay(self.min_delay)
            .with_max_delay(self.max_delay)
            .with_max_times(self.retries)
            .with_jitter()
            // Without a seed of its own each process would wait the same "random" times, together with all others.
            .with_jitter_seed(RandomState::new().hash_one(0))
            .build()
    }
}

/// One call: tries until a reply, a final failure, the end of its time, or its cancellation, which ends it at once.
pub(crate) async fn run<F>(
    policy: RetryPolicy,
    timeout: Duration,
    sink: &dyn Sink,
    cancel: &CancellationToken,
    attempt: impl Fn() -> F,
) -> Result<Reply, LlmError>
where
    F: Future<Output = Result<Reply, Failure>>,
{
    let now = Instant::now();
    let deadline = now.checked_add(timeout).unwrap_or(now + FAR);
    // What failed last says more than that the time is up.
    let mut last: Option<String> = None;
    let tries = async {
        let mut delays = policy.delays();
        let mut spent = Usage::default();
        loop {
            let (reason, wait, cost) = match attempt().await {
                Ok(mut reply) => {
                    reply.usage = reply.usage.plus(spent);
                    return Ok(reply);
                }
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again {
                    reason,
                    wait,
                    spent,
                }) => (reason, wait, spent),
            };
            spent = spent.plus(cost);
            let Some(delay) = delays.next() else {
                return Err(LlmError::Unavailable(reason));
            };
            let after = wait.map_or(delay, |wait| wait.max(delay));
            let left = deadline.saturating_duration_since(Instant::now());
            if after >= left {
                let what = if wait.is_some_and(|wait| wait >= left) {
                    "it asks to wait for longer than this call may take"
                } else {
                    "no time is left to try again"
                };
                return Err(LlmError::Unavailable(format!("{reason} ({what})")));
            }
            last = Some(reason.clone());
            sink.delta(Delta::Retrying { reason, after });
            tokio::time::sleep(after).await;
        }
    };
    let ended = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(LlmError::Cancelled),
        ended = tokio::time::timeout_at(deadline, tries) => ended,
    };
    match (ended, last) {
        (Ok(result), _) => result,
        (Err(_), None) => Err(LlmError::Timeout(timeout)),
        (Err(_), Some(reason)) => Err(LlmError::Unavailable(format!(
            "{reason} (and then no answer within {timeout:?})"
        ))),
    }
}
