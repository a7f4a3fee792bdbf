//! A task: one call, from its start to its result.

use a2a::{
    Artifact, Message, Part, Role, Task, TaskState, TaskStatus, new_artifact_id, new_context_id,
    new_task_id,
};
use fisk_domain::{Call, CommandTool, Denial, Facts, Gate, PromptFailure, Step, Verdict};
use fisk_operator::ApprovalRequest;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

use crate::run::{Ran, Runner};

/// How long a question may take to be withdrawn.
const RECALL: Duration = Duration::from_secs(3);

/// A task that has not begun.
pub(super) fn submitted(context: Option<String>) -> Task {
    Task {
        id: new_task_id(),
        context_id: context.unwrap_or_else(new_context_id),
        status: status(TaskState::Submitted, None),
        artifacts: None,
        history: None,
        metadata: None,
    }
}

fn status(state: TaskState, message: Option<Message>) -> TaskStatus {
    TaskStatus {
        state,
        message,
        timestamp: None,
    }
}

/// The task, begun.
pub(super) fn working(task: &mut Task) {
    task.status = status(TaskState::Working, None);
}

/// The task with its result, which nothing changes any more.
pub(super) fn ended(task: &mut Task, ending: Ending) {
    let (state, value) = match ending {
        Ending::Denied(denial) => (TaskState::Completed, denial.to_json()),
        Ending::Ran(ran) => {
            let state = match &ran {
                Ran::Done(_) => TaskState::Completed,
                Ran::Cancelled => TaskState::Canceled,
                Ran::TimedOut(..) | Ran::Failed(_) => TaskState::Failed,
            };
            (state, ran.into_json().0)
        }
    };
    let told = value
        .get("error")
        .and_then(Value::as_str)
        .map(|error| Message {
            task_id: Some(task.id.clone()),
            context_id: Some(task.context_id.clone()),
            ..Message::new(Role::Agent, vec![Part::text(error)])
        });
    task.artifacts = Some(vec![Artifact {
        artifact_id: new_artifact_id(),
        name: Some("result".to_owned()),
        description: None,
        parts: vec![Part::data(value).with_media_type("application/json")],
        metadata: None,
        extensions: None,
    }]);
    task.status = status(state, told);
}

/// How a task came out.
pub(super) enum Ending {
    /// It was not allowed to run.
    Denied(Denial),
    /// It was.
    Ran(Ran),
}

/// Asks the operator where the command is gated, then runs it.
pub(super) async fn perform(
    runner: Arc<Runner>,
    tool: CommandTool,
    call: Call,
    cancel: CancellationToken,
) -> Ending {
    match agree(&runner, &tool, &call, &cancel).await {
        Ok(()) => Ending::Ran(runner.run(call, cancel.cancelled()).await),
        // Nobody denied it: it was taken back before somebody could.
        Err(_) if cancel.is_cancelled() => Ending::Ran(Ran::Cancelled),
        Err(denial) => Ending::Denied(denial),
    }
}

/// Why a question is void before it is answered.
async fn no_longer(patience: Duration, cancel: &CancellationToken) -> PromptFailure {
    tokio::select! {
        () = tokio::time::sleep(patience) => PromptFailure::Expired,
        () = cancel.cancelled() => PromptFailure::Cancelled,
    }
}

/// The gate of one call: an allowance for the session ends with it.
async fn agree(
    runner: &Runner,
    tool: &CommandTool,
    call: &Call,
    cancel: &CancellationToken,
) -> Result<(), Denial> {
    let mut gate = Gate::default();
    let operator = runner.served.operator.as_deref();
    let facts = Facts {
        interactive: operator.is_some_and(|operator| operator.interactive()),
        cancelled: cancel.is_cancelled() || runner.stop().is_cancelled(),
    };
    match (gate.check(tool, call, facts), operator) {
        (Step::Run, _) => Ok(()),
        (Step::Deny(_), None) | (Step::Ask, None) => Err(Denial::new(
            "this command needs approval and nobody answers for it here",
        )),
        (Step::Deny(denial), Some(_)) => Err(denial),
        (Step::Ask, Some(operator)) => {
            let request = ApprovalRequest {
                tool: tool.name().to_string(),
                command: runner.shown(call),
                tags: tool.gating_tags().to_vec(),
            };
            let asking = runner.stop().child_token();
            let mut asked = operator.approve(&request, &asking);
            let answer = tokio::select! {
                answer = &mut asked => answer,
                failure = no_longer(runner.limits.operator, cancel) => {
                    // So that nobody answers what no longer waits. An answer that comes now is too late.
                    asking.cancel();
                    let _ = tokio::time::timeout(RECALL, asked).await;
                    Err(failure)
                }
            };
            match gate.answer(tool, &answer) {
                Verdict::Run => Ok(()),
                Verdict::Deny(denial) => Err(denial),
            }
        }
    }
}
