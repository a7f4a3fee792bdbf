//! A virtual environment with the published Python client and the schema tester, pinned.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::proc;
use crate::workspace::{root, target_dir};

/// Exact versions of everything that is installed.
const REQUIREMENTS: &str = "tests/python/requirements.txt";
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Where the environment is.
pub fn folder() -> PathBuf {
    target_dir().join("test-venv")
}

/// Creates the environment where it is missing or its pins have changed, and returns its folder.
pub fn ensure() -> Result<PathBuf> {
    let venv = folder();
    let pins = fs::read_to_string(root().join(REQUIREMENTS)).context(REQUIREMENTS)?;
    let stamp = venv.join("pins.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == pins) {
        return Ok(venv);
    }
    println!("creating {}", venv.display());
    proc::capture(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&venv),
    )?;
    let mut install = Command::new(venv.join("bin/python"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
        REQUIREMENTS,
    ]);
    let status = proc::run(install.current_dir(root()), LIMIT)?;
    if !status.success() {
        bail!("pip could not install {REQUIREMENTS} ({status})");
    }
    fs::write(stamp, pins)?;
    Ok(venv)
}

/// The run of the Python tests.
pub fn tests(venv: &Path) -> Command {
    let mut command = Command::new(venv.join("bin/python"));
    command
        .args([
            "-m",
            "pytest",
            "-q",
            "--color=no",
            "-p",
            "no:cacheprovider",
            "tests/python",
        ])
        .current_dir(root());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}
