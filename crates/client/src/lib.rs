//! The Rust SDK of Fuse.
