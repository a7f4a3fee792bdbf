//! The Rust SDK of Fuse.
//!
//! ```no_run
#![doc = include_str!("../examples/tour/connect.rs")]
//! ```
//!
//! What a gate holds or a person locks takes longer and is no error: [`exec`](Environments::exec) waits until the action has run or
//! was refused, over lost connections and restarts of the orchestrator. Every wait ends, because every intervention has a
//! deadline. Who does not want to wait says [`no_wait`](Exec::no_wait).
//!
//! Each example in this documentation is a step of the program in `examples/tour`, which the end-to-end tests run against
//! a real server.

mod audit;
mod backoff;
mod builder;
mod destroy;
mod environments;
mod error;
mod events;
mod exec;
mod interventions;
mod keys;
mod request;
mod service;
mod transport;
mod wait;

pub use audit::AuditFilter;
pub use builder::{Client, ClientBuilder};
pub use destroy::Destroy;
pub use environments::{EnvironmentFilter, Environments};
pub use error::Error;
pub use events::EventStream;
pub use exec::{Exec, Waiting};
/// The wire types.
pub use fuse_api as api;
pub use fuse_api::keys::ActorLabel;
pub use interventions::{InterventionFilter, Interventions, StateFilter};
pub use keys::ApiKeys;
pub use request::{HumanRequest, ReviewRequest, ReviewVerdict};
pub use service::Version;
