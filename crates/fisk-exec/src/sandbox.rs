//! One sandboxed environment for all commands of a run (`harness.sandbox`).

use std::{
    ffi::OsString,
    fmt,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use fisk_domain::{MAX_OUTPUT, Outcome};
use fuse_backend::{
    Backend, BackendError, Bind, CallError, Command, EnvId, EnvSpec, EnvVars, ExecOutcome,
    ExecSpec, Guest, Ids, Limits, MergeOutput, Network, Sandbox,
};
use tokio::time::{sleep, timeout as within};
use tokio_util::sync::CancellationToken;

use crate::{error::ExecError, program::Program, supervise::GRACE, watch::Watch};

/// The longest that a guest lets a command run.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long a guest may take to say that it has killed a command, beyond [`GRACE`] for those whom it left behind.
const PATIENCE: Duration = Duration::from_secs(15);
/// Trees of the machine that every environment shows.
const SHOWN: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/// Variables that tell of folders and users that are not there inside, where they have values of their own.
const ELSEWHERE: [&str; 8] = [
    "HOME",
    "TMPDIR",
    "PWD",
    "OLDPWD",
    "USER",
    "LOGNAME",
    "SHELL",
    "XDG_RUNTIME_DIR",
];

/// The environment, with the working folder in it.
pub struct Cage {
    backend: Sandbox,
    guest: Arc<dyn Guest>,
    id: EnvId,
    next: AtomicU64,
    closed: AtomicBool,
    /// Held for as long as the environment is wanted; whoever finds it free removes the environment.
    lock: Lock,
    /// Removes it where this process is killed. Dropped after `Drop` has run, so that there is nothing left for it to do.
    _watch: Watch,
}

struct Lock {
    path: PathBuf,
    _file: File,
}

impl fmt::Debug for Cage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cage").field("id", &self.id).finish()
    }
}

fn unusable(what: impl fmt::Display) -> ExecError {
    ExecError::Unusable(format!("harness.sandbox: {what}"))
}

impl Cage {
    /// Makes it, and removes what runs that are dead left behind. Nothing runs without it where it cannot be had.
    pub async fn new(
        program: &Program,
        environment: &[(OsString, OsString)],
    ) -> Result<Self, ExecError> {
        let folder = std::env::current_dir()
            .and_then(fs::canonicalize)
            .map_err(|e| unusable(format_args!("the working folder: {e}")))?;
        let inside = folder
            .to_str()
            .ok_or_else(|| unusable("the path of the working folder is not valid UTF-8"))?;
        let state = state_folder().map_err(unusable)?;
        let backend = Sandbox::new(&state).map_err(unusable)?;
        let locks = state.join("locks");
        private(&locks).map_err(|e| unusable(format_args!("{}: {e}", locks.display())))?;
        sweep(&backend, &locks).await;
        let (id, lock) = claim(&locks).map_err(unusable)?;
        // Before there is something to watch over: this process may be killed at any moment.
        let watch = Watch::start(&state, &id, &lock.path)
            .map_err(|e| unusable(format_args!("nobody could watch over it: {e}")))?;
        let spec = EnvSpec {
            network: Network::Host,
            limits: limits(),
            ids: Ids::Own,
            workspace: inside.to_owned(),
            binds: binds(program, &folder, inside),
            env: variables(environment),
            ..EnvSpec::new(id.clone())
        };
        let guest = match backend.create(spec).await {
            Ok(guest) => guest,
            Err(error) => {
                let _ = fs::remove_file(&lock.path);
                return Err(unusable(error));
            }
        };
        Ok(Self {
            backend,
            guest,
            id,
            next: AtomicU64::new(1),
            closed: AtomicBool::new(false),
            lock,
            _watch: watch,
        })
    }

    /// Runs a command as [`Executor::run`](crate::Executor::run) says. None runs for longer than a day.
    pub async fn run(
        &self,
        argv: Vec<String>,
        timeout: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, ExecError> {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let mut unfinished = Unfinished {
            guest: Some(Arc::clone(&self.guest)),
            command: format!("call-{number}"),
        };
        let command = unfinished.command.clone();
        let time = timeout.unwrap_or(LONGEST).min(LONGEST);
        let mut ended = self.guest.exec(ExecSpec {
            // Ours comes first, so that the command is asked to end before it is killed.
            timeout: LONGEST,
            merge_output: Some(MergeOutput {
                half: MAX_OUTPUT / 2,
                linger: GRACE,
            }),
            ..ExecSpec::new(command.clone(), Command::Argv(argv))
        });
        let cancelled = tokio::select! {
            biased;
            // First, so that it is under way when a cancellation asks it to end: one that came in between would else start it.
            result = &mut ended => {
                unfinished.guest = None;
                return result.map(outcome).map_err(failed);
            }
            () = cancel.cancelled() => true,
            () = sleep(time) => false,
        };
        let asked = self.guest.signal(&command, libc::SIGTERM);
        // A guest that does not hear it hears the kill, or is lost.
        let _ = within(GRACE, asked).await;
        let result = match within(GRACE, &mut ended).await {
            Ok(result) => result,
            Err(_) => {
                let _ = within(GRACE, self.guest.cancel(&command)).await;
                within(GRACE + PATIENCE, &mut ended)
                    .await
                    .map_err(|_| ExecError::Lost("it does not die".to_owned()))?
            }
        };
        let outcome = result.map(outcome).map_err(failed)?;
        // What it left of its group may have closed its output.
        unfinished.guest = None;
        Err(match cancelled {
            true => ExecError::Cancelled { outcome },
            false => ExecError::TimedOut {
                after: time,
                outcome,
            },
        })
    }

    /// Ends it with all that runs in it.
    pub async fn close(&self) -> Result<(), ExecError> {
        self.closed.store(true, Ordering::SeqCst);
        self.backend.destroy(&self.id).await.map_err(unusable)?;
        let _ = fs::remove_file(&self.lock.path);
        Ok(())
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        if self.closed.load(Ordering::SeqCst) {
            return;
        }
        let (backend, id, path) = (
            self.backend.clone(),
            self.id.clone(),
            self.lock.path.clone(),
        );
        // A runtime cannot be waited for on one of its own threads.
        let removal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            if runtime.is_ok_and(|r| r.block_on(backend.destroy(&id)).is_ok()) {
                let _ = fs::remove_file(path);
            }
        });
        // Where it failed, the next start tries again.
        let _ = removal.join();
    }
}

/// Kills a command whose run was dropped.
struct Unfinished {
    guest: Option<Arc<dyn Guest>>,
    command: String,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(guest) = self.guest.take() else {
            return;
        };
        // Without a runtime the harness is ending, and the environment with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let command = std::mem::take(&mut self.command);
            runtime.spawn(async move { guest.cancel(&command).await });
        }
    }
}

fn outcome(ended: ExecOutcome) -> Outcome {
    let mut bytes = ended.stdout;
    // Only what could not be started is told on standard error.
    bytes.extend_from_slice(&ended.stderr);
    Outcome {
        exit_code: ended.exit_code,
        output: String::from_utf8_lossy(&bytes).into_owned(),
        truncated: ended.truncated,
    }
}

fn failed(error: CallError) -> ExecError {
    match error {
        CallError::NotSent(why) => ExecError::NotStarted(why),
        CallError::Refused(refusal) => ExecError::NotStarted(refusal.message),
        CallError::Lost(why) => ExecError::Lost(why),
    }
}

/// What a command may use: the sandbox keeps it apart, not small.
fn limits() -> Limits {
    Limits {
        cpus: std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64),
        ram_mb: 8 << 10,
        storage_gb: 100,
        pids: 4096,
    }
}

/// The working folder, and the application where nothing else shows it.
fn binds(program: &Program, folder: &Path, inside: &str) -> Vec<Bind> {
    let mut binds = vec![Bind {
        host: folder.to_owned(),
        inside: inside.to_owned(),
        read_only: false,
    }];
    let path = program.path();
    let shown = SHOWN
        .iter()
        .any(|tree| path.starts_with(Path::new("/").join(tree)));
    // Bound even where the folder shows it: what runs must not be what commands may change.
    if !shown || path.starts_with(folder) {
        binds.push(Bind {
            host: path.to_owned(),
            inside: program.shown().to_owned(),
            read_only: true,
        });
    }
    binds
}

/// Variables that are no text cannot be passed on.
fn variables(environment: &[(OsString, OsString)]) -> EnvVars {
    let mut all = EnvVars::default();
    for (name, value) in environment {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            let one = EnvVars([(name.to_owned(), value.to_owned())].into());
            if !ELSEWHERE.contains(&name) && one.problem().is_none() {
                all.0.extend(one.0);
            }
        }
    }
    all
}

/// Where environments are kept: `$XDG_STATE_HOME/fisk/sandbox`, `~/.local/state/fisk/sandbox`, or a folder of one's own in the folder for
/// temporary files.
fn state_folder() -> Result<PathBuf, String> {
    let set = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let user = nix::unistd::geteuid();
    let candidates = [
        set("XDG_STATE_HOME").map(|state| state.join("fisk/sandbox")),
        set("HOME").map(|home| home.join(".local/state/fisk/sandbox")),
        Some(std::env::temp_dir().join(format!("fisk-sandbox-{user}"))),
    ];
    let mut problem = String::new();
    for path in candidates.into_iter().flatten() {
        match private(&path) {
            Ok(()) => return Ok(path),
            Err(error) => problem = format!("{}: {error}", path.display()),
        }
    }
    Err(problem)
}

/// Makes a folder that is ours alone, or makes sure that it is.
fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let found = fs::symlink_metadata(path)?;
    let own = found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw();
    if own && found.mode() & 0o022 == 0 {
        Ok(())
    } else {
        let what = "it must be a folder that only its owner, who runs this, may write to";
        Err(io::Error::other(what))
    }
}

fn lock_file(locks: &Path, id: &EnvId) -> io::Result<(PathBuf, File)> {
    let path = locks.join(id.as_str());
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)?;
    Ok((path, file))
}

/// An id that nobody has, with its lock.
fn claim(locks: &Path) -> Result<(EnvId, Lock), String> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    let number = RUNS.fetch_add(1, Ordering::SeqCst);
    let name = format!("fisk-{}-{now:x}-{number}", std::process::id());
    let id = EnvId::new(name).map_err(|e| e.to_string())?;
    let (path, file) = lock_file(locks, &id).map_err(|e| e.to_string())?;
    file.try_lock().map_err(|e| e.to_string())?;
    Ok((id, Lock { path, _file: file }))
}

/// Removes the environments of runs that are dead. What cannot be removed is left to the next start.
async fn sweep(backend: &Sandbox, locks: &Path) {
    for id in backend.list().await.unwrap_or_default() {
        let Ok((path, file)) = lock_file(locks, &id) else {
            continue;
        };
        match file.try_lock() {
            Ok(()) => {
                let removed: Result<(), BackendError> = backend.destroy(&id).await;
                if removed.is_ok() {
                    let _ = fs::remove_file(path);
                }
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}
