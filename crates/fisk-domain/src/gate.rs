//! Whether a command runs (Safety, "The confirm gate defaults to deny").

use std::collections::BTreeSet;

use thiserror::Error;

use crate::{
    call::Call,
    denial::Denial,
    tool::{CommandTool, ToolName},
};

/// What the operator says to a gated command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// It runs, this once.
    Once,
    /// It runs, and so does every later call of this command in this run, whatever its arguments.
    Session,
    /// It does not run.
    Denied {
        /// What the operator wrote about it.
        reason: Option<String>,
    },
}

/// Why there is no answer. Each of them is a denial.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PromptFailure {
    /// There is nobody to ask.
    #[error("there is no terminal to ask the operator on")]
    NoOperator,
    /// The run was cancelled.
    #[error("the run was canceled")]
    Cancelled,
    /// Ctrl-C.
    #[error("the operator interrupted the question")]
    Interrupted,
    /// Ctrl-D, or the input was closed.
    #[error("the input ended before an answer")]
    EndOfInput,
    /// Escape.
    #[error("the operator dismissed the question")]
    Dismissed,
    /// The operator refused to answer and wrote why.
    #[error("the operator refused: {0}")]
    Refused(String),
    /// The question's deadline passed.
    #[error("nobody answered in time")]
    Expired,
    /// The prompter failed. The text is for the operator's eyes and the model's.
    #[error("the operator could not be asked: {0}")]
    Failed(String),
}

/// What the gate has to know beside the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Whether there is somebody who can be asked.
    pub interactive: bool,
    /// Whether the run was cancelled.
    pub cancelled: bool,
}

/// What follows on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It runs.
    Run,
    /// It does not run, and nobody is asked.
    Deny(Denial),
    /// The operator is asked, and [`Gate::answer`] is told.
    Ask,
}

/// What follows on an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Run,
    /// It does not run.
    Deny(Denial),
}

/// The gate of one run. Its allowances are part of no session and end with it.
#[derive(Debug, Default)]
pub struct Gate {
    allowed: BTreeSet<ToolName>,
}

impl Gate {
    /// Checks a call, in the spec's order. That no parameter is missing is checked first, and by the type: there is no [`Call`]
    /// without it.
    pub fn check(&self, tool: &CommandTool, call: &Call, facts: Facts) -> Step {
        if call.tool() != tool.name() {
            return Step::Deny(Denial::new("the call does not belong to this command"));
        }
        if !tool.is_gated() || self.allowed.contains(tool.name()) {
            return Step::Run;
        }
        if facts.cancelled {
            return Step::Deny(denied(&PromptFailure::Cancelled));
        }
        if !facts.interactive {
            return Step::Deny(denied(&PromptFailure::NoOperator));
        }
        Step::Ask
    }

    /// Takes the operator's answer.
    pub fn answer(
        &mut self,
        tool: &CommandTool,
        answer: &Result<Approval, PromptFailure>,
    ) -> Verdict {
        match answer {
            Ok(Approval::Once) => Verdict::Run,
            Ok(Approval::Session) => {
                self.allowed.insert(tool.name().clone());
                Verdict::Run
            }
            Ok(Approval::Denied { reason: None }) => {
                Verdict::Deny(Denial::new("the operator denied this command"))
            }
            Ok(Approval::Denied {
                reason: Some(reason),
            }) => Verdict::Deny(Denial::new(&format!(
                "the operator denied this command: {reason}"
            ))),
            Err(failure) => Verdict::Deny(denied(failure)),
        }
    }

    /// The commands that run without a question until this run ends.
    pub fn allowed(&self) -> impl Iterator<Item = &ToolName> {
        self.allowed.iter()
    }
}

fn denied(failure: &PromptFailure) -> Denial {
    Denial::new(&format!(
        "the operator did not approve this command: {failure}"
    ))
}
