//! fused, the first process inside an environment.
//!
//! It is handed two descriptors: 3, a bound unix socket whose path lies outside the environment, and 4, its
//! identity as JSON. It listens, reports `ready` on descriptor 5, and serves until it is killed.

mod boot;
mod commands;
mod files;
mod job;
mod link;
mod reaper;
mod server;
mod state;
mod sys;

use fuse_guest_api::Identity;
use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::net::UnixListener,
    process::ExitCode,
    sync::Arc,
    thread,
};

/// Connections at once.
const CONNECTIONS: usize = 16;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some("--version") => {
            println!("fused {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some(_) => {
            eprintln!("fused takes no arguments but --version; it is started by a sandbox");
            return ExitCode::from(2);
        }
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fused: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    // Nothing in the environment may look into this process, whatever user it is.
    nix::sys::prctl::set_dumpable(false)?;
    nix::sys::prctl::set_name(c"fused")?;
    let socket = sys::inherited(3)?;
    let identity = sys::inherited(4)?;
    let report = sys::inherited(5)?;
    sys::keep_descriptors_private();
    let identity = read_identity(identity.into())?;
    // Listening here, and not where the socket was bound, makes this process the peer that a connection names.
    nix::sys::socket::listen(&socket, nix::sys::socket::Backlog::new(64)?)?;
    let listener = UnixListener::from(socket);
    let state = Arc::new(state::State::new(identity));
    for _ in 0..CONNECTIONS {
        let (state, listener) = (Arc::clone(&state), listener.try_clone()?);
        thread::Builder::new()
            .stack_size(512 << 10)
            .spawn(move || server::serve(&state, &listener))?;
    }
    File::from(report).write_all(b"ready\n")?;
    state.reaper.run();
    Ok(())
}

fn read_identity(file: File) -> io::Result<Identity> {
    let mut json = Vec::new();
    file.take(64 << 10).read_to_end(&mut json)?;
    serde_json::from_slice(&json)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the identity is malformed"))
}
