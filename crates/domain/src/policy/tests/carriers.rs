use super::*;

fn force() -> Policy {
    gates(json!([{"name":"g","on":"exec","match":{"program":"git","args":["push","--force"]}}]))
}

fn shell() -> Policy {
    gates(json!([{"name":"s","on":"exec","match":{"shell":true}}]))
}

#[test]
// check: CARRY-1
fn a_gate_sees_the_program_behind_a_carrier() {
    for line in [
        "setsid -f",
        "time -p",
        "ionice -c3",
        "flock F",
        "setpriv --reuid=0",
        "find . -exec",
        "doas -u x",
        "command",
        "chroot /r",
        "unshare -r",
        "nsenter -t 1 -m",
        "taskset 1",
        "chrt -b 0",
        "strace -f",
        "gdb --args",
        "ssh-agent",
        "dbus-run-session --",
        "xvfb-run -a",
        "systemd-run --user",
        "start-stop-daemon -S -x",
        "runuser -u x --",
        "rlwrap",
        "unbuffer",
        "tmux new",
        "screen -dm",
        "docker exec -it web",
        "docker --context c run i",
        "kubectl exec p --",
        "busybox setsid",
        "toybox time",
        "/usr/bin/setsid",
        "setsid sudo",
        "setsid env A=1",
        "sudo setsid nice",
        "setsid flock F find . -exec",
        "watch",
        "parallel",
        "prlimit --nofile=1",
        "setarch -R",
        "linux64",
        "ld-linux-x86-64.so.2",
        "fakeroot --",
        "valgrind",
        "perf stat",
        "ssh host",
        "env -S 'setsid -w'",
        "setsid env -S 'A=1'",
    ] {
        assert_eq!(
            severity(&force(), &format!("{line} git push --force")),
            Severity::Ask,
            "{line}"
        );
    }
    for line in [
        "setsid env -S 'git push' --force",
        "start-stop-daemon -S push -x/usr/bin/git -- --force",
        "start-stop-daemon -S --exec=git -- push --force",
        "su user push -s/usr/bin/git -- --force",
        "setsid xargs git",
        "xargs setsid git",
        "xargs find",
        "find . -exec {} push --force ;",
        "find . -exec nice {} push --force ;",
        "find . -exec setsid {} push --force ;",
        "parallel git",
    ] {
        assert_eq!(severity(&force(), line), Severity::Ask, "{line}");
    }
    for line in [
        "setsid git push",
        "git-setsid git push --force",
        "docker rm git push",
        "find . -name x",
        "echo setsid git push --force",
        "python3 git push --force",
    ] {
        assert_eq!(severity(&force(), line), Severity::Pass, "{line}");
    }
}

#[test]
// check: CARRY-2
fn the_text_that_a_carrier_hands_to_a_shell_is_seen() {
    for line in [
        "su -c 'git push'",
        "su --command=reboot",
        "su '-cgit push'",
        "script -qc 'git push' /dev/null",
        "watch 'git push'",
        "parallel x",
        "flock F -c 'git push'",
        "tmux new 'git push'",
        "busybox sh -c x",
        "find . -exec sh -c x ;",
        "gdb -ex 'shell x'",
        "ssh host x",
        "runuser -l x -c y",
        "setsid su --comm=x",
        "setsid sh -c x",
        "strace -o '|x' ls",
        "time bash -lc x",
        "systemd-run -p ExecStartPost=x y",
    ] {
        assert_eq!(severity(&shell(), line), Severity::Ask, "{line}");
    }
    for line in [
        "setsid git push",
        "time gcc -c x.c",
        "find . -name x -exec grep y {} +",
        "setsid sh file -c",
        "docker build -c x",
    ] {
        assert_eq!(severity(&shell(), line), Severity::Pass, "{line}");
    }
}

#[test]
// check: CARRY-3
fn an_allowlist_counts_a_carrier_as_itself_and_validate_warns() {
    let policy = policy(json!({"exec":{"allow":["find","setsid"]}}));
    assert_eq!(severity(&policy, "find . -name sudo -o -x"), Severity::Pass);
    assert_eq!(severity(&policy, "setsid git"), Severity::Pass);
    assert_eq!(severity(&policy, "xargs setsid git"), Severity::Ask);
    assert_eq!(severity(&policy, "time git"), Severity::Ask);
    assert_eq!(policy.warnings().len(), 2);
}

#[test]
// check: CARRY-4
fn a_policy_names_carriers_of_its_own() {
    let policy = policy(json!({"exec":{"carriers":["mytool"]},"gates":[
        {"name":"g","on":"exec","match":{"program":"git","args":["push"]}},
        {"name":"s","on":"exec","match":{"shell":true}}]}));
    assert_eq!(severity(&policy, "/opt/mytool -x git push"), Severity::Ask);
    assert_eq!(severity(&policy, "setsid mytool 'git push'"), Severity::Ask);
    assert_eq!(severity(&policy, "mytool --command=x"), Severity::Ask);
    assert_eq!(severity(&policy, "mytool ls"), Severity::Pass);
    assert_eq!(
        severity(&policy, "ls"),
        Severity::Pass,
        "it makes no allowlist"
    );
    for names in [
        json!([]),
        json!(["a/b"]),
        json!(["sudo"]),
        json!(["busybox"]),
        json!(vec!["x"; 65]),
    ] {
        assert!(Policy::compile(&block(json!({"exec":{"carriers":names}})), &facts()).is_err());
    }
}

#[test]
// check: CARRY-5
fn the_verdict_names_the_carrier_that_it_was_read_through() {
    let carrier = |line: &str| force().judge_exec(ExecAction::Argv(&argv(line))).carrier;
    assert_eq!(
        carrier("nice /usr/bin/setsid git push --force").as_deref(),
        Some("setsid")
    );
    assert_eq!(carrier("sudo git push --force"), None);
    assert_eq!(carrier("setsid ls"), None);
}

#[test]
// check: CARRY-6
fn a_long_command_behind_carriers_is_read_in_linear_time() {
    let policy = gates(
        json!([{"name":"g","on":"exec","match":{"program":"git","args":["push"]}},{"name":"s","on":"exec","match":{"shell":true}}]),
    );
    // Anything but linear would take minutes.
    for piece in [
        "nice",
        "setsid",
        "env -u",
        "xargs -I{}",
        "sudo -s",
        "bash -o",
        "git",
        "env -S x",
        "{}",
        "busybox",
        "find -exec",
    ] {
        let words: Vec<String> = argv("setsid")
            .into_iter()
            .chain(argv(piece).into_iter().cycle().take(100_000))
            .collect();
        let _ = policy.judge_exec(ExecAction::Argv(&words));
    }
}
