//! Calls about interventions.

use fuse_api::exec::ExecResult;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{
    ApproveRequest, Intervention, InterventionList, Kind, RejectRequest, State,
};
use serde::Serialize;

use crate::builder::Client;
use crate::error::Error;
use crate::exec::result;
use crate::transport::Call;
use crate::wait::is_settled;

/// Calls about interventions. An `id` is an intervention's id, such as `int_0187…`.
#[derive(Debug, Clone, Copy)]
pub struct Interventions<'a> {
    pub(crate) client: &'a Client,
}

/// Which states to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateFilter {
    /// One state.
    Only(State),
    /// Whatever the state.
    All,
}

impl Default for StateFilter {
    fn default() -> Self {
        Self::Only(State::Pending)
    }
}

/// Which interventions to list.
#[derive(Debug, Clone, Default)]
pub struct InterventionFilter {
    /// Those of this environment.
    pub env: Option<String>,
    /// Those in this state; pending ones by default.
    pub state: StateFilter,
    /// Those of this kind.
    pub kind: Option<Kind>,
    /// Those that this actor raised or decided.
    pub actor: Option<String>,
    /// At most so many, 1 to 200; 50 by default.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl Client {
    /// Calls about interventions.
    pub fn interventions(&self) -> Interventions<'_> {
        Interventions { client: self }
    }
}

impl Interventions<'_> {
    /// Reads an intervention as it stands.
    ///
    /// # Errors
    /// [`Error::Api`] with 404 where there is none within reach.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/decide.rs")]
    /// ```
    pub async fn get(&self, id: impl AsRef<str>) -> Result<Intervention, Error> {
        let call = Call::get(path(&parse(id)?));
        self.client.send(&call).await?.json()
    }

    /// Lists interventions, newest first, one page; pending ones unless the filter says otherwise.
    ///
    /// # Errors
    /// [`Error::Api`] where the filter is wrong or the credential may not read.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/decide.rs")]
    /// ```
    pub async fn list(&self, filter: &InterventionFilter) -> Result<InterventionList, Error> {
        let state = match filter.state {
            StateFilter::Only(state) => state.as_str(),
            StateFilter::All => "all",
        };
        let call = Call::get("/v1/interventions")
            .maybe("env", filter.env.as_deref())
            .query("state", state)
            .maybe("kind", filter.kind)
            .maybe("actor", filter.actor.as_deref())
            .maybe("limit", filter.limit)
            .maybe("cursor", filter.cursor.as_deref());
        self.client.send(&call).await?.json()
    }

    /// Waits until there is nothing more to come: decided and, where that approves a held action, carried out.
    ///
    /// Lost connections and restarts of the server are waited out, up to the intervention's deadline and a quarter of an hour.
    ///
    /// # Errors
    /// [`Error::Api`] with 404 where there is none within reach, [`Error::Transport`] where the server stays away.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/held_no_wait.rs")]
    /// ```
    pub async fn wait(&self, id: impl AsRef<str>) -> Result<Intervention, Error> {
        self.client.poll(&parse(id)?, None, is_settled).await
    }

    /// [`wait`](Self::wait)s for a held command and returns what it came to, as the exec that was held would have.
    ///
    /// # Errors
    /// As [`exec`](crate::Environments::exec).
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/held_no_wait.rs")]
    /// ```
    pub async fn wait_exec(&self, id: impl AsRef<str>) -> Result<ExecResult, Error> {
        result(self.wait(id).await?)
    }

    /// Approves, with an answer to an ask and a comment; leave empty what there is not.
    ///
    /// # Errors
    /// [`Error::Api`] with 409 where it is resolved already or past its deadline, 403 where the credential may not decide it.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/decide.rs")]
    /// ```
    pub async fn approve(
        &self,
        id: impl AsRef<str>,
        answer: &str,
        comment: &str,
    ) -> Result<Intervention, Error> {
        let unless_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let request = ApproveRequest {
            answer: unless_empty(answer),
            reason: unless_empty(comment),
            ..ApproveRequest::default()
        };
        self.approve_with(id, &request).await
    }

    /// Approves with everything that an approval can hold: an edited argv, a grant, the hash of what the person saw.
    ///
    /// # Errors
    /// As [`approve`](Self::approve).
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/held.rs")]
    /// ```
    pub async fn approve_with(
        &self,
        id: impl AsRef<str>,
        request: &ApproveRequest,
    ) -> Result<Intervention, Error> {
        self.decide(id, "approve", request).await
    }

    /// Rejects, with a reason that the agent reads.
    ///
    /// # Errors
    /// [`Error::Api`] with 400 where the reason is blank, and as [`approve`](Self::approve).
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/held.rs")]
    /// ```
    pub async fn reject(&self, id: impl AsRef<str>, reason: &str) -> Result<Intervention, Error> {
        let request = RejectRequest {
            reason: Some(reason.to_owned()),
            ..RejectRequest::default()
        };
        self.reject_with(id, &request).await
    }

    /// Rejects with everything that a rejection can hold: the reason and the hash of what the person saw.
    ///
    /// # Errors
    /// As [`reject`](Self::reject).
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/review.rs")]
    /// ```
    pub async fn reject_with(
        &self,
        id: impl AsRef<str>,
        request: &RejectRequest,
    ) -> Result<Intervention, Error> {
        self.decide(id, "reject", request).await
    }

    async fn decide(
        &self,
        id: impl AsRef<str>,
        action: &str,
        request: &impl Serialize,
    ) -> Result<Intervention, Error> {
        let call = Call::post(path(&parse(id)?), request)?.query("action", action);
        self.client.send(&call).await?.json()
    }
}

fn parse(id: impl AsRef<str>) -> Result<InterventionId, Error> {
    let text = id.as_ref();
    InterventionId::parse(text).map_err(|source| Error::Id {
        text: text.to_owned(),
        source,
    })
}

fn path(id: &InterventionId) -> String {
    format!("/v1/interventions/{id}")
}
