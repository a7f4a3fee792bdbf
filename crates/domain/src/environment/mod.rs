//! What creates an environment: the rules of a create request, and what a request that keeps them means.

mod text;
mod unserved;
mod valid;
mod validate;

pub use unserved::unserved_member;
pub use valid::{
    BuildStep, InitialFile, Limits, Network, ServerFacts, StartupScript, Task, ValidEnvironment,
    Variable,
};
pub use validate::validate;

/// Bytes that all `files` of a request may hold together, decoded.
pub const MAX_FILES_BYTES: usize = 512 * 1024;
/// Bytes of one secret, of one variable's value, and of one command line at most.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The task's folder where a request names none.
pub const DEFAULT_WORKSPACE: &str = "/workspace";
/// Seconds that all build steps together may take, and the startup script too, where a request names no limit.
pub const DEFAULT_STARTUP_SECONDS: u64 = 600;
