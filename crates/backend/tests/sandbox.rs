//! The sandbox against the conformance suite, as root (where the tests run as root) and as an ordinary user, and what
//! is the sandbox's own.
//!
//! It has its own `main`: the sandbox starts this very program again as its stage.

mod own;

use fuse_backend::{Backend, Sandbox, conformance, maybe_run_stage};
use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::Arc,
    time::{Duration, Instant},
};

/// Set for a run of this program that is part of another one.
const ROLE: &str = "FUSE_SANDBOX_TEST_ROLE";
/// Where such a run keeps its environments.
const DATA: &str = "FUSE_SANDBOX_TEST_DATA";
/// Longest time of one case.
const LIMIT: Duration = Duration::from_secs(150);
/// A user that no machine knows.
const USER: u32 = 54_321;

fn main() -> ExitCode {
    maybe_run_stage();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let data = std::env::var_os(DATA).map(PathBuf::from);
    match (std::env::var(ROLE).as_deref(), data) {
        (Ok("user"), Some(data)) => report(run(&runtime, "user", &data)),
        (Ok(role), Some(data)) => runtime.block_on(own::play(role, &data)),
        _ => report(all(&runtime)),
    }
}

fn report(failed: usize) -> ExitCode {
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs everything that this user can, and the ordinary user's part as another one.
// check: BOX-11 BOX-13
fn all(runtime: &tokio::runtime::Runtime) -> usize {
    let Ok(directory) = tempfile::tempdir() else {
        return 1;
    };
    let root = nix::unistd::geteuid().is_root();
    let mut failed = run(
        runtime,
        if root { "root" } else { "user" },
        directory.path(),
    );
    if root {
        failed += match as_user() {
            Ok(true) => 0,
            Ok(false) => 1,
            Err(error) => {
                println!("as an ordinary user: {error}");
                1
            }
        };
    }
    failed
}

/// Runs this program again as an ordinary user.
fn as_user() -> std::io::Result<bool> {
    let directory = tempfile::tempdir()?;
    std::os::unix::fs::chown(directory.path(), Some(USER), Some(USER))?;
    // This program may lie where that user may not go.
    let program = tempfile::Builder::new().prefix("sandbox-test").tempdir()?;
    let copy = program.path().join("test");
    std::fs::copy(std::env::current_exe()?, &copy)?;
    std::fs::set_permissions(
        program.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )?;
    let status = Command::new(copy)
        .args(std::env::args_os().skip(1))
        .env(ROLE, "user")
        .env(DATA, directory.path())
        .current_dir("/")
        .uid(USER)
        .gid(USER)
        .status()?;
    Ok(status.success())
}

/// How much stays in the folder of environments. A sandbox sweeps behind the scenes when it is opened, and may still be at
/// pieces of the last removal.
fn left_behind(environments: &Path) -> usize {
    let begun = Instant::now();
    loop {
        let left = std::fs::read_dir(environments).map_or(0, Iterator::count);
        if left == 0 || begun.elapsed() > Duration::from_secs(20) {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs the cases whose names contain what was asked for; answers how many failed.
fn run(runtime: &tokio::runtime::Runtime, user: &str, data: &Path) -> usize {
    let filter: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let wanted = |name: &str| filter.is_empty() || filter.iter().any(|f| name.contains(f.as_str()));
    let place = data.to_owned();
    let bench = conformance::Bench::new(move || match Sandbox::new(&place) {
        Ok(sandbox) => Arc::new(sandbox),
        Err(error) => panic!("{error}"),
    });
    let (mut ran, mut failed) = (0, 0);
    let own = own::cases(data);
    let cases = conformance::cases()
        .into_iter()
        .map(|c| (c.name, (c.run)(Arc::clone(&bench))));
    for (name, case) in cases.chain(own) {
        if !wanted(name) {
            continue;
        }
        let started = Instant::now();
        let result = runtime.block_on(async {
            let task = tokio::spawn(case);
            tokio::time::timeout(LIMIT, task).await
        });
        let verdict = match result {
            Ok(Ok(())) => "ok",
            Ok(Err(_)) => "FAILED",
            Err(_) => {
                println!("{name} hangs");
                "FAILED"
            }
        };
        ran += 1;
        failed += usize::from(verdict != "ok");
        println!(
            "test {user} {name} ({} ms) ... {verdict}",
            started.elapsed().as_millis()
        );
    }
    let left = left_behind(&data.join("environments"));
    if failed == 0 && left > 0 {
        println!("{user} left {left} environments behind");
        ran += 1;
        failed += 1;
    }
    // What a failed case did not come to destroy.
    runtime.block_on(async {
        if let Ok(sandbox) = Sandbox::new(data) {
            for id in sandbox.list().await.unwrap_or_default() {
                let _ = sandbox.destroy(&id).await;
            }
        }
    });
    // The closing line of Rust's own test runner, so that these cases are counted like any others.
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {} passed; {failed} failed; as {user}",
        ran - failed
    );
    failed
}
