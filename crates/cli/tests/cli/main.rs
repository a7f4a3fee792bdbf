//! The real program, as people and scripts call it.

mod contexts;
mod decisions;
mod environments;
mod fusefiles;
mod pages;
mod server;
mod support;
mod terminal;
mod usage;
