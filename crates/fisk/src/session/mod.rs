//! Sessions on disk: one private file each, a line per event, written through before what follows on it.

mod journal;
mod store;

pub use journal::{Entry, Journal, Recorded, Warning};
pub use store::{State, Store, Summary, checked_name};
#[cfg(test)]
mod tests;
