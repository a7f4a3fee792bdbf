//! The tasks that run, and those that ended lately.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use a2a::{Task, TaskId};
use fisk_domain::{Call, CommandTool};
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::task::{Ending, ended, perform, submitted, working};
use crate::run::{Ran, Runner};

/// A task, to be watched and cancelled.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) now: watch::Receiver<Task>,
    pub(super) cancel: CancellationToken,
    started: Instant,
}

/// The tasks by their ids. An id cannot be guessed, and whoever may call a command may look at all of them.
pub(super) struct Tasks {
    pub(super) runner: Arc<Runner>,
    known: Mutex<HashMap<TaskId, Handle>>,
}

impl Tasks {
    pub(super) fn new(runner: Arc<Runner>) -> Self {
        Self {
            runner,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<TaskId, Handle>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task of that id.
    pub(super) fn get(&self, id: &str) -> Option<Handle> {
        self.known().get(id).cloned()
    }

    /// Begins a task. `None`: there are too many.
    pub(super) fn start(
        &self,
        tool: CommandTool,
        call: Call,
        context: Option<String>,
    ) -> Option<Handle> {
        let task = submitted(context);
        let id = task.id.clone();
        let (sender, now) = watch::channel(task);
        let handle = Handle {
            now,
            cancel: self.runner.stop().child_token(),
            started: Instant::now(),
        };
        {
            let mut known = self.known();
            self.forget(&mut known);
            if known.len() >= self.runner.limits.tasks {
                return None;
            }
            known.insert(id, handle.clone());
        }
        let (runner, cancel) = (Arc::clone(&self.runner), handle.cancel.clone());
        self.runner.track(async move {
            sender.send_modify(working);
            let performed =
                std::panic::AssertUnwindSafe(perform(runner, tool, call, cancel)).catch_unwind();
            let ending = performed.await.unwrap_or_else(|_panicked| {
                Ending::Ran(Ran::Failed("the call failed inside the server".to_owned()))
            });
            sender.send_modify(|task| ended(task, ending));
        });
        Some(handle)
    }

    /// Drops what is over and old, and where there is no room the oldest that is over.
    fn forget(&self, known: &mut HashMap<TaskId, Handle>) {
        let limits = &self.runner.limits;
        let over = |handle: &Handle| handle.now.borrow().status.state.is_terminal();
        known.retain(|_, handle| !(over(handle) && handle.started.elapsed() > limits.task_age));
        while known.len() >= limits.tasks {
            let oldest = known
                .iter()
                .filter(|(_, handle)| over(handle))
                .min_by_key(|(_, handle)| handle.started)
                .map(|(id, _)| id.clone());
            match oldest {
                Some(id) => drop(known.remove(&id)),
                None => return,
            }
        }
    }
}
