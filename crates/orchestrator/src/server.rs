//! Connections: accepted, bounded, served one by one, and ended in good order.
//!
//! A parked long poll is a connection that waits for most of its life, thousands at a time, so each one holds two small buffers
//! and one task and nothing else.

use crate::app::App;
use crate::http::{Peer, Site, router};
use crate::metrics::Metrics;
use axum::Router;
use axum::body::Body;
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tower::Service;

/// How long a request's head may take, and how long an idle connection stays open.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// The most that a request's head may hold, and what is buffered of an answer that is not read.
const BUFFER: usize = 32 * 1024;
/// The most headers of a request.
const MAX_HEADERS: usize = 64;
/// How long answers that are under way may take once the server stops.
const GRACE: Duration = Duration::from_secs(4);
/// Connections that may wait to be accepted. Thousands of waiters come back at once when a server starts again, and each one
/// that finds no room tries anew a second later. The system's own limit applies too.
const BACKLOG: u32 = 4_096;
/// The pause after a failed accept, which mostly means that there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The two signals that stop a server.
pub struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// Listens for SIGTERM and SIGINT from now on.
    ///
    /// # Errors
    /// The process cannot listen for signals.
    pub fn listen() -> io::Result<Self> {
        // Whoever started this process may have blocked them for itself, and a blocked signal is never heard.
        let mut heard = nix::sys::signal::SigSet::empty();
        heard.add(nix::sys::signal::SIGTERM);
        heard.add(nix::sys::signal::SIGINT);
        heard.thread_unblock()?;
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Opens the port.
///
/// # Errors
/// The address is not this machine's, taken, or not allowed.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    // Ten thousand waiters need as many descriptors; the soft limit is often 1,024.
    raise_descriptor_limit();
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // The next process can take the port over while connections of the last one still close.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until a signal comes, then ends in good order; a second signal ends it at once.
///
/// It says `listening on http://ADDR` on standard error once it accepts.
///
/// # Errors
/// The port has no address.
pub async fn serve(listener: TcpListener, site: Site, mut stop: Stop) -> io::Result<()> {
    let app = Arc::clone(&site.app);
    eprintln!("listening on http://{}", listener.local_addr()?);
    let connections = GracefulShutdown::new();
    let router = router(site);
    tokio::select! {
        () = accept_all(listener, &router, &app.metrics, &connections) => {}
        () = stop.next() => {}
    }
    tracing::info!(open = connections.count(), "stopping");
    end(&app, connections, &mut stop).await;
    Ok(())
}

/// Waiters and streams answer with what is; then connections close as they finish.
async fn end(app: &App, connections: GracefulShutdown, stop: &mut Stop) {
    app.shutdown();
    tokio::select! {
        () = connections.shutdown() => tracing::info!("stopped"),
        () = tokio::time::sleep(GRACE) => tracing::warn!("stopped with answers still under way"),
        () = stop.next() => tracing::warn!("stopped at once"),
    }
}

async fn accept_all(
    listener: TcpListener,
    router: &Router,
    metrics: &Metrics,
    connections: &GracefulShutdown,
) {
    let mut quiet = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                quiet = false;
                let connected = metrics.connected();
                let served = connection(stream, peer, router.clone(), connections.watcher());
                // No async block around it: one would hold the connection's state twice.
                tokio::spawn(served.map(move |()| drop(connected)));
            }
            Err(error) => {
                // One line for a whole spell of them.
                if !std::mem::replace(&mut quiet, true) {
                    tracing::error!(%error, "cannot accept connections");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    watcher: Watcher,
) -> impl Future<Output = ()> + Send {
    // Answers are small and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let peer = Peer(peer.ip());
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        router.clone().call(request)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(BUFFER)
        .max_header_size(BUFFER)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    watcher.watch(serving).map(|ended| {
        // A peer that went away or spoke nonsense is no news.
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke off");
        }
    })
}

fn raise_descriptor_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
