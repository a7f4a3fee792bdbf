//! The event stream of environments: hints to read again, dropped under load, never the record (spec: "Watching").

use fuse_api::environment::EnvState;
use fuse_api::events::{Event, EventIntervention, EventKind};
use fuse_api::ids::EnvId;
use fuse_domain::intervention::{EnvUid, Record};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{broadcast, watch};

/// How many hints of its environment a slow reader may lag behind before it loses the oldest.
const BACKLOG: usize = 256;

/// What happened in an environment.
#[derive(Debug, Clone)]
pub enum Hint {
    /// Its state changed.
    State(EnvState, Option<String>),
    /// One of its interventions was raised or resolved.
    Intervention(EventIntervention),
}

/// Where hints come together, by environment: what is busy elsewhere neither wakes a reader nor costs it a hint. Clones share it.
#[derive(Clone, Default)]
pub struct EventHub {
    watched: Arc<Mutex<HashMap<EnvUid, Watched>>>,
}

struct Watched {
    hints: broadcast::Sender<Hint>,
    readers: usize,
}

impl EventHub {
    /// An environment changed its state.
    pub fn state(&self, uid: &EnvUid, state: EnvState, error: Option<String>) {
        self.send(uid, Hint::State(state, error));
    }

    /// An intervention was raised or resolved.
    pub fn intervention(&self, record: &Arc<Record>) {
        let hint = Hint::Intervention(EventIntervention {
            id: record.view.id.clone(),
            kind: record.view.kind,
            state: record.view.state,
        });
        self.send(&record.env_uid, hint);
    }

    /// Starts to listen to one environment, whose state is then read and given to [`EventStream::new`].
    #[must_use]
    pub fn listen(&self, uid: &EnvUid) -> Listening {
        let mut watched = self.lock();
        let here = watched.entry(uid.clone()).or_insert_with(|| Watched {
            hints: broadcast::Sender::new(BACKLOG),
            readers: 0,
        });
        here.readers += 1;
        Listening {
            hub: self.clone(),
            uid: uid.clone(),
            hints: here.hints.subscribe(),
        }
    }

    /// Every environment that somebody listens to.
    #[must_use]
    pub fn watched(&self) -> Vec<EnvUid> {
        self.lock().keys().cloned().collect()
    }

    fn send(&self, uid: &EnvUid, hint: Hint) {
        if let Some(here) = self.lock().get(uid) {
            // The last reader may just have gone.
            let _ = here.hints.send(hint);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<EnvUid, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One reader's place in the hub.
pub struct Listening {
    hub: EventHub,
    uid: EnvUid,
    hints: broadcast::Receiver<Hint>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut watched = self.hub.lock();
        if let Some(here) = watched.get_mut(&self.uid) {
            here.readers -= 1;
            if here.readers == 0 {
                watched.remove(&self.uid);
            }
        }
    }
}

/// One reader's stream: the current state first, then each change, until the environment is gone.
pub struct EventStream {
    id: EnvId,
    state: EnvState,
    error: Option<String>,
    next_id: u64,
    first: bool,
    over: bool,
    listening: Listening,
    stop: watch::Receiver<bool>,
}

impl EventStream {
    /// A stream that begins with this state.
    #[must_use]
    pub fn new(
        id: EnvId,
        state: EnvState,
        error: Option<String>,
        listening: Listening,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self {
            id,
            state,
            error,
            next_id: 1,
            first: true,
            over: false,
            listening,
            stop,
        }
    }

    /// The next event; `None` once the environment is gone or the orchestrator stops.
    pub async fn next(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        if self.first {
            self.first = false;
            return Some(self.event(None));
        }
        loop {
            if *self.stop.borrow() {
                return None;
            }
            let heard = tokio::select! {
                heard = self.listening.hints.recv() => heard,
                _ = self.stop.changed() => return None,
            };
            match heard {
                Ok(Hint::State(state, error)) => {
                    if state == self.state && error == self.error {
                        continue;
                    }
                    self.state = state;
                    self.error = error;
                    return Some(self.event(None));
                }
                Ok(Hint::Intervention(intervention)) => {
                    return Some(self.event(Some(intervention)));
                }
                // The oldest are gone; the newest, and with it the state that ends the stream, is still to come.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    fn event(&mut self, intervention: Option<EventIntervention>) -> Event {
        let id = self.next_id.to_string();
        self.next_id += 1;
        self.over = match self.state {
            EnvState::Destroyed | EnvState::Failed => true,
            EnvState::Provisioning
            | EnvState::Running
            | EnvState::Draining
            | EnvState::Destroying => false,
        };
        Event {
            id,
            event: if intervention.is_some() {
                EventKind::Intervention
            } else {
                EventKind::State
            },
            vm_id: self.id.clone(),
            state: self.state,
            error: self.error.clone(),
            intervention,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;
    use fuse_api::intervention::State;

    // check: ENV-20
    #[tokio::test]
    async fn a_reader_that_lags_behind_still_hears_the_end() {
        let hub = EventHub::default();
        let raised = Arc::new(record(State::Pending));
        let uid = raised.env_uid.clone();
        let id = EnvId::parse("fuse-a").expect("an id");
        let (_keep, stop) = watch::channel(false);
        let listening = hub.listen(&uid);
        let mut stream = EventStream::new(id, EnvState::Running, None, listening, stop);
        for _ in 0..10 * BACKLOG {
            hub.intervention(&raised);
        }
        hub.state(&uid, EnvState::Destroyed, None);
        for _ in 0..10 * BACKLOG {
            hub.state(&EnvUid("another".into()), EnvState::Running, None);
        }
        let mut last = None;
        while let Some(event) = stream.next().await {
            last = Some(event.state);
        }
        assert_eq!(last, Some(EnvState::Destroyed));
        drop(stream);
        assert!(hub.watched().is_empty(), "a reader leaves no trace");
    }
}
