//! Counting Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_util::sync::CancellationToken;

/// How often the operator pressed Ctrl-C in a run. Copies count together.
///
/// At a question Ctrl-C is a key, not a signal: it denies. The prompter notes it here; whoever handles the signal notes it here as
/// well, so that the second one ends the run wherever each of them came.
#[derive(Debug, Clone, Default)]
pub struct Interrupts {
    count: Arc<AtomicU32>,
    second: CancellationToken,
}

impl Interrupts {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes one more, and tells how many there are now.
    pub fn note(&self) -> u32 {
        // It stays at the top rather than begin anew.
        let before = self
            .count
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| {
                Some(count.saturating_add(1))
            })
            .unwrap_or_else(|count| count);
        let now = before.saturating_add(1);
        if now >= 2 {
            self.second.cancel();
        }
        now
    }

    /// How many there were.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Is cancelled by the second one: the run ends now.
    pub fn second(&self) -> CancellationToken {
        self.second.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_interrupt_ends_the_run_wherever_it_comes() {
        let interrupts = Interrupts::new();
        let elsewhere = interrupts.clone();
        assert_eq!(interrupts.note(), 1);
        assert!(!interrupts.second().is_cancelled());
        assert_eq!(elsewhere.note(), 2);
        assert!(interrupts.second().is_cancelled());
        assert_eq!(interrupts.count(), 2);
    }
}
