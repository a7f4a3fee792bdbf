//! The orchestrator: HTTP, app verbs, effects, reconcile loops.

pub mod app;
pub mod assemble;
pub mod config;
pub mod effects;
pub mod events;
pub mod http;
pub mod instance;
mod known;
pub mod logging;
mod memory;
pub mod metrics;
pub mod reconcile;
mod run;
pub mod server;
#[cfg(test)]
mod testing;
pub mod wake;

pub use run::{RunError, run, run_and_tell};
