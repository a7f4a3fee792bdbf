//! Environments made of Linux namespaces. What each limit rests on is told in `docs/backends.md`.

mod bind;
mod cgroup;
mod config;
mod confine;
mod end;
mod etc;
mod launch;
mod layout;
mod remount;
mod root;
mod stage;
mod step;
mod sys;

pub(crate) use stage::maybe_run as maybe_run_stage;

use crate::{
    client::{self, Client},
    disk,
    error::{BackendError, CallError},
    guest::{Backend, BoxFuture, Guest},
    id::EnvId,
    spec::{EnvSpec, Ids, Network},
};
use cgroup::Groups;
use config::{Rlimits, StageConfig};
use fuse_guest_api::{Boot, Identity, RefusalCode, Startup, message::Reply};
use layout::{DataDir, Meta, Process};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The sandbox backend: each environment is a set of namespaces with `fused` as its first process.
///
/// It works as root, where each environment's ids are a range of their own, and as an ordinary user, where they are
/// that user's. Where the machine lacks a facility, [`Backend::create`] names it and refuses.
#[derive(Debug, Clone)]
pub struct Sandbox {
    data: DataDir,
}

impl Sandbox {
    /// Keeps environments under `<data>/environments` and looks for images under `<data>/images`.
    ///
    /// # Errors
    /// [`BackendError::Io`] when the directory cannot be made.
    pub fn new(data: impl Into<PathBuf>) -> Result<Self, BackendError> {
        let data = DataDir::open(data.into())?;
        let swept = data.clone();
        std::thread::spawn(move || swept.sweep());
        Ok(Self { data })
    }

    async fn make(&self, spec: EnvSpec) -> Result<Arc<dyn Guest>, BackendError> {
        check(&spec)?;
        let (this, plan) = (self.clone(), spec.clone());
        let client = blocking(move || this.launch(&plan)).await?;
        match set_up(&client, &spec).await {
            Ok(()) => Ok(Arc::new(client)),
            Err(error) => {
                let this = self.clone();
                if let Err(left) = blocking(move || this.remove(&spec.id)).await {
                    tracing::warn!(error = %left, "an environment that failed could not be removed");
                }
                Err(error)
            }
        }
    }

    /// Everything up to a guest that listens. Cleans up after itself.
    fn launch(&self, spec: &EnvSpec) -> Result<Client, BackendError> {
        let image = self.data.image(&spec.image)?;
        let directory = self.data.claim(&spec.id)?;
        let result = self.start(spec, image, &directory);
        if result.is_err()
            && let Err(left) = self.remove(&spec.id)
        {
            tracing::warn!(error = %left, "an environment that failed could not be removed");
        }
        result
    }

    fn start(
        &self,
        spec: &EnvSpec,
        image: Option<PathBuf>,
        directory: &Path,
    ) -> Result<Client, BackendError> {
        let random = || layout::random_text().map_err(BackendError::io("reading random bytes"));
        let save = |meta: &Meta| {
            meta.save(directory)
                .map_err(BackendError::io("writing meta.json"))
        };
        let identity = Identity {
            env_id: spec.id.to_string(),
            token: random()?,
        };
        // Other data directories on this machine may know the same id.
        let name = format!(
            "fuse-{}-{}",
            spec.id,
            random()?.get(..8).unwrap_or_default()
        );
        let own_ids = matches!(spec.ids, Ids::Own);
        let layers = layout::layers(image.is_some());
        let disk = disk::choose(&self.data.templates(), layers.clone(), own_ids);
        disk.create(directory, spec.limits.storage_gb)
            .map_err(BackendError::io("making the environment's disk"))?;
        let groups = Groups::create(&name, &spec.limits);
        let mut meta = Meta {
            identity: identity.clone(),
            groups: groups.directories.clone(),
            process: None,
        };
        if let Err(error) = save(&meta) {
            let _ = cgroup::remove(&groups.directories);
            return Err(error);
        }
        launch::launch(&StageConfig {
            directory: directory.to_owned(),
            image,
            disk_image: disk.is_image(),
            layers: layers.into_iter().map(str::to_owned).collect(),
            host_network: matches!(spec.network, Network::Host),
            hostname: spec.id.to_string(),
            own_ids,
            binds: bind::plan(&spec.binds, &self.data.environments())?,
            identity: identity.clone(),
            cgroups: groups.procs(),
            rlimits: Rlimits::new(&spec.limits, groups.memory, groups.pids),
        })?;
        let pid =
            end::listener(directory).map_err(BackendError::io("asking for the guest's process"))?;
        let pid = pid.ok_or_else(|| BackendError::Dead {
            id: spec.id.clone(),
            detail: "the guest ended right after its start".to_owned(),
        })?;
        meta.process =
            Some(Process::of(pid).map_err(BackendError::io("asking for the guest's process"))?);
        save(&meta)?;
        Ok(Client::new(spec.id.clone(), directory.to_owned(), identity))
    }

    async fn find(&self, id: &EnvId) -> Result<Arc<dyn Guest>, BackendError> {
        let directory = self.data.environment(id);
        let dead = |detail: String| BackendError::Dead {
            id: id.clone(),
            detail,
        };
        // Only what is known to be gone counts as gone. A machine that is short of descriptors or time says nothing of the guest.
        match std::fs::metadata(&directory) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(BackendError::NotFound(id.clone()));
            }
            Err(e) => return Err(BackendError::io(format!("looking for `{id}`"))(e)),
        }
        let meta = match Meta::load(&directory) {
            Ok(meta) => meta.ok_or_else(|| dead("it was never finished".to_owned()))?,
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                return Err(dead(format!("meta.json: {e}")));
            }
            Err(e) => return Err(BackendError::io(format!("reading meta.json of `{id}`"))(e)),
        };
        let client = Client::new(id.clone(), directory.clone(), meta.identity);
        match client.status().await {
            Ok(_) => Ok(Arc::new(client)),
            Err(CallError::Refused(refusal)) => Err(dead(refusal.message)),
            Err(error @ (CallError::NotSent(_) | CallError::Lost(_))) => {
                let lives = end::lives(&directory)
                    .map_err(BackendError::io(format!("asking whether `{id}` lives")))?;
                Err(if lives {
                    error.into()
                } else {
                    dead(error.to_string())
                })
            }
        }
    }

    fn remove(&self, id: &EnvId) -> Result<(), BackendError> {
        let directory = self.data.environment(id);
        if !directory.exists() {
            return Ok(());
        }
        // A file that cannot be read holds back nothing: the socket still names the process.
        let meta = Meta::load(&directory).unwrap_or_default();
        if let Some(meta) = &meta {
            // Dying takes processor time too, which a spent quota would withhold.
            cgroup::unthrottle(&meta.groups);
        }
        end::kill(&directory, meta.as_ref())
            .map_err(BackendError::io(format!("ending environment `{id}`")))?;
        if let Some(meta) = &meta {
            cgroup::remove(&meta.groups).map_err(BackendError::io("removing a control group"))?;
        }
        // Gone from the list at once; what remains of a removal that is cut off bears no id.
        let trash = layout::random_text().map_err(BackendError::io("reading random bytes"))?;
        let trash = self
            .data
            .environments()
            .join(format!("{}{trash}", layout::REMOVED));
        match std::fs::rename(&directory, &trash) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(BackendError::io(format!("removing environment `{id}`"))(e)),
        }
        layout::remove_tree(&trash).map_err(BackendError::io(format!(
            "removing the files of environment `{id}`"
        )))
    }
}

impl Backend for Sandbox {
    fn create(&self, spec: EnvSpec) -> BoxFuture<'_, Result<Arc<dyn Guest>, BackendError>> {
        Box::pin(self.make(spec))
    }

    fn adopt<'a>(&'a self, id: &'a EnvId) -> BoxFuture<'a, Result<Arc<dyn Guest>, BackendError>> {
        Box::pin(self.find(id))
    }

    fn destroy<'a>(&'a self, id: &'a EnvId) -> BoxFuture<'a, Result<(), BackendError>> {
        let (this, id) = (self.clone(), id.clone());
        Box::pin(blocking(move || this.remove(&id)))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<EnvId>, BackendError>> {
        let data = self.data.clone();
        Box::pin(blocking(move || data.list()))
    }
}

/// Runs what blocks away from the runtime's own threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackendError> + Send + 'static,
) -> Result<T, BackendError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(e) => Err(BackendError::io("a background task")(io::Error::other(e))),
    }
}

/// Refuses what no guest could be made of, before anything is touched.
fn check(spec: &EnvSpec) -> Result<(), BackendError> {
    if !(spec.limits.cpus.is_finite() && spec.limits.cpus > 0.0) {
        return Err(BackendError::invalid("limits.cpus", "must be more than 0"));
    }
    if spec.limits.ram_mb < 32 {
        return Err(BackendError::invalid(
            "limits.ram_mb",
            "must be at least 32",
        ));
    }
    if spec.limits.storage_gb == 0 {
        return Err(BackendError::invalid(
            "limits.storage_gb",
            "must be at least 1",
        ));
    }
    if spec.limits.pids < 32 {
        return Err(BackendError::invalid("limits.pids", "must be at least 32"));
    }
    if let Some((name, problem)) = spec.env.problem() {
        return Err(BackendError::invalid(format!("env.{name}"), problem));
    }
    Ok(())
}

/// Whose fault it is that a file was not written: the request's, where nothing can ever lie at such a path.
fn cannot_write(path: &str, error: CallError) -> BackendError {
    match error {
        CallError::Refused(refusal) => match refusal.code {
            RefusalCode::BadPath
            | RefusalCode::NotRegular
            | RefusalCode::Forbidden
            | RefusalCode::TooManyLinks
            | RefusalCode::LinkInPath
            | RefusalCode::NotDirectory => {
                BackendError::invalid(format!("files[{path:?}]"), refusal.message)
            }
            RefusalCode::BadRequest
            | RefusalCode::Unsupported
            | RefusalCode::Version
            | RefusalCode::WrongGuest
            | RefusalCode::NotReady
            | RefusalCode::Busy
            | RefusalCode::NotFound
            | RefusalCode::Permission
            | RefusalCode::NoSpace
            | RefusalCode::Io
            | RefusalCode::Other => CallError::Refused(refusal).into(),
        },
        CallError::NotSent(_) | CallError::Lost(_) => error.into(),
    }
}

/// Files, then the boot.
async fn set_up(client: &Client, spec: &EnvSpec) -> Result<(), BackendError> {
    for file in &spec.files {
        client
            .write_file(&file.path, file.mode, &file.content)
            .await
            .map_err(|error| cannot_write(&file.path, error))?;
    }
    let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    let boot = Boot {
        env: spec.env.clone(),
        workspace: spec.workspace.clone(),
        build: spec.build.clone(),
        build_timeout_ms: millis(spec.build_timeout),
        startup: spec.startup.as_ref().map(|s| Startup {
            script: s.script.clone(),
            timeout_ms: millis(s.timeout),
        }),
        run: spec.run.clone(),
    };
    let longest = spec.build_timeout + spec.startup.as_ref().map_or(Duration::ZERO, |s| s.timeout);
    match client.boot(boot, longest).await? {
        Reply::Booted => Ok(()),
        Reply::BootFailed(failure) => Err(BackendError::Boot(failure)),
        _ => Err(client::unexpected().into()),
    }
}
