//! Waiting for a condition instead of for a time.

use std::future::Future;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(25);
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until there is an answer.
///
/// # Panics
/// There is none within half a minute.
#[track_caller]
pub fn until<T, F>(what: &str, ask: impl FnMut() -> F) -> impl Future<Output = T>
where
    F: Future<Output = Option<T>>,
{
    within(PATIENCE, what, ask)
}

/// Asks until there is an answer, for so long.
///
/// # Panics
/// There is none in that time.
#[track_caller]
pub fn within<T, F>(
    patience: Duration,
    what: &str,
    mut ask: impl FnMut() -> F,
) -> impl Future<Output = T>
where
    F: Future<Output = Option<T>>,
{
    let caller = std::panic::Location::caller();
    let what = what.to_owned();
    async move {
        let end = Instant::now() + patience;
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(
                Instant::now() < end,
                "{caller}: waited {patience:?} in vain: {what}"
            );
            tokio::time::sleep(POLL).await;
        }
    }
}
