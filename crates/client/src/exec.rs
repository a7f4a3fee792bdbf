//! Running a command.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use fuse_api::exec::{ExecRequest, ExecResult};
use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::{Held, Intervention};
use reqwest::StatusCode;

use crate::backoff::Backoff;
use crate::builder::Client;
use crate::error::Error;
use crate::transport::Call;
use crate::wait::{is_decided, is_settled, latest_deadline};

/// How long the server may take beyond the command's own time: gates and their deciders come first.
const OVERHEAD: Duration = Duration::from_secs(60);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// What a call waits on.
#[derive(Debug, Clone, Copy)]
pub enum Waiting<'a> {
    /// A gate holds the action until a person decides.
    Held(&'a Intervention),
    /// A person holds the environment.
    Locked {
        /// What holds it.
        intervention_id: &'a InterventionId,
        /// `takeover` or `stall`.
        kind: &'a str,
    },
}

pub(crate) type OnWait<'a> = Box<dyn FnMut(Waiting<'_>) + Send + 'a>;

/// A command about to run; await it. Made by [`exec`](crate::Environments::exec) and [`exec_shell`](crate::Environments::exec_shell).
#[must_use = "nothing runs until it is awaited"]
pub struct Exec<'a> {
    pub(crate) client: &'a Client,
    pub(crate) id: Result<EnvId, Error>,
    pub(crate) request: ExecRequest,
    pub(crate) no_wait: bool,
    pub(crate) on_wait: Option<OnWait<'a>>,
}

impl<'a> Exec<'a> {
    /// How long the command may run: 60 s by default, 600 s at most.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.timeout_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Does not wait for a person: a held command is [`Error::PendingIntervention`], a locked environment [`Error::Locked`]. A held
    /// command still runs when it is approved.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/held_no_wait.rs")]
    /// ```
    pub fn no_wait(mut self) -> Self {
        self.no_wait = true;
        self
    }

    /// Calls `tell` each time a wait begins, to tell a person what is waited on.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/held.rs")]
    /// ```
    pub fn on_wait(mut self, tell: impl FnMut(Waiting<'_>) + Send + 'a) -> Self {
        self.on_wait = Some(Box::new(tell));
        self
    }

    async fn run(mut self) -> Result<ExecResult, Error> {
        let id = self.id?;
        let own = self
            .request
            .timeout_ms
            .map_or(DEFAULT_TIMEOUT, Duration::from_millis);
        let call = Call::post(format!("/v1/environments/{id}"), &self.request)?
            .query("action", "exec")
            .timeout(own.saturating_add(OVERHEAD));
        let no_wait = self.no_wait || self.client.inner.no_wait;
        let mut tell = |waiting: Waiting<'_>| {
            if let Some(tell) = &mut self.on_wait {
                tell(waiting);
            }
        };
        let mut backoff = Backoff::new();
        loop {
            let answer = self.client.send(&call).await?;
            if answer.status == StatusCode::ACCEPTED {
                let Held { intervention, .. } = answer.json()?;
                if no_wait {
                    return Err(Error::PendingIntervention {
                        intervention: Box::new(intervention),
                    });
                }
                tell(Waiting::Held(&intervention));
                let settled = self
                    .client
                    .poll(&intervention.id, Some(intervention.deadline), is_settled)
                    .await?;
                return result(settled);
            }
            match answer.json() {
                Err(Error::Locked {
                    intervention_id,
                    kind,
                    ..
                }) if !no_wait => {
                    tell(Waiting::Locked {
                        intervention_id: &intervention_id,
                        kind: &kind,
                    });
                    let by = latest_deadline();
                    self.client
                        .poll(&intervention_id, Some(by), is_decided)
                        .await?;
                    // The next lock may be there already; without a pause two quick ones would make this loop spin.
                    backoff.pause().await;
                }
                outcome => return outcome,
            }
        }
    }
}

impl<'a> IntoFuture for Exec<'a> {
    type Output = Result<ExecResult, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// What a settled exec came to.
pub(crate) fn result(intervention: Intervention) -> Result<ExecResult, Error> {
    if !intervention.approved() {
        return Err(Error::rejected(intervention));
    }
    match intervention.result.clone() {
        Some(result) => match (result.exec, result.error) {
            (Some(exec), _) => Ok(exec),
            (None, Some(message)) => Err(Error::ActionFailed {
                message,
                intervention: Box::new(intervention),
            }),
            (None, None) => Err(Error::Protocol(format!(
                "{} was approved and its result tells nothing of a command",
                intervention.id
            ))),
        },
        None => Err(Error::Protocol(format!(
            "{} holds no command that was carried out",
            intervention.id
        ))),
    }
}
