//! `init`, `validate`, `compile`, and `up` as far as it goes without a server.

use crate::support::Home;

// check: FILE-8
#[test]
fn init_writes_an_example_that_validates_and_overwrites_nothing() {
    let home = Home::new();
    home.run(&["init"]).ok();
    let ran = home.run(&["validate"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(0), "valid\n"),
        "{ran:?}"
    );

    home.write("Fusefile", "mine");
    let again = home.run(&["init"]);
    assert_eq!(again.code, Some(1));
    assert!(again.err.contains("--force"), "{again:?}");
    assert_eq!(
        std::fs::read_to_string(home.path().join("Fusefile")).unwrap(),
        "mine"
    );
    home.run(&["init", "--force"]).ok();
    home.run(&["validate"]).ok();
}

// check: FILE-2
#[test]
fn validate_points_at_each_error_with_a_caret() {
    let home = Home::new();
    home.write("Fusefile", "version: 1\nhitl:\n  timeout: 5s\n  gats: []\n");
    let ran = home.run(&["validate"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    assert!(
        ran.err.contains("Fusefile:4:3: error:") && ran.err.contains("^^^^"),
        "{ran:?}"
    );

    home.write("Fusefile", "version: 1\nhitl:\n  timeout: 5s\n");
    let ran = home.run(&["-o", "json", "validate"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let verdicts: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(verdicts["verdicts"][0]["path"], "hitl.timeout");
    assert_eq!(verdicts["verdicts"][0]["line"], 3);
}

#[test]
fn a_file_that_cannot_be_read_is_one_clear_line() {
    let home = Home::new();
    for (args, part) in [
        (&["validate"][..], "no Fusefile"),
        (&["compile", "nowhere"], "nowhere: No such file"),
        (&["up", "."], "directory"),
    ] {
        let ran = home.run(args);
        assert_eq!((ran.code, ran.err.lines().count()), (Some(1), 1), "{ran:?}");
        assert!(ran.err.contains(part), "{ran:?}");
    }
    std::fs::write(home.path().join("Fusefile"), b"version: 1\nname: \xff\n").unwrap();
    assert!(home.run(&["validate"]).err.contains("line 2 is not UTF-8"));
}

// check: FILE-3
#[test]
fn compile_prints_the_create_request_with_secrets_by_name_alone() {
    let home = Home::new();
    home.write(
        "Fusefile.yaml",
        "version: 1\nname: x\nsecrets: [token]\nenv: { T: { secret: token } }\nhitl:\n  timeout: 2m\n  requests: { ask: {} }\n",
    );
    let request: serde_json::Value = serde_json::from_str(&home.run(&["compile"]).ok()).unwrap();
    assert_eq!(request["task_id"], "x");
    assert_eq!(request["hitl"]["timeout_seconds"], 120);
    assert_eq!(request["secrets"], serde_json::json!({"token": null}));
    let piped = home
        .run_with(&["compile", "-"], "version: 1\nname: y\n")
        .ok();
    assert!(piped.contains("\"task_id\": \"y\""), "{piped}");
}

// check: FILE-4
#[test]
fn up_wants_exactly_the_declared_secrets_before_it_calls_anybody() {
    let home = Home::new();
    home.write("Fusefile", "version: 1\nname: x\nsecrets: [token]\n");
    let missing = home.run(&["up"]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.err.contains("--secret token=VALUE"), "{missing:?}");
    let unknown = home.run(&["up", "--secret", "token=a", "--secret", "tken=s3cret"]);
    assert!(
        unknown.err.contains("tken") && !unknown.err.contains("s3cret"),
        "{unknown:?}"
    );
    let twice = home.run(&["up", "--secret", "token=a", "--secret", "token=b"]);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    let no_file = home.run(&["up", "--secret", "token=@nowhere"]);
    assert_eq!(no_file.code, Some(2), "{no_file:?}");
    assert!(
        no_file
            .err
            .contains("--secret token: nowhere: No such file"),
        "{no_file:?}"
    );
    // All there: what is missing now is the server.
    let ready = home.run_with(&["up", "--secret", "token=-"], "value\n");
    assert!(ready.err.contains("no server is known"), "{ready:?}");
}
