//! The run of an approved action: at most once, and never in doubt silently (spec: "Across an orchestrator restart").

use super::{InstanceId, Progress, Record, RunState};
use crate::transition::Transition;
use fuse_api::intervention::ActionResult;

/// What the result says of an action whose end nobody saw.
pub const MAY_OR_MAY_NOT: &str =
    "the orchestrator stopped while it ran this action; it may or may not have run";

/// What the result says of an approved action whose content cannot be read any more.
pub const UNREADABLE: &str = "it did not run: what is stored of it cannot be read";

/// What to do about an approved action whose result is not on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// Nobody started it: run it.
    Run,
    /// An instance that is gone had started it: settle it as in doubt.
    Settle,
    /// A living instance runs it, or there is nothing to run.
    Leave,
}

/// Decides what becomes of an approved action. `is_alive` tells whether an instance still runs.
pub fn recover(run: &RunState, is_alive: impl FnOnce(&InstanceId) -> bool) -> Recovery {
    match run {
        RunState::Nothing | RunState::Done => Recovery::Leave,
        RunState::Ready => Recovery::Run,
        RunState::Started(instance) => {
            if is_alive(instance) {
                Recovery::Leave
            } else {
                Recovery::Settle
            }
        }
    }
}

/// Claims the run for an instance. Only after this is on record may the action be performed.
#[must_use]
pub fn start(record: &Record, instance: InstanceId) -> Transition {
    progress(record, RunState::Started(instance), None)
}

/// Puts the result on record.
#[must_use]
pub fn finish(record: &Record, result: ActionResult) -> Transition {
    progress(record, RunState::Done, Some(result))
}

/// Settles a run whose end nobody saw.
#[must_use]
pub fn settle(record: &Record) -> Transition {
    finish(record, failed(MAY_OR_MAY_NOT))
}

/// The result of an approved action that failed.
#[must_use]
pub fn failed(why: &str) -> ActionResult {
    ActionResult {
        error: Some(why.to_owned()),
        ..ActionResult::default()
    }
}

fn progress(record: &Record, run: RunState, result: Option<ActionResult>) -> Transition {
    Transition {
        progress: Some(Progress {
            id: record.view.id.clone(),
            expected_version: record.version,
            run,
            result,
        }),
        ..Transition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_started_is_run() {
        let gone = InstanceId("gone".into());
        assert_eq!(recover(&RunState::Ready, |_| false), Recovery::Run);
        assert_eq!(
            recover(&RunState::Started(gone.clone()), |_| false),
            Recovery::Settle
        );
        assert_eq!(recover(&RunState::Started(gone), |_| true), Recovery::Leave);
        assert_eq!(recover(&RunState::Done, |_| false), Recovery::Leave);
        assert_eq!(recover(&RunState::Nothing, |_| false), Recovery::Leave);
    }
}
