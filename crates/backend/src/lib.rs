//! Where environments run: the backend trait, the sandbox, one conformance suite.
//!
//! [`Backend`] makes, finds and ends environments; [`Guest`] is one of them. Both are object safe, so an
//! orchestrator holds `Arc<dyn Backend>` and never knows what is behind it. [`sandbox::Sandbox`] is the
//! backend made of Linux namespaces.
//!
//! A program that embeds the sandbox calls [`maybe_run_stage`] first thing in `main`, before any thread exists.

mod client;
#[cfg(feature = "conformance")]
pub mod conformance;
mod disk;
mod error;
mod guest;
mod id;
pub mod sandbox;
mod spec;

pub use error::{BackendError, CallError};
pub use fuse_guest_api::{
    BootFailure, BootStage, BuildStep, Command, EnvVars, HeadTail, Refusal, RefusalCode, Status,
    TaskState, message::Phase,
};
pub use guest::{Backend, BoxFuture, ExecOutcome, ExecSpec, FileContent, Guest, MergeOutput};
pub use id::EnvId;
pub use sandbox::Sandbox;
pub use spec::{Bind, EnvSpec, Ids, InitialFile, Limits, Network, StartupScript};

/// Takes the process over when it was started as a stage of the sandbox; returns at once otherwise.
///
/// Every program that embeds [`sandbox::Sandbox`] calls it as the first thing in `main`: the sandbox starts
/// `/proc/self/exe` again for each environment, since only a process with a single thread may enter a user namespace.
pub fn maybe_run_stage() {
    sandbox::maybe_run_stage();
}
