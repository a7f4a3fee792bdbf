use super::*;

/// The program and arguments that are left when every wrapper is off.
fn innermost(line: &str) -> Vec<String> {
    let read = read_command(&argv(line));
    assert!(!read.opaque, "{line} is opaque");
    read.readings.last().cloned().unwrap_or_default()
}

#[test]
// check: WRAP-1
// check: WRAP-2
// check: WRAP-3
fn wrappers_are_taken_off_in_every_spelling() {
    for line in [
        "env",
        "env A=1 B=",
        "env -i",
        "env -",
        "env - A=1",
        "env -i - A=1",
        "env -u X",
        "env -uX",
        "env --unset=X",
        "env --unset X",
        "env --uns X",
        "env -iuX",
        "env -C /d",
        "env --chdir=/d A=1",
        "env -0",
        "env -v",
        "env --",
        "env -- A=1",
        "env --block-signal",
        "env --block-signal=INT",
        "env --default-signal",
        "env --ignore-e",
        "env --list-signal-handling",
        "env -u X -C dir --",
        "env =x",
        "sudo",
        "sudo -u x",
        "sudo -ux",
        "sudo --user=x",
        "sudo --user x",
        "sudo -nu x",
        "sudo -EHn",
        "sudo A=1",
        "sudo -n A=1 -u x B=2",
        "sudo --",
        "sudo -A -b -k",
        "sudo -g wheel",
        "sudo -p prompt",
        "sudo -C 3",
        "sudo -D /d",
        "sudo --preserve-env",
        "sudo --preserve-env=A,B",
        "sudo -T 5",
        "sudo --command-timeout=5",
        "sudo --host=h",
        "sudo -r role -t type",
        "sudo --non-inter",
        "nice",
        "nice -n 5",
        "nice -n5",
        "nice -5",
        "nice --5",
        "nice -+5",
        "nice --adjustment=5",
        "nice --adj 5",
        "nice -n 5 -6",
        "nice --",
        "nice -n -5",
        "timeout 5",
        "timeout -s KILL 10",
        "timeout -sKILL 10",
        "timeout --signal=9 1.5m",
        "timeout --sig 9 1",
        "timeout -k 5 10",
        "timeout -vk5 10",
        "timeout --preserve-status 1",
        "timeout --foreground 1",
        "timeout --fore 1",
        "timeout -- 5",
        "timeout -v 0",
        "nohup",
        "nohup --",
        "stdbuf -oL",
        "stdbuf -o L -e0",
        "stdbuf --output=L",
        "stdbuf --out 0",
        "stdbuf -i0 -o0 -e0",
        "stdbuf -oL --",
        "busybox",
        "busybox nice -n 5",
        "sudo env A=b timeout 5",
        "nice nohup stdbuf -oL env X=1",
        "sudo sudo sudo",
        "/usr/bin/env -i /usr/bin/sudo -n /bin/nice",
        "env -S 'A=1'",
        "env -S '-i A=1' B=2",
        "env -iS '-u X'",
        "env '--split-string=nice -n 5'",
        "env -S 'timeout 5 nice'",
        "env '-S-i'",
        "env -S '' -S ''",
    ] {
        assert_eq!(
            innermost(&format!("{line} git push --force")),
            words(&["git", "push", "--force"]),
            "{line}"
        );
    }
}

#[test]
// check: WRAP-4
fn a_split_string_becomes_words_in_place() {
    assert_eq!(
        innermost("env -S 'git push' --force"),
        words(&["git", "push", "--force"])
    );
    assert_eq!(
        innermost(r#"env '-Sgit "push it"' x"#),
        words(&["git", "push it", "x"])
    );
    assert_eq!(innermost("env -S 'A=1 -i' x"), words(&["-i", "x"]));
}

#[test]
// check: WRAP-8
fn a_wrapper_alone_is_its_own_program() {
    for line in [
        "env",
        "env A=1 B=2",
        "nice",
        "nice -n 5",
        "sudo -l",
        "timeout 5",
        "timeout",
        "nohup --help",
        "stdbuf -oL",
        "xargs",
        "busybox --list",
    ] {
        assert_eq!(innermost(line), argv(line), "{line}");
    }
}

#[test]
// check: WRAP-5
fn what_cannot_be_read_is_opaque() {
    for line in [
        "env -z git",
        "env --nothing git",
        "env --i git",
        "env --ignore git",
        "env --null=x git",
        "sudo -Z git",
        "sudo --pre git",
        "sudo -h host git",
        "sudo -R /r git",
        "sudo -e git",
        "nice -x git",
        "nice -n",
        "timeout --v 5 git",
        "timeout -5 git",
        "nohup -x git",
        "stdbuf -x git",
        "stdbuf -o",
        "xargs -Z git",
        "xargs --ma 5 git",
        "env -a sh git",
        "env --argv0=sh git",
        "env -\u{e9} git",
        "sudo -u",
    ] {
        assert!(read_command(&argv(line)).opaque, "{line}");
    }
    let deep = |n: usize| format!("{}git push", "nice ".repeat(n));
    assert!(!read_command(&argv(&deep(16))).opaque);
    assert!(read_command(&argv(&deep(17))).opaque);
}

#[test]
// check: WRAP-5
fn an_opaque_command_matches_every_gate_whose_program_is_among_its_words() {
    let policy = gates(json!([
        {"name":"git","on":"exec","mode":"notify","match":{"program":"git","args":["push","--force"]}},
        {"name":"shell","on":"exec","mode":"notify","match":{"shell":true}},
        {"name":"args","on":"exec","mode":"notify","match":{"args":["never"]}},
        {"name":"rm","on":"exec","mode":"notify","match":{"program":"rm"}},
        {"name":"timeout","on":"exec","mode":"notify","match":{"program":"timeout"}},
    ]));
    let seen = |line: &str| -> Vec<String> {
        let argv = argv(line);
        let verdict = policy.judge_exec(ExecAction::Argv(&argv));
        verdict
            .notifies
            .iter()
            .map(|gate| gate.name.clone())
            .collect()
    };
    assert_eq!(
        seen("timeout --odd 5 /usr/bin/git status"),
        ["git", "shell", "args", "timeout"]
    );
    assert_eq!(
        seen(&format!("{}git", "timeout 1 ".repeat(17))),
        ["git", "shell", "args", "timeout"]
    );
    // A variable in the text may stand for any program at all.
    assert_eq!(seen("env -S '${X} push'").len(), 5);
    assert_eq!(seen("env -S 'git ${X}'").len(), 5);
    assert_eq!(seen("sudo -s '$X' push").len(), 5);
}

#[test]
// check: WRAP-6
fn under_xargs_arguments_count_as_present() {
    let policy = gates(
        json!([{"name":"g","on":"exec","match":{"program":"git","args":["push","--force"]}}]),
    );
    for line in [
        "xargs git",
        "xargs -n1 git push",
        "xargs -0 -P4 git",
        "sudo xargs -r git",
        "xargs sudo git",
        "xargs -I{} git {}",
        "xargs -i git",
        "xargs -l git",
        "xargs -e git",
        "xargs --max-args=1 git",
        "xargs --max-arg 1 git",
        "xargs -a f git",
        "xargs -d x git",
        "xargs --replace git",
        "xargs -L1 git",
        "xargs --process-slot-var=S git",
        "xargs -rn1 git",
        "xargs -EX git",
    ] {
        assert_eq!(severity(&policy, line), Severity::Ask, "{line}");
    }
    // Input names the program itself.
    for line in [
        "xargs env",
        "xargs sudo -n",
        "xargs timeout 5",
        "xargs env A=1",
        "xargs env -u",
        "xargs -I{} env {} x",
        "xargs -I@ '@' x",
        "xargs -i nice x{}",
        "xargs busybox",
        "xargs xargs",
    ] {
        assert_eq!(severity(&policy, line), Severity::Ask, "{line}");
        assert!(read_command(&argv(line)).unknowable, "{line}");
    }
    for line in [
        "xargs echo",
        "xargs",
        "xargs -n1 hg push --force",
        "xargs -I{} echo {}",
    ] {
        assert_eq!(severity(&policy, line), Severity::Pass, "{line}");
    }
}

#[test]
// check: WRAP-7
fn a_gate_may_name_a_wrapper() {
    let policy = gates(json!([
        {"name":"s","on":"exec","mode":"notify","match":{"program":"sudo"}},
        {"name":"t","on":"exec","mode":"notify","match":{"program":"env","args":["GIT_TRACE=1","git"]}},
        {"name":"g","on":"exec","mode":"notify","match":{"program":"git"}},
    ]));
    let names = |line: &str| -> Vec<String> {
        let argv = argv(line);
        let verdict = policy.judge_exec(ExecAction::Argv(&argv));
        verdict
            .notifies
            .iter()
            .map(|gate| gate.name.clone())
            .collect()
    };
    assert_eq!(names("nice sudo env GIT_TRACE=1 git push"), ["s", "t", "g"]);
    assert_eq!(names("env -S 'GIT_TRACE=1 git' push"), ["t", "g"]);
    assert_eq!(names("sudo"), ["s"]);
    assert_eq!(names("env A=1 git"), ["g"]);
}

#[test]
fn assignments_to_sudo_end_where_sudo_ends_them() {
    assert_eq!(innermost("sudo -- A=1 git"), words(&["A=1", "git"]));
    assert_eq!(innermost("sudo /a=b git"), words(&["/a=b", "git"]));
    assert_eq!(innermost("sudo =x git"), words(&["=x", "git"]));
    assert_eq!(innermost("env -- A=1 =x git"), words(&["git"]));
    assert_eq!(innermost("A=1 git"), words(&["A=1", "git"]));
    assert_eq!(innermost("timeout 5 -- git"), words(&["--", "git"]));
}
