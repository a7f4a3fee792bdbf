//! What can go wrong, told apart by what the caller has to do about it.

use crate::id::EnvId;
use fuse_guest_api::{BootFailure, BootStage, Refusal};
use std::io;

/// Why an environment could not be made, found or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// A part of the spec is wrong.
    #[error("{field}: {problem}")]
    Invalid {
        /// The part's name.
        field: String,
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// The machine lacks something that the isolation needs. Nothing was run.
    #[error("this machine cannot run sandboxed environments: {facility}: {detail}")]
    Unsupported {
        /// The missing facility.
        facility: String,
        /// What was seen, and what helps.
        detail: String,
    },
    /// There is no image of that name.
    #[error("there is no image `{0}`")]
    NoSuchImage(String),
    /// The id is taken.
    #[error("an environment `{0}` exists already")]
    Exists(EnvId),
    /// There is nothing of that id.
    #[error("there is no environment `{0}`")]
    NotFound(EnvId),
    /// Its remains are there, but nothing runs in it.
    #[error("environment `{id}` is dead: {detail}")]
    Dead {
        /// The environment.
        id: EnvId,
        /// What was seen.
        detail: String,
    },
    /// A build step, the startup script or the start of the task failed.
    #[error("{}", describe(.0))]
    Boot(BootFailure),
    /// The guest could not be talked to, though it may live.
    #[error("the guest does not do its part: {0}")]
    Call(#[from] CallError),
    /// The machine failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// How it failed.
        source: io::Error,
    },
}

impl BackendError {
    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// One sentence without the output, which callers show by themselves.
fn describe(failure: &BootFailure) -> String {
    let what = match &failure.stage {
        BootStage::Workspace => "the workspace could not be made".to_owned(),
        BootStage::Build(step) => format!("build step {step} failed"),
        BootStage::Startup => "the startup script failed".to_owned(),
        BootStage::Run => "the task could not be started".to_owned(),
    };
    match (failure.timed_out, failure.exit_code) {
        (true, _) => format!("{what}: it ran into its timeout"),
        (false, Some(code)) => format!("{what} with exit code {code}"),
        (false, None) => what,
    }
}

/// Why a call to a guest has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The guest never got it: nothing was done, trying again is safe.
    #[error("the guest could not be reached: {0}")]
    NotSent(String),
    /// It was sent, but the guest died or forgot it: it may or may not have been done.
    #[error("the guest was lost before it answered: {0}")]
    Lost(String),
    /// The guest refused; nothing was done.
    #[error(transparent)]
    Refused(#[from] Refusal),
}
