//! The command-line applications that Fisk's tests run: built from tests/go into target/go-fixtures, once per change.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::proc;
use crate::workspace::{root, target_dir};

/// A cold build of the largest one downloads and compiles some hundred packages.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// The exact release of the toolchain, for a machine without a suitable one.
const REQUIREMENTS: &str = "tests/go/requirements.txt";

/// A program: the module's folder below tests/go, the package in it, and the file that comes out.
struct Fixture {
    module: &'static str,
    package: &'static str,
    output: &'static str,
}

const FIXTURES: [Fixture; 4] = [
    Fixture {
        module: "",
        package: "./app",
        output: "app",
    },
    Fixture {
        module: "",
        package: "./oracle",
        output: "oracle",
    },
    Fixture {
        module: "old",
        package: "./app",
        output: "app-old",
    },
    Fixture {
        module: "nats",
        package: "github.com/nats-io/natscli/nats",
        output: "nats",
    },
];

/// Where they are.
pub fn folder() -> PathBuf {
    target_dir().join("go-fixtures")
}

/// Builds what is missing or whose sources changed.
pub fn ensure() -> Result<()> {
    let sources = root().join("tests/go");
    let stamp = folder().join("built.txt");
    let wanted = format!("{:016x}\n", digest(&sources)?);
    let complete = FIXTURES
        .iter()
        .all(|fixture| folder().join(fixture.output).is_file());
    if complete && fs::read_to_string(&stamp).is_ok_and(|built| built == wanted) {
        return Ok(());
    }
    let go = toolchain(&sources)?;
    fs::create_dir_all(folder())?;
    // A build that is cut short must not count.
    let _ = fs::remove_file(&stamp);
    for fixture in &FIXTURES {
        println!("building {}", folder().join(fixture.output).display());
        let mut build = Command::new(&go);
        build
            .args(["build", "-trimpath", "-ldflags=-s -w", "-o"])
            .arg(folder().join(fixture.output))
            .arg(fixture.package)
            .current_dir(sources.join(fixture.module))
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=readonly")
            .env("GOWORK", "off")
            // Static, so that they run in a sandbox with no libraries too.
            .env("CGO_ENABLED", "0");
        let status = proc::run(&mut build, LIMIT)?;
        if !status.success() {
            bail!("go could not build {} ({status})", fixture.output);
        }
    }
    fs::write(stamp, wanted)?;
    Ok(())
}

fn digest(sources: &Path) -> Result<u64> {
    let mut files = Vec::new();
    collect(sources, &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.strip_prefix(sources)?.hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// A `go` that is new enough for every module: the one on PATH, else one of its own below target.
fn toolchain(sources: &Path) -> Result<PathBuf> {
    let mut needed = (0, 0);
    for module in ["go.mod", "old/go.mod", "nats/go.mod"] {
        let text = fs::read_to_string(sources.join(module)).context(module)?;
        let directive = text.lines().find_map(|line| line.strip_prefix("go "));
        needed = needed.max(
            directive
                .and_then(version)
                .with_context(|| format!("{module} has no go directive"))?,
        );
    }
    let at_hand = proc::capture(
        Command::new("go")
            .args(["env", "GOVERSION"])
            .env("GOTOOLCHAIN", "local"),
    );
    let at_hand = at_hand
        .ok()
        .and_then(|text| version(text.trim().trim_start_matches("go")));
    if at_hand.is_some_and(|found| found >= needed) {
        return Ok("go".into());
    }
    install()
}

/// The first two numbers of a version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Debian's Go is too old, and the Python index has the official one as a package.
fn install() -> Result<PathBuf> {
    let venv = target_dir().join("go-venv");
    let python = venv.join("bin/python");
    let pins = fs::read_to_string(root().join(REQUIREMENTS)).context(REQUIREMENTS)?;
    let stamp = venv.join("pins.txt");
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == pins) {
        println!("installing a Go toolchain into {}", venv.display());
        proc::capture(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&venv),
        )?;
        let mut pip = Command::new(&python);
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(["--requirement", REQUIREMENTS])
        .current_dir(root());
        let status = proc::run(&mut pip, LIMIT)?;
        if !status.success() {
            bail!("pip could not install {REQUIREMENTS} ({status})");
        }
        fs::write(stamp, pins)?;
    }
    let package = proc::capture(
        Command::new(&python).args(["-c", "import go, os; print(os.path.dirname(go.__file__))"]),
    )?;
    Ok(Path::new(package.trim()).join("bin/go"))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_compare_by_their_numbers() {
        assert_eq!(version("1.26.8"), Some((1, 26)));
        assert_eq!(version("1.9"), Some((1, 9)));
        assert!(version("1.9") < version("1.26.0"));
        assert_eq!(version("devel"), None);
    }
}
