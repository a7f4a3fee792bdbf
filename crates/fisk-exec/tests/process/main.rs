//! What only a process of its own can show: memory, secrets, death, the sandbox. As root it runs once more as an ordinary user.
//!
//! It has its own `main`, since the harness' first lines run before any thread exists and the sandbox starts this very program again.

mod bed;
mod cases;
mod sandboxed;
mod sys;

use std::{
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, ExitCode},
};

/// Which case this process is.
const CASE: &str = "EXEC_TEST_CASE";
/// Where it may write.
const FOLDER: &str = "EXEC_TEST_FOLDER";
/// The terminal that this process, started as a command, types into.
const TYPES: &str = "EXEC_TEST_TYPES";
/// A user that no machine knows.
const USER: u32 = 54_322;

type Run = fn(&Path);

fn main() -> ExitCode {
    fuse_backend::maybe_run_stage();
    if fisk_exec::maybe_watch() {
        return ExitCode::SUCCESS;
    }
    if let Some(terminal) = std::env::var_os(TYPES) {
        cases::types(Path::new(&terminal));
        return ExitCode::SUCCESS;
    }
    let all: Vec<(&str, Run)> = [cases::CASES, sandboxed::CASES].concat();
    if let (Some(case), Some(folder)) = (std::env::var_os(CASE), std::env::var_os(FOLDER)) {
        // A panic is a failure.
        match all.iter().find(|(name, _)| case == **name) {
            Some((_, run)) => run(Path::new(&folder)),
            None => return ExitCode::FAILURE,
        }
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let mut users = vec![None];
    if nix::unistd::geteuid().is_root() {
        users.push(Some(USER));
    }
    let (mut ran, mut failed) = (0, 0);
    for user in users {
        for (name, _) in &all {
            if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w.as_str())) {
                continue;
            }
            let ok = play(name, user).unwrap_or(false);
            ran += 1;
            failed += u32::from(!ok);
            let who = user.map_or("self", |_| "user");
            let verdict = if ok { "ok" } else { "FAILED" };
            println!("test {who} {name} ... {verdict}");
        }
    }
    // The closing line of Rust's own test runner, so that these cases are counted like any others.
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {} passed; {failed} failed",
        ran - failed
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs a case in a process of its own, in a folder of its own.
fn play(name: &str, user: Option<u32>) -> std::io::Result<bool> {
    let folder = tempfile::tempdir()?;
    // This program may lie where that user may not go.
    let program = folder.path().join("test");
    std::fs::copy(std::env::current_exe()?, &program)?;
    bed::write_application(folder.path())?;
    let home = folder.path().join("home");
    std::fs::create_dir(&home)?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    let mut command = Command::new(program);
    command
        .env(CASE, name)
        .env(FOLDER, folder.path())
        .env("HOME", &home)
        .env_remove("XDG_STATE_HOME")
        .env("ANTHROPIC_API_KEY", bed::KEY)
        .env("openai_api_key", bed::KEY)
        .env("MY_TOKEN", bed::KEY)
        .current_dir(&home);
    if let Some(user) = user {
        std::os::unix::fs::chown(&home, Some(user), Some(user))?;
        command.uid(user).gid(user);
    }
    Ok(command.status()?.success())
}
