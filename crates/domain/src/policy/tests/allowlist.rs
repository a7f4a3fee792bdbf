use super::*;

fn list(default: &str, allow: &[&str]) -> Policy {
    policy(json!({"exec": {"default": default, "allow": allow}}))
}

#[test]
// check: ALLOW-1
// check: ALLOW-4
fn what_is_not_listed_is_held_or_refused_under_the_reserved_name() {
    let ask = list("ask", &["ls", "git"]);
    let line = argv("rm -rf /");
    let verdict = ask.judge_exec(ExecAction::Argv(&line));
    assert_eq!(
        (verdict.severity(), verdict.asks[0].name.as_str()),
        (Severity::Ask, "exec.default")
    );
    assert_eq!(severity(&ask, "ls -l"), Severity::Pass);
    let deny = list("deny", &["ls"]);
    let verdict = deny.judge_exec(ExecAction::Argv(&line));
    assert_eq!(
        verdict.deny.map(PolicyGate::denial).as_deref(),
        Some("refused by hitl gate exec.default")
    );
    assert!(ask.gate("exec.default").is_some() && gates(json!([])).gate("exec.default").is_none());
}

#[test]
// check: ALLOW-2
fn shells_and_interpreters_are_like_any_other_program() {
    let none = list("ask", &["ls"]);
    assert_eq!(severity(&none, "python -c x"), Severity::Ask);
    assert_eq!(severity(&none, "bash -c ls"), Severity::Ask);
    assert_eq!(
        none.judge_exec(ExecAction::Shell("ls")).severity(),
        Severity::Ask
    );
    let some = list("ask", &["python", "bash", "sh"]);
    assert_eq!(severity(&some, "python -c x"), Severity::Pass);
    assert_eq!(severity(&some, "bash -c ls"), Severity::Pass);
    assert_eq!(
        some.judge_exec(ExecAction::Shell("ls")).severity(),
        Severity::Pass
    );
}

#[test]
// check: ALLOW-3
fn gates_apply_on_top() {
    let policy = policy(json!({
        "gates": [{"name":"push","on":"exec","match":{"program":"git","args":["push"]}}],
        "exec": {"default":"deny","allow":["git"]}
    }));
    assert_eq!(severity(&policy, "git status"), Severity::Pass);
    assert_eq!(severity(&policy, "git push"), Severity::Ask);
    assert_eq!(severity(&policy, "hg push"), Severity::Deny);
}

#[test]
// check: ALLOW-5
fn a_bare_entry_covers_the_bare_name_and_the_standard_folders() {
    let bare = list("ask", &["git"]);
    for line in [
        "git",
        "/bin/git",
        "/sbin/git x",
        "/usr/bin/git",
        "/usr/sbin/git",
        "/usr/local/bin/git",
    ] {
        assert_eq!(severity(&bare, line), Severity::Pass, "{line}");
    }
    for line in [
        "./git",
        "/tmp/git",
        "bin/git",
        "/usr/bin/../../tmp/git",
        "//bin/git",
        "/git",
        "/usr/local/sbin/git",
        "/usr/bin//git",
        "git/",
        "/usr/bin/git/",
        "gitx",
    ] {
        assert_eq!(severity(&bare, line), Severity::Ask, "{line}");
    }
    let absolute = list("ask", &["/opt/git"]);
    assert_eq!(severity(&absolute, "/opt/git x"), Severity::Pass);
    for line in ["git", "/usr/bin/git", "/opt/../opt/git", "opt/git"] {
        assert_eq!(severity(&absolute, line), Severity::Ask, "{line}");
    }
}

#[test]
// check: ALLOW-6
fn only_harmless_wrappers_need_no_entry() {
    let git = list("ask", &["git"]);
    for line in [
        "nice git",
        "nohup git",
        "timeout 5 git",
        "stdbuf -oL git",
        "env git",
        "env A=1 git",
        "env -i -u X nice -n 5 /usr/bin/timeout 3 git",
        "env -S 'A=1 git x'",
    ] {
        assert_eq!(severity(&git, line), Severity::Pass, "{line}");
    }
    for line in [
        "sudo git",
        "xargs git",
        "env",
        "nice",
        "timeout 5",
        "./nice git",
        "/tmp/env git",
        "env rm",
        "timeout 5 rm",
        "busybox git",
    ] {
        assert_eq!(severity(&git, line), Severity::Ask, "{line}");
    }
    let all = list("ask", &["git", "sudo", "xargs", "env", "busybox"]);
    assert_eq!(severity(&all, "sudo -u x git"), Severity::Pass);
    assert_eq!(severity(&all, "sudo rm"), Severity::Ask);
    assert_eq!(severity(&all, "env"), Severity::Pass);
    assert_eq!(severity(&all, "busybox rm"), Severity::Pass);
    assert_eq!(severity(&all, "xargs git"), Severity::Ask);
    assert_eq!(severity(&all, "env xargs git"), Severity::Ask);
}

#[test]
// check: ALLOW-7
fn an_assignment_is_no_program_name() {
    assert_eq!(
        severity(&list("ask", &["git"]), "A=1 git status"),
        Severity::Ask
    );
    let violations =
        Policy::compile(&block(json!({"exec":{"allow":["A=1"]}})), &facts()).unwrap_err();
    assert_eq!(violations[0].path, "hitl.exec.allow[0]");
}

#[test]
// check: ALLOW-8
fn variables_that_run_programs_pass_no_allowlist() {
    let policy = list("ask", &["git", "env", "sudo"]);
    for line in [
        "env PATH=/tmp git",
        "env LD_PRELOAD=/x git",
        "env A=1 GIT_SSH_COMMAND=x git fetch",
        "env PAGER=x git log",
        "sudo LD_PRELOAD=x git",
        "env -S 'EDITOR=x git'",
        "env nice env PATH=/tmp git",
        "env 'BASH_FUNC_git%%=x' git",
        "env =x git",
    ] {
        assert_eq!(severity(&policy, line), Severity::Ask, "{line}");
    }
    assert_eq!(
        severity(&policy, "env A=1 GIT_TRACE=1 git log"),
        Severity::Pass
    );
}

#[test]
// check: WRAP-5
fn what_cannot_be_read_passes_no_allowlist() {
    let policy = list("ask", &["git", "env", "sudo", "nice", "timeout", "sh"]);
    for line in [
        "env -z git",
        "timeout --v 5 git",
        "env -S 'git ${X}'",
        "sudo -s git",
        "sudo -R /r git",
        "env -a sh git",
    ] {
        assert_eq!(severity(&policy, line), Severity::Ask, "{line}");
    }
    assert_eq!(
        severity(&policy, &format!("{}git", "nice ".repeat(17))),
        Severity::Ask
    );
}

#[test]
// check: ALLOW-9
fn an_entry_that_gives_away_more_than_itself_is_warned_of() {
    let policy = list(
        "ask",
        &[
            "ls",
            "cat",
            "grep",
            "python3.12",
            "bash",
            "sudo",
            "xargs",
            "busybox",
            "find",
            "rg",
            "/usr/bin/make",
            "awk",
            "vim",
            "tar",
            "git",
            "gcc-12",
            "ld-linux-x86-64.so.2",
            "echo",
        ],
    );
    let warned: Vec<String> = policy
        .warnings()
        .into_iter()
        .map(|warning| warning.path)
        .collect();
    let expected: Vec<String> = (3..=16).map(|i| format!("hitl.exec.allow[{i}]")).collect();
    assert_eq!(warned, expected);
}
