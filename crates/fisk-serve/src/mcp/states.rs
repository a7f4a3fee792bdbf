//! Questions that a client carries to its user and back by itself (protocol 2026-07-28). What comes back is untrusted.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};

type Nonce = [u8; 16];

/// The questions that were put and not answered.
///
/// A state is sealed with a key of this process over the tool, its whole argument vector and a time of expiry, and is good for one
/// answer: it cannot be made up, moved to another command, kept, or used twice.
pub(super) struct States {
    codec: RequestStateCodec,
    open: Mutex<HashMap<Nonce, Instant>>,
    life: Duration,
    most: usize,
}

impl States {
    pub(super) fn new(life: Duration, most: usize) -> Result<Self, RequestStateError> {
        Ok(Self {
            codec: RequestStateCodec::try_new(rand::random::<[u8; 32]>())?,
            open: Mutex::default(),
            life,
            most,
        })
    }

    /// The state for a question about this command. `None`: too many wait already.
    pub(super) fn issue(&self, tool: &str, argv: &[String]) -> Option<String> {
        let nonce: Nonce = rand::random();
        let now = Instant::now();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, until| *until > now);
        if open.len() >= self.most {
            return None;
        }
        open.insert(nonce, now + self.life);
        drop(open);
        let bound = bound_to(tool, argv);
        let options = SealOptions::new().associated_data(&bound).ttl(self.life);
        Some(self.codec.seal_with(&nonce, &options))
    }

    /// Whether the state is one that was issued for this very command and is unanswered and in time. It is answered now.
    pub(super) fn redeem(&self, state: &str, tool: &str, argv: &[String]) -> bool {
        let Ok(payload) = self.codec.open_with(state, &bound_to(tool, argv)) else {
            return false;
        };
        let Ok(nonce) = Nonce::try_from(payload.as_slice()) else {
            return false;
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&nonce)
            .is_some_and(|until| until > Instant::now())
    }
}

/// Each part with its length in front, so that no two commands are the same bytes.
fn bound_to(tool: &str, argv: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in std::iter::once(tool).chain(argv.iter().map(String::as_str)) {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(60);

    fn argv(of: &[&str]) -> Vec<String> {
        of.iter().map(|part| (*part).to_owned()).collect()
    }

    fn states() -> States {
        States::new(LIFE, 2).unwrap()
    }

    // check: FISK-55
    #[test]
    fn a_state_is_good_for_its_command_once() {
        let states = states();
        let command = argv(&["app", "purge", "--", "a b"]);
        let state = states.issue("purge", &command).unwrap();
        assert!(states.redeem(&state, "purge", &command));
        assert!(!states.redeem(&state, "purge", &command));
    }

    // check: FISK-55
    #[test]
    fn a_state_is_good_for_no_other_command_and_survives_the_attempt() {
        let states = states();
        let command = argv(&["app", "purge", "--", "a b"]);
        let state = states.issue("purge", &command).unwrap();
        assert!(!states.redeem(&state, "purge", &argv(&["app", "purge", "--", "a", "b"])));
        assert!(!states.redeem(&state, "restart", &command));
        assert!(!states.redeem(&state, "purge", &argv(&["app", "purge", "--"])));
        assert!(states.redeem(&state, "purge", &command));
    }

    // check: FISK-55
    #[test]
    fn a_state_of_another_process_or_a_changed_one_is_refused() {
        let command = argv(&["app", "purge"]);
        let foreign = states().issue("purge", &command).unwrap();
        let states = states();
        assert!(!states.redeem(&foreign, "purge", &command));
        let own = states.issue("purge", &command).unwrap();
        for at in 0..own.len() {
            let mut changed = own.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last character of base64 holds bits that say nothing.
            if at + 1 < own.len() {
                assert!(!states.redeem(&changed, "purge", &command), "{at}");
            }
        }
        for made_up in ["", "rs1", "rs1..", "approved", "{\"approve\":true}"] {
            assert!(!states.redeem(made_up, "purge", &command));
        }
    }

    // check: FISK-55
    #[test]
    fn a_state_that_is_too_old_is_refused() {
        let states = States::new(Duration::ZERO, 2).unwrap();
        let command = argv(&["app", "purge"]);
        let state = states.issue("purge", &command).unwrap();
        assert!(!states.redeem(&state, "purge", &command));
    }

    #[test]
    fn so_many_questions_wait_and_no_more() {
        let states = states();
        let command = argv(&["app", "purge"]);
        let first = states.issue("purge", &command).unwrap();
        assert!(states.issue("purge", &command).is_some());
        assert!(states.issue("purge", &command).is_none());
        assert!(states.redeem(&first, "purge", &command));
        assert!(states.issue("purge", &command).is_some());
    }
}
