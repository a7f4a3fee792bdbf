//! Language models: one trait, two providers.

mod types;

pub use types::{
    Block, Delta, LlmError, Message, Provider, Reply, Request, Role, Sink, StopReason, ToolSpec,
    Usage,
};
