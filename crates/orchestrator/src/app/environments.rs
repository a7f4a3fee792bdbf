//! Environments: create, read, destroy.

use super::homes::{backend_id, fresh_uid};
use super::lifecycle::ALIVE;
use super::{App, AppError, AppResult};
use fuse_api::environment::{CreateEnvironment, EnvState, Environment, EnvironmentList};
use fuse_api::ids::{EnvId, TaskId};
use fuse_api::routes::Access;
use fuse_backend::{
    BackendError, BuildStep, Command, EnvSpec, EnvVars, InitialFile, Limits, Network, StartupScript,
};
use fuse_domain::access::Presented;
use fuse_domain::environment::{self, ServerFacts, Task, ValidEnvironment};
use fuse_domain::refusal::{Refusal, What};
use fuse_store::{EnvironmentChange, EnvironmentFilter, EnvironmentRow, Inserted};
use std::collections::BTreeMap;
use std::time::Duration;

/// Which environments a list shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvFilter {
    /// Of this task only.
    pub task_id: Option<String>,
    /// In this state only.
    pub state: Option<EnvState>,
    /// On this host only.
    pub host_id: Option<String>,
    /// How many at most.
    pub limit: u32,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl App {
    /// Creates an environment and answers once it runs. Should this be dropped halfway, the driver removes what is there.
    ///
    /// # Errors
    /// See [`super::AppError`]; nothing of the environment is left behind then.
    pub async fn create_environment(
        &self,
        who: &Presented,
        body: CreateEnvironment,
    ) -> AppResult<Environment> {
        who.admit(Access::Full)?;
        if let Some(member) = environment::unserved_member(&body) {
            return Err(
                Refusal::Unserved(format!("{member}: this release does not serve it")).into(),
            );
        }
        let facts = ServerFacts {
            sealed: self.sealing,
            host_id: Some(self.host_id.clone()),
        };
        let valid = environment::validate(&body, &facts).map_err(Refusal::Invalid)?;
        let id = valid.task_id.env_id();
        let uid = fresh_uid(&id, self.instance.id());
        let now = self.now();
        let row = EnvironmentRow {
            uid,
            task_id: valid.task_id.clone(),
            id,
            host_id: self.host_id.clone(),
            state: EnvState::Provisioning,
            url: String::new(),
            spec: valid.spec.clone(),
            hitl: valid.hitl.clone(),
            has_task: valid.run.is_some(),
            error: None,
            created_at: now,
            updated_at: now,
            started_at: None,
            last_activity: now,
        };
        let spec = backend_spec(&row, valid)?;
        // Noted before it is on record: the driver removes what is being made on record and by nobody.
        let _making = self.homes.making(&row.uid);
        match self.store.insert_environment(&row).await? {
            Inserted::Done => self.provision(row, spec).await,
            Inserted::Taken => Err(Refusal::Conflict {
                message: format!("an environment for task {} exists already", row.task_id),
                details: BTreeMap::from([("env_id".to_owned(), row.id.to_string())]),
            }
            .into()),
        }
    }

    async fn provision(&self, row: EnvironmentRow, spec: EnvSpec) -> AppResult<Environment> {
        let begun = std::time::Instant::now();
        match self.backend.create(spec).await {
            Ok(guest) => {
                self.homes.keep_guest(&row.uid, guest);
                let now = self.now();
                let change = EnvironmentChange {
                    state: Some(EnvState::Running),
                    started_at: Some(now),
                    ..EnvironmentChange::default()
                };
                let running = self
                    .store
                    .update_environment(&row.uid, &[EnvState::Provisioning], change, now)
                    .await;
                match running {
                    Ok(Some(row)) => {
                        self.metrics.created(begun.elapsed());
                        Ok(view(row))
                    }
                    Ok(None) => {
                        // It was destroyed meanwhile.
                        self.remove(&row).await?;
                        Err(destroyed_meanwhile())
                    }
                    Err(e) => {
                        self.discard(&row).await;
                        Err(e.into())
                    }
                }
            }
            Err(error) => {
                // A destroy takes the guest away under the create, whose own error would then say to try again.
                let wanted = self.is_wanted(&row).await;
                self.discard(&row).await;
                Err(if wanted {
                    create_failed(&error)
                } else {
                    destroyed_meanwhile()
                })
            }
        }
    }

    /// Whether nobody destroyed what is being made. On doubt nobody did.
    async fn is_wanted(&self, row: &EnvironmentRow) -> bool {
        match self.store.get_environment_by_uid(&row.uid).await {
            Ok(Some(now)) => ALIVE.contains(&now.state),
            Ok(None) | Err(_) => true,
        }
    }

    /// Removes what a failed create left, as far as the database and the machine allow right now; the driver does the rest.
    async fn discard(&self, row: &EnvironmentRow) {
        if let Err(error) = self
            .close_and_remove(row, &ALIVE, "the environment could not be made")
            .await
        {
            tracing::warn!(env = %row.id, ?error, "removing a failed environment is left to the driver");
        }
    }

    /// A page of environments, newest first.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn list_environments(
        &self,
        who: &Presented,
        filter: EnvFilter,
    ) -> AppResult<EnvironmentList> {
        who.admit(Access::Full)?;
        let task_id = match filter.task_id.as_deref().map(TaskId::parse) {
            None => None,
            Some(Ok(task_id)) => Some(task_id),
            Some(Err(e)) => return Err(Refusal::invalid("task_id", format!("is {e}")).into()),
        };
        let page = self
            .store
            .list_environments(
                &EnvironmentFilter {
                    task_id,
                    state: filter.state,
                    host_id: filter.host_id,
                },
                filter.limit,
                filter.cursor.as_deref(),
            )
            .await?;
        Ok(EnvironmentList {
            environments: page.items.into_iter().map(view).collect(),
            next_cursor: page.next,
        })
    }

    /// One environment.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn get_environment(&self, who: &Presented, id: &EnvId) -> AppResult<Environment> {
        let row = self.environment(id).await?;
        who.admit(Access::Full)?;
        Ok(view(row))
    }

    /// The events of one environment.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn events(
        &self,
        who: &Presented,
        id: &EnvId,
    ) -> AppResult<crate::events::EventStream> {
        let uid = self.environment(id).await?.uid;
        who.admit(Access::Full)?;
        // Listening comes before reading, so that no change falls between the two.
        let listening = self.events.listen(&uid);
        let row = self
            .store
            .get_environment_by_uid(&uid)
            .await?
            .ok_or(Refusal::NotFound(What::Environment))?;
        Ok(crate::events::EventStream::new(
            row.id,
            row.state,
            row.error,
            listening,
            self.stopping(),
        ))
    }
}

/// What the wire shows of an environment.
pub(crate) fn view(row: EnvironmentRow) -> Environment {
    Environment {
        id: row.id,
        task_id: row.task_id,
        state: row.state,
        host_id: row.host_id,
        url: row.url,
        spec: row.spec,
        created_at: row.created_at,
        updated_at: row.updated_at,
        error: row.error,
    }
}

fn backend_spec(row: &EnvironmentRow, valid: ValidEnvironment) -> AppResult<EnvSpec> {
    let mut spec = EnvSpec::new(backend_id(&row.uid)?);
    spec.image = valid.image;
    spec.limits = Limits {
        cpus: valid.limits.cpus,
        ram_mb: valid.limits.ram_mb,
        storage_gb: valid.limits.storage_gb,
        pids: valid.limits.max_processes,
    };
    spec.network = match valid.network {
        environment::Network::None => Network::None,
        environment::Network::Host => Network::Host,
    };
    spec.env = EnvVars(valid.env.into_iter().map(|v| (v.name, v.value.0)).collect());
    spec.files = valid
        .files
        .into_iter()
        .map(|f| InitialFile {
            path: f.path,
            content: f.content,
            mode: 0o644,
        })
        .collect();
    spec.build = valid
        .build
        .into_iter()
        .map(|step| BuildStep {
            run: step.run,
            workdir: Some(step.workdir),
        })
        .collect();
    spec.build_timeout = Duration::from_secs(valid.build_timeout_seconds);
    spec.startup = valid.startup.map(|s| StartupScript {
        script: s.script,
        timeout: Duration::from_secs(s.timeout_seconds),
    });
    spec.run = valid.run.map(|task| match task {
        Task::Shell(line) => Command::LoginShell(line),
        Task::Argv(argv) => Command::Argv(argv),
    });
    spec.workspace = valid.workspace;
    Ok(spec)
}

fn destroyed_meanwhile() -> AppError {
    Refusal::environment_state(
        EnvState::Destroyed,
        "the environment was destroyed while it was being made",
    )
    .into()
}

fn create_failed(error: &BackendError) -> AppError {
    match error {
        BackendError::Invalid { field, problem } => {
            // Limits and the image are members of `spec`; files and variables stand beside it.
            let field = match field.strip_prefix("limits.") {
                Some("pids") => "spec.max_processes".to_owned(),
                Some(limit) => format!("spec.{limit}"),
                None if field == "image" => "spec.image".to_owned(),
                None => field.clone(),
            };
            Refusal::invalid(field, problem.clone()).into()
        }
        BackendError::NoSuchImage(name) => Refusal::invalid(
            "spec.image",
            format!("there is no image {name:?} on this host"),
        )
        .into(),
        BackendError::Boot(failure) => {
            let mut details = BTreeMap::from([("output".to_owned(), failure.output_tail.clone())]);
            if let Some(code) = failure.exit_code {
                details.insert("exit_code".to_owned(), code.to_string());
            }
            AppError::Refused(Refusal::Conflict {
                message: error.to_string(),
                details,
            })
        }
        BackendError::Unsupported { .. } => AppError::Unavailable(error.to_string()),
        // The machine's own words name places on it, which are for its operator.
        BackendError::Io { .. } => {
            tracing::error!(%error, "an environment could not be made");
            AppError::Unavailable(
                "the environment could not be made: the host failed; its log says how".into(),
            )
        }
        BackendError::Exists(_)
        | BackendError::NotFound(_)
        | BackendError::Dead { .. }
        | BackendError::Call(_) => {
            AppError::Unavailable(format!("the environment could not be made: {error}"))
        }
        other => AppError::Internal(other.to_string()),
    }
}
