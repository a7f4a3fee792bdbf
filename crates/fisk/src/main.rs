//! `fisk`: a command-line application becomes a safe agent.

fn main() -> std::process::ExitCode {
    fisk::main()
}
