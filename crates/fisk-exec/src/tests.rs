//! The rules of a child process, held against real ones: `/bin/sh` is the application.

use std::time::Instant;

use nix::{errno::Errno, sys::signal::kill, unistd::Pid};

use super::*;

fn executor(environment: &[(&str, &str)]) -> Executor {
    let all = std::env::vars_os().chain(environment.iter().map(|(n, v)| (n.into(), v.into())));
    let stripped = Names::secrets_and(&["STRIPPED_*"]).unwrap();
    Executor {
        program: Program::find(Path::new("/bin/sh"), None).unwrap(),
        environment: environment::for_children(all, &stripped),
        cage: None,
    }
}

async fn sh(script: &str) -> Outcome {
    let cancel = CancellationToken::new();
    let argv = ["-c".to_owned(), script.to_owned()];
    executor(&[]).run_argv(&argv, None, &cancel).await.unwrap()
}

/// Whether a process is gone, or a zombie that only its parent still sees.
fn is_dead(pid: &str) -> bool {
    let pid = pid.trim();
    if kill(Pid::from_raw(pid.parse().unwrap()), None) == Err(Errno::ESRCH) {
        return true;
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_none_or(|rest| rest.trim_start().starts_with('Z'))
}

/// A kill is not done when it returns.
async fn dies(pid: &str) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5) {
        if is_dead(pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

// check: FISK-1
#[tokio::test]
async fn arguments_arrive_as_they_are_and_no_shell_reads_them() {
    let odd = [
        "$(touch /tmp/no)",
        "`id`",
        "a b",
        "",
        "*",
        "'\"\\",
        "; exit 9",
        "--x=é\n",
    ];
    let mut argv = vec![
        "-c".to_owned(),
        "printf '[%s]' \"$@\"".to_owned(),
        "sh".to_owned(),
    ];
    argv.extend(odd.map(str::to_owned));
    let cancel = CancellationToken::new();
    let outcome = executor(&[]).run_argv(&argv, None, &cancel).await.unwrap();
    let expected: String = odd.iter().map(|a| format!("[{a}]")).collect();
    assert_eq!(outcome.output, expected);
}

#[tokio::test]
async fn an_exit_code_is_an_outcome_and_a_signal_is_128_more() {
    assert_eq!(sh("exit 7").await.exit_code, 7);
    assert_eq!(sh("kill -KILL $$").await.exit_code, 137);
}

// check: FISK-36
#[tokio::test]
async fn standard_output_and_error_come_in_the_order_they_were_written() {
    let outcome = sh("for n in 1 2 3; do echo out$n; echo err$n >&2; done").await;
    assert_eq!(outcome.output, "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
    assert!(!outcome.truncated);
}

// check: FISK-2 FISK-35
#[tokio::test]
async fn the_child_has_no_standard_input_and_no_terminal() {
    let outcome = sh(
        "cat; readlink /proc/self/fd/0; (: </dev/tty) 2>/dev/null && echo tty; cat /proc/$$/stat",
    )
    .await;
    let (first, stat) = outcome.output.split_once('\n').unwrap();
    assert_eq!(first, "/dev/null");
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let pid = stat.split(' ').next().unwrap();
    // State, parent, group, session, terminal.
    assert_eq!(fields[2], pid, "it leads its group");
    assert_eq!(fields[3], pid, "it leads its session");
    assert_eq!(fields[4], "0", "it has no terminal");
}

// check: FISK-35
#[tokio::test]
async fn the_child_gets_no_new_privileges_and_may_trace_nobody() {
    let status = sh("cat /proc/self/status").await.output;
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    let bounding = status
        .lines()
        .find_map(|l| l.strip_prefix("CapBnd:\t"))
        .unwrap();
    let effective = status
        .lines()
        .find_map(|l| l.strip_prefix("CapEff:\t"))
        .unwrap();
    let tracing = 1_u64 << 19;
    assert_eq!(u64::from_str_radix(effective, 16).unwrap() & tracing, 0);
    if nix::unistd::geteuid().is_root() {
        assert_eq!(u64::from_str_radix(bounding, 16).unwrap() & tracing, 0);
    }
}

// check: FISK-35
#[tokio::test]
async fn the_child_gets_none_of_our_descriptors() {
    // One that an unlucky parent left open for everybody.
    let (read, write) = nix::unistd::pipe().unwrap();
    let outcome = sh("ls /proc/$$/fd").await;
    drop((read, write));
    assert_eq!(
        outcome.output.split_whitespace().collect::<Vec<_>>(),
        ["0", "1", "2"]
    );
}

// check: FISK-3
#[tokio::test]
async fn the_child_sees_no_secret_and_is_told_that_a_model_reads() {
    let executor = executor(&[
        ("ANTHROPIC_API_KEY", "hunter2"),
        ("anthropic_auth_token", "hunter2"),
        ("STRIPPED_BY_OPERATOR", "hunter2"),
        ("LLMFORMAT", "0"),
        ("KEPT", "yes"),
    ]);
    let argv = [
        "-c".to_owned(),
        "tr '\\0' '\\n' </proc/$$/environ".to_owned(),
    ];
    let cancel = CancellationToken::new();
    let output = executor
        .run_argv(&argv, None, &cancel)
        .await
        .unwrap()
        .output;
    assert!(!output.contains("hunter2"), "{output}");
    assert!(output.lines().any(|l| l == "KEPT=yes"), "{output}");
    let marks: Vec<_> = output
        .lines()
        .filter(|l| l.starts_with("LLMFORMAT"))
        .collect();
    assert_eq!(marks, ["LLMFORMAT=1"]);
}

// check: FISK-36
#[tokio::test]
async fn too_much_output_keeps_both_halves_around_a_mark() {
    let outcome = sh("echo first; yes é | head -c 3000000; printf '\\377last'").await;
    assert!(outcome.truncated);
    assert!(outcome.output.starts_with("first\né\né"));
    assert!(outcome.output.ends_with("\u{fffd}last"));
    let (head, rest) = outcome.output.split_once("\n[... ").unwrap();
    let (left_out, tail) = rest.split_once(" bytes left out ...]\n").unwrap();
    assert!(head.len() <= MAX_OUTPUT / 2 && tail.len() <= MAX_OUTPUT / 2);
    assert!(head.len() > MAX_OUTPUT / 2 - 4 && tail.len() > MAX_OUTPUT / 2 - 4);
    let total = 6 + 3_000_000 + 5;
    // The one byte that is no text became three.
    let kept = head.len() + tail.len() - 2;
    assert_eq!(left_out.parse::<usize>().unwrap(), total - kept);
}

// check: FISK-2
#[tokio::test]
async fn cancelling_asks_the_group_to_end_and_returns_what_was_written() {
    let cancel = CancellationToken::new();
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let script = format!(
        "trap 'echo ending; exit 3' TERM; echo $$; sleep 60 & : >{}; wait",
        ready.display()
    );
    let argv = ["-c".to_owned(), script];
    let executor = executor(&[]);
    let began = Instant::now();
    let stop = async {
        while !ready.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(executor.run_argv(&argv, None, &cancel), stop);
    let Err(ExecError::Cancelled { outcome }) = result else {
        panic!("{result:?}");
    };
    assert!(outcome.output.ends_with("ending\n"), "{outcome:?}");
    assert_eq!(outcome.exit_code, 3);
    assert!(began.elapsed() < GRACE);
}

// check: FISK-2
#[tokio::test]
async fn who_ignores_the_request_is_killed_ten_seconds_later_with_the_group() {
    let script = "trap '' TERM; sleep 300 & echo $!; echo $$; while :; do sleep 1; done";
    let argv = ["-c".to_owned(), script.to_owned()];
    let began = Instant::now();
    let limit = Duration::from_millis(200);
    let cancel = CancellationToken::new();
    let result = executor(&[]).run_argv(&argv, Some(limit), &cancel).await;
    let Err(ExecError::TimedOut { after, outcome }) = result else {
        panic!("{result:?}");
    };
    assert_eq!(after, limit);
    assert_eq!(outcome.exit_code, 137);
    let took = began.elapsed();
    assert!(
        took >= GRACE && took < GRACE + Duration::from_secs(4),
        "{took:?}"
    );
    for pid in outcome.output.lines() {
        assert!(dies(pid).await, "{pid} lives");
    }
}

// check: FISK-37
#[tokio::test]
async fn a_grandchild_that_keeps_the_pipe_open_has_ten_seconds() {
    let began = Instant::now();
    let outcome = sh("sleep 300 & echo $!; exit 5").await;
    assert_eq!(outcome.exit_code, 5);
    let took = began.elapsed();
    assert!(
        took >= GRACE && took < GRACE + Duration::from_secs(4),
        "{took:?}"
    );
    assert!(dies(&outcome.output).await);
}

// check: FISK-37
#[tokio::test]
async fn a_grandchild_that_left_the_group_does_not_hold_us_up() {
    let began = Instant::now();
    let outcome = sh("setsid sh -c 'echo $$; while :; do echo x; done' & sleep 0.2; exit 5").await;
    let pid = outcome.output.lines().next().unwrap().to_owned();
    let _ = kill(
        Pid::from_raw(pid.parse().unwrap()),
        nix::sys::signal::Signal::SIGKILL,
    );
    assert_eq!(outcome.exit_code, 5);
    assert!(outcome.truncated);
    assert!(began.elapsed() < GRACE + Duration::from_secs(4));
}

// check: FISK-37
#[tokio::test]
async fn nobody_is_left_in_the_group_of_a_command_that_has_ended() {
    let outcome = sh("sleep 300 >/dev/null 2>&1 & echo $!").await;
    assert!(dies(&outcome.output).await);
}

// check: FISK-2
#[tokio::test]
async fn a_dropped_run_leaves_nobody_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let script = format!("sleep 300 & echo $$ $! >{}; wait", file.display());
    let argv = ["-c".to_owned(), script];
    let (executor, cancel) = (executor(&[]), CancellationToken::new());
    let run = executor.run_argv(&argv, None, &cancel);
    let pids = async {
        loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if text.ends_with('\n') {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let pids = tokio::select! {
        result = run => panic!("{result:?}"),
        pids = pids => pids,
    };
    for pid in pids.split_whitespace() {
        assert!(dies(pid).await, "{pid} lives");
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_already_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ran");
    let argv = ["-c".to_owned(), format!("touch {}", file.display())];
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = executor(&[]).run_argv(&argv, None, &cancel).await;
    assert!(
        matches!(result, Err(ExecError::Cancelled { .. })),
        "{result:?}"
    );
    assert!(!file.exists());
}

#[tokio::test]
async fn what_cannot_be_started_is_told_without_the_arguments() {
    let argv = ["-c".to_owned(), "hunter2".repeat(1 << 20)];
    let cancel = CancellationToken::new();
    let error = executor(&[])
        .run_argv(&argv, None, &cancel)
        .await
        .unwrap_err();
    assert!(matches!(error, ExecError::NotStarted(_)), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    assert!(
        error.to_string().contains("rgument list too long"),
        "{error}"
    );
}
