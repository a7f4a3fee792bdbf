//! The same rules with `harness.sandbox: true`, and what the sandbox adds.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use fisk_exec::{ExecError, GRACE, harden_process};
use tokio_util::sync::CancellationToken;

use crate::{
    CASE, Run,
    bed::{Bed, KEY, block_on},
};

pub const CASES: &[(&str, Run)] = &[
    (
        "a_sandboxed_command_sees_the_working_folder_and_little_else",
        folder_only,
    ),
    (
        "a_sandboxed_command_obeys_the_rules_of_every_command",
        rules,
    ),
    ("a_sandboxed_command_is_cancelled_with_its_group", cancelled),
    ("a_dead_runs_sandbox_is_removed_by_the_next", swept),
];

async fn bed(folder: &Path) -> Bed {
    Bed::new(folder, true).await.expect("a sandbox")
}

fn environments() -> usize {
    fs::read_dir("../home/.local/state/fisk/sandbox/environments").map_or(0, Iterator::count)
}

// check: FISK-38
fn folder_only(folder: &Path) {
    // As the harness does it: the sandbox must work for a process that nobody may look into.
    harden_process::<&str>(&[]).expect("hidden");
    let outside = folder.join("outside");
    fs::write(folder.join("home/in"), "from outside").expect("a file");
    block_on(async {
        let bed = bed(folder).await;
        let here = std::env::current_dir().expect("a folder");
        let outcome = bed.sh("pwd; cat in; echo made >out").await;
        assert_eq!(outcome.output, format!("{}\nfrom outside", here.display()));
        let made = fs::metadata("out").expect("out");
        assert_eq!(made.uid(), nix::unistd::geteuid().as_raw());
        let outcome = bed.sh(&format!("echo x >{}", outside.display())).await;
        assert!(!outside.exists(), "{}", outcome.output);
        let app = folder.join("app");
        assert_ne!(
            bed.sh(&format!("echo x >>{}", app.display()))
                .await
                .exit_code,
            0
        );
        // The folder where sandboxes are kept lies in the working folder here, and shows empty.
        let outcome = bed
            .sh("ls -A .local/state/fisk/sandbox/environments | wc -l")
            .await;
        assert_eq!(outcome.output, "0\n");
        assert_eq!(environments(), 1);
        bed.executor.close().await.expect("closed");
        assert_eq!(environments(), 0);
    });
}

// check: FISK-1 FISK-2 FISK-3
fn rules(folder: &Path) {
    block_on(async {
        let bed = bed(folder).await;
        let outcome = bed.sh("echo out; echo err >&2; exit 3").await;
        assert_eq!(
            (outcome.exit_code, outcome.output.as_str()),
            (3, "out\nerr\n")
        );
        let outcome = bed
            .sh("tr '\\0' '\\n' </proc/$$/environ; cat; readlink /proc/self/fd/0")
            .await;
        assert!(!outcome.output.contains(KEY), "{}", outcome.output);
        assert!(outcome.output.lines().any(|l| l == "LLMFORMAT=1"));
        assert!(outcome.output.ends_with("/dev/null\n"));
        let outcome = bed.sh("grep NoNewPrivs /proc/self/status").await;
        assert_eq!(outcome.output, "NoNewPrivs:\t1\n");
        let outcome = bed
            .sh("echo first; head -c 5000000 /dev/zero; echo last")
            .await;
        assert!(outcome.truncated && outcome.output.starts_with("first\n"));
        assert!(outcome.output.ends_with("\0last\n"));
        let left_out = 5_000_000 + 11 - 64 * 1024;
        assert!(
            outcome
                .output
                .contains(&format!("[... {left_out} bytes left out ...]"))
        );
        drop(bed);
        assert_eq!(environments(), 0);
    });
}

// check: FISK-2
fn cancelled(folder: &Path) {
    block_on(async {
        let bed = bed(folder).await;
        let cancel = CancellationToken::new();
        let call =
            bed.call("trap 'echo ending; exit 4' TERM; echo started; sleep 300 & : >ready; wait");
        let stop = async {
            while !Path::new("ready").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(bed.executor.run(&call, None, &cancel), stop);
        let Err(ExecError::Cancelled { outcome }) = result else {
            panic!("{result:?}");
        };
        // The sleeper was asked as well, so that nothing was waited for.
        assert_eq!(outcome.output, "started\nending\n");
        assert_eq!(outcome.exit_code, 4);

        let began = Instant::now();
        let limit = Duration::from_millis(500);
        let call = bed.call("trap '' TERM; sleep 300 & while :; do sleep 1; done");
        let result = bed
            .executor
            .run(&call, Some(limit), &CancellationToken::new())
            .await;
        assert!(
            matches!(result, Err(ExecError::TimedOut { .. })),
            "{result:?}"
        );
        let took = began.elapsed();
        assert!(
            took >= GRACE && took < GRACE + Duration::from_secs(5),
            "{took:?}"
        );
        let outcome = bed
            .sh("sleep 0.3; grep -l '^sleep' /proc/[0-9]*/comm 2>/dev/null | wc -l")
            .await;
        assert_eq!(outcome.output, "0\n");
    });
}

/// Whoever watches over the sandbox is killed as well, as where the machine loses power.
fn kill_children() {
    let own = std::process::id().to_string();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1));
        if let (Ok(pid), true) = (name.parse(), parent == Some(&own)) {
            let pid = nix::unistd::Pid::from_raw(pid);
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("a kill");
            nix::sys::wait::waitpid(pid, None).expect("an end");
        }
    }
}

fn swept(folder: &Path) {
    if std::env::var_os("EXEC_TEST_HARNESS").is_some() {
        block_on(async {
            let _bed = bed(folder).await;
            kill_children();
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).expect("a signal");
        });
        return;
    }
    let status = Command::new("/proc/self/exe")
        .env(CASE, "a_dead_runs_sandbox_is_removed_by_the_next")
        .env("EXEC_TEST_HARNESS", "1")
        .status()
        .expect("a harness");
    assert!(!status.success());
    assert_eq!(environments(), 1);
    block_on(async {
        let first = bed(folder).await;
        assert_eq!(environments(), 1);
        // One that lives is left alone.
        let second = bed(folder).await;
        assert_eq!(environments(), 2);
        assert_eq!(first.sh("echo alive").await.output, "alive\n");
        drop((first, second));
        assert_eq!(environments(), 0);
    });
}
