//! Commands: what they see, how they end, how they are stopped.

use super::{Bench, Ran, argv, must, sh, shell, suite};
use crate::{CallError, Command, EnvVars, ExecSpec, RefusalCode};
use std::{collections::BTreeMap, sync::Arc, time::Duration, time::Instant};

suite![
    arguments_arrive_as_they_are,
    standard_input_is_empty,
    variables_and_directory_are_the_environments_own,
    exit_codes_are_a_shells,
    a_timeout_kills_the_whole_group,
    a_command_that_ignores_sigterm_is_killed_at_its_timeout,
    a_process_left_behind_that_holds_the_output_open_does_not_hold_the_call,
    a_flood_of_output_is_cut_and_takes_bounded_memory,
    output_caps_are_kept,
    one_command_id_runs_once,
    recall_never_starts_a_command,
    cancel_kills_a_running_command,
    many_commands_run_at_once,
    nonsense_is_refused_before_anything_runs,
    commands_inherit_no_descriptor,
    granted_variables_are_seen_by_later_commands,
    orphans_are_reaped,
];

async fn arguments_arrive_as_they_are(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let ran = Ran::new(must(
                guest
                    .exec(argv(&["printf", "%s|", "a b", "$HOME", "", "é*"]))
                    .await,
                "exec",
            ));
            assert_eq!(ran.ok(), "a b|$HOME||é*|");
        })
        .await;
}

// check: EXEC-5
async fn standard_input_is_empty(bench: Arc<Bench>) {
    bench
        .with(|guest| async move { assert_eq!(sh(&guest, "cat; wc -c").await.ok(), "0") })
        .await;
}

// check: BOX-7
async fn variables_and_directory_are_the_environments_own(bench: Arc<Bench>) {
    let mut spec = bench.spec();
    spec.env = EnvVars(BTreeMap::from([
        ("A".into(), "1".into()),
        ("B".into(), "2".into()),
    ]));
    spec.workspace = "/workspace/deep".to_owned();
    bench
        .with_spec(spec, |guest| async move {
            let mut exec = shell("echo $A $B $C $PWD");
            exec.env = EnvVars(BTreeMap::from([("B".into(), "x".into()), ("C".into(), "y".into())]));
            assert_eq!(Ran::new(must(guest.exec(exec).await, "exec")).ok(), "1 x y /workspace/deep");
            let mut exec = shell("pwd");
            exec.cwd = Some("/tmp".to_owned());
            assert_eq!(Ran::new(must(guest.exec(exec).await, "exec")).ok(), "/tmp");
            let names = sh(&guest, "env | cut -d= -f1 | grep -vE '^(A|B|HOME|LANG|LOGNAME|PATH|PWD|SHELL|USER|_|SHLVL|OLDPWD)$'");
            assert_eq!(names.await.out, "", "a variable that nobody set");
        })
        .await;
}

// check: EXEC-6 EXEC-7
async fn exit_codes_are_a_shells(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let run = |spec: ExecSpec| {
                let guest = Arc::clone(&guest);
                async move { Ran::new(must(guest.exec(spec).await, "exec")) }
            };
            assert_eq!(run(shell("exit 7")).await.code, 7);
            assert_eq!(run(shell("kill -KILL $$")).await.code, 137);
            assert_eq!(run(shell("kill -TERM $$")).await.code, 143);
            let missing = run(argv(&["no-such-program"])).await;
            assert_eq!(
                (missing.code, missing.err.contains("not found")),
                (127, true),
                "{missing:?}"
            );
            assert_eq!(run(argv(&["/no/such/program"])).await.code, 127);
            assert_eq!(run(argv(&["/etc/passwd"])).await.code, 126);
            assert_eq!(run(argv(&["/etc"])).await.code, 126);
            let mut nowhere = argv(&["true"]);
            nowhere.cwd = Some("/no/such/place".to_owned());
            assert_eq!(run(nowhere).await.code, 126);
        })
        .await;
}

// check: EXEC-2
async fn a_timeout_kills_the_whole_group(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let mut spec = shell("echo early; (sleep 2; echo late > /tmp/late) & sleep 100");
            spec.timeout = Duration::from_millis(300);
            let started = Instant::now();
            let outcome = must(guest.exec(spec).await, "exec");
            assert!(
                started.elapsed() < Duration::from_secs(5),
                "{:?}",
                started.elapsed()
            );
            assert_eq!((outcome.exit_code, outcome.timed_out), (124, true));
            assert_eq!(outcome.stdout, b"early\n");
            tokio::time::sleep(Duration::from_millis(2300)).await;
            sh(&guest, "test -e /tmp/late").await.fails();
        })
        .await;
}

async fn a_command_that_ignores_sigterm_is_killed_at_its_timeout(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let mut spec = shell("trap '' TERM; while :; do sleep 0.05; done");
            spec.timeout = Duration::from_millis(200);
            let started = Instant::now();
            let outcome = must(guest.exec(spec).await, "exec");
            assert_eq!((outcome.exit_code, outcome.timed_out), (124, true));
            assert!(
                started.elapsed() < Duration::from_secs(5),
                "{:?}",
                started.elapsed()
            );
        })
        .await;
}

async fn a_process_left_behind_that_holds_the_output_open_does_not_hold_the_call(
    bench: Arc<Bench>,
) {
    bench
        .with(|guest| async move {
            let started = Instant::now();
            let ran = sh(&guest, "(sleep 30; echo x) & echo $!").await;
            assert!(
                started.elapsed() < Duration::from_secs(5),
                "{:?}",
                started.elapsed()
            );
            // It goes on living, as it would on any machine.
            sh(&guest, &format!("kill -0 {}", ran.ok())).await.ok();
        })
        .await;
}

// check: EXEC-4
async fn a_flood_of_output_is_cut_and_takes_bounded_memory(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let spec = shell("yes | head -c 1G; yes >&2 | head -c 3M; yes | head -c 3M >&2");
            let spec = ExecSpec {
                timeout: Duration::from_secs(120),
                command: Command::Shell("yes | head -c 1G; yes | head -c 3M >&2".to_owned()),
                ..spec
            };
            let outcome = must(guest.exec(spec).await, "exec");
            assert_eq!((outcome.exit_code, outcome.truncated), (0, true));
            assert_eq!(
                (outcome.stdout.len(), outcome.stderr.len()),
                (1 << 20, 1 << 20)
            );
            let peak = sh(&guest, "grep VmHWM /proc/1/status | tr -dc 0-9").await;
            let peak: u64 = must(peak.ok().parse(), "VmHWM");
            assert!(peak < 64 << 10, "the first process took {peak} KiB");
        })
        .await;
}

async fn output_caps_are_kept(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let spec = ExecSpec {
                stdout_cap: 5,
                stderr_cap: 0,
                ..shell("printf 123456789; printf x >&2")
            };
            let outcome = must(guest.exec(spec).await, "exec");
            assert_eq!(
                (outcome.stdout, outcome.stderr, outcome.truncated),
                (b"12345".to_vec(), vec![], true)
            );
            let spec = ExecSpec {
                stdout_cap: 9,
                ..shell("printf 123456789")
            };
            assert!(!must(guest.exec(spec).await, "exec").truncated);
        })
        .await;
}

async fn one_command_id_runs_once(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let spec = shell("echo run >> /tmp/runs; sleep 0.5; cat /tmp/runs");
            let (first, second) = tokio::join!(guest.exec(spec.clone()), guest.exec(spec.clone()));
            let third = guest.exec(spec).await;
            for outcome in [first, second, third] {
                assert_eq!(must(outcome, "exec").stdout, b"run\n");
            }
        })
        .await;
}

async fn recall_never_starts_a_command(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            assert_eq!(must(guest.recall("never-run").await, "recall"), None);
            let spec = shell("echo $$");
            let id = spec.command_id.clone();
            let outcome = must(guest.exec(spec).await, "exec");
            assert_eq!(must(guest.recall(&id).await, "recall"), Some(outcome));
        })
        .await;
}

async fn cancel_kills_a_running_command(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let spec = shell("sleep 100");
            let id = spec.command_id.clone();
            let cancel = async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                must(guest.cancel(&id).await, "cancel");
            };
            let (outcome, ()) = tokio::join!(guest.exec(spec), cancel);
            let outcome = must(outcome, "exec");
            assert_eq!(
                (outcome.exit_code, outcome.cancelled, outcome.timed_out),
                (137, true, false)
            );
            must(guest.cancel(&id).await, "cancelling what has ended");
        })
        .await;
}

async fn many_commands_run_at_once(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let mut running = tokio::task::JoinSet::new();
            for number in 0..40 {
                let guest = Arc::clone(&guest);
                running.spawn(async move {
                    let ran = sh(&guest, &format!("sleep 0.2; echo {number}")).await;
                    assert_eq!(ran.ok(), number.to_string());
                });
            }
            while let Some(joined) = running.join_next().await {
                must(joined, "a command");
            }
        })
        .await;
}

async fn nonsense_is_refused_before_anything_runs(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let specs = [
                argv(&[]),
                argv(&[""]),
                argv(&["echo", "a\0b"]),
                ExecSpec {
                    cwd: Some("relative".to_owned()),
                    ..argv(&["true"])
                },
                ExecSpec {
                    command_id: String::new(),
                    ..argv(&["true"])
                },
                ExecSpec {
                    command_id: "x".repeat(129),
                    ..argv(&["true"])
                },
                ExecSpec {
                    env: EnvVars(BTreeMap::from([("A=B".into(), String::new())])),
                    ..argv(&["true"])
                },
            ];
            for spec in specs {
                match guest.exec(spec.clone()).await {
                    Err(CallError::Refused(refusal)) => {
                        assert_eq!(refusal.code, RefusalCode::BadRequest, "{spec:?}")
                    }
                    other => panic!("{spec:?} brought {other:?}"),
                }
            }
        })
        .await;
}

// check: BOX-7
async fn commands_inherit_no_descriptor(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let list = r#"opendir(D, "/proc/self/fd"); print join(" ", sort grep { /\d/ && readlink("/proc/self/fd/$_") !~ m{^/proc/} } readdir D)"#;
            let ran = Ran::new(must(guest.exec(argv(&["perl", "-e", list])).await, "exec"));
            assert_eq!(ran.ok(), "0 1 2");
        })
        .await;
}

async fn granted_variables_are_seen_by_later_commands(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            assert_eq!(sh(&guest, "echo [$TOKEN]").await.ok(), "[]");
            must(
                guest
                    .set_env(EnvVars(BTreeMap::from([("TOKEN".into(), "abc".into())])))
                    .await,
                "set_env",
            );
            assert_eq!(sh(&guest, "echo [$TOKEN]").await.ok(), "[abc]");
        })
        .await;
}

// check: BOX-2
async fn orphans_are_reaped(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            sh(
                &guest,
                "for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.1 >/dev/null 2>&1 &) ; done",
            )
            .await
            .ok();
            tokio::time::sleep(Duration::from_millis(500)).await;
            let zombies = sh(
                &guest,
                "cat /proc/[0-9]*/status 2>/dev/null | grep -c '^State:.Z'",
            )
            .await;
            assert_eq!(zombies.out, "0");
        })
        .await;
}
