//! What changed, told to this process as it happens, so that a waiter needs no query and no timer.

use fuse_api::environment::EnvState;
use fuse_api::ids::{EnvId, InterventionId, KeyId};
use fuse_domain::intervention::{EnvUid, Record};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::mpsc;

/// How many notices may wait to be taken. Beyond it they are dropped and a [`Notice::Resync`] comes first.
const WAITING: usize = 65_536;

/// Something changed.
#[derive(Debug, Clone)]
pub enum Notice {
    /// This store raised, resolved, progressed or cancelled an intervention; this is how it now stands.
    Changed(Arc<Record>),
    /// An intervention changed: on another orchestrator, or here with content too large to hand around. Read it.
    Remote(InterventionId),
    /// An environment changed its state, here or on another orchestrator.
    Environment {
        /// The life that changed.
        uid: EnvUid,
        /// Its id.
        id: EnvId,
        /// Its state now.
        state: EnvState,
    },
    /// A key was revoked, here or on another orchestrator.
    Key(KeyId),
    /// Changes may have been missed: read again whatever somebody waits for ([`crate::Store::settled_among`]).
    Resync,
}

/// The receiving end. One process has one.
pub struct Notices {
    queue: mpsc::Receiver<Notice>,
    missed: Arc<AtomicBool>,
}

impl Notices {
    /// Waits for the next notice; none once the store is closed.
    pub async fn recv(&mut self) -> Option<Notice> {
        if self.missed.swap(false, Ordering::AcqRel) {
            return Some(Notice::Resync);
        }
        self.queue.recv().await
    }
}

/// The sending end.
#[derive(Clone)]
pub(crate) struct Notifier {
    queue: mpsc::Sender<Notice>,
    missed: Arc<AtomicBool>,
    /// Grows whenever hearing of the others begins or ends; odd while it is heard of them.
    spell: Arc<AtomicU64>,
}

impl Notifier {
    pub fn new() -> (Self, Notices) {
        let (sender, queue) = mpsc::channel(WAITING);
        let missed = Arc::new(AtomicBool::new(false));
        let notices = Notices {
            queue,
            missed: Arc::clone(&missed),
        };
        (
            Self {
                queue: sender,
                missed,
                spell: Arc::default(),
            },
            notices,
        )
    }

    /// From here on every change elsewhere is heard of. Where some were missed before, a resync follows.
    pub fn listens(&self) {
        self.spell.fetch_or(1, Ordering::AcqRel);
    }

    /// Changes elsewhere are missed from here on.
    pub fn is_deaf(&self) {
        if self.hearing() != 0 {
            self.spell.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The spell in which every change elsewhere is heard of; zero while it is not.
    pub fn hearing(&self) -> u64 {
        match self.spell.load(Ordering::Acquire) {
            odd if odd % 2 == 1 => odd,
            _ => 0,
        }
    }

    pub fn send(&self, notice: Notice) {
        // A closed receiver wants nothing; a full one is told to read everything again.
        if let Err(mpsc::error::TrySendError::Full(_)) = self.queue.try_send(notice) {
            self.missed.store(true, Ordering::Release);
        }
    }
}

/// The longest payload of a PostgreSQL notification is 7,999 bytes.
const PAYLOAD: usize = 7_900;

/// What the other orchestrators are told: ids and states, never content.
pub(crate) fn payloads(
    from: &str,
    interventions: &[InterventionId],
    environments: &[(EnvUid, EnvId, EnvState)],
) -> Vec<String> {
    let words = interventions.iter().map(|id| id.as_str().to_owned()).chain(
        environments
            .iter()
            .map(|(uid, id, state)| environment_word(uid, id, *state)),
    );
    let mut payloads: Vec<String> = Vec::new();
    for word in words {
        match payloads.last_mut() {
            Some(last) if last.len() + 1 + word.len() <= PAYLOAD => {
                last.push(' ');
                last.push_str(&word);
            }
            Some(_) | None => payloads.push(format!("{from} {word}")),
        }
    }
    payloads
}

/// What the other orchestrators are told of revoked keys.
pub(crate) fn key_payloads(from: &str, keys: &[KeyId]) -> Vec<String> {
    keys.iter().map(|key| format!("{from} {key}")).collect()
}

fn environment_word(uid: &EnvUid, id: &EnvId, state: EnvState) -> String {
    format!("{id}/{}/{}", state.as_str(), uid.0)
}

/// Reads what another orchestrator told; nothing for one's own. A word that is not understood asks for a resync.
pub(crate) fn read_payload(own: &str, payload: &str) -> Vec<Notice> {
    let mut words = payload.split(' ');
    if words.next() == Some(own) {
        return Vec::new();
    }
    words
        .map(|word| read_word(word).unwrap_or(Notice::Resync))
        .collect()
}

fn read_word(word: &str) -> Option<Notice> {
    if let Ok(id) = InterventionId::parse(word) {
        return Some(Notice::Remote(id));
    }
    if let Ok(id) = KeyId::parse(word) {
        return Some(Notice::Key(id));
    }
    let mut parts = word.splitn(3, '/');
    let id = EnvId::parse(parts.next()?).ok()?;
    let state = EnvState::parse(parts.next()?)?;
    let uid = EnvUid(parts.next()?.to_owned());
    Some(Notice::Environment { uid, id, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_stay_below_the_limit_and_lose_nothing() {
        let ids: Vec<_> = (0..1_000)
            .map(|n| InterventionId::from_uuid(uuid::Uuid::from_u128(n)))
            .collect();
        let env = EnvId::parse("fuse-a").expect("id");
        let envs = [(EnvUid("u".into()), env, EnvState::Running)];
        let payloads = payloads("me", &ids, &envs);
        assert!(payloads.iter().all(|p| p.len() < 8_000));
        let read: Vec<_> = payloads
            .iter()
            .flat_map(|p| read_payload("other", p))
            .collect();
        assert_eq!(read.len(), 1_001);
        assert!(matches!(&read[7], Notice::Remote(id) if *id == ids[7]));
        assert!(matches!(
            &read[1_000],
            Notice::Environment {
                state: EnvState::Running,
                ..
            }
        ));
        assert!(payloads.iter().all(|p| read_payload("me", p).is_empty()));
    }

    #[test]
    fn a_revoked_key_is_told_to_the_others() {
        let key = KeyId::from_uuid(uuid::Uuid::from_u128(7));
        let payloads = key_payloads("me", std::slice::from_ref(&key));
        assert!(read_payload("me", &payloads[0]).is_empty());
        assert!(
            matches!(&read_payload("other", &payloads[0])[..], [Notice::Key(id)] if *id == key)
        );
    }

    #[test]
    fn each_spell_of_hearing_has_a_number_of_its_own() {
        let (notifier, _notices) = Notifier::new();
        assert_eq!(notifier.hearing(), 0);
        notifier.listens();
        let first = notifier.hearing();
        assert_ne!(first, 0);
        notifier.is_deaf();
        notifier.is_deaf();
        assert_eq!(notifier.hearing(), 0);
        notifier.listens();
        assert!(![0, first].contains(&notifier.hearing()));
    }

    #[test]
    fn what_is_not_understood_asks_for_a_resync() {
        assert!(matches!(
            read_payload("me", "other what")[..],
            [Notice::Resync]
        ));
    }

    #[tokio::test]
    async fn what_does_not_fit_becomes_a_resync() {
        let (notifier, mut notices) = Notifier::new();
        for _ in 0..=WAITING {
            notifier.send(Notice::Remote(InterventionId::from_uuid(uuid::Uuid::nil())));
        }
        assert!(matches!(notices.recv().await, Some(Notice::Resync)));
        assert!(matches!(notices.recv().await, Some(Notice::Remote(_))));
    }
}
