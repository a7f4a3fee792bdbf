//! From the create to the destroy, across orchestrators.

use super::{Bench, must, sh, shell, suite};
use crate::{
    BackendError, BootStage, BuildStep, CallError, Command, EnvId, EnvVars, InitialFile, Phase,
    StartupScript, TaskState,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

suite![
    a_boot_does_all_in_order,
    a_failing_build_step_fails_the_create_and_leaves_nothing,
    a_build_that_takes_too_long_is_stopped,
    a_failing_startup_script_fails_the_create,
    a_task_outlives_the_create_and_its_end_is_reported,
    a_task_given_as_arguments_runs_without_a_shell,
    an_id_is_taken_once,
    an_environment_is_found_again_with_its_commands,
    destroy_ends_running_commands,
    destroy_is_fine_twice_and_for_what_never_was,
    destroy_removes_whatever_was_left_inside,
    what_is_wrong_with_a_spec_is_said,
];

fn build(steps: &[&str]) -> Vec<BuildStep> {
    steps
        .iter()
        .map(|run| BuildStep {
            run: (*run).to_owned(),
            workdir: None,
        })
        .collect()
}

async fn listed(bench: &Bench, id: &EnvId) -> bool {
    must(bench.backend().list().await, "list").contains(id)
}

async fn a_boot_does_all_in_order(bench: Arc<Bench>) {
    let mut spec = bench.spec();
    spec.workspace = "/srv/app".to_owned();
    spec.env = EnvVars(BTreeMap::from([("NAME".into(), "value".into())]));
    spec.files = vec![InitialFile {
        path: "/srv/app/conf/f".to_owned(),
        content: b"file\n".to_vec(),
        mode: 0o644,
    }];
    spec.build = build(&["cat conf/f > log; echo $NAME >> log", "pwd >> log"]);
    spec.build.push(BuildStep {
        run: "pwd >> /srv/app/log".to_owned(),
        workdir: Some("/tmp".to_owned()),
    });
    let script = "echo start >> log".to_owned();
    spec.startup = Some(StartupScript {
        script,
        timeout: Duration::from_secs(10),
    });
    spec.run = Some(Command::LoginShell("echo run >> log; sleep 100".to_owned()));
    bench
        .with_spec(spec, |guest| async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(
                sh(&guest, "cat log").await.ok(),
                "file\nvalue\n/srv/app\n/tmp\nstart\nrun"
            );
            assert_eq!(must(guest.status().await, "status").phase, Phase::Ready);
        })
        .await;
}

async fn a_failing_build_step_fails_the_create_and_leaves_nothing(bench: Arc<Bench>) {
    let mut spec = bench.spec();
    let id = spec.id.clone();
    spec.build = build(&["true", "echo out; echo err >&2; exit 3", "touch /never"]);
    match bench.backend().create(spec).await.err() {
        Some(BackendError::Boot(failure)) => {
            assert_eq!(
                (failure.stage, failure.exit_code),
                (BootStage::Build(2), Some(3))
            );
            assert_eq!(failure.output_tail, "out\nerr\n");
        }
        other => panic!("{other:?}"),
    }
    assert!(!listed(&bench, &id).await);
}

async fn a_build_that_takes_too_long_is_stopped(bench: Arc<Bench>) {
    let mut spec = bench.spec();
    spec.build = build(&["sleep 0.2", "sleep 100"]);
    spec.build_timeout = Duration::from_millis(600);
    match bench.backend().create(spec).await.err() {
        Some(BackendError::Boot(failure)) => assert_eq!(
            (failure.stage, failure.timed_out),
            (BootStage::Build(2), true)
        ),
        other => panic!("{other:?}"),
    }
}

async fn a_failing_startup_script_fails_the_create(bench: Arc<Bench>) {
    for (script, timed_out) in [("echo no; exit 9", false), ("sleep 100", true)] {
        let mut spec = bench.spec();
        spec.startup = Some(StartupScript {
            script: script.to_owned(),
            timeout: Duration::from_millis(500),
        });
        match bench.backend().create(spec).await.err() {
            Some(BackendError::Boot(failure)) => {
                assert_eq!(
                    (failure.stage, failure.timed_out),
                    (BootStage::Startup, timed_out)
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn a_task_outlives_the_create_and_its_end_is_reported(bench: Arc<Bench>) {
    let mut spec = bench.spec();
    spec.run = Some(Command::LoginShell(
        "while [ ! -e /tmp/stop ]; do sleep 0.05; done; echo bye; exit 5".to_owned(),
    ));
    bench
        .with_spec(spec, |guest| async move {
            assert_eq!(
                must(guest.status().await, "status").task,
                TaskState::Running
            );
            sh(&guest, "touch /tmp/stop; sleep 0.5").await.ok();
            assert_eq!(
                must(guest.status().await, "status").task,
                TaskState::Exited(5)
            );
            assert_eq!(sh(&guest, "cat /var/log/task.log").await.ok(), "bye");
        })
        .await;
}

async fn a_task_given_as_arguments_runs_without_a_shell(bench: Arc<Bench>) {
    let mut spec = bench.spec();
    spec.run = Some(Command::Argv(
        ["echo", "$HOME", ";"].map(str::to_owned).to_vec(),
    ));
    bench
        .with_spec(spec, |guest| async move {
            assert_eq!(
                sh(&guest, "sleep 0.3; cat /var/log/task.log").await.ok(),
                "$HOME ;"
            );
        })
        .await;
    let mut spec = bench.spec();
    spec.run = Some(Command::Argv(vec!["no-such-program".to_owned()]));
    match bench.backend().create(spec).await.err() {
        Some(BackendError::Boot(failure)) => assert_eq!(failure.stage, BootStage::Run),
        other => panic!("{other:?}"),
    }
}

async fn an_id_is_taken_once(bench: Arc<Bench>) {
    let spec = bench.spec();
    bench
        .with_spec(spec.clone(), |guest| {
            let bench = Arc::clone(&bench);
            async move {
                let again = bench.backend().create(spec).await.err();
                assert!(matches!(again, Some(BackendError::Exists(_))), "{again:?}");
                sh(&guest, "true").await.ok();
            }
        })
        .await;
}

// check: ENV-15
async fn an_environment_is_found_again_with_its_commands(bench: Arc<Bench>) {
    let spec = bench.spec();
    let id = spec.id.clone();
    let guest = bench.create(spec).await;
    let exec = shell("echo begun; sleep 1; echo ended");
    let command = exec.command_id.clone();
    // The caller and its connection go away in the middle.
    let cut = tokio::time::timeout(Duration::from_millis(300), guest.exec(exec)).await;
    assert!(cut.is_err());
    drop(guest);
    assert!(listed(&bench, &id).await);
    let found = must(bench.backend().adopt(&id).await, "adopt");
    let outcome = must(found.recall(&command).await, "recall");
    assert_eq!(
        outcome.map(|o| (o.exit_code, o.stdout)),
        Some((0, b"begun\nended\n".to_vec()))
    );
    let second = must(
        bench.backend().adopt(&id).await,
        "a second orchestrator's adopt",
    );
    assert_eq!(sh(&second, "echo both").await.ok(), "both");
    must(bench.backend().destroy(&id).await, "destroy");
    let gone = bench.backend().adopt(&id).await.err();
    assert!(matches!(gone, Some(BackendError::NotFound(_))), "{gone:?}");
    let left = found.exec(shell("true")).await;
    assert!(
        matches!(left, Err(CallError::NotSent(_) | CallError::Lost(_))),
        "{left:?}"
    );
}

// check: BOX-14
async fn destroy_ends_running_commands(bench: Arc<Bench>) {
    let spec = bench.spec();
    let id = spec.id.clone();
    let guest = bench.create(spec).await;
    let running = tokio::spawn(async move { guest.exec(shell("sleep 100")).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    must(bench.backend().destroy(&id).await, "destroy");
    let outcome = must(
        tokio::time::timeout(Duration::from_secs(20), running).await,
        "waiting",
    );
    let outcome = must(outcome, "joining");
    assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
}

async fn destroy_is_fine_twice_and_for_what_never_was(bench: Arc<Bench>) {
    let spec = bench.spec();
    let id = spec.id.clone();
    drop(bench.create(spec).await);
    let backend = bench.backend();
    let (first, second) = tokio::join!(backend.destroy(&id), backend.destroy(&id));
    assert!(first.is_ok() || second.is_ok(), "{first:?} {second:?}");
    must(backend.destroy(&id).await, "destroying again");
    must(
        backend.destroy(&bench.spec().id).await,
        "destroying nothing",
    );
    assert!(!listed(&bench, &id).await);
}

// check: ENV-5
async fn destroy_removes_whatever_was_left_inside(bench: Arc<Bench>) {
    let spec = bench.spec();
    let id = spec.id.clone();
    let guest = bench.create(spec).await;
    let deep = "for (1..1500) { mkdir 'd' or die; chdir 'd' or die }";
    must(
        guest.exec(super::argv(&["perl", "-e", deep])).await,
        "nesting",
    );
    sh(&guest, "mkdir -p shut/in; touch shut/in/f; chmod 000 shut/in shut; mkfifo p; ln -s / l; rm /usr/bin/perl").await.ok();
    must(bench.backend().destroy(&id).await, "destroy");
    assert!(!listed(&bench, &id).await);
}

async fn what_is_wrong_with_a_spec_is_said(bench: Arc<Bench>) {
    for id in ["", ".", "..", "a/b", "-a", "a b", &"x".repeat(64)] {
        assert!(EnvId::new(id).is_err(), "{id}");
    }
    for image in ["../host", ".", "a/b", ""] {
        let mut spec = bench.spec();
        spec.image = image.to_owned();
        let error = bench.backend().create(spec).await.err();
        assert!(
            matches!(&error, Some(BackendError::Invalid { field, .. }) if field == "image"),
            "{error:?}"
        );
    }
    let mut spec = bench.spec();
    spec.image = "no-such-image".to_owned();
    let error = bench.backend().create(spec).await.err();
    assert!(
        matches!(error, Some(BackendError::NoSuchImage(_))),
        "{error:?}"
    );
    for path in ["/usr/bin", "/proc/x", "/etc/passwd/x"] {
        let mut spec = bench.spec();
        spec.files = vec![InitialFile {
            path: path.to_owned(),
            content: Vec::new(),
            mode: 0o644,
        }];
        let error = bench.backend().create(spec).await.err();
        assert!(
            matches!(&error, Some(BackendError::Invalid { field, .. }) if *field == format!("files[{path:?}]")),
            "{error:?}"
        );
    }
    let mut spec = bench.spec();
    let id = spec.id.clone();
    spec.workspace = "relative".to_owned();
    assert!(bench.backend().create(spec).await.is_err());
    assert!(!listed(&bench, &id).await);
}
