//! Destroying an environment, which a gate may hold.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use fuse_api::ids::EnvId;
use fuse_api::intervention::{Held, Intervention};
use reqwest::StatusCode;

use crate::builder::Client;
use crate::error::Error;
use crate::exec::{OnWait, Waiting};
use crate::transport::Call;
use crate::wait::is_settled;

/// Stopping a guest and removing its files.
const DESTROY: Duration = Duration::from_secs(5 * 60);

/// An environment about to be destroyed; await it. Made by [`destroy`](crate::Environments::destroy).
#[must_use = "nothing is destroyed until it is awaited"]
pub struct Destroy<'a> {
    pub(crate) client: &'a Client,
    pub(crate) id: Result<EnvId, Error>,
    pub(crate) no_wait: bool,
    pub(crate) on_wait: Option<OnWait<'a>>,
}

impl<'a> Destroy<'a> {
    /// Does not wait for a person: a held destroy is [`Error::PendingIntervention`], and still happens when it is approved.
    pub fn no_wait(mut self) -> Self {
        self.no_wait = true;
        self
    }

    /// Calls `tell` when a wait begins, to tell a person what is waited on.
    pub fn on_wait(mut self, tell: impl FnMut(Waiting<'_>) + Send + 'a) -> Self {
        self.on_wait = Some(Box::new(tell));
        self
    }

    async fn run(self) -> Result<(), Error> {
        let call = Call::delete(format!("/v1/environments/{}", self.id?)).timeout(DESTROY);
        let answer = self.client.send(&call).await?;
        if answer.status != StatusCode::ACCEPTED {
            return answer.nothing();
        }
        let Held { intervention, .. } = answer.json()?;
        if self.no_wait || self.client.inner.no_wait {
            return Err(Error::PendingIntervention {
                intervention: Box::new(intervention),
            });
        }
        if let Some(mut tell) = self.on_wait {
            tell(Waiting::Held(&intervention));
        }
        let deadline = Some(intervention.deadline);
        carried_out(
            self.client
                .poll(&intervention.id, deadline, is_settled)
                .await?,
        )
    }
}

impl<'a> IntoFuture for Destroy<'a> {
    type Output = Result<(), Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// What a settled lifecycle action came to.
fn carried_out(intervention: Intervention) -> Result<(), Error> {
    if !intervention.approved() {
        return Err(Error::rejected(intervention));
    }
    match intervention.result.as_ref().and_then(|r| r.error.clone()) {
        Some(message) => Err(Error::ActionFailed {
            message,
            intervention: Box::new(intervention),
        }),
        None => Ok(()),
    }
}
