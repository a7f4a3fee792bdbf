//! Memory, secrets, death.

use std::{
    fs,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use fisk_exec::harden_process;

use crate::{
    CASE, Run, TYPES,
    bed::{Bed, KEY, block_on},
};

pub const CASES: &[(&str, Run)] = &[
    ("a_gigabyte_of_output_costs_less_than_a_mebibyte", flood),
    ("a_child_cannot_read_the_key_from_its_parent", secrets),
    ("a_child_does_not_outlive_a_killed_harness", killed),
    ("what_is_shown_is_what_runs", shown),
    ("a_child_cannot_type_into_a_terminal", typed),
    ("a_killed_harness_takes_its_sandbox_along", ended),
];

/// A value of `/proc/self/status`, in KiB.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("status");
    let line = status
        .lines()
        .find(|l| l.starts_with(name))
        .expect("a line");
    line.split_whitespace()
        .nth(1)
        .expect("a value")
        .parse()
        .expect("a number")
}

// check: FISK-2 FISK-36
fn flood(folder: &Path) {
    block_on(async {
        let bed = Bed::new(folder, false).await.expect("an executor");
        // Whatever a first run takes for good.
        bed.sh("head -c 1000000 /dev/zero").await;
        let before = memory("VmRSS:");
        // The peak counts from here.
        fs::write("/proc/self/clear_refs", "5").expect("clear_refs");
        let outcome = bed.sh("head -c 1073741824 /dev/zero; printf end").await;
        let more = memory("VmHWM:").saturating_sub(before);
        assert!(outcome.truncated && outcome.output.ends_with("end"));
        let left_out = 1_073_741_824 + 3 - 64 * 1024;
        assert!(
            outcome
                .output
                .contains(&format!("[... {left_out} bytes left out ...]"))
        );
        println!("a flood of 1 GiB took {more} KiB more");
        assert!(more < 1024, "{more} KiB");
    });
}

// check: FISK-22
fn secrets(folder: &Path) {
    let before = fs::read("/proc/self/environ").expect("environ");
    assert!(String::from_utf8_lossy(&before).contains(KEY));
    let mut secrets = harden_process(&["MY_*"]).expect("hidden");
    for name in ["ANTHROPIC_API_KEY", "openai_api_key", "MY_TOKEN"] {
        assert_eq!(secrets.take(name).expect(name).expose(), KEY);
        assert!(std::env::var_os(name).is_none());
    }
    assert!(std::env::var_os("HOME").is_some());
    let root = nix::unistd::geteuid().is_root();
    // Root may still read its own; that the bytes are gone is what it must show.
    match fs::read("/proc/self/environ") {
        Ok(now) => assert!(!String::from_utf8_lossy(&now).contains(KEY)),
        Err(error) => assert!(!root, "{error}"),
    }
    block_on(async {
        let bed = Bed::new(folder, false).await.expect("an executor");
        let output = bed.sh("cat /proc/$$/environ | tr '\\0' '\\n'").await.output;
        assert!(!output.contains(KEY), "{output}");
        let parent = std::process::id();
        // A command of root may read where memory lies, and the overwritten variables; what lies there nobody may.
        let closed: &[&str] = match root {
            true => &["mem"],
            false => &["environ", "mem", "maps", "auxv"],
        };
        for file in closed {
            let outcome = bed.sh(&format!("head -c 1 /proc/{parent}/{file}")).await;
            assert_ne!(outcome.exit_code, 0, "{file}: {}", outcome.output);
            assert!(
                outcome.output.contains("denied"),
                "{file}: {}",
                outcome.output
            );
        }
        let outcome = bed.sh(&format!("cat /proc/{parent}/environ")).await;
        assert!(!outcome.output.contains(KEY), "{}", outcome.output);
    });
}

/// Starts itself as a harness that runs a long command, kills it, and looks for the command.
// check: FISK-2
fn killed(folder: &Path) {
    if std::env::var_os("EXEC_TEST_HARNESS").is_some() {
        block_on(async {
            let bed = Bed::new(folder, false).await.expect("an executor");
            bed.sh("echo $$ >pid.new; mv pid.new pid; exec sleep 300")
                .await;
        });
        return;
    }
    let mut harness = Command::new("/proc/self/exe")
        .env(CASE, "a_child_does_not_outlive_a_killed_harness")
        .env("EXEC_TEST_HARNESS", "1")
        .stdout(Stdio::null())
        .spawn()
        .expect("a harness");
    let began = Instant::now();
    let patient = || assert!(began.elapsed() < Duration::from_secs(20), "too long");
    let pid = loop {
        patient();
        if let Ok(pid) = fs::read_to_string("pid") {
            break pid.trim().to_owned();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(Path::new("/proc").join(&pid).exists());
    harness.kill().expect("a kill");
    harness.wait().expect("an end");
    // Whoever adopts it may take its time to reap it.
    loop {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat
            .rsplit(')')
            .next()
            .is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"))
        {
            return;
        }
        patient();
        std::thread::sleep(Duration::from_millis(10));
    }
}

// check: FISK-1
fn shown(folder: &Path) {
    block_on(async {
        let bed = Bed::new(folder, false).await.expect("an executor");
        let call = bed.call("tr '\\0' '\\n' </proc/$$/cmdline");
        let argv = bed.executor.argv(&call);
        let outcome = bed.sh("tr '\\0' '\\n' </proc/$$/cmdline").await;
        // The kernel puts the interpreter in front of a script.
        let ran: Vec<&str> = outcome.output.lines().skip(1).collect();
        assert_eq!(ran, argv);
        assert_eq!(Path::new(&argv[0]), bed.executor.application());
    });
}

/// Opens a terminal and types into it, and says how that went.
pub fn types(terminal: &Path) {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open(terminal)
        .expect("a terminal");
    let code = crate::sys::type_into(&file, b'y')
        .err()
        .map_or(0, |error| error.raw_os_error().unwrap_or(-1));
    println!("{code}");
}

// check: FISK-35
fn typed(folder: &Path) {
    let pty = nix::pty::openpty(None, None).expect("a terminal");
    let path = nix::unistd::ttyname(&pty.slave).expect("its name");
    let program = folder.join("test");
    block_on(async {
        let bed = Bed::new(folder, false).await.expect("an executor");
        let script = format!("{TYPES}={} exec {}", path.display(), program.display());
        let outcome = bed.sh(&script).await;
        assert_eq!(outcome.output, format!("{}\n", libc::EPERM));
    });
}

/// Where the sandboxes of this test are.
const SANDBOXES: &str = "../home/.local/state/fisk/sandbox";

fn sandboxes() -> usize {
    fs::read_dir(Path::new(SANDBOXES).join("environments")).map_or(0, Iterator::count)
}

// check: FISK-38
fn ended(folder: &Path) {
    if std::env::var_os("EXEC_TEST_HARNESS").is_some() {
        block_on(async {
            let bed = Bed::new(folder, true).await.expect("a sandbox");
            // Away from the group, and deaf.
            bed.sh("trap '' TERM HUP; setsid sleep 300 >alive 2>&1; echo over")
                .await;
        });
        return;
    }
    let mut harness = Command::new("/proc/self/exe")
        .env(CASE, "a_killed_harness_takes_its_sandbox_along")
        .env("EXEC_TEST_HARNESS", "1")
        .spawn()
        .expect("a harness");
    let began = Instant::now();
    let patient = || assert!(began.elapsed() < Duration::from_secs(20), "too long");
    while !Path::new("alive").exists() {
        patient();
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(sandboxes(), 1);
    harness.kill().expect("a kill");
    harness.wait().expect("an end");
    let locks = || fs::read_dir(Path::new(SANDBOXES).join("locks")).map_or(0, Iterator::count);
    while sandboxes() > 0 || locks() > 0 {
        patient();
        std::thread::sleep(Duration::from_millis(10));
    }
}
