//! `environment`, `up` and `apikeys` against a real server.

use serde_json::Value;

use crate::support::{Dev, Ran};

// check: CLI-3
#[test]
fn exec_exits_with_the_commands_own_code_and_copies_both_streams() {
    let dev = Dev::start();
    let env = dev.environment("codes");
    for code in [0, 1, 2, 7, 255] {
        let script = format!("echo out; echo err >&2; exit {code}");
        let ran = dev.run(&["environment", "exec", &env, "--shell", "--", &script]);
        assert_eq!(ran.code, Some(code));
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("out\n", "err\n"));
    }
    // Nobody interprets a pipe: what the command wrote arrives whole.
    let raw = dev.run(&[
        "environment",
        "exec",
        &env,
        "--shell",
        "--",
        r"echo '\033[31m' | tr -d '\n' | sed 's/.033/\x1b/'",
    ]);
    assert_eq!(raw.ok(), "\u{1b}[31m");

    let timed = dev.run(&[
        "environment",
        "exec",
        &env,
        "--timeout",
        "1s",
        "--",
        "sleep",
        "20",
    ]);
    assert_eq!(timed.code, Some(124), "{timed:?}");
    assert!(timed.err.contains("timeout"), "{timed:?}");

    // check: CLI-4
    let json = dev.run(&[
        "-o",
        "json",
        "environment",
        "exec",
        &env,
        "--",
        "sh",
        "-c",
        "echo a; exit 9",
    ]);
    assert_eq!(json.code, Some(9));
    let result: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        result,
        serde_json::json!({"exit_code": 9, "stdout": "a\n", "stderr": ""})
    );
}

#[test]
fn environments_are_made_listed_shown_watched_and_removed() {
    let dev = Dev::start();
    let id = dev
        .run(&[
            "environment",
            "create",
            "--task-id",
            "one",
            "--label",
            "team=a b",
            "--env",
            "X=1=2",
            "--ram",
            "256",
            "--idle-timeout",
            "1h",
        ])
        .ok();
    assert_eq!(id, "fuse-one\n");
    let out = dev
        .run(&["env", "exec", "fuse-one", "--shell", "--", "echo $X"])
        .ok();
    assert_eq!(out, "1=2\n");
    let shown = dev.run(&["environment", "get", "fuse-one"]).ok();
    assert!(
        shown.contains("memory       256 MiB") && shown.contains("team='a b'"),
        "{shown}"
    );
    let json: Value = serde_json::from_str(
        &dev.run(&["-o", "json", "environment", "get", "fuse-one"])
            .ok(),
    )
    .unwrap();
    assert_eq!(json["spec"]["idle_timeout_seconds"], 3600);
    let listed = dev.run(&["environment", "list"]).ok();
    assert!(
        listed.starts_with("ID") && listed.contains("fuse-one"),
        "{listed}"
    );
    assert!(
        !dev.run(&["environment", "list", "--state", "failed"])
            .ok()
            .contains("fuse-one")
    );

    let again = dev.run(&["environment", "create", "--task-id", "one"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains("request: "), "{again:?}");
    let broken = dev.run(&[
        "environment",
        "create",
        "--task-id",
        "two",
        "--idle-timeout",
        "1s",
    ]);
    assert!(broken.err.contains("idle_timeout_seconds"), "{broken:?}");

    let mut watch = dev.home.fuse(&["environment", "watch", "fuse-one"]);
    let watch = watch.stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    dev.run(&["environment", "destroy", "fuse-one"]).ok();
    let events = Ran::of(watch.wait_with_output().unwrap()).ok();
    assert!(
        events.contains("running") && events.trim_end().ends_with("destroyed"),
        "{events}"
    );
    let gone = dev.run(&["environment", "get", "fuse-one"]);
    assert_eq!((gone.code, gone.out.as_str()), (Some(1), ""));
}

// check: FILE-4
#[test]
fn up_brings_a_fusefile_up_with_its_files_and_secrets() {
    let dev = Dev::start();
    dev.home.write("note.txt", "from beside\n");
    dev.home.write("secret.txt", "hush\n");
    dev.home.write(
        "Fusefile",
        "version: 1\nsecrets: [token]\nenv: { TOKEN: { secret: token } }\ncopy: [{ from: note.txt, to: /workspace/ }]\nbuild: [cp note.txt built.txt]\n",
    );
    let id = dev
        .run(&["up", "--name", "filed", "--secret", "token=@secret.txt"])
        .ok();
    assert_eq!(id, "fuse-filed\n");
    let out = dev
        .run(&[
            "environment",
            "exec",
            "fuse-filed",
            "--shell",
            "--",
            "cat built.txt; echo $TOKEN",
        ])
        .ok();
    assert_eq!(out, "from beside\nhush\n");
}

#[test]
fn a_key_is_shown_once_and_works_until_it_is_revoked() {
    let dev = Dev::start();
    let made = dev.run(&["apikeys", "create", "--label", "ci"]);
    let (secret, said) = (made.out.trim().to_owned(), made.err.clone());
    assert!(
        secret.starts_with("fuse_sk_") && secret.lines().count() == 1,
        "{made:?}"
    );
    let id = said.split(':').next().unwrap().to_owned();
    assert!(id.starts_with("ak_"), "{said}");
    let with_key = || {
        let mut command = dev.home.fuse(&["environment", "list"]);
        Ran::of(command.env("FUSE_TOKEN", &secret).output().unwrap())
    };
    with_key().ok();
    let listed = dev.run(&["apikeys", "list"]).ok();
    assert!(
        listed.contains(&id) && listed.contains("ci") && !listed.contains(&secret),
        "{listed}"
    );
    dev.run(&["apikeys", "revoke", &id]).ok();
    dev.run(&["apikeys", "revoke", &id]).ok();
    assert_eq!(with_key().code, Some(1));
}
