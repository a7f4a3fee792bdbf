//! How a run is stopped from outside.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use fisk_operator::Interrupts;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What asked a run to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Ctrl-C: SIGINT, or the key at a prompt.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// The terminal went away.
    HangUp,
}

impl Cause {
    /// What a shell reports for a process that the signal ended.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
            Self::HangUp => 129,
        }
    }
}

/// The three steps of stopping a run. Clones are the same.
#[derive(Debug, Clone)]
pub struct Stop {
    /// No further step is begun. A question to the operator or to the model ends.
    pub soft: CancellationToken,
    /// A running command is asked to end.
    pub hard: CancellationToken,
    /// Nothing is waited for.
    pub now: CancellationToken,
    suspends: bool,
    cause: Arc<Mutex<Option<Cause>>>,
    interrupts: Interrupts,
    asking: Arc<AtomicBool>,
}

impl Stop {
    /// `suspends`: the first request lets a running command end, because the run is going to be resumed.
    pub fn new(suspends: bool) -> Self {
        Self {
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
            now: CancellationToken::new(),
            suspends,
            cause: Arc::default(),
            interrupts: Interrupts::new(),
            asking: Arc::default(),
        }
    }

    /// Takes the next step.
    pub fn request(&self, cause: Cause) {
        let mut first = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_some() {
            self.hard.cancel();
            self.now.cancel();
            return;
        }
        *first = Some(cause);
        if !self.suspends {
            self.hard.cancel();
        }
        self.soft.cancel();
    }

    /// Counts Ctrl-C, at a question and elsewhere. The second one ends the run wherever it comes.
    pub fn interrupts(&self) -> Interrupts {
        self.interrupts.clone()
    }

    /// Waits for an answer of the operator. Meanwhile Ctrl-C is an answer.
    pub async fn asking<T>(&self, question: impl Future<Output = T>) -> T {
        self.asking.store(true, Ordering::SeqCst);
        let answer = question.await;
        self.asking.store(false, Ordering::SeqCst);
        // The answer may come before the task that hears the second Ctrl-C has its turn.
        if self.interrupts.second().is_cancelled() && self.cause().is_none() {
            self.request(Cause::Interrupt);
        }
        answer
    }

    /// Ctrl-C as a key of the full-screen interface, which comes as no signal.
    pub fn pressed(&self) {
        self.interrupts.note();
        if !self.asking.load(Ordering::SeqCst) {
            self.request(Cause::Interrupt);
        }
    }

    /// What asked first; `None` where nothing did.
    pub fn cause(&self) -> Option<Cause> {
        *self.cause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears the signals of this process from now on.
    ///
    /// # Errors
    /// Where they cannot be had.
    pub fn listen(&self) -> std::io::Result<()> {
        for (kind, cause) in [
            (SignalKind::interrupt(), Cause::Interrupt),
            (SignalKind::terminate(), Cause::Terminate),
            (SignalKind::hangup(), Cause::HangUp),
        ] {
            let mut signals: Signal = signal(kind)?;
            let stop = self.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    if cause == Cause::Interrupt {
                        stop.interrupts.note();
                    }
                    stop.request(cause);
                }
            });
        }
        self.count();
        Ok(())
    }

    /// Ends the run with the second Ctrl-C.
    fn count(&self) {
        let (stop, second) = (self.clone(), self.interrupts.second());
        tokio::spawn(async move {
            second.cancelled().await;
            stop.request(Cause::Interrupt);
            stop.hard.cancel();
            stop.now.cancel();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_lets_a_command_of_a_session_end_and_the_second_does_not() {
        let stop = Stop::new(true);
        stop.request(Cause::Terminate);
        assert!(stop.soft.is_cancelled() && !stop.hard.is_cancelled());
        stop.request(Cause::Interrupt);
        assert!(stop.hard.is_cancelled() && stop.now.is_cancelled());
        assert_eq!(stop.cause(), Some(Cause::Terminate));
    }

    #[test]
    fn without_a_session_the_first_request_ends_the_command() {
        let stop = Stop::new(false);
        stop.request(Cause::Interrupt);
        assert!(stop.hard.is_cancelled() && !stop.now.is_cancelled());
    }

    #[tokio::test]
    async fn ctrl_c_in_the_full_screen_denies_a_question_and_stops_a_run_without_one() {
        let stop = Stop::new(true);
        stop.asking(async { stop.pressed() }).await;
        assert!(!stop.soft.is_cancelled());
        let stop = Stop::new(true);
        stop.pressed();
        assert!(stop.soft.is_cancelled() && !stop.hard.is_cancelled());
    }

    // check: FISK-66
    #[tokio::test]
    async fn the_second_interrupt_at_a_question_ends_the_run() {
        let stop = Stop::new(true);
        stop.count();
        let at_prompt = stop.interrupts();
        at_prompt.note();
        tokio::task::yield_now().await;
        assert!(!stop.soft.is_cancelled());
        at_prompt.note();
        stop.now.cancelled().await;
        assert!(stop.soft.is_cancelled() && stop.hard.is_cancelled());
        assert_eq!(stop.cause(), Some(Cause::Interrupt));
    }
}
