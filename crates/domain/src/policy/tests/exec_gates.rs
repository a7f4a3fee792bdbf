use super::*;

fn force_push() -> Policy {
    gates(json!([{"name":"g","on":"exec","match":{"program":"git","args":["push","--force"]}}]))
}

#[test]
// check: GATE-1
fn a_program_is_known_by_its_basename_wherever_it_lies() {
    let policy = force_push();
    for program in ["git", "/usr/bin/git", "./git", "/tmp/x/git", "../git"] {
        assert_eq!(
            severity(&policy, &format!("{program} push --force")),
            Severity::Ask,
            "{program}"
        );
    }
    for program in ["gitk", "mygit", "git.sh", "GIT", "/git/x"] {
        assert_eq!(
            severity(&policy, &format!("{program} push --force")),
            Severity::Pass,
            "{program}"
        );
    }
}

#[test]
// check: GATE-2
fn args_match_in_order_and_whole_but_not_side_by_side() {
    let policy = force_push();
    for line in [
        "git push --force",
        "git -C dir push origin --force main",
        "git push push --force --force",
    ] {
        assert_eq!(severity(&policy, line), Severity::Ask, "{line}");
    }
    for line in [
        "git push",
        "git --force push",
        "git push --force=x",
        "git push --forced",
        "git pushx --force",
        "git push -f",
    ] {
        assert_eq!(severity(&policy, line), Severity::Pass, "{line}");
    }
}

#[test]
// check: GATE-3
fn every_field_that_is_set_must_match() {
    let policy = force_push();
    assert_eq!(severity(&policy, "hg push --force"), Severity::Pass);
    assert_eq!(severity(&policy, "git pull --force"), Severity::Pass);
}

#[test]
// check: CONF-13
fn args_without_a_program_match_any_program() {
    let policy = gates(json!([{"name":"g","on":"exec","match":{"args":["--force"]}}]));
    assert_eq!(severity(&policy, "anything at all --force"), Severity::Ask);
    assert_eq!(severity(&policy, "sudo anything --force"), Severity::Ask);
    assert_eq!(severity(&policy, "anything --forced"), Severity::Pass);
    assert_eq!(
        severity(&policy, "--force"),
        Severity::Pass,
        "the program is no argument"
    );
}

#[test]
fn any_of_several_programs_matches() {
    let policy = gates(json!([{"name":"g","on":"exec","match":{"program":["rm","rmdir"]}}]));
    assert_eq!(severity(&policy, "rm x"), Severity::Ask);
    assert_eq!(severity(&policy, "rmdir x"), Severity::Ask);
    assert_eq!(severity(&policy, "ls rm"), Severity::Pass);
}

#[test]
// check: GATE-17
fn a_shell_gate_sees_every_text_given_to_a_shell() {
    let policy = gates(json!([{"name":"g","on":"exec","match":{"shell":true}}]));
    assert_eq!(
        policy.judge_exec(ExecAction::Shell("ls")).severity(),
        Severity::Ask
    );
    for line in [
        "sh -c ls",
        "/bin/bash -lc ls",
        "sudo -u x bash -ec ls",
        "env A=b dash -c ls",
        "busybox sh -c ls",
        "busybox ash -c ls",
        "timeout 5 busybox env sh -c ls",
        "sudo -s ls",
        "sudo -i",
        "sudo --login ls",
        "xargs sh",
        "xargs -n1 bash x",
        "env -S 'sh -c ls'",
        "env -S 'sh ${X}'",
        "sudo --unknown-thing ls",
    ] {
        assert_eq!(severity(&policy, line), Severity::Ask, "{line}");
    }
}

#[test]
// check: GATE-18
fn a_shell_gate_lets_scripts_and_programs_pass() {
    let policy = gates(json!([{"name":"g","on":"exec","match":{"shell":true}}]));
    for line in [
        "sh script.sh",
        "bash script -c x",
        "bash",
        "sh -s",
        "git -c a=b push",
        "python -c x",
        "env sh script",
        "busybox ls -c",
    ] {
        assert_eq!(severity(&policy, line), Severity::Pass, "{line}");
    }
}

#[test]
fn a_shell_string_runs_the_program_sh_and_shows_nothing_else() {
    let policy = gates(json!([
        {"name":"sh","on":"exec","mode":"notify","match":{"program":"sh"}},
        {"name":"git","on":"exec","match":{"program":"git"}},
        {"name":"args","on":"exec","match":{"args":["push"]}},
    ]));
    let verdict = policy.judge_exec(ExecAction::Shell("git push"));
    assert_eq!(verdict.severity(), Severity::Notify);
    assert_eq!(verdict.notifies[0].name, "sh");
}

#[test]
// check: GATE-25
#[allow(clippy::disallowed_methods, reason = "this test measures time")]
fn a_verdict_takes_time_in_proportion_to_the_words() {
    let several: Vec<Value> = (0..10)
        .map(|i| json!({"name":format!("g{i}"),"on":"exec","match":{"program":"git","args":["push","--force"]}}))
        .collect();
    let policy = gates(json!(several));
    let many = |front: &str, word: &str| -> Vec<String> {
        let mut words = argv(front);
        words.extend(std::iter::repeat_n(word.to_owned(), 50_000));
        words.push("git".to_owned());
        words
    };
    let start = std::time::Instant::now();
    for (front, word) in [
        ("git push", "x"),
        ("env", "A=1"),
        ("env", "-i"),
        ("sudo", "A=1"),
        ("env", "-S"),
        ("nice", "-5"),
        ("bash", "-o"),
        ("env -z", "git"),
        ("nice", "nice"),
    ] {
        let _ = policy.judge_exec(ExecAction::Argv(&many(front, word)));
    }
    // Each takes well under a second in any build; a square of the words would take minutes.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}
