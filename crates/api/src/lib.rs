//! The wire vocabulary of Fuse: ids, nouns, errors and the route table.
//!
//! Types here are what crosses the HTTP interface and nothing more: they parse and print. Every rule about them lives in
//! `fuse-domain`, which is the only crate besides the faces that knows what a value means.

pub mod attach;
pub mod audit;
pub mod environment;
pub mod error;
pub mod events;
pub mod exec;
pub mod hitl;
pub mod ids;
pub mod intervention;
pub mod keys;
pub mod routes;
pub mod time;
