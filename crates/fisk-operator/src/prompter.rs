//! What a prompter is, and what it is asked.

use fisk_domain::{Approval, PromptFailure};
use fuse_terminal::Exact;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

/// A gated command, as the operator is asked about it.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The tool's name, which is what an allowance for the session is remembered by.
    pub tool: String,
    /// The whole command line that runs, program first.
    pub command: Exact,
    /// The tags for which it is gated.
    pub tags: Vec<String>,
}

/// A yes-or-no question of the model. Texts are raw; the prompter strips and cuts them.
#[derive(Debug, Clone)]
pub struct Confirm {
    /// What is asked.
    pub question: String,
    /// What the model suggests; shown, never chosen by Enter.
    pub default: Option<bool>,
}

/// A choice. `options` are at most 25 and differ once stripped.
#[derive(Debug, Clone)]
pub struct Select {
    /// What is asked.
    pub question: String,
    /// The model's own strings.
    pub options: Vec<String>,
    /// What the model suggests; shown, nothing is preselected.
    pub default: Option<String>,
}

/// A free-text question.
#[derive(Debug, Clone)]
pub struct Input {
    /// What is asked.
    pub question: String,
    /// Taken by an empty answer, since it was shown.
    pub default: Option<String>,
}

/// A way to reach the operator. Every failure counts as no.
///
/// A prompter shows one question at a time and answers as soon as `cancel` is triggered, with [`PromptFailure::Cancelled`].
pub trait Prompter: Send + Sync {
    /// Whether there is somebody to ask now. Where not, the gate denies before any prompt.
    fn interactive(&self) -> bool;

    /// Asks whether a gated command may run.
    fn approve<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Approval, PromptFailure>>;

    /// Asks a yes-or-no question.
    fn confirm<'a>(
        &'a self,
        question: &'a Confirm,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, PromptFailure>>;

    /// Asks for one of the options; the answer is its index. `None`: none of them.
    fn select<'a>(
        &'a self,
        question: &'a Select,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<usize>, PromptFailure>>;

    /// Asks for a text. `None`: no value.
    fn input<'a>(
        &'a self,
        question: &'a Input,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<String>, PromptFailure>>;
}
