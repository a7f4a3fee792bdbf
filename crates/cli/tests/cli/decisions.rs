//! `hitl`: what is held, how it is shown, and decisions without a terminal.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Dev, Running};

// check: CLI-8
#[test]
fn a_held_command_waits_and_returns_the_approved_result() {
    let dev = Dev::start();
    let env = dev.environment("held");
    let (mut exec, id) = dev.held(&env, &["printf", "ran it"]);
    let listed = dev.run(&["hitl", "list"]).ok();
    assert!(
        listed.contains(&id) && listed.contains("printf 'ran it'"),
        "{listed}"
    );
    let shown = dev.run(&["hitl", "show", &id]).ok();
    assert!(
        shown.contains("gate says    printing needs a person"),
        "{shown}"
    );

    let approved = dev
        .run(&[
            "hitl", "approve", &id, "--grant", "env", "--reason", "fine", "--actor", "alice",
        ])
        .ok();
    assert_eq!(approved, format!("{id} approved (grant env)\n"));
    let (status, _) = exec.ends();
    assert!(status.success());
    assert_eq!(exec.printed(), "ran it");
    let shown = dev.run(&["hitl", "show", &id]).ok();
    assert!(
        shown.contains("by alice") && shown.contains("stdout       ran"),
        "{shown}"
    );

    // The grant lets the same command through.
    let again = dev.run(&["environment", "exec", &env, "--", "printf", "ran it"]);
    assert_eq!((again.code, again.err.as_str()), (Some(0), ""), "{again:?}");

    let late = dev.run(&["hitl", "reject", &id, "--reason", "too late"]);
    assert_eq!(late.code, Some(1));
    assert!(late.err.contains("state: approved"), "{late:?}");
}

// check: CLI-8, CLI-9
#[test]
fn a_held_destroy_waits_shows_what_it_is_and_is_not_told_as_done_before_it_is() {
    let dev = Dev::start();
    let gate =
        serde_json::json!({"name": "keep", "on": "lifecycle", "match": {"action": "destroy"}});
    let request = serde_json::json!({"task_id": "kept", "hitl": {"gates": [gate]}}).to_string();
    let file = dev.home.write("kept.json", &request);
    dev.run(&["environment", "create", "-f", file.to_str().unwrap()])
        .ok();
    let destroy = || {
        let mut running = Running::start(dev.home.fuse(&["environment", "destroy", "fuse-kept"]));
        let line = running.says("held by hitl gate keep: waiting on intervention int_");
        let id = line.rsplit(' ').next().unwrap().to_owned();
        (running, id)
    };
    let (mut running, id) = destroy();
    let shown = dev.run(&["hitl", "show", &id]).ok();
    assert!(shown.contains("action       destroy"), "{shown}");
    let listed = dev.run(&["hitl", "list"]).ok();
    assert!(listed.trim_end().ends_with("destroy"), "{listed}");
    dev.run(&["hitl", "reject", &id, "--reason", "still in use"])
        .ok();
    running.says("still in use");
    assert_eq!(running.ends().0.code(), Some(1));

    let left = dev.run(&["environment", "destroy", "--no-wait", "fuse-kept"]);
    assert_eq!(left.code, Some(1), "{left:?}");
    assert!(left.out.starts_with("int_"), "{left:?}");
    dev.run(&["hitl", "reject", left.out.trim(), "--reason", "later"])
        .ok();

    let (mut running, id) = destroy();
    dev.run(&["environment", "get", "fuse-kept"]).ok();
    dev.run(&["hitl", "approve", &id]).ok();
    running.says("removed fuse-kept");
    assert!(running.ends().0.success());
    let gone = dev.run(&["environment", "get", "fuse-kept"]);
    assert_eq!(gone.code, Some(1), "{gone:?}");
}

#[test]
fn a_rejection_and_a_denial_exit_with_1_and_say_why() {
    let dev = Dev::start();
    let env = dev.environment("refused");
    let (mut exec, id) = dev.held(&env, &["printf", "x"]);
    let blank = dev.run(&["hitl", "reject", &id, "--reason", " "]);
    assert_eq!(blank.code, Some(1), "{blank:?}");
    dev.run(&["hitl", "reject", &id, "--reason", "not \u{1b}[31mnow"])
        .ok();
    let (status, _) = exec.ends();
    assert_eq!(status.code(), Some(1));
    assert_eq!(exec.said.last().unwrap(), "rejected: not now");
    assert_eq!(exec.printed(), "");

    let denied = dev.run(&["environment", "exec", &env, "--", "reboot"]);
    assert_eq!((denied.code, denied.out.as_str()), (Some(1), ""));
    assert!(
        denied.err.contains("error: not this machine") && denied.err.contains("gate: never"),
        "{denied:?}"
    );
}

// check: CLI-10
#[test]
fn an_edited_command_runs_in_place_of_the_held_one() {
    let dev = Dev::start();
    let env = dev.environment("edited");
    let (mut exec, id) = dev.held(&env, &["printf", "a b"]);
    dev.run(&[
        "hitl", "approve", &id, "--edit", "--", "echo", "other", "a  b",
    ])
    .ok();
    assert!(exec.ends().0.success());
    assert_eq!(exec.printed(), "other a  b\n");

    let (mut exec, id) = dev.held(&env, &["printf", "two"]);
    let script = dev
        .home
        .write("editor.sh", "#!/bin/sh\nsed -i 's/two/three/' \"$2\"\n");
    let mut command = dev.home.fuse(&["hitl", "approve", &id, "--edit"]);
    let editor = format!("sh {} --wait", script.display());
    assert!(command.env("EDITOR", editor).status().unwrap().success());
    assert!(exec.ends().0.success());
    assert_eq!(exec.printed(), "three");

    let (_exec, id) = dev.held(&env, &["printf", "four"]);
    for editor in ["truncate -s 0", "false", "/no/such/editor"] {
        let mut command = dev.home.fuse(&["hitl", "approve", &id, "--edit"]);
        let status = command
            .env("VISUAL", editor)
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(1), "{editor}");
    }
    let shown = dev.run(&["hitl", "show", &id]).ok();
    assert!(shown.contains("state        pending"), "{shown}");
}

// check: CLI-11
#[test]
fn a_decision_on_something_else_than_was_seen_is_refused() {
    let dev = Dev::start();
    let env = dev.environment("hashed");
    let id = dev.asks(&env, "Go?", &[]);
    let stale = "0".repeat(64);
    for args in [
        &["hitl", "answer", &id, "yes", "--payload-hash", &stale][..],
        &["hitl", "approve", &id, "--payload-hash", &stale],
        &[
            "hitl",
            "reject",
            &id,
            "--reason",
            "no",
            "--payload-hash",
            &stale,
        ],
    ] {
        let ran = dev.run(args);
        assert_eq!(ran.code, Some(1), "{args:?} {ran:?}");
    }
    let json: Value =
        serde_json::from_str(&dev.run(&["-o", "json", "hitl", "show", &id]).ok()).unwrap();
    assert_eq!(json["state"], "pending");
    let seen = json["payload_hash"].as_str().unwrap();
    dev.run(&["hitl", "answer", &id, "yes", "--payload-hash", seen])
        .ok();
}

#[test]
fn questions_take_their_choices_and_reviews_a_verdict() {
    let dev = Dev::start();
    let env = dev.environment("asks");
    let id = dev.asks(&env, "Deploy\u{1b}[2J?", &["yes", "no"]);
    let shown = dev.run(&["hitl", "show", &id]).ok();
    assert!(
        shown.contains("question     Deploy?\n") && shown.contains("choice       yes"),
        "{shown}"
    );
    let wrong = dev.run(&["hitl", "answer", &id, "maybe"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    let answered = dev.run(&["hitl", "answer", &id, "yes"]).ok();
    assert_eq!(answered, format!("{id} approved\n"));

    // check: CLI-9
    let id = dev.reviews(&env, "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\u{202e}\n");
    let shown = dev.run(&["hitl", "show", &id]).ok();
    assert!(shown.contains("format       diff"), "{shown}");
    assert!(shown.ends_with("\n-x\n+y\\u{202e}\n"), "{shown}");
    let no_answer = dev.run(&["hitl", "answer", &id, "yes"]);
    assert!(no_answer.err.contains("review"), "{no_answer:?}");
    dev.run(&["hitl", "approve", &id, "--reason", "fine"]).ok();
    assert!(
        dev.run(&["hitl", "list", "--kind", "review", "--state", "all"])
            .ok()
            .contains("approved")
    );
    assert!(!dev.run(&["hitl", "list"]).ok().contains("int_"));
}

#[test]
fn who_does_not_wait_gets_the_id_and_who_leaves_is_told_what_goes_on() {
    let dev = Dev::start();
    let env = dev.environment("leaves");
    let ran = dev.run(&[
        "environment",
        "exec",
        &env,
        "--no-wait",
        "--",
        "printf",
        "x",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.out.starts_with("int_") && ran.err.contains(ran.out.trim()),
        "{ran:?}"
    );

    let (mut exec, id) = dev.held(&env, &["printf", "y"]);
    exec.signal(Signal::SIGINT);
    let (status, _) = exec.ends();
    assert_eq!(status.code(), Some(130));
    assert!(
        exec.said
            .last()
            .unwrap()
            .contains(&format!("{id} stays pending")),
        "{:?}",
        exec.said
    );
    assert!(dev.run(&["hitl", "list"]).ok().contains(&id));
}

#[test]
fn watch_prints_what_waits_and_what_comes() {
    let dev = Dev::start();
    let env = dev.environment("watched");
    let first = dev.asks(&env, "First?", &[]);
    let mut command = dev
        .home
        .fuse(&["-o", "json", "hitl", "watch", "--env", &env]);
    let mut watch = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(watch.stdout.take().unwrap()));
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["id"], first.as_str());
    let second = dev.asks(&env, "Second?", &[]);
    assert_eq!(next()["id"], second.as_str());
    watch.kill().unwrap();
    watch.wait().unwrap();
}

// check: AUDIT-10 AUDIT-11
#[test]
fn the_audit_log_is_read_and_verified_here() {
    let dev = Dev::start();
    let env = dev.environment("audited");
    let id = dev.asks(&env, "Go?", &[]);
    dev.run(&["hitl", "reject", &id, "--reason", "no"]).ok();
    let text = dev
        .run(&["hitl", "audit", "--env", &env, "--since", "1h"])
        .ok();
    assert!(
        text.contains("raised") && text.contains("decided") && text.contains(&id),
        "{text}"
    );
    let verified = dev.run(&["hitl", "audit", "--verify"]).ok();
    let head = verified.trim().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(verified, format!("2 entries, head {head}\n"));
    dev.run(&["hitl", "audit", "--verify", "--head", &head])
        .ok();
    let longer = head.replacen('2', "3", 1);
    let cut = dev.run(&["hitl", "audit", "--verify", "--head", &longer]);
    assert_eq!(cut.code, Some(1));
    assert!(
        cut.err.contains("shorter than the noted head seq 3"),
        "{cut:?}"
    );
}
