//! Language models: one trait, two providers.
//!
//! [`Anthropic`] speaks the Messages API, [`OpenAi`] the chat completions of any compatible server. Both stream, retry within the time
//! of the call, never follow a redirect (the key would go along), bound what they read, and end at once when cancelled. What a
//! provider says is hostile input: texts of replies and errors are bounded but not stripped, so whoever shows them strips them.
//!
//! An `HTTPS_PROXY` of the environment is honoured, since TLS ends at the provider behind it. Plain HTTP is for this machine alone unless
//! the configuration allows more, and never passes a proxy.

mod anthropic;
mod endpoint;
mod failure;
mod openai;
mod pieces;
mod retry;
mod secret;
#[cfg(any(test, feature = "standin"))]
pub mod standin;
mod transport;
mod types;

pub use anthropic::{Anthropic, AnthropicConfig, Thinking};
pub use endpoint::ConfigError;
pub use openai::{OpenAi, OpenAiConfig};
pub use retry::RetryPolicy;
pub use secret::{Secret, parse_headers};
pub use types::{
    Block, Delta, LlmError, Message, Provider, Reply, Request, Role, Sink, StopReason, ToolSpec,
    Usage,
};

#[cfg(test)]
mod tests;
