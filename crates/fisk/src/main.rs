//! `fisk`: a command-line application becomes a safe agent.

fn main() {
    fuse_backend::maybe_run_stage();
}
