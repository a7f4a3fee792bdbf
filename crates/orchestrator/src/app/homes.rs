//! What is fixed about an environment for as long as it lives: its compiled policy and the way to its guest.

use super::{App, AppError, AppResult};
use fuse_api::environment::EnvState;
use fuse_api::ids::EnvId;
use fuse_backend::{BackendError, Guest};
use fuse_domain::intervention::{EnvUid, InstanceId, raise};
use fuse_domain::policy::Policy;
use fuse_domain::refusal::{Refusal, What};
use fuse_store::EnvironmentRow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// One environment's fixed facts.
pub struct Home {
    /// What raising needs.
    pub raise: raise::Home,
    /// The compiled policy; none where no `hitl` block was declared.
    pub policy: Option<Policy>,
}

#[derive(Default)]
pub(crate) struct Homes {
    known: Mutex<HashMap<EnvUid, Arc<Home>>>,
    guests: Mutex<HashMap<EnvUid, Arc<dyn Guest>>>,
    making: Mutex<HashSet<EnvUid>>,
}

/// An environment that this process is making, for as long as this is held.
pub(crate) struct Making<'a> {
    homes: &'a Homes,
    uid: EnvUid,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        lock(&self.homes.making).remove(&self.uid);
    }
}

impl Homes {
    pub(crate) fn forget(&self, uid: &EnvUid) {
        lock(&self.known).remove(uid);
        lock(&self.guests).remove(uid);
    }

    /// Forgets every environment but these. One that is still needed is found again.
    pub(crate) fn keep_only(&self, uids: &HashSet<&EnvUid>) {
        lock(&self.known).retain(|uid, _| uids.contains(uid));
        lock(&self.guests).retain(|uid, _| uids.contains(uid));
    }

    pub(crate) fn making(&self, uid: &EnvUid) -> Making<'_> {
        lock(&self.making).insert(uid.clone());
        Making {
            homes: self,
            uid: uid.clone(),
        }
    }

    pub(crate) fn is_making(&self, uid: &EnvUid) -> bool {
        lock(&self.making).contains(uid)
    }

    pub(crate) fn met_guest(&self, uid: &EnvUid) -> Option<Arc<dyn Guest>> {
        lock(&self.guests).get(uid).map(Arc::clone)
    }

    pub(crate) fn keep_guest_if_new(&self, uid: &EnvUid, guest: Arc<dyn Guest>) {
        lock(&self.guests).entry(uid.clone()).or_insert(guest);
    }

    pub(crate) fn keep_guest(&self, uid: &EnvUid, guest: Arc<dyn Guest>) {
        lock(&self.guests).insert(uid.clone(), guest);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl App {
    /// The living environment of that id.
    pub(crate) async fn environment(&self, id: &EnvId) -> AppResult<EnvironmentRow> {
        self.store
            .get_environment(id)
            .await?
            .ok_or_else(|| Refusal::NotFound(What::Environment).into())
    }

    /// Its fixed facts; the policy is compiled at the first use.
    pub(crate) fn home(&self, row: &EnvironmentRow) -> AppResult<Arc<Home>> {
        if let Some(home) = lock(&self.homes.known).get(&row.uid) {
            return Ok(Arc::clone(home));
        }
        let policy = match &row.hitl {
            None => None,
            Some(block) => Some(Policy::reload(block).map_err(|violations| {
                // It was valid when it was stored; whatever this is, nothing may pass by it.
                AppError::Internal(format!(
                    "the stored policy of {} does not compile: {violations:?}",
                    row.id
                ))
            })?),
        };
        let home = Arc::new(Home {
            raise: raise::Home {
                env_id: row.id.clone(),
                env_uid: row.uid.clone(),
                on_timeout: row.hitl.as_ref().map(|h| h.on_timeout).unwrap_or_default(),
                require_actor: row.hitl.as_ref().is_some_and(|h| h.require_actor),
            },
            policy,
        });
        lock(&self.homes.known).insert(row.uid.clone(), Arc::clone(&home));
        Ok(home)
    }

    /// The fixed facts of this life; none where there is no such.
    pub(crate) async fn home_of(&self, uid: &EnvUid) -> AppResult<Option<Arc<Home>>> {
        let known = lock(&self.homes.known).get(uid).map(Arc::clone);
        if known.is_some() {
            return Ok(known);
        }
        let row = self.store.get_environment_by_uid(uid).await?;
        row.map(|row| self.home(&row)).transpose()
    }

    /// The environment's guest is within this orchestrator's reach.
    pub(crate) fn require_local(&self, row: &EnvironmentRow) -> AppResult<()> {
        if row.host_id == self.host_id {
            return Ok(());
        }
        Err(AppError::Unavailable(format!(
            "environment {} runs on host {}, and this orchestrator serves host {}; send the call there",
            row.id, row.host_id, self.host_id
        )))
    }

    /// The environment's guest, found again where this process has not met it.
    pub(crate) async fn guest(&self, row: &EnvironmentRow) -> AppResult<Arc<dyn Guest>> {
        if let Some(guest) = self.homes.met_guest(&row.uid) {
            return Ok(guest);
        }
        self.require_local(row)?;
        let id = backend_id(&row.uid)?;
        match self.backend.adopt(&id).await {
            Ok(guest) => {
                self.homes.keep_guest(&row.uid, Arc::clone(&guest));
                Ok(guest)
            }
            Err(e @ (BackendError::NotFound(_) | BackendError::Dead { .. })) => Err(
                AppError::Unavailable(format!("the guest of {} is gone: {e}", row.id)),
            ),
            Err(e) => Err(AppError::Unavailable(format!(
                "the guest of {} does not answer: {e}",
                row.id
            ))),
        }
    }
}

/// What the backend calls this life of an environment.
pub(crate) fn backend_id(uid: &EnvUid) -> AppResult<fuse_backend::EnvId> {
    fuse_backend::EnvId::new(uid.0.clone()).map_err(|e| AppError::Internal(e.to_string()))
}

/// A name for a new life of an environment. It starts like the environment's own, tells which instance makes it, and is never
/// used again.
pub(crate) fn fresh_uid(id: &EnvId, maker: &InstanceId) -> EnvUid {
    let readable: String = id.as_str().chars().take(24).collect();
    EnvUid(format!(
        "{}-{}-{}",
        readable.trim_end_matches('-'),
        maker.0,
        crate::instance::unique()
    ))
}

/// Which instance makes, or made, this life of an environment.
pub(crate) fn maker_of(uid: &EnvUid) -> Option<InstanceId> {
    let mut parts = uid.0.rsplit('-');
    parts.next()?;
    parts.next().map(|maker| InstanceId(maker.to_owned()))
}

/// The environment takes commands.
pub(crate) fn require_running(row: &EnvironmentRow) -> Result<(), Refusal> {
    match row.state {
        EnvState::Running => Ok(()),
        state @ (EnvState::Provisioning
        | EnvState::Draining
        | EnvState::Destroying
        | EnvState::Destroyed
        | EnvState::Failed) => Err(Refusal::environment_state(
            state,
            format!("environment {} is {}, not running", row.id, state.as_str()),
        )),
    }
}
