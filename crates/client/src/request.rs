//! What an agent asks of a person.

use std::time::Duration;

use fuse_api::intervention::{Intervention, RaiseRequest, ReviewFormat};

/// A question to a person.
///
/// ```no_run
#[doc = include_str!("../examples/tour/ask.rs")]
/// ```
#[derive(Debug, Clone)]
pub struct HumanRequest {
    pub(crate) body: RaiseRequest,
    pub(crate) no_wait: bool,
}

impl HumanRequest {
    /// A question that takes any answer, unless [`choices`](Self::choices) say otherwise.
    pub fn ask(question: impl Into<String>) -> Self {
        Self {
            body: RaiseRequest {
                kind: "ask".to_owned(),
                question: Some(question.into()),
                ..RaiseRequest::default()
            },
            no_wait: false,
        }
    }

    /// The answers it admits, 1 to 25 different ones.
    #[must_use]
    pub fn choices<I>(mut self, choices: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.body.choices = Some(choices.into_iter().map(Into::into).collect());
        self
    }

    /// A deadline before that of the policy, in whole seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.body.timeout_seconds = Some(timeout.as_secs());
        self
    }

    /// Returns the pending intervention at once.
    #[must_use]
    pub fn no_wait(mut self) -> Self {
        self.no_wait = true;
        self
    }
}

/// Something for a person to judge.
///
/// ```no_run
#[doc = include_str!("../examples/tour/review.rs")]
/// ```
#[derive(Debug, Clone)]
pub struct ReviewRequest {
    pub(crate) body: RaiseRequest,
    pub(crate) no_wait: bool,
}

impl ReviewRequest {
    /// A file of the environment, by its absolute path. The person sees it as it is now, whatever happens to it later.
    pub fn path(path: impl Into<String>) -> Self {
        Self::of(RaiseRequest {
            path: Some(path.into()),
            ..RaiseRequest::default()
        })
    }

    /// A text of at most 1 MiB.
    pub fn content(content: impl Into<String>) -> Self {
        Self::of(RaiseRequest {
            content: Some(content.into()),
            ..RaiseRequest::default()
        })
    }

    fn of(body: RaiseRequest) -> Self {
        Self {
            body: RaiseRequest {
                kind: "review".to_owned(),
                ..body
            },
            no_wait: false,
        }
    }

    /// How it reads; the server guesses where this is left out.
    #[must_use]
    pub fn format(mut self, format: ReviewFormat) -> Self {
        self.body.format = Some(format.as_str().to_owned());
        self
    }

    /// A note to the reviewer.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.body.message = Some(message.into());
        self
    }

    /// A deadline before that of the policy, in whole seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.body.timeout_seconds = Some(timeout.as_secs());
        self
    }

    /// Does not wait for the verdict.
    #[must_use]
    pub fn no_wait(mut self) -> Self {
        self.no_wait = true;
        self
    }
}

/// What a reviewer said.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewVerdict {
    /// Whether the agent may go on with it.
    pub approved: bool,
    /// The reviewer's comments, for a rejection its reason.
    pub comments: String,
    /// The whole of it.
    pub intervention: Intervention,
}
