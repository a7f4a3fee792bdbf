//! `connect`, and which server is talked to.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Dev, Home, Ran};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

// check: CLI-12
#[test]
fn connect_checks_the_server_and_saves_a_context_for_its_owner_alone() {
    let dev = Dev::start();
    let token = std::fs::read_to_string(dev.home.data().join("master-token")).unwrap();
    let mine = Home::new();

    let wrong = mine.run_with(
        &["connect", &dev.url, "--token", "-"],
        "not-the-token-at-all\n",
    );
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(!mine.config().exists(), "nothing is saved before it works");
    let nobody = mine.run(&["connect", "http://127.0.0.1:1", "--token", "x"]);
    assert_eq!(nobody.code, Some(1), "{nobody:?}");

    let ran = mine.run_with(
        &["connect", &dev.url, "--token", "-", "--name", "work"],
        &token,
    );
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    assert!(!ran.err.contains(token.trim()), "{ran:?}");
    assert_eq!(mode(&mine.config()), 0o600);
    assert_eq!(mode(mine.config().parent().unwrap()), 0o700);
    mine.run(&["hitl", "list"]).ok();
    mine.run(&["--context", "work", "hitl", "list"]).ok();

    let unknown = mine.run(&["--context", "play", "hitl", "list"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.err.contains("there are work"), "{unknown:?}");

    // The variables win over the context, and a context that is named wins over them.
    let mut command = mine.fuse(&["hitl", "list"]);
    let refused = Ran::of(command.env("FUSE_TOKEN", "another-token").output().unwrap());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let mut command = mine.fuse(&["--context", "work", "hitl", "list"]);
    Ran::of(command.env("FUSE_TOKEN", "another-token").output().unwrap()).ok();
}

#[test]
fn connect_needs_a_sane_url_name_and_token() {
    let home = Home::new();
    for (args, part) in [
        (&["connect", "localhost:8080", "--token", "x"][..], "http"),
        (&["connect", "http://u:p@h", "--token", "x"], "user"),
        (&["connect", "http://h", "--token", " "], "empty"),
        (
            &["connect", "http://h", "--token", "x", "--name", "../x"],
            "name",
        ),
        (&["connect", "http://h"], "--token -"),
        (&["connect", "http://h", "--token", "-"], "token"),
    ] {
        let ran = home.run(args);
        assert_eq!(
            (ran.code, ran.err.lines().count()),
            (Some(2), 1),
            "{args:?} {ran:?}"
        );
        assert!(ran.err.contains(part), "{args:?} {ran:?}");
    }
    assert!(!home.config().exists());
}

#[test]
fn a_broken_or_open_file_of_contexts_is_told() {
    let home = Home::new();
    std::fs::create_dir_all(home.config().parent().unwrap()).unwrap();
    std::fs::write(
        home.config(),
        "contexts: {a: {url: u, token: s3cret, x: 1}}\n",
    )
    .unwrap();
    let ran = home.run(&["hitl", "list"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("chmod 600") && ran.err.contains("config.yaml:1:"),
        "{ran:?}"
    );
    assert!(!ran.err.contains("s3cret"), "{ran:?}");
}
