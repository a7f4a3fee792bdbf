//! The event stream of environments: hints to read again, dropped under load, never the record (spec: "Watching").

use fuse_api::environment::EnvState;
use fuse_api::events::{Event, EventIntervention, EventKind};
use fuse_api::ids::EnvId;
use fuse_domain::intervention::{EnvUid, Record};
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

/// How many hints a slow reader may lag behind before it loses some.
const BACKLOG: usize = 1024;

/// What happened in some environment.
#[derive(Debug, Clone)]
pub enum Hint {
    /// Its state changed.
    State(EnvState, Option<String>),
    /// One of its interventions was raised or resolved.
    Intervention(EventIntervention),
}

/// Where hints come together. Clones share it.
#[derive(Clone)]
pub struct EventHub {
    hints: broadcast::Sender<(EnvUid, Hint)>,
}

impl Default for EventHub {
    fn default() -> Self {
        Self {
            hints: broadcast::Sender::new(BACKLOG),
        }
    }
}

impl EventHub {
    /// An environment changed its state.
    pub fn state(&self, uid: &EnvUid, state: EnvState, error: Option<String>) {
        // Nobody listening is fine.
        let _ = self.hints.send((uid.clone(), Hint::State(state, error)));
    }

    /// An intervention was raised or resolved.
    pub fn intervention(&self, record: &Arc<Record>) {
        let hint = Hint::Intervention(EventIntervention {
            id: record.view.id.clone(),
            kind: record.view.kind,
            state: record.view.state,
        });
        let _ = self.hints.send((record.env_uid.clone(), hint));
    }

    /// Starts to listen to one environment, whose state is then read and given to [`EventStream::new`].
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<(EnvUid, Hint)> {
        self.hints.subscribe()
    }
}

/// One reader's stream: the current state first, then each change, until the environment is gone.
pub struct EventStream {
    id: EnvId,
    uid: EnvUid,
    state: EnvState,
    error: Option<String>,
    next_id: u64,
    first: bool,
    over: bool,
    hints: broadcast::Receiver<(EnvUid, Hint)>,
    stop: watch::Receiver<bool>,
}

impl EventStream {
    /// A stream that begins with this state.
    #[must_use]
    pub fn new(
        id: EnvId,
        uid: EnvUid,
        state: EnvState,
        error: Option<String>,
        hints: broadcast::Receiver<(EnvUid, Hint)>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self {
            id,
            uid,
            state,
            error,
            next_id: 1,
            first: true,
            over: false,
            hints,
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
                heard = self.hints.recv() => heard,
                _ = self.stop.changed() => return None,
            };
            match heard {
                Ok((uid, _)) if uid != self.uid => {}
                Ok((_, Hint::State(state, error))) => {
                    if state == self.state && error == self.error {
                        continue;
                    }
                    self.state = state;
                    self.error = error;
                    return Some(self.event(None));
                }
                Ok((_, Hint::Intervention(intervention))) => {
                    return Some(self.event(Some(intervention)));
                }
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
