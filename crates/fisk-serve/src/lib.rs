//! The commands of an application, served to other programs over MCP and A2A.
//!
//! Only a [`ServedSet`] can be served, and it cannot hold a tool that asks the operator.

mod a2a;
mod guard;
mod limits;
mod mcp;
mod run;
mod server;

pub use self::a2a::{serve_a2a, serve_a2a_within};
pub use limits::Limits;
pub use mcp::{mcp_warning, serve_mcp_http, serve_mcp_http_within, serve_mcp_io, serve_mcp_stdio};
pub use server::{ServeError, Serving};

use std::{net::IpAddr, sync::Arc, time::Duration};

use fisk_domain::ServedSet;
use fisk_exec::Executor;
use fisk_operator::Prompter;

/// When a gated command is asked about over MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConfirmOverMcp {
    /// Always; a client that cannot be asked is refused.
    #[default]
    Always,
    /// Where the client can be asked; else the command runs, and a warning at start names it.
    Auto,
    /// Never: gated commands run as the others do.
    Never,
}

/// What a served surface is made of.
#[derive(Clone)]
pub struct Served {
    /// The server's name: `identity`, else `fisk`.
    pub name: String,
    /// What a client reads about how to use it.
    pub instructions: Option<String>,
    /// The commands.
    pub tools: Arc<ServedSet>,
    /// Runs them.
    pub executor: Arc<Executor>,
    /// How gated ones are asked about over MCP.
    pub confirm_over_mcp: ConfirmOverMcp,
    /// Answers for gated commands over A2A, where `harness.operator: fuse` is set. Never a terminal.
    pub operator: Option<Arc<dyn Prompter>>,
    /// The most commands that run at once.
    pub max_concurrent_tools: usize,
    /// The longest that one may run, without the wait for an answer.
    pub tool_timeout: Duration,
}

/// Where to listen.
#[derive(Clone)]
pub struct Listen {
    /// The address.
    pub address: IpAddr,
    /// The port; 0 takes a free one, which is printed.
    pub port: u16,
    /// Where set, each request has to carry it as a bearer token. Not shown anywhere.
    pub token: Option<Arc<str>>,
}
