//! A whole orchestrator, from a checked configuration to its end.

use crate::app::MasterToken;
use crate::assemble::{Settings, StartError, assemble};
use crate::config::{Config, ConfigError, TOKEN_SAFE};
use crate::http::Site;
use crate::server::{self, Stop};
use fuse_store::{OpenError, Sealer};
use std::fs::DirBuilder;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Why an orchestrator did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A setting is broken.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The port cannot be opened.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A part does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A background loop failed while it ran.
    #[error("a background loop failed; what it said is in the log")]
    Loop,
    /// The process cannot be told to stop, or its port has no address.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl RunError {
    /// 2 where a setting has to change, else 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_)
            | Self::Listen { .. }
            | Self::Start(StartError::Store(
                OpenError::Url | OpenError::KeyMissing { .. } | OpenError::KeyWrong { .. },
            )) => 2,
            Self::Start(_) | Self::Loop | Self::Io(_) => 1,
        }
    }
}

/// Runs an orchestrator until SIGTERM or SIGINT; a second signal ends it at once.
///
/// # Errors
/// It did not start, or a part of it failed. Nothing is written before the settings are checked and the port is open.
pub async fn run(config: Config) -> Result<(), RunError> {
    run_and_tell(config, |_| ControlFlow::Continue(())).await
}

/// [`run`]s, and calls `ready` with the address once everything has started and just before the first connection is accepted.
/// A break ends it in good order without serving.
///
/// # Errors
/// As [`run`].
pub async fn run_and_tell(
    config: Config,
    ready: impl FnOnce(SocketAddr) -> ControlFlow<()> + Send,
) -> Result<(), RunError> {
    crate::logging::init(&config);
    let stop = Stop::listen()?;
    let address = config.listen;
    let listener = server::bind(address)
        .await
        .map_err(|source| RunError::Listen { address, source })?;
    make_data_dir(&config.data_dir)?;
    let token = config.master_token()?;
    if config.master_token.is_none() {
        eprintln!("master token in {}", config.token_file().display());
    }
    if token.expose().len() < TOKEN_SAFE {
        tracing::warn!(
            "the master token has fewer than {TOKEN_SAFE} characters and can be guessed"
        );
    }
    let sealer = config.sealer()?;
    let plain = sealer.is_plain();
    let mut running = assemble(Settings {
        data_dir: config.data_dir.clone(),
        database_url: config.database_url.expose().to_owned(),
        sealing: !plain,
        sealer,
        master: MasterToken::new(token.expose()),
    })
    .await?;
    // Told of a server that starts only: where the key is missing for what is sealed, the error says so alone.
    if plain {
        tracing::warn!("TOKEN_ENCRYPTION_KEY is not set: content is stored in the clear");
    }
    let site = Site {
        app: std::sync::Arc::clone(&running.app),
        proxies: config.trusted_proxies.clone(),
    };
    let served = match ready(listener.local_addr()?) {
        ControlFlow::Continue(()) => tokio::select! {
            served = server::serve(listener, site, stop) => served.map_err(RunError::Io),
            () = running.broken() => Err(RunError::Loop),
        },
        ControlFlow::Break(()) => Ok(()),
    };
    running.stop().await;
    served
}

/// Whoever else is on the machine has no business in it.
fn make_data_dir(path: &Path) -> Result<(), ConfigError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|e| ConfigError::new("FUSE_DATA_DIR", format!("{}: {e}", path.display())))
}

impl Config {
    /// What contents are sealed with at rest.
    ///
    /// # Errors
    /// The key is none. It was checked when the configuration was read.
    pub fn sealer(&self) -> Result<Sealer, ConfigError> {
        let Some(key) = &self.encryption_key else {
            return Ok(Sealer::plain());
        };
        Sealer::from_text(key.expose())
            .map_err(|e| ConfigError::new("TOKEN_ENCRYPTION_KEY", e.to_string()))
    }
}
