//! The real binary with a real application, and a stand-in for the provider's API alone.

mod files;
mod prompts;
mod runs;
mod secrets;
mod servers;
mod sessions;
mod support;
