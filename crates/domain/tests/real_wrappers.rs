//! The matcher against the wrappers themselves: whatever program a real tool runs, the matcher must have read.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the domain starts no processes, its proof does"
)]

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fuse_domain::policy::read_command;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// A folder with a program that prints each of its arguments, ended by a NUL.
struct Probe {
    folder: PathBuf,
}

impl Probe {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the probe");
        let probe = folder.join("probe");
        fs::write(&probe, "#!/bin/sh\nprintf '%s\\0' RAN \"$@\"\n").expect("the probe");
        fs::set_permissions(&probe, fs::Permissions::from_mode(0o755)).expect("the probe's mode");
        Self { folder }
    }

    fn path(&self) -> String {
        self.folder.join("probe").to_string_lossy().into_owned()
    }

    /// The arguments with which the command ran the probe, each time it did.
    fn runs(&self, argv: &[String]) -> Vec<Vec<String>> {
        let child = Command::new("timeout")
            .args(["--kill-after=1", "5"])
            .args(argv)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .expect("the tool starts");
        let text = String::from_utf8_lossy(&child.stdout).into_owned();
        let mut runs: Vec<Vec<String>> = Vec::new();
        for word in text.split('\0').filter(|_| text.contains('\0')) {
            // What a wrapper prints itself stands before the mark without a NUL between.
            if word == "RAN" || word.ends_with("\nRAN") {
                runs.push(Vec::new());
            } else if let Some(run) = runs.last_mut() {
                run.push(word.to_owned());
            }
        }
        for run in &mut runs {
            // The text ends with a NUL.
            if run.last().is_some_and(String::is_empty) {
                run.pop();
            }
        }
        runs
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A wrapper with options, some of them wrong.
fn wrapper() -> impl Strategy<Value = Vec<String>> {
    let options = |list: &'static [&'static str]| {
        proptest::collection::vec(select(list), 0..4)
            .prop_map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let with =
        |name: &'static str, list: &'static [&'static str], tail: &'static [&'static str]| {
            (options(list), select(tail)).prop_map(move |(words, tail)| {
                let mut all = vec![name.to_owned()];
                all.extend(words);
                all.extend(
                    tail.split(' ')
                        .filter(|word| !word.is_empty())
                        .map(str::to_owned),
                );
                all
            })
        };
    prop_oneof![
        with(
            "env",
            &[
                "-i",
                "-",
                "--",
                "A=1",
                "-u",
                "X",
                "-uX",
                "--unset=X",
                "--unset",
                "--uns=X",
                "-C",
                "/",
                "-C/",
                "--chdir=/",
                "--chd",
                "-v",
                "-iv",
                "-viuX",
                "-S",
                "-SA=1",
                "--split-string=A=1 B=2",
                "-vS",
                "-S-i",
                "--block-signal",
                "--block-signal=INT",
                "--default-signal=PIPE",
                "--ignore-signal=HUP",
                "--ignore",
                "--ig",
                "--deb",
                "--list-signal-handling",
                "-z",
                "--nope",
                "=x",
                "a b",
                "-S'A=1' \"-u\" X",
                "-S A=1\\_B=2",
                "-S-u",
                "-S#",
                "-Senv nice",
                "-Snice -n 5 timeout 3",
                "-S\\c x",
            ],
            &["", "", "A=1", "--", "-"],
        ),
        with(
            "nice",
            &[
                "-n",
                "5",
                "-n5",
                "-5",
                "--5",
                "-+5",
                "--adjustment=5",
                "--adjustment",
                "--adj",
                "--adj=1",
                "--a=3",
                "-n1x",
                "-x",
                "--",
                "-6",
                "--nope",
                "-n -3"
            ],
            &["", "", "--"],
        ),
        with(
            "timeout",
            &[
                "-k",
                "5",
                "-k5",
                "-vk5",
                "-s",
                "KILL",
                "-sKILL",
                "--signal=9",
                "--signal",
                "--sig",
                "--foreground",
                "--fore",
                "--f",
                "--preserve-status",
                "--pres",
                "-v",
                "--ver",
                "--verb",
                "--v",
                "--kill-after=3",
                "--kill",
                "-x",
                "--nope=1",
            ],
            &["5", "5", "10s", "-- 5", "1m", ".5m", "5 --", "0"],
        ),
        with("nohup", &["--", "-x", "--nope", "--h"], &["", "--"]),
        with(
            "stdbuf",
            &[
                "-oL",
                "-o",
                "L",
                "-e0",
                "-e",
                "0",
                "-i0",
                "--output=L",
                "--output",
                "--out",
                "--o",
                "--input=0",
                "--err",
                "-oLe0",
                "-x",
                "--nope",
                "--"
            ],
            &["-oL", "-o0", "-oL --", ""],
        ),
        with(
            "xargs",
            &[
                "-n",
                "1",
                "-n1",
                "-rn1",
                "-r",
                "-0",
                "-t",
                "-P4",
                "-P",
                "2",
                "-I{}",
                "-I",
                "{}",
                "-i",
                "-iX",
                "--replace",
                "--replace=X",
                "--max-args=1",
                "--max-a",
                "--max",
                "-L1",
                "-l",
                "-l1",
                "-e",
                "-eX",
                "-E",
                "X",
                "-d",
                "x",
                "-dx",
                "--delim=x",
                "-x",
                "-s",
                "1000",
                "--eof",
                "--eof=X",
                "-a",
                "/dev/null",
                "--arg-file=/dev/null",
                "-Z",
                "--nope",
                "--",
                "--process-slot-var=Y",
                "--no-run",
                "--exit",
                "--ex",
                "--e",
                "--null",
            ],
            &["", "", "--"],
        ),
    ]
}

/// Whatever the tools run, the matcher either read, or it doubts the command.
fn compare(probe: &Probe, argv: &[String], read_runs: &Cell<u32>) -> Result<(), TestCaseError> {
    let runs = probe.runs(argv);
    let read = read_command(argv);
    for run in runs {
        read_runs.set(read_runs.get() + u32::from(!read.opaque));
        let mut expected = vec![probe.path()];
        expected.extend(run);
        let seen = read.opaque || read.readings.last() == Some(&expected);
        prop_assert!(seen, "{:?} ran {:?}, read {:?}", argv, expected, read);
    }
    Ok(())
}

#[test]
// check: WRAP-3
fn whatever_a_real_wrapper_runs_was_read() {
    let probe = Probe::new("options");
    let read_runs = Cell::new(0);
    let config = Config {
        // PROPTEST_CASES can ask for more.
        cases: Config::default().cases.max(400),
        failure_persistence: None,
        ..Config::default()
    };
    let strategy = (
        proptest::collection::vec(wrapper(), 1..4),
        proptest::collection::vec("[-a-z={}X]{0,4}", 0..3),
    );
    let result = TestRunner::new(config).run(&strategy, |(wrappers, args)| {
        let mut argv: Vec<String> = wrappers.into_iter().flatten().collect();
        argv.push(probe.path());
        argv.extend(args);
        compare(&probe, &argv, &read_runs)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(
        read_runs.get() >= 40,
        "only {} commands ran and were read",
        read_runs.get()
    );
}

#[test]
// check: WRAP-4
fn whatever_env_makes_of_a_text_was_read() {
    let probe = Probe::new("text");
    let read_runs = Cell::new(0);
    let config = Config {
        // PROPTEST_CASES can ask for more.
        cases: Config::default().cases.max(400),
        failure_persistence: None,
        ..Config::default()
    };
    let piece = prop_oneof![
        select(vec![
            " ", "'", "\"", "\\", "#", "$", "_", "c", "n", "t", "a", "b", "\t", "\\_", "\\c",
            "\\\\", "\\'", "\\\"", "\\$", "\\#", "${HOME}", "' '", "\" \"", "\u{b}"
        ])
        .prop_map(str::to_owned),
        "[a-f ]{0,3}",
    ];
    let strategy = proptest::collection::vec(piece, 0..10);
    let result = TestRunner::new(config).run(&strategy, |pieces| {
        let text = format!("{} {}", probe.path(), pieces.concat());
        compare(
            &probe,
            &["env".to_owned(), "-S".to_owned(), text, "last".to_owned()],
            &read_runs,
        )
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(
        read_runs.get() >= 40,
        "only {} commands ran and were read",
        read_runs.get()
    );
}

#[test]
fn the_comparison_can_see_what_ran() {
    let probe = Probe::new("sight");
    assert!(Path::new(&probe.path()).is_file());
    let argv = ["env", "A=1", &probe.path(), "x", "", "y z"].map(str::to_owned);
    assert_eq!(probe.runs(&argv), [["x", "", "y z"]]);
}
