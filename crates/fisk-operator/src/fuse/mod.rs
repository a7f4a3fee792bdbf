//! The operator behind a Fuse orchestrator: `harness.operator: fuse`.
//!
//! An approval becomes an ask with fixed choices in an environment whose policy declares asks, or a review where the
//! command line is too long for a question that is shown whole. Only a person's explicit choice approves. Everything else denies,
//! whatever the environment's `on_timeout` says: an expiry, a rejection, a destroyed environment, a decision by a rule, a
//! server that stays away until the deadline.

mod question;
mod standing;

use std::fmt;
use std::time::Duration;

use fisk_domain::{Approval, PromptFailure};
use fuse_client::api::ids::EnvId;
use fuse_client::{ActorLabel, Client};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::prompter::{ApprovalRequest, Confirm, Input, Prompter, Select};
use question::{APPROVE, APPROVE_SESSION, Form};
use standing::{Decided, Standing};

/// The deadlines that Fuse admits.
const TIMEOUTS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(10)..=Duration::from_secs(24 * 60 * 60);

/// A Fuse credential. It shows in no log.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Takes the secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Where the operator is asked.
#[derive(Debug, Clone)]
pub struct FuseConfig {
    /// The orchestrator, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// What calls are made with. An API key that may not decide is enough, and better: whoever holds it cannot approve. With
    /// one that may decide, a question is withdrawn when its run is cancelled; without, it stands until its deadline and its answer
    /// counts for nothing.
    pub token: Token,
    /// The environment that the questions belong to, by its id (`fuse-agent`) or its task (`agent`).
    pub environment: String,
    /// How long a question may stand, 10 seconds to 24 hours and no longer than the environment's policy allows; as long as
    /// that where it is left out.
    pub timeout: Option<Duration>,
    /// For whom the calls are made.
    pub actor: Option<ActorLabel>,
}

/// Why a [`FuseConfig`] cannot be used. Each names its member.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FuseConfigError {
    /// The environment's name.
    #[error(
        "environment: {0:?} is no environment; its id (fuse-agent) or its task (agent) is allowed"
    )]
    Environment(String),
    /// The timeout.
    #[error("timeout: {0:?} is not allowed; 10s to 24h in whole seconds is")]
    Timeout(Duration),
    /// The URL or the token.
    #[error("url or token: {0}")]
    Client(String),
}

/// Asks through a Fuse orchestrator.
#[derive(Debug, Clone)]
pub struct FusePrompter {
    client: Client,
    environment: EnvId,
    timeout: Option<Duration>,
    once_only: bool,
}

impl FusePrompter {
    /// Makes it. Nothing is sent yet.
    ///
    /// # Errors
    /// [`FuseConfigError`] names the member that cannot be used.
    pub fn new(config: FuseConfig) -> Result<Self, FuseConfigError> {
        let named = config.environment.trim();
        let id = match named.starts_with("fuse-") {
            true => named.to_owned(),
            false => format!("fuse-{named}"),
        };
        let environment = EnvId::parse(&id)
            .map_err(|_| FuseConfigError::Environment(config.environment.clone()))?;
        if let Some(timeout) = config.timeout
            && (!TIMEOUTS.contains(&timeout) || timeout.subsec_nanos() != 0)
        {
            return Err(FuseConfigError::Timeout(timeout));
        }
        let mut builder = Client::builder(config.url).token(config.token.0);
        if let Some(actor) = config.actor {
            builder = builder.actor(actor);
        }
        let client = builder
            .build()
            .map_err(|error| FuseConfigError::Client(error.to_string()))?;
        Ok(Self {
            client,
            environment,
            timeout: config.timeout,
            once_only: false,
        })
    }

    /// Approvals are for one call each: where calls are served to other programs there is no session to allow a command for.
    #[must_use]
    pub fn once_only(self) -> Self {
        Self {
            once_only: true,
            ..self
        }
    }

    async fn decided(
        &self,
        form: Form,
        cancel: &CancellationToken,
    ) -> Result<Decided, PromptFailure> {
        let standing = Standing {
            client: self.client.clone(),
            environment: self.environment.clone(),
            timeout: self.timeout,
            form,
        };
        standing.decided(cancel).await
    }

    /// The answer to a question of the model. A rejection is an answer, too, and has a reason.
    async fn answered(
        &self,
        form: Form,
        cancel: &CancellationToken,
    ) -> Result<String, PromptFailure> {
        match self.decided(form, cancel).await? {
            Decided::Approved { answer } => Ok(answer),
            Decided::Rejected { reason } => Err(PromptFailure::Refused(reason)),
        }
    }
}

impl Prompter for FusePrompter {
    /// There is: whether the orchestrator can be reached shows when it is asked, and denies where not.
    fn interactive(&self) -> bool {
        true
    }

    fn approve<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Approval, PromptFailure>> {
        async move {
            let form = question::approval(request, self.once_only)?;
            let is_review = matches!(form, Form::Review { .. });
            Ok(match self.decided(form, cancel).await? {
                // A review has no answer, and its approval is for what was read.
                Decided::Approved { .. } if is_review => Approval::Once,
                Decided::Approved { answer } if answer == APPROVE => Approval::Once,
                Decided::Approved { answer } if answer == APPROVE_SESSION && !self.once_only => {
                    Approval::Session
                }
                Decided::Approved { .. } => Approval::Denied { reason: None },
                Decided::Rejected { reason } => Approval::Denied {
                    reason: Some(reason).filter(|reason| !reason.trim().is_empty()),
                },
            })
        }
        .boxed()
    }

    fn confirm<'a>(
        &'a self,
        asked: &'a Confirm,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, PromptFailure>> {
        async move {
            let answer = self.answered(question::confirm(asked), cancel).await?;
            Ok(answer == question::YES)
        }
        .boxed()
    }

    fn select<'a>(
        &'a self,
        asked: &'a Select,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<usize>, PromptFailure>> {
        async move {
            let choices = question::choices(&asked.options)?;
            let form = question::select(asked, choices.clone());
            let answer = self.answered(form, cancel).await?;
            match choices.iter().position(|choice| *choice == answer) {
                Some(index) => Ok(Some(index)),
                None => Err(PromptFailure::Failed(
                    "the answer is none of the options".to_owned(),
                )),
            }
        }
        .boxed()
    }

    fn input<'a>(
        &'a self,
        asked: &'a Input,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<String>, PromptFailure>> {
        async move {
            let answer = self.answered(question::input(asked), cancel).await?;
            let answer = fuse_terminal::strip_lines(&answer);
            if answer.trim().is_empty() {
                return Ok(asked.default.as_deref().and_then(question::shown));
            }
            Ok(Some(answer))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> FuseConfig {
        FuseConfig {
            url: "http://127.0.0.1:8080".to_owned(),
            token: Token::new("fuse_sk_s3cret"),
            environment: "agent".to_owned(),
            timeout: Some(Duration::from_secs(60)),
            actor: None,
        }
    }

    #[test]
    fn an_environment_is_named_by_its_id_or_its_task() {
        for name in ["agent", "fuse-agent"] {
            let prompter = FusePrompter::new(FuseConfig {
                environment: name.to_owned(),
                ..config()
            });
            assert_eq!(prompter.unwrap().environment.as_str(), "fuse-agent");
        }
        for name in ["", "a b", "../x", "A"] {
            let error = FusePrompter::new(FuseConfig {
                environment: name.to_owned(),
                ..config()
            });
            assert_eq!(
                error.unwrap_err(),
                FuseConfigError::Environment(name.to_owned())
            );
        }
    }

    #[test]
    fn a_timeout_outside_of_what_fuse_admits_is_refused() {
        for (seconds, fine) in [(9, false), (10, true), (86_400, true), (86_401, false)] {
            let timeout = Some(Duration::from_secs(seconds));
            let made = FusePrompter::new(FuseConfig {
                timeout,
                ..config()
            });
            assert_eq!(made.is_ok(), fine, "{seconds}");
        }
        let half = Some(Duration::from_millis(10_500));
        let made = FusePrompter::new(FuseConfig {
            timeout: half,
            ..config()
        });
        assert!(made.is_err());
    }

    #[test]
    fn the_token_shows_neither_in_debug_output_nor_in_errors() {
        assert!(!format!("{:?}", config()).contains("s3cret"));
        let prompter = FusePrompter::new(config()).unwrap();
        assert!(!format!("{prompter:?}").contains("s3cret"));
        let error = FusePrompter::new(FuseConfig {
            token: Token::new("s3\ncret"),
            ..config()
        });
        assert!(!error.unwrap_err().to_string().contains("s3"));
    }
}
