//! `fuse serve` and `fuse dev`: how they start, stop and start again.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{Dev, Home, Ran, Running};

// check: CLI-13
#[test]
fn a_broken_setting_is_one_line_and_2_and_nothing_is_written() {
    for (name, value) in [
        ("ORCH_LISTEN", "somewhere"),
        ("DATABASE_URL", "mysql://x"),
        ("ORCH_AUTH_TOKEN", "s3cret of four words"),
        ("TOKEN_ENCRYPTION_KEY", "s3cret-but-no-key"),
        ("FUSE_RESTATE_MODE", "cloud"),
        ("FUSE_TRUSTED_PROXIES", "10.0.0.0/99"),
        ("RUST_LOG", "fuse=loud"),
    ] {
        let home = Home::new();
        let mut server = home.fuse(&["serve"]);
        let ran = ended(server.env(name, value));
        assert_eq!(
            (ran.code, ran.err.lines().count()),
            (Some(2), 1),
            "{name}: {ran:?}"
        );
        assert!(ran.err.contains(name), "{ran:?}");
        assert!(!ran.err.contains("s3cret"), "{ran:?}");
        assert!(!home.data().exists(), "{name}");
    }
    let home = Home::new();
    let ran = home.run(&["serve", "--listen", "nowhere", "--database-url", "sqlite:x"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("--listen"), "{ran:?}");
}

/// A server that starts although it should not must fail its test, not hold it up.
fn ended(command: &mut std::process::Command) -> Ran {
    use std::process::Stdio;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..300 {
        if child.try_wait().unwrap().is_some() {
            return Ran::of(child.wait_with_output().unwrap());
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    child.kill().unwrap();
    panic!("it runs: {:?}", Ran::of(child.wait_with_output().unwrap()));
}

// check: CLI-14
// check: CLI-15
#[test]
fn serve_makes_a_token_says_where_it_listens_and_lets_nobody_in_without() {
    let home = Home::new();
    let mut command = home.fuse(&["serve"]);
    command.env("ORCH_LISTEN", "127.0.0.1:0");
    let mut server = Running::start(command);
    let line = server.says("listening on http://127.0.0.1:");
    let url = line.split_once("listening on ").unwrap().1.to_owned();
    assert!(!url.ends_with(":0"), "{url}");

    let file = home.data().join("master-token");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let token = std::fs::read_to_string(&file).unwrap();
    assert!(
        server
            .said
            .iter()
            .any(|line| line.contains(file.to_str().unwrap()))
    );
    assert!(!home.config().exists(), "serve saves no context");

    let list = |token: &str| {
        let mut command = home.fuse(&["hitl", "list"]);
        Ran::of(
            command
                .env("FUSE_URL", &url)
                .env("FUSE_TOKEN", token)
                .output()
                .unwrap(),
        )
    };
    assert_eq!(list("guessed-token-123456").code, Some(1));
    list(token.trim()).ok();

    // check: CLI-3
    let mut taken = home.fuse(&["serve", "--listen", url.trim_start_matches("http://")]);
    let second = Ran::of(taken.output().unwrap());
    assert!(
        matches!(second.code, Some(1 | 2)) && second.err.contains("cannot listen"),
        "{second:?}"
    );

    server.signal(Signal::SIGTERM);
    let (status, time) = server.ends();
    assert!(
        status.success() && time < Duration::from_secs(5),
        "{status} {time:?} {:?}",
        server.said
    );
    assert!(
        !server.said.iter().any(|line| line.contains(token.trim())),
        "{:?}",
        server.said
    );
}

// check: CLI-12
#[test]
fn dev_is_ready_to_use_and_finds_everything_again_after_a_stop() {
    let mut dev = Dev::start();
    let kept = ["master-token", "encryption-key"].map(|name| {
        let path = dev.home.data().join(name);
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600,
            "{name}"
        );
        (path.clone(), std::fs::read(path).unwrap())
    });
    assert!(dev.home.data().join("fuse.db").exists());
    let config = std::fs::read_to_string(dev.home.config()).unwrap();
    assert!(
        config.contains("current: dev") && config.contains(&dev.url),
        "{config}"
    );
    let env = dev.environment("stays");
    let ask = dev.asks(&env, "Still there?", &[]);

    dev.running.signal(Signal::SIGINT);
    let (status, time) = dev.running.ends();
    assert!(
        status.success() && time < Duration::from_secs(5),
        "{status} {time:?}"
    );
    let token = String::from_utf8(kept[0].1.clone()).unwrap();
    assert!(
        !dev.running
            .said
            .iter()
            .any(|line| line.contains(token.trim())),
        "{:?}",
        dev.running.said
    );

    let mut running = Running::start(dev.home.fuse(&["dev", "--listen", "127.0.0.1:0"]));
    running.says("listening on http://");
    dev.running = running;
    for (path, content) in &kept {
        assert_eq!(&std::fs::read(path).unwrap(), content);
    }
    let out = dev
        .run(&["environment", "exec", &env, "--", "echo", "hello"])
        .ok();
    assert_eq!(out, "hello\n");
    let shown = dev.run(&["hitl", "show", &ask]).ok();
    assert!(shown.contains("Still there?"), "{shown}");
}
