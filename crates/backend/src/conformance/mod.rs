//! The suite that every backend passes.
//!
//! A case panics where the backend fails it. The image `host` (or whatever the backend under test makes of that name) must have a POSIX shell,
//! coreutils, util-linux, bash and perl, which speaks raw system calls.

mod exec;
mod files;
mod isolation;
mod lifecycle;
mod limits;
mod shared;

use crate::{Backend, BoxFuture, Command, EnvId, EnvSpec, ExecOutcome, ExecSpec, Guest};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// One thing that a backend must do.
pub struct Case {
    /// What it is, in words.
    pub name: &'static str,
    /// Proves it.
    pub run: fn(Arc<Bench>) -> BoxFuture<'static, ()>,
}

/// What a case works with.
pub struct Bench {
    open: Box<dyn Fn() -> Arc<dyn Backend> + Send + Sync>,
    next: AtomicU64,
}

impl Bench {
    /// `open` makes a new instance over the same environments each time, as another orchestrator would.
    #[must_use]
    pub fn new(open: impl Fn() -> Arc<dyn Backend> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            open: Box::new(open),
            next: AtomicU64::new(0),
        })
    }

    /// Another instance.
    #[must_use]
    pub fn backend(&self) -> Arc<dyn Backend> {
        (self.open)()
    }

    /// A spec with an id that was not used yet.
    #[must_use]
    pub fn spec(&self) -> EnvSpec {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        EnvSpec::new(must(
            EnvId::new(format!("case-{}-{number}", std::process::id())),
            "an id",
        ))
    }

    /// Creates an environment.
    ///
    /// # Panics
    /// It cannot.
    pub async fn create(&self, spec: EnvSpec) -> Arc<dyn Guest> {
        must(self.backend().create(spec).await, "create")
    }

    /// Creates the smallest environment, lets `work` use it, and destroys it.
    pub async fn with<F: Future<Output = ()>>(&self, work: impl FnOnce(Arc<dyn Guest>) -> F) {
        self.with_spec(self.spec(), work).await;
    }

    /// Creates an environment, lets `work` use it, and destroys it.
    pub async fn with_spec<F: Future<Output = ()>>(
        &self,
        spec: EnvSpec,
        work: impl FnOnce(Arc<dyn Guest>) -> F,
    ) {
        let id = spec.id.clone();
        work(self.create(spec).await).await;
        must(self.backend().destroy(&id).await, "destroy");
    }
}

/// All cases.
#[must_use]
pub fn cases() -> Vec<Case> {
    [
        exec::cases(),
        files::cases(),
        isolation::cases(),
        lifecycle::cases(),
        limits::cases(),
        shared::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Makes a list of cases of async functions whose names say what they prove.
macro_rules! suite {
    ($($name:ident),+ $(,)?) => {
        pub(super) fn cases() -> Vec<super::Case> {
            vec![$(super::Case { name: stringify!($name), run: |bench| Box::pin($name(bench)) }),+]
        }
    };
}
use suite;

fn must<T, E: std::fmt::Debug>(result: Result<T, E>, what: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error:?}"),
    }
}

/// A command id that was not used yet.
fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("command-{}", NEXT.fetch_add(1, Ordering::SeqCst))
}

fn shell(text: &str) -> ExecSpec {
    ExecSpec::new(fresh(), Command::Shell(text.to_owned()))
}

fn argv(parts: &[&str]) -> ExecSpec {
    ExecSpec::new(
        fresh(),
        Command::Argv(parts.iter().map(|p| (*p).to_owned()).collect()),
    )
}

/// Runs shell text to its end.
async fn sh(guest: &Arc<dyn Guest>, text: &str) -> Ran {
    Ran::new(must(guest.exec(shell(text)).await, text))
}

/// An outcome as text.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn new(outcome: ExecOutcome) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        Self {
            code: outcome.exit_code,
            out: text(&outcome.stdout),
            err: text(&outcome.stderr),
        }
    }

    /// Its standard output, if it succeeded.
    #[track_caller]
    fn ok(&self) -> &str {
        assert_eq!(self.code, 0, "{self:?}");
        &self.out
    }

    #[track_caller]
    fn fails(&self) {
        assert_ne!(self.code, 0, "it should have failed: {self:?}");
    }
}
