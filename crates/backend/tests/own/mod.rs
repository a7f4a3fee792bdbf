//! What is the sandbox's own: its files, its processes, what it refuses.

mod disk;
mod image;
mod raw;

use fuse_backend::{
    Backend, BackendError, BoxFuture, Command, EnvId, EnvSpec, EnvVars, ExecSpec, Guest,
    InitialFile, Sandbox,
};
use std::{
    collections::BTreeMap,
    future::Future,
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

/// Its cases.
pub fn cases(data: &Path) -> Vec<(&'static str, BoxFuture<'static, ()>)> {
    fn case<F: Future<Output = ()> + Send + 'static>(
        run: fn(PathBuf) -> F,
        data: &Path,
    ) -> BoxFuture<'static, ()> {
        Box::pin(run(data.to_owned()))
    }
    let mut cases = vec![
        (
            "an_environment_survives_its_killed_orchestrator",
            case(survives, data),
        ),
        (
            "secrets_are_never_written_to_disk",
            case(no_secret_on_disk, data),
        ),
        ("a_stopped_guest_is_destroyed", case(stopped, data)),
        (
            "a_guest_that_does_not_answer_is_not_taken_for_dead",
            case(silent, data),
        ),
        (
            "a_process_that_has_got_the_guests_number_is_not_killed",
            case(reused_number, data),
        ),
        (
            "a_half_made_environment_is_destroyed",
            case(half_made, data),
        ),
        (
            "an_environment_that_is_being_made_is_destroyed_whenever_that_comes",
            case(in_the_making, data),
        ),
        (
            "a_missing_facility_is_named_and_refused",
            case(missing_facility, data),
        ),
        ("a_long_data_directory_is_fine", case(long_path, data)),
        (
            "a_named_image_is_a_root_of_its_own",
            case(image::named, data),
        ),
        (
            "the_guest_refuses_who_is_not_meant_for_it_and_what_it_does_not_know",
            case(raw::refuses, data),
        ),
        ("the_guest_survives_garbage", case(raw::garbage, data)),
        (
            "a_removal_that_was_cut_off_is_finished",
            case(cut_off, data),
        ),
        ("create_and_exec_are_quick", case(quick, data)),
    ];
    if disk::offered() {
        cases.push((
            "the_sum_and_the_number_of_files_are_bounded",
            case(disk::bounded, data),
        ));
        cases.push((
            "disks_made_at_once_are_separate_and_leave_no_device",
            case(disk::at_once, data),
        ));
    }
    cases
}

/// Another process of a case.
pub async fn play(role: &str, data: &Path) -> ExitCode {
    match role {
        "orchestrator" => {
            let guest = create(data, "survivor").await;
            let spec = ExecSpec::new("long", shell("echo begun; sleep 2; echo ended"));
            let exec = guest.exec(spec);
            println!("created");
            let _ = exec.await;
            ExitCode::SUCCESS
        }
        "refused" => match sandbox(data)
            .create(EnvSpec::new(id("refused")))
            .await
            .err()
        {
            Some(BackendError::Unsupported { facility, .. }) if facility == "user namespaces" => {
                ExitCode::SUCCESS
            }
            other => {
                eprintln!("{other:?}");
                ExitCode::FAILURE
            }
        },
        _ => ExitCode::from(2),
    }
}

fn sandbox(data: &Path) -> Sandbox {
    Sandbox::new(data).expect("a data directory")
}

fn id(text: &str) -> EnvId {
    EnvId::new(text).expect("an id")
}

fn shell(text: &str) -> Command {
    Command::Shell(text.to_owned())
}

async fn create(data: &Path, name: &str) -> Arc<dyn Guest> {
    sandbox(data)
        .create(EnvSpec::new(id(name)))
        .await
        .expect("create")
}

async fn destroy(data: &Path, name: &str) {
    sandbox(data).destroy(&id(name)).await.expect("destroy");
}

/// The pid of an environment's first process, as the sandbox noted it down.
fn noted(data: &Path, name: &str) -> (PathBuf, serde_json::Value, i32) {
    let path = data.join("environments").join(name).join("meta.json");
    let text = std::fs::read(&path).expect("meta.json");
    let meta: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let pid = meta["process"]["pid"]
        .as_i64()
        .and_then(|p| i32::try_from(p).ok())
        .expect("a pid");
    (path, meta, pid)
}

fn again(role: &str, data: &Path) -> std::process::Command {
    let mut command = std::process::Command::new("/proc/self/exe");
    command.env(super::ROLE, role).env(super::DATA, data);
    command
}

async fn survives(data: PathBuf) {
    let mut child = again("orchestrator", &data)
        .stdout(Stdio::piped())
        .spawn()
        .expect("another orchestrator");
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().expect("its output"));
    std::io::BufRead::read_line(&mut out, &mut line).expect("a line");
    tokio::time::sleep(Duration::from_millis(500)).await;
    child.kill().expect("killing it");
    child.wait().expect("its end");
    let found = sandbox(&data).adopt(&id("survivor")).await.expect("adopt");
    let outcome = found
        .recall("long")
        .await
        .expect("recall")
        .expect("a known command");
    assert_eq!(outcome.stdout, b"begun\nended\n");
    destroy(&data, "survivor").await;
}

async fn no_secret_on_disk(data: PathBuf) {
    let mut spec = EnvSpec::new(id("secretive"));
    spec.env = EnvVars(BTreeMap::from([("KEY".into(), "hunter2-in-env".into())]));
    spec.files = vec![InitialFile {
        path: "/root/f".into(),
        content: b"plain".to_vec(),
        mode: 0o600,
    }];
    assert!(!format!("{spec:?}").contains("hunter2"));
    let guest = sandbox(&data).create(spec).await.expect("create");
    guest
        .set_env(EnvVars(BTreeMap::from([(
            "K2".into(),
            "hunter2-granted".into(),
        )])))
        .await
        .expect("set_env");
    let directory = data.join("environments/secretive");
    let found = std::process::Command::new("grep")
        .args(["-rlE", "hunter2"])
        .arg(&directory)
        .output()
        .expect("grep");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    let (path, ..) = noted(&data, "secretive");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(path).expect("meta.json").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    destroy(&data, "secretive").await;
}

async fn stopped(data: PathBuf) {
    let guest = create(&data, "stopped").await;
    let (_, _, pid) = noted(&data, "stopped");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid),
        nix::sys::signal::Signal::SIGSTOP,
    )
    .expect("stopping it");
    let started = Instant::now();
    destroy(&data, "stopped").await;
    assert!(started.elapsed() < Duration::from_secs(5));
    drop(guest);
}

fn is_stopped(pid: nix::unistd::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    // The state follows the name, which may hold anything but ends at the last parenthesis.
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|rest| rest.starts_with('T'))
}

async fn silent(data: PathBuf) {
    drop(create(&data, "silent").await);
    let (meta, _, pid) = noted(&data, "silent");
    let pid = nix::unistd::Pid::from_raw(pid);
    let signal = |signal| nix::sys::signal::kill(pid, signal).expect("a signal");
    signal(nix::sys::signal::Signal::SIGSTOP);
    // On a busy machine it may still answer until the signal has reached it.
    let begun = Instant::now();
    while !is_stopped(pid) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never stops");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // It does not answer, and it is not gone.
    let error = sandbox(&data).adopt(&id("silent")).await.err();
    assert!(matches!(error, Some(BackendError::Call(_))), "{error:?}");
    signal(nix::sys::signal::Signal::SIGCONT);
    sandbox(&data).adopt(&id("silent")).await.expect("adopt");
    // Nor is one gone whose notes cannot be read just now.
    let aside = meta.with_extension("aside");
    std::fs::rename(&meta, &aside).expect("aside");
    std::fs::create_dir(&meta).expect("what cannot be read as a file");
    let error = sandbox(&data).adopt(&id("silent")).await.err();
    assert!(matches!(error, Some(BackendError::Io { .. })), "{error:?}");
    std::fs::remove_dir(&meta).expect("removed");
    std::fs::rename(&aside, &meta).expect("back");
    signal(nix::sys::signal::Signal::SIGKILL);
    let end = Instant::now() + Duration::from_secs(5);
    while !matches!(
        sandbox(&data).adopt(&id("silent")).await.err(),
        Some(BackendError::Dead { .. })
    ) {
        assert!(Instant::now() < end, "it is gone now");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    destroy(&data, "silent").await;
}

async fn reused_number(data: PathBuf) {
    let guest = create(&data, "renumbered").await;
    let (path, mut meta, _) = noted(&data, "renumbered");
    // The kernel tells starts apart by hundredths of a second.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut stranger = std::process::Command::new("sleep")
        .arg("100")
        .spawn()
        .expect("a stranger");
    meta["process"]["pid"] = stranger.id().into();
    std::fs::write(&path, meta.to_string()).expect("meta.json");
    destroy(&data, "renumbered").await;
    assert!(
        stranger.try_wait().expect("a look at it").is_none(),
        "a stranger was killed"
    );
    stranger.kill().expect("killing it");
    stranger.wait().expect("its end");
    // The socket still named the right one.
    assert!(guest.status().await.is_err());
}

async fn half_made(data: PathBuf) {
    let directory = data.join("environments/half");
    std::fs::create_dir_all(directory.join("upper/usr")).expect("a directory");
    assert!(matches!(
        sandbox(&data).adopt(&id("half")).await.err(),
        Some(BackendError::Dead { .. })
    ));
    std::fs::write(directory.join("meta.json"), "{").expect("meta.json");
    assert!(
        sandbox(&data)
            .list()
            .await
            .expect("list")
            .contains(&id("half"))
    );
    destroy(&data, "half").await;
    assert!(!directory.exists());
}

async fn in_the_making(data: PathBuf) {
    for delay in [0, 3, 8, 15, 25, 40, 70] {
        let backend = sandbox(&data);
        let made =
            tokio::spawn(
                async move { backend.create(EnvSpec::new(id("hasty"))).await.map(|_| ()) },
            );
        tokio::time::sleep(Duration::from_millis(delay)).await;
        let first = sandbox(&data).destroy(&id("hasty")).await;
        let created = made.await.expect("no panic");
        // Made after the destroy, or cut off by it; never half.
        let second = sandbox(&data).destroy(&id("hasty")).await;
        assert!(second.is_ok(), "{delay}: {first:?} {created:?} {second:?}");
        assert!(!data.join("environments/hasty").exists());
    }
}

// check: BOX-11
async fn missing_facility(data: PathBuf) {
    let exe = std::env::current_exe().expect("this program");
    let own = data.join("refusing");
    // In a namespace that allows no further ones.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\"";
    let status = std::process::Command::new("unshare")
        .args(["-r", "sh", "-c", script])
        .arg(exe)
        .env(super::ROLE, "refused")
        .env(super::DATA, &own)
        .status()
        .expect("unshare");
    assert!(status.success());
    assert_eq!(
        std::fs::read_dir(own.join("environments"))
            .expect("environments")
            .count(),
        0
    );
    std::fs::remove_dir_all(own).expect("removing it");
}

async fn long_path(data: PathBuf) {
    let long = data.join("x".repeat(120)).join("y".repeat(120));
    let guest = create(&long, "long").await;
    let outcome = guest
        .exec(ExecSpec::new("c", shell("echo hi")))
        .await
        .expect("exec");
    assert_eq!(outcome.stdout, b"hi\n");
    destroy(&long, "long").await;
    std::fs::remove_dir_all(data.join("x".repeat(120))).expect("removing it");
}

async fn cut_off(data: PathBuf) {
    let own = data.join("swept");
    let left = own.join("environments/.removed-x/a/b");
    std::fs::create_dir_all(&left).expect("a directory");
    assert_eq!(sandbox(&own).list().await.expect("list"), []);
    let started = Instant::now();
    while left.exists() && started.elapsed() < Duration::from_secs(5) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!left.exists());
    std::fs::remove_dir_all(own).expect("removing it");
}

/// Generous bounds: this runs on loaded machines, and is to notice a blunder, not to measure.
async fn quick(data: PathBuf) {
    let started = Instant::now();
    let guest = create(&data, "quick").await;
    let made = started.elapsed();
    let mut times = Vec::new();
    for number in 0..20 {
        let started = Instant::now();
        let command = Command::Argv(vec!["true".to_owned()]);
        guest
            .exec(ExecSpec::new(number.to_string(), command))
            .await
            .expect("exec");
        times.push(started.elapsed());
    }
    times.sort();
    println!("create {made:?}, exec median {:?}", times[10]);
    assert!(
        made < Duration::from_secs(2) && times[10] < Duration::from_millis(200),
        "{made:?} {times:?}"
    );
    destroy(&data, "quick").await;
}
