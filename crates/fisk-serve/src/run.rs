//! Check, wait for a turn, run: what MCP and A2A have in common.

use std::{sync::Arc, time::Duration};

use fisk_domain::{Call, CommandTool, Outcome, instead};
use fisk_exec::ExecError;
use fisk_operator::Exact;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Limits, Served};

/// A killed command gets ten seconds to end in good order; a little more than that is waited for.
const LAST_WAIT: Duration = Duration::from_secs(15);

/// How a call ended that was allowed to run.
#[derive(Debug)]
pub(crate) enum Ran {
    /// It ran to its end.
    Done(Outcome),
    /// Its time was up, and it was killed.
    TimedOut(Duration, Outcome),
    /// Its caller went away or took it back; it was killed if it ran.
    Cancelled,
    /// It has no outcome. The text says why.
    Failed(String),
}

impl Ran {
    /// What a client reads, and whether it is an error.
    pub(crate) fn into_json(self) -> (Value, bool) {
        match self {
            Self::Done(outcome) => (
                json!({
                    "exit_code": outcome.exit_code,
                    "output": outcome.output,
                    "truncated": outcome.truncated,
                }),
                false,
            ),
            Self::TimedOut(after, outcome) => (
                json!({
                    "error": format!("the command did not end within {after:?} and was killed"),
                    "output": outcome.output,
                    "truncated": outcome.truncated,
                }),
                true,
            ),
            Self::Cancelled => (json!({"error": "the call was canceled"}), true),
            Self::Failed(why) => (json!({"error": why}), true),
        }
    }
}

/// Runs the commands of a served set, so many at once.
pub(crate) struct Runner {
    pub(crate) served: Served,
    pub(crate) limits: Limits,
    /// Fair: who waits longest is next.
    slots: Arc<Semaphore>,
    calls: Semaphore,
    running: TaskTracker,
    stop: CancellationToken,
}

impl Runner {
    pub(crate) fn new(served: Served, limits: Limits, stop: CancellationToken) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(served.max_concurrent_tools.max(1))),
            calls: Semaphore::new(limits.calls),
            running: TaskTracker::new(),
            served,
            limits,
            stop,
        }
    }

    /// The trust boundary. The error names what is at fault and what is allowed.
    pub(crate) fn check(
        &self,
        name: &str,
        input: &Map<String, Value>,
    ) -> Result<(&CommandTool, Call), String> {
        let Some(tool) = self.served.tools.get(name) else {
            let known = self.served.tools.tools().iter();
            let known = known.map(|tool| tool.name().as_str());
            let quoted: String = name.chars().take(100).collect();
            return Err(format!("unknown tool {quoted:?}; {}", instead(name, known)));
        };
        let call = tool
            .args_from_json(input)
            .map_err(|rejected| format!("{name}: {rejected}"))?;
        Ok((tool, call))
    }

    /// The whole command line that the call runs.
    pub(crate) fn argv(&self, call: &Call) -> Vec<String> {
        self.served.executor.argv(call)
    }

    /// The same as a person is shown it.
    pub(crate) fn shown(&self, call: &Call) -> Exact {
        Exact::argv(self.argv(call))
    }

    /// Whether the server is about to end.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits for a slot and runs the call in it. It is killed once `gone` is over, and also when this future is dropped;
    /// its slot stays taken until it is dead.
    pub(crate) async fn run(&self, call: Call, gone: impl Future<Output = ()>) -> Ran {
        let Ok(_place) = self.calls.try_acquire() else {
            return Ran::Failed("too many calls wait already; try again later".to_owned());
        };
        tokio::pin!(gone);
        let slot = tokio::select! {
            biased;
            () = &mut gone => return Ran::Cancelled,
            () = self.stop.cancelled() => return Ran::Cancelled,
            slot = Arc::clone(&self.slots).acquire_owned() => slot,
        };
        let Ok(slot) = slot else {
            return Ran::Cancelled;
        };
        let kill = self.stop.child_token();
        let dropped = kill.clone().drop_guard();
        let executor = Arc::clone(&self.served.executor);
        let timeout = self.served.tool_timeout;
        tracing::info!(tool = %call.tool(), "a command starts");
        let mut job = self.running.spawn(async move {
            let ended = executor.run(&call, Some(timeout), &kill).await;
            drop(slot);
            ended
        });
        let ended = tokio::select! {
            ended = &mut job => ended,
            () = &mut gone => {
                drop(dropped);
                job.await
            }
        };
        match ended {
            Ok(Ok(outcome)) => Ran::Done(outcome),
            Ok(Err(ExecError::TimedOut { after, outcome })) => Ran::TimedOut(after, outcome),
            Ok(Err(ExecError::Cancelled { .. })) => Ran::Cancelled,
            Ok(Err(
                error @ (ExecError::NotStarted(_)
                | ExecError::Lost(_)
                | ExecError::Unusable(_)
                | ExecError::Introspection(_)),
            )) => {
                tracing::warn!("a command has no outcome");
                Ran::Failed(error.to_string())
            }
            Err(_panicked) => Ran::Failed("the call failed inside the server".to_owned()),
        }
    }

    /// Does something that the end of the server waits for.
    pub(crate) fn track(&self, what: impl Future<Output = ()> + Send + 'static) {
        drop(self.running.spawn(what));
    }

    /// Kills what runs and waits until it is dead.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.running.close();
        if tokio::time::timeout(LAST_WAIT, self.running.wait())
            .await
            .is_err()
        {
            tracing::warn!("the server ends although a killed command has not");
        }
    }
}
