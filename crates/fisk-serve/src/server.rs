//! Connections: accepted, bounded, served, and ended in good order.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
};
use tower::Service;
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    Limits, Listen,
    guard::{Guard, Local, guard},
    run::Runner,
};

/// The most that a request's head may hold, and what is buffered of an answer that is not read.
const BUFFER: usize = 32 * 1024;
/// The most headers of a request.
const MAX_HEADERS: usize = 64;
/// How long answers that are under way may take once the server stops.
const GRACE: Duration = Duration::from_secs(2);
/// The pause after a failed accept, which mostly means that there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why a surface is not served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Others could reach it and nothing would ask them who they are.
    #[error("{0} is no loopback address: set a token, or listen on 127.0.0.1")]
    NoToken(std::net::IpAddr),
    /// The token cannot be sent in a header.
    #[error("the token must be 1 or more visible ASCII characters without blanks")]
    BadToken,
    /// The port cannot be had.
    #[error("cannot listen on {address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// A secret could not be made, or a stream could not be set up.
    #[error("cannot serve: {0}")]
    Start(String),
}

/// A surface that is served. It ends once its token is cancelled; [`wait`](Self::wait) for it, so that no command outlives it.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    warning: Option<String>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the operator should read at the start.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Returns once it has ended and its commands are dead.
    pub async fn wait(self) {
        if self.task.await.is_err() {
            tracing::error!("the server failed");
        }
    }
}

/// Refuses what would be open to everybody, before anything is bound.
pub(crate) async fn bind(listen: &Listen) -> Result<(TcpListener, SocketAddr), ServeError> {
    match &listen.token {
        None if !listen.address.is_loopback() => return Err(ServeError::NoToken(listen.address)),
        Some(token) if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            return Err(ServeError::BadToken);
        }
        None | Some(_) => {}
    }
    let address = SocketAddr::new(listen.address, listen.port);
    let failed = |error| ServeError::Bind { address, error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Puts the checks in front of the routes.
pub(crate) fn guarded(routes: Router, token: Option<&str>, limits: &Limits) -> Router {
    routes
        .layer(axum::middleware::from_fn_with_state(
            Guard::new(token, limits),
            guard,
        ))
        .layer(CatchPanicLayer::new())
}

/// Serves until the runner's token is cancelled.
pub(crate) fn serve(
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    runner: Arc<Runner>,
    warning: Option<String>,
) -> Serving {
    let task = tokio::spawn(async move {
        let connections = GracefulShutdown::new();
        tokio::select! {
            () = accept_all(listener, &router, &runner.limits, &connections) => {}
            () = runner.stop().cancelled() => {}
        }
        runner.end().await;
        if tokio::time::timeout(GRACE, connections.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("stopped with answers still under way");
        }
    });
    Serving {
        address,
        warning,
        task,
    }
}

async fn accept_all(
    listener: TcpListener,
    router: &Router,
    limits: &Limits,
    connections: &GracefulShutdown,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _peer)) => {
                let Ok(local) = stream.local_addr() else {
                    continue;
                };
                let served = connection(stream, local, router.clone(), limits, connections);
                tokio::spawn(async move {
                    // A peer that went away or spoke nonsense is no news.
                    if let Err(error) = served.await {
                        tracing::debug!(%error, "a connection broke off");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::error!(%error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn connection(
    stream: TcpStream,
    local: SocketAddr,
    router: Router,
    limits: &Limits,
    connections: &GracefulShutdown,
) -> impl Future<Output = hyper::Result<()>> + Send + use<> {
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Local(local));
        router.clone().call(request)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(BUFFER)
        .max_header_size(BUFFER)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    connections.watcher().watch(serving)
}
