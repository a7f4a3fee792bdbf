//! The Model Context Protocol: streamable HTTP at `/mcp` and `/`, and standard input and output.

mod approval;
mod handler;
mod sessions;
mod states;
mod stdio;

use std::sync::Arc;

use axum::Router;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::{
    ConfirmOverMcp, Limits, Listen, ServeError, Served, Serving,
    run::Runner,
    server::{bind, guarded, serve},
};
use handler::{Client, Handler};
use sessions::Sessions;

pub use stdio::{serve_mcp_io, serve_mcp_stdio};

/// What the operator should read at the start: with [`ConfirmOverMcp::Auto`] and [`ConfirmOverMcp::Never`], the gated commands
/// that may run without anybody's agreement.
pub fn mcp_warning(served: &Served) -> Option<String> {
    let names: Vec<&str> = served
        .tools
        .gated()
        .map(|tool| tool.name().as_str())
        .collect();
    if names.is_empty() {
        return None;
    }
    let names = names.join(", ");
    match served.confirm_over_mcp {
        ConfirmOverMcp::Always => None,
        ConfirmOverMcp::Auto => Some(format!(
            "confirm_over_mcp is auto: a client that cannot ask its user runs these commands without approval: {names}"
        )),
        ConfirmOverMcp::Never => Some(format!(
            "confirm_over_mcp is never: these commands run without approval: {names}"
        )),
    }
}

/// Serves MCP over HTTP until `cancel` is triggered, with the default [`Limits`].
///
/// # Errors
/// The address is open to others and there is no token, or the port cannot be had.
pub async fn serve_mcp_http(
    served: Served,
    listen: Listen,
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    serve_mcp_http_within(served, listen, Limits::default(), cancel).await
}

/// The same with bounds of one's own.
///
/// # Errors
/// As for [`serve_mcp_http`].
pub async fn serve_mcp_http_within(
    served: Served,
    listen: Listen,
    limits: Limits,
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    let (listener, address) = bind(&listen).await?;
    let warning = mcp_warning(&served);
    // Ending the surface ends no more than itself.
    let stop = cancel.child_token();
    let runner = Arc::new(Runner::new(served, limits, stop));
    let routes = routes(Arc::clone(&runner))?;
    let router = guarded(routes, listen.token.as_deref(), &runner.limits);
    Ok(serve(listener, address, router, runner, warning))
}

fn routes(runner: Arc<Runner>) -> Result<Router, ServeError> {
    let limits = runner.limits.clone();
    let sessions = Arc::new(Sessions::new(&limits, runner.served.tool_timeout));
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(runner.stop().child_token())
        .with_max_request_body_bytes(limits.body)
        // The guard in front knows more: the address on which the connection arrived.
        .disable_allowed_hosts();
    let handler = Handler::new(runner, Client::Http(Arc::clone(&sessions)))?;
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    Ok(Router::new()
        .route_service("/mcp", service.clone())
        .route_service("/", service))
}
