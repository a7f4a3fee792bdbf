//! fused, the first process inside an environment.
fn main() {}
