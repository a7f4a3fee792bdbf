//! The end of a sandbox whose harness was killed: a process of its own sees to it, since nobody else is left then.

use std::{
    fs,
    io::{self, PipeWriter, Read, pipe},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use fuse_backend::{Backend, EnvId, Sandbox};

/// The name by which this program knows that it is to watch.
const NAME: &str = "fisk-watch";

/// A process that outlives the harness for a moment and ends its sandbox.
#[derive(Debug)]
pub struct Watch {
    /// The harness alone holds it, so that it closes however the harness ends.
    alive: Option<PipeWriter>,
    child: Child,
}

impl Watch {
    /// Starts this program anew as the one that watches over a sandbox.
    pub fn start(state: &Path, id: &EnvId, lock: &Path) -> io::Result<Self> {
        let (end, alive) = pipe()?;
        let child = Command::new("/proc/self/exe")
            .arg0(NAME)
            .args([state.as_os_str(), id.as_str().as_ref(), lock.as_os_str()])
            .env_clear()
            .current_dir("/")
            // Ctrl-C and the end of the terminal are for the harness.
            .process_group(0)
            .stdin(end)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let alive = Some(alive);
        Ok(Self { alive, child })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.alive = None;
        // It finds the sandbox gone, or removes it.
        let _ = self.child.wait();
    }
}

/// Watches over a sandbox, when this process was started for that. `main` calls it before anything else, and ends where it gives `true`.
#[must_use]
pub fn maybe_watch() -> bool {
    let mut arguments = std::env::args_os();
    if arguments.next().is_none_or(|name| name != NAME) {
        return false;
    }
    let (state, id, lock) = (arguments.next(), arguments.next(), arguments.next());
    if let (Some(state), Some(id), Some(lock)) = (state, id, lock) {
        // Ends when the harness does. Nothing is ever written.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        remove(state.as_ref(), &id.to_string_lossy(), lock.as_ref());
    }
    true
}

/// What fails is left to the next start with a sandbox.
fn remove(state: &Path, id: &str, lock: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    if let (Ok(backend), Ok(id), Ok(runtime)) = (Sandbox::new(state), EnvId::new(id), runtime)
        && runtime.block_on(backend.destroy(&id)).is_ok()
    {
        let _ = fs::remove_file(lock);
    }
}
