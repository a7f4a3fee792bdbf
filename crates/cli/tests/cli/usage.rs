//! Bad usage, help, and readers that leave early.

use std::process::Stdio;

use crate::support::{Home, Ran};

// check: CLI-3
#[test]
fn bad_usage_exits_with_2_and_says_why_on_stderr() {
    let home = Home::new();
    for (args, part) in [
        (&["frobnicate"][..], "unrecognized subcommand"),
        (&["environment", "exec", "fuse-a"], "CMD"),
        (
            &[
                "environment",
                "exec",
                "fuse-a",
                "--timeout",
                "5",
                "--",
                "ls",
            ],
            "not a duration",
        ),
        (
            &["environment", "exec", "fuse-a", "--shell", "--", "a", "b"],
            "no server is known",
        ),
        (&["hitl", "reject", "int_1"], "--reason"),
        (
            &["hitl", "approve", "int_1", "--grant", "forever"],
            "ttl:30m",
        ),
        (&["hitl", "approve", "int_1", "--", "ls"], "--edit"),
        (&["hitl", "list", "--state", "open"], "cancelled or all"),
        (&["hitl", "list", "--kind", "question"], "lifecycle"),
        (
            &["hitl", "answer", "int_1", "yes", "--actor-name", "Alice"],
            "--actor",
        ),
        (&["hitl", "audit", "--verify", "--since", "24h"], "--since"),
        (
            &["hitl", "audit", "--head", "1:ab", "--verify"],
            "64 hex digits",
        ),
        (&["apikeys", "create", "--scopes", "write"], "act-as"),
        (&["-o", "xml", "hitl", "list"], "json"),
        (&["up", "--secret", "x"], "NAME=VALUE"),
        (&[], "Usage:"),
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.err.contains(part), "{args:?}: {ran:?}");
        assert_eq!(ran.out, "", "{args:?}");
    }
}

#[test]
fn without_a_server_to_talk_to_the_one_line_says_what_to_do() {
    let ran = Home::new().run(&["hitl", "list"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    assert!(ran.err.contains("fuse connect") && ran.err.contains("fuse dev"));
}

#[test]
fn help_and_version_are_data() {
    let home = Home::new();
    let help = home.run(&["--help"]).ok();
    for word in [
        "dev",
        "serve",
        "environment",
        "hitl",
        "FUSE_URL",
        "NO_COLOR",
    ] {
        assert!(help.contains(word), "{word}");
    }
    assert!(!help.contains("openapi"), "hidden commands stay hidden");
    assert!(home.run(&["--version"]).ok().starts_with("fuse "));
    for command in ["exec", "create", "watch"] {
        let help = home.run(&["environment", command, "--help"]).ok();
        assert!(help.contains("Usage: fuse environment"), "{help}");
    }
}

// check: CLI-17
#[test]
fn a_reader_that_leaves_early_ends_the_command_quietly() {
    let home = Home::new();
    for args in [&["schema"][..], &["completions", "bash"], &["openapi"]] {
        let mut child = home
            .fuse(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
    }
}

// check: CLI-1
#[test]
fn a_server_that_is_not_there_is_an_error_on_stderr() {
    let home = Home::new();
    let mut command = home.fuse(&["hitl", "approve", "int_018700000000700080000000000000aa"]);
    command
        .env("FUSE_URL", "http://127.0.0.1:1")
        .env("FUSE_TOKEN", "a-token-for-nobody");
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    assert!(
        ran.err.contains("no answer from http://127.0.0.1:1"),
        "{ran:?}"
    );
    assert!(!ran.err.contains("a-token-for-nobody"), "{ran:?}");
}
