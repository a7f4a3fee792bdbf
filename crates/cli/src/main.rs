//! fuse: the command line and, as fuse serve, the orchestrator.
fn main() {}
