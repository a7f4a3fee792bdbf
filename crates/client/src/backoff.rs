//! Growing pauses between tries.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Pauses that double, each shortened by up to a half at random, so that many waiters do not come back at once.
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub fn new() -> Self {
        Self { next: FIRST }
    }

    pub fn reset(&mut self) {
        self.next = FIRST;
    }

    pub async fn pause(&mut self) {
        let full = self.next;
        self.next = (full * 2).min(LONGEST);
        // A fresh hasher is seeded by the system; spreading waiters needs no better randomness.
        let random = RandomState::new().build_hasher().finish() % 1000;
        let share = 500 + u32::try_from(random / 2).unwrap_or(0);
        tokio::time::sleep(full * share / 1000).await;
    }
}
