//! Calls about environments.

use std::time::Duration;

use fuse_api::environment::{CreateEnvironment, EnvState, Environment, EnvironmentList};
use fuse_api::exec::ExecRequest;
use fuse_api::ids::{EnvId, TaskId};
use fuse_api::intervention::{Intervention, RaiseRequest};

use crate::builder::Client;
use crate::destroy::Destroy;
use crate::error::Error;
use crate::events::EventStream;
use crate::exec::Exec;
use crate::request::{HumanRequest, ReviewRequest, ReviewVerdict};
use crate::transport::Call;
use crate::wait::is_decided;

/// Build steps and a startup script finish before a create answers.
const CREATE: Duration = Duration::from_secs(2 * 60 * 60);

/// Calls about environments. An `id` is an environment's id, such as `fuse-agent`.
#[derive(Debug, Clone, Copy)]
pub struct Environments<'a> {
    pub(crate) client: &'a Client,
}

/// Which environments to list.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentFilter {
    /// The one of this task.
    pub task_id: Option<TaskId>,
    /// Those in this state.
    pub state: Option<EnvState>,
    /// Those on this host.
    pub host_id: Option<String>,
    /// At most so many, 1 to 200; 50 by default.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl Client {
    /// Calls about environments.
    pub fn environments(&self) -> Environments<'_> {
        Environments { client: self }
    }
}

impl<'a> Environments<'a> {
    /// Creates an environment and waits until it runs, its build steps done.
    ///
    /// # Errors
    /// [`Error::Api`] where the request breaks a rule (400, naming the field) or the task has a live environment (409).
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/environment.rs")]
    /// ```
    pub async fn create(&self, request: &CreateEnvironment) -> Result<Environment, Error> {
        let call = Call::post("/v1/environments", request)?.timeout(CREATE);
        self.client.send(&call).await?.json()
    }

    /// Reads an environment.
    ///
    /// # Errors
    /// [`Error::Api`] with 404 where there is none.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/environment.rs")]
    /// ```
    pub async fn get(&self, id: impl AsRef<str>) -> Result<Environment, Error> {
        let call = Call::get(path(id)?);
        self.client.send(&call).await?.json()
    }

    /// Lists environments, newest first, one page.
    ///
    /// # Errors
    /// [`Error::Api`] where the filter is wrong.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/environment.rs")]
    /// ```
    pub async fn list(&self, filter: &EnvironmentFilter) -> Result<EnvironmentList, Error> {
        let call = Call::get("/v1/environments")
            .maybe("task_id", filter.task_id.as_ref())
            .maybe("state", filter.state.map(EnvState::as_str))
            .maybe("host_id", filter.host_id.as_deref())
            .maybe("limit", filter.limit)
            .maybe("cursor", filter.cursor.as_deref());
        self.client.send(&call).await?.json()
    }

    /// Destroys an environment; its pending interventions are cancelled. Await what it returns. Where a gate holds it, this waits.
    ///
    /// # Errors
    /// [`Error::Api`] with 404 where there is none (any more), or with the reason `hitl_denied` where a gate refuses it;
    /// [`Error::InterventionRejected`] where a held destroy is not approved.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/environment.rs")]
    /// ```
    pub fn destroy(&self, id: impl AsRef<str>) -> Destroy<'a> {
        Destroy {
            client: self.client,
            id: env_id(id),
            no_wait: false,
            on_wait: None,
        }
    }

    /// Runs a program with its arguments, without a shell; await what it returns.
    ///
    /// A command that fails is a result, not an error. Where a gate holds the command, or a person holds the environment, this waits.
    ///
    /// # Errors
    /// [`Error::InterventionRejected`] where a held command is not approved, [`Error::ActionFailed`] where an approved one failed
    /// or may or may not have run, [`Error::Api`] with the reason `hitl_denied` where a gate refuses it.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/exec.rs")]
    /// ```
    pub fn exec<I>(&self, id: impl AsRef<str>, argv: I) -> Exec<'a>
    where
        I: IntoIterator<Item: Into<String>>,
    {
        let cmd = argv.into_iter().map(Into::into).collect();
        self.start(
            id,
            ExecRequest {
                cmd: Some(cmd),
                ..ExecRequest::default()
            },
        )
    }

    /// Runs a command line with `sh -c`; otherwise as [`exec`](Self::exec).
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/exec.rs")]
    /// ```
    pub fn exec_shell(&self, id: impl AsRef<str>, line: impl Into<String>) -> Exec<'a> {
        self.start(
            id,
            ExecRequest {
                shell: Some(line.into()),
                ..ExecRequest::default()
            },
        )
    }

    fn start(&self, id: impl AsRef<str>, request: ExecRequest) -> Exec<'a> {
        Exec {
            client: self.client,
            id: env_id(id),
            request,
            no_wait: false,
            on_wait: None,
        }
    }

    /// Asks a person and waits for the outcome; read it with `approved()`, `answer()` and `reason()`.
    ///
    /// A rejection and an expired deadline are outcomes, no errors. With [`no_wait`](HumanRequest::no_wait) the
    /// pending intervention comes back at once.
    ///
    /// # Errors
    /// [`Error::Api`] where the environment's policy does not declare the kind or the request breaks a rule.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/ask.rs")]
    /// ```
    pub async fn request_human(
        &self,
        id: impl AsRef<str>,
        request: HumanRequest,
    ) -> Result<Intervention, Error> {
        let raised = self.raise(id, &request.body).await?;
        if request.no_wait || self.client.inner.no_wait {
            return Ok(raised);
        }
        self.client
            .poll(&raised.id, Some(raised.deadline), is_decided)
            .await
    }

    /// Asks a person for a verdict on a file or a text and waits for it.
    ///
    /// # Errors
    /// [`Error::Api`] where the policy does not declare reviews, the file cannot be read or the request breaks a rule;
    /// [`Error::PendingIntervention`] with [`no_wait`](ReviewRequest::no_wait), since a pending review is no verdict.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/review.rs")]
    /// ```
    pub async fn request_review(
        &self,
        id: impl AsRef<str>,
        request: ReviewRequest,
    ) -> Result<ReviewVerdict, Error> {
        let raised = self.raise(id, &request.body).await?;
        if request.no_wait || self.client.inner.no_wait {
            return Err(Error::PendingIntervention {
                intervention: Box::new(raised),
            });
        }
        let intervention = self
            .client
            .poll(&raised.id, Some(raised.deadline), is_decided)
            .await?;
        Ok(ReviewVerdict {
            approved: intervention.approved(),
            comments: intervention.reason().to_owned(),
            intervention,
        })
    }

    async fn raise(
        &self,
        id: impl AsRef<str>,
        request: &RaiseRequest,
    ) -> Result<Intervention, Error> {
        let call = Call::post(path(id)?, request)?.query("action", "request");
        self.client.send(&call).await?.json()
    }

    /// Opens the event stream of an environment: first its state, then each change, until it is gone.
    ///
    /// # Errors
    /// [`Error::Api`] with 404 where there is none.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/events.rs")]
    /// ```
    pub async fn events(&self, id: impl AsRef<str>) -> Result<EventStream, Error> {
        EventStream::open(self.client.clone(), format!("{}/events", path(id)?)).await
    }
}

fn env_id(id: impl AsRef<str>) -> Result<EnvId, Error> {
    let text = id.as_ref();
    EnvId::parse(text).map_err(|source| Error::Id {
        text: text.to_owned(),
        source,
    })
}

fn path(id: impl AsRef<str>) -> Result<String, Error> {
    env_id(id).map(|id| format!("/v1/environments/{id}"))
}
