//! Benchmarks, run by command.
fn main() {}
