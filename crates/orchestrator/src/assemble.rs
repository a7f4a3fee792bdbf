//! Puts an orchestrator together from checked settings: database, backend, loops.

use crate::app::{App, MasterToken, Parts};
use crate::instance::{Instance, host_id};
use crate::metrics::Metrics;
use crate::reconcile;
use fuse_backend::Sandbox;
use fuse_store::{OpenError, Sealer, Store, StoreConfig};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How many entries at the end of the audit log are checked at start.
const TAIL: u32 = 1_000;
/// How long the loops may take to end. Together with the grace of open connections, all of a stop has to fit into 5 seconds.
const LOOPS_TIME: Duration = Duration::from_millis(250);
/// How long the database may take to close.
const CLOSE_TIME: Duration = Duration::from_millis(500);

/// What an orchestrator is made of.
pub struct Settings {
    /// Database, environments, images.
    pub data_dir: PathBuf,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: String,
    /// What contents are sealed with.
    pub sealer: Sealer,
    /// Whether that is a key, not the clear.
    pub sealing: bool,
    /// The operator's root credential.
    pub master: MasterToken,
}

/// Why an orchestrator does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error("the data directory {path} cannot be used: {source}")]
    DataDir {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The database or its key does not fit.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Environments cannot be kept.
    #[error(transparent)]
    Backend(#[from] fuse_backend::BackendError),
}

/// An orchestrator whose loops run.
pub struct Running {
    /// The verbs.
    pub app: Arc<App>,
    loops: JoinSet<()>,
}

/// Opens everything and starts the loops.
///
/// # Errors
/// See [`StartError`].
pub async fn assemble(settings: Settings) -> Result<Running, StartError> {
    let io = |source| StartError::DataDir {
        path: settings.data_dir.display().to_string(),
        source,
    };
    let instance = Instance::register(&settings.data_dir).map_err(io)?;
    let host_id = host_id(&settings.data_dir).map_err(io)?;
    let metrics = Metrics::new();
    let (store, heard) = Store::open(&StoreConfig {
        database_url: settings.database_url,
        sealer: settings.sealer,
    })
    .await?;
    match store.check_tail(TAIL).await {
        Ok(Ok(head)) => tracing::info!(seq = head.seq, "the end of the audit log holds"),
        Ok(Err(broken)) => {
            // What people decide has to go on; that the log was tampered with is said loudly and does not go away.
            metrics.set_chain_broken(true);
            tracing::error!("{broken}");
        }
        Err(error) => tracing::error!(%error, "the end of the audit log could not be checked"),
    }
    let backend = Sandbox::new(settings.data_dir)?;
    let (app, ready) = App::new(Parts {
        store,
        backend: Arc::new(backend),
        metrics,
        instance,
        host_id,
        master: settings.master,
        sealing: settings.sealing,
    });
    let app = Arc::new(app);
    let loops = reconcile::start(&app, heard, ready);
    Ok(Running { app, loops })
}

impl Running {
    /// Waits for a loop that fails, which none ever should. Without its loops an orchestrator would go on answering and let
    /// everybody wait; one that ends is started again.
    pub async fn broken(&mut self) {
        while let Some(ended) = self.loops.join_next().await {
            if ended.is_err() {
                return;
            }
        }
        std::future::pending().await
    }

    /// Ends the loops and closes the database. What is under way in a guest goes on there; what is on record is taken up by the
    /// next process.
    pub async fn stop(mut self) {
        self.app.shutdown();
        let ended = async { while self.loops.join_next().await.is_some() {} };
        // Loops that listen for work have no end of their own.
        let _ = tokio::time::timeout(LOOPS_TIME, ended).await;
        self.loops.abort_all();
        // An embedded database is whole in its one file once it is closed, so that a copy of that file is a backup. Where the
        // time does not suffice, nothing is lost: its log stays beside it.
        if tokio::time::timeout(CLOSE_TIME, self.app.store.close())
            .await
            .is_err()
        {
            tracing::warn!("the database was not closed in time; its log stays beside it");
        }
    }
}

/// An app on a fresh embedded database, whose loops do not run.
#[cfg(test)]
pub(crate) async fn test_app(dir: &std::path::Path) -> App {
    let url = format!("sqlite:{}", dir.join("fuse.db").display());
    let (store, _) = Store::open(&StoreConfig {
        database_url: url,
        sealer: Sealer::plain(),
    })
    .await
    .expect("it opens");
    let (app, _) = App::new(Parts {
        store,
        backend: Arc::new(Sandbox::new(dir.to_owned()).expect("a backend")),
        metrics: Metrics::new(),
        instance: Instance::register(dir).expect("an instance"),
        host_id: host_id(dir).expect("a host"),
        master: MasterToken::new("a-token-for-a-test"),
        sealing: false,
    });
    app
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn start(dir: &std::path::Path) -> Running {
        assemble(Settings {
            data_dir: dir.to_owned(),
            database_url: format!("sqlite:{}", dir.join("fuse.db").display()),
            sealer: Sealer::plain(),
            sealing: false,
            master: MasterToken::new("a-token-for-a-test"),
        })
        .await
        .expect("it starts")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_loop_that_fails_is_noticed() {
        let dir = tempfile::tempdir().expect("folder");
        let mut running = start(dir.path()).await;
        let quiet = tokio::time::timeout(Duration::from_millis(300), running.broken()).await;
        assert!(quiet.is_err(), "none fails by itself");
        running.loops.spawn(async { panic!("a loop fails") });
        tokio::time::timeout(Duration::from_secs(5), running.broken())
            .await
            .expect("it is noticed");
        running.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_stopped_orchestrator_leaves_its_whole_database_in_one_file() {
        let dir = tempfile::tempdir().expect("folder");
        let file = dir.path().join("fuse.db");
        let running = start(dir.path()).await;
        let log = dir.path().join("fuse.db-wal");
        assert!(log.exists(), "it runs with a write-ahead log");
        running.stop().await;
        assert!(!log.exists(), "the log is folded into the file");
        let size = std::fs::metadata(&file).expect("the file").len();
        assert!(size > 16 * 1024, "{size} bytes");
    }
}
