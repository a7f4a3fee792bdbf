//! Starting a stage and hearing from it.

use super::config::{READY, STAGE, StageConfig, StageError};
use crate::error::BackendError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    fs::OpenOptions,
    io::{Read, Write},
    os::{fd::AsFd, unix::fs::OpenOptionsExt, unix::process::CommandExt},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// How long the stage and the first steps of `fused` may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs a stage until `fused` listens.
///
/// # Errors
/// [`BackendError::Unsupported`] with what the machine lacks.
pub fn launch(config: &StageConfig) -> Result<(), BackendError> {
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(Path::new(&config.directory).join("log"))
        .map_err(BackendError::io("opening the environment's log"))?;
    // Shared with the stage and with `fused`, which hold it for as long as they live.
    log.try_lock()
        .map_err(|e| BackendError::io("locking the environment's log")(e.into()))?;
    let mut child = Command::new("/proc/self/exe")
        .arg0(STAGE)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(BackendError::io("starting the sandbox's stage"))?;
    let json = serde_json::to_vec(config)
        .map_err(|e| BackendError::io("the stage's configuration")(e.into()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A stage that has died says why below.
        let _ = stdin.write_all(&json);
    }
    let report = child.stdout.take().map(hear);
    if !matches!(report, Some(Ok(_))) {
        let _ = child.kill();
    }
    let status = child
        .wait()
        .map_err(BackendError::io("waiting for the sandbox's stage"))?;
    let report = match report {
        Some(report) => report.map_err(BackendError::io("hearing from the sandbox's stage"))?,
        None => Vec::new(),
    };
    if report == READY {
        return Ok(());
    }
    Err(match serde_json::from_slice::<StageError>(&report) {
        Ok(error) => BackendError::Unsupported {
            facility: error.facility,
            detail: error.detail,
        },
        Err(_) => BackendError::Unsupported {
            facility: "the sandbox's stage".to_owned(),
            detail: format!(
                "it ended ({status}) without a word; does main() call fuse_backend::maybe_run_stage() first?"
            ),
        },
    })
}

/// Reads until every writer is gone.
fn hear(mut pipe: std::process::ChildStdout) -> std::io::Result<Vec<u8>> {
    let deadline = Instant::now() + TIMEOUT;
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || heard.len() > 64 << 10 {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        let wait = PollTimeout::from(u16::try_from(left.as_millis()).unwrap_or(u16::MAX));
        if poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], wait)? == 0 {
            continue;
        }
        match pipe.read(&mut buffer)? {
            0 => return Ok(heard),
            count => heard.extend_from_slice(buffer.get(..count).unwrap_or_default()),
        }
    }
}
