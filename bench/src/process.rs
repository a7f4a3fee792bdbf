//! A background process that ends with its handle.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const POLL: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_secs(8);

/// A running process.
pub struct Service {
    child: Child,
    stop: Signal,
}

impl Service {
    /// Starts `command`; `stop` ends it in good order. It stays in this program's process group, so that whoever ends the
    /// group ends it too.
    pub fn start(command: &mut Command, stop: Signal) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child, stop })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if !self.has_ended()
            && let Ok(id) = i32::try_from(self.child.id())
        {
            let _ = kill(Pid::from_raw(id), self.stop);
            let until = Instant::now() + GRACE;
            while Instant::now() < until && !self.has_ended() {
                std::thread::sleep(POLL);
            }
        }
        // It fails where the process is gone, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command and returns its standard output; a failure is an error that carries its standard error.
pub fn capture(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!(
            "{name} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
