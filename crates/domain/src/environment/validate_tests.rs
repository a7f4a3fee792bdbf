//! One table of what is refused, and what a whole request means.

use super::*;
use serde_json::{Value, json};

fn request(value: Value) -> CreateEnvironment {
    let mut whole = json!({"task_id": "agent"});
    for (name, member) in value.as_object().unwrap() {
        whole[name] = member.clone();
    }
    serde_json::from_value(whole).unwrap()
}

fn broken(value: Value) -> Vec<(String, String)> {
    match validate(&request(value), &ServerFacts::offline()) {
        Ok(_) => Vec::new(),
        Err(broken) => broken.into_iter().map(|v| (v.path, v.message)).collect(),
    }
}

// check: ENV-18, ENV-2, ENV-9, ENV-8
#[test]
fn each_broken_rule_names_its_field_and_what_is_allowed() {
    let long = "a".repeat(64);
    for (value, path, allowed) in [
        (json!({"task_id": ""}), "task_id", "DNS label"),
        (json!({"task_id": "Agent"}), "task_id", "DNS label"),
        (json!({"task_id": long}), "task_id", "1 to 63"),
        (json!({"spec": {"cpus": 0}}), "spec.cpus", "0.05 to 1024"),
        (json!({"spec": {"cpus": -1.5}}), "spec.cpus", "not -1.5"),
        (
            json!({"spec": {"ram_mb": 1}}),
            "spec.ram_mb",
            "32 to 16777216 MiB",
        ),
        (
            json!({"spec": {"storage_gb": 0}}),
            "spec.storage_gb",
            "1 to 65536 GiB",
        ),
        (
            json!({"spec": {"max_processes": 1}}),
            "spec.max_processes",
            "32 to",
        ),
        (
            json!({"spec": {"idle_timeout_seconds": 59}}),
            "spec.idle_timeout_seconds",
            "60 to 31536000 seconds",
        ),
        (
            json!({"spec": {"max_runtime_seconds": 0}}),
            "spec.max_runtime_seconds",
            "1 to",
        ),
        (
            json!({"spec": {"image": "../x"}}),
            "spec.image",
            "`host` or",
        ),
        (
            json!({"spec": {"network": "bridge"}}),
            "spec.network",
            "`none` or `host`",
        ),
        (
            json!({"spec": {"labels": {"": "x"}}}),
            r#"spec.labels[""]"#,
            "1 to 128",
        ),
        (
            json!({"secrets": {"a b": "x"}}),
            r#"secrets["a b"]"#,
            "A-Z a-z 0-9 _ - and .",
        ),
        (
            json!({"secrets": {"a": ""}}),
            "secrets.a",
            "1 byte to 64 KiB",
        ),
        (
            json!({"env": {"1A": {"value": "x"}}}),
            "env.1A",
            "no digit in front",
        ),
        (json!({"env": {"A": {"value": "x\u{0}"}}}), "env.A", "NUL"),
        (json!({"env": {"A": {}}}), "env.A", "exactly one of"),
        (
            json!({"env": {"A": {"value": "x", "secret": "s"}}}),
            "env.A",
            "exactly one of",
        ),
        (
            json!({"env": {"A": {"secret": "s"}}}),
            "env.A.secret",
            "`secrets`, which is empty",
        ),
        (
            json!({"env": {"A": {"secret": "s"}}, "secrets": {"t": "v"}}),
            "env.A.secret",
            "`secrets`, which has t",
        ),
        (json!({"files": {"a": ""}}), "files.a", "absolute path"),
        (
            json!({"files": {"/a/../b": ""}}),
            r#"files["/a/../b"]"#,
            "without `.`, `..`",
        ),
        (json!({"files": {"/": ""}}), r#"files["/"]"#, "name a file"),
        (
            json!({"files": {"/fuse/token": ""}}),
            r#"files["/fuse/token"]"#,
            "outside of /fuse",
        ),
        (
            json!({"files": {"/proc/x": ""}}),
            r#"files["/proc/x"]"#,
            "outside of /proc",
        ),
        (json!({"workspace": "/dev"}), "workspace", "outside of /dev"),
        (
            json!({"build": [{"run": "make", "workdir": "/sys/x"}]}),
            "build[0].workdir",
            "outside of /sys",
        ),
        (json!({"files": {"/a": "%"}}), r#"files["/a"]"#, "base64"),
        (
            json!({"files": {"/a": "", "/a/b": ""}}),
            r#"files["/a/b"]"#,
            "\"/a\"",
        ),
        (json!({"workspace": "work"}), "workspace", "absolute path"),
        (
            json!({"workspace": "/fuse"}),
            "workspace",
            "outside of /fuse",
        ),
        (
            json!({"build": [{"run": "make"}, {"run": " "}]}),
            "build[1].run",
            "must not be empty",
        ),
        (
            json!({"build": [{"run": "make", "workdir": "x"}]}),
            "build[0].workdir",
            "absolute path",
        ),
        (json!({"run": ""}), "run", "must not be empty"),
        (json!({"run": []}), "run", "program"),
        (json!({"run": [""]}), "run", "program"),
        (json!({"run": ["sh", "\u{0}"]}), "run[1]", "NUL"),
        (
            json!({"startup_script": "\n"}),
            "startup_script",
            "must not be empty",
        ),
        (
            json!({"startup_script_timeout_seconds": 0}),
            "startup_script_timeout_seconds",
            "1 to 3600",
        ),
        (
            json!({"desktop": {"width": 319, "height": 600}}),
            "desktop.width",
            "320 to 3840 pixels",
        ),
        (
            json!({"desktop": {"width": 800, "height": 3841}}),
            "desktop.height",
            "320 to 3840 pixels",
        ),
    ] {
        let found = broken(value.clone());
        assert_eq!(found.len(), 1, "{value}: {found:?}");
        assert_eq!(found[0].0, path, "{value}");
        assert!(found[0].1.contains(allowed), "{value}: {}", found[0].1);
    }
}

#[test]
fn every_broken_rule_is_told_at_once() {
    let found = broken(
        json!({"task_id": "-", "spec": {"cpus": 0, "ram_mb": 0}, "run": "",
        "hitl": {"timeout_seconds": 1}}),
    );
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "task_id",
            "spec.cpus",
            "spec.ram_mb",
            "run",
            "hitl.timeout_seconds"
        ]
    );
}

// check: ENV-8
#[test]
fn files_hold_half_a_mebibyte_in_all_once_decoded() {
    let half = STANDARD.encode(vec![7; MAX_FILES_BYTES / 2]);
    let one = STANDARD.encode([7]);
    assert!(broken(json!({"files": {"/a": half, "/b": half}})).is_empty());
    let found = broken(json!({"files": {"/a": half, "/b": half, "/c": one}}));
    assert_eq!(found[0].0, "files");
    assert!(found[0].1.ends_with("not 524289"), "{}", found[0].1);
}

#[test]
fn a_request_that_says_nothing_gets_the_defaults() {
    let valid = validate(&request(json!({})), &ServerFacts::offline()).unwrap();
    assert_eq!(valid.task_id.as_str(), "agent");
    assert_eq!(
        (valid.image.as_str(), valid.network),
        ("host", Network::None)
    );
    assert_eq!(valid.limits, Limits::default());
    assert_eq!(valid.workspace, "/workspace");
    assert_eq!(valid.build_timeout_seconds, 600);
    assert!(valid.startup.is_none() && valid.run.is_none() && valid.policy.is_none());
    assert_eq!(
        serde_json::to_value(&valid.spec).unwrap(),
        json!({"cpus": 1.0, "ram_mb": 512, "storage_gb": 5, "max_processes": 512, "image": "host", "network": "none"})
    );
}

// check: ENV-9
#[test]
fn a_full_request_is_decoded_and_its_secrets_are_put_in() {
    let valid = validate(
        &request(json!({
            "spec": {"cpus": 0.5, "network": "host", "image": "debian-12", "idle_timeout_seconds": 60},
            "secrets": {"token": "s3cr3t"},
            "env": {"B": {"secret": "token"}, "A": {"value": ""}},
            "files": {"/etc/motd": "aGk="},
            "build": [{"run": "make"}, {"run": "make test", "workdir": "/src"}],
            "run": ["sh", "", "x"], "workspace": "/work",
            "startup_script": "true", "startup_script_timeout_seconds": 5,
            "desktop": {"width": 320, "height": 3840},
            "hitl": {"requests": {"ask": {}}},
        })),
        &ServerFacts::offline(),
    )
    .unwrap();
    let env: Vec<_> = valid
        .env
        .iter()
        .map(|v| (v.name.as_str(), v.value.0.as_str()))
        .collect();
    assert_eq!(env, [("A", ""), ("B", "s3cr3t")]);
    assert_eq!(valid.files[0].content, b"hi");
    let folders: Vec<_> = valid
        .build
        .iter()
        .map(|step| step.workdir.as_str())
        .collect();
    assert_eq!(folders, ["/work", "/src"]);
    assert_eq!(
        valid.run,
        Some(Task::Argv(vec!["sh".into(), String::new(), "x".into()]))
    );
    assert_eq!(
        (
            valid.build_timeout_seconds,
            valid.startup.as_ref().unwrap().timeout_seconds
        ),
        (5, 5)
    );
    assert!(valid.policy.is_some() && valid.hitl.is_some());
    assert!(!format!("{:?} {:?} {:?}", valid.env, valid.files, valid.secrets).contains("s3cr3t"));
}

#[test]
fn only_the_servers_own_host_can_be_asked_for() {
    let asked = request(json!({"spec": {"host_id": "other"}}));
    let server = ServerFacts {
        host_id: Some("here".into()),
        ..ServerFacts::offline()
    };
    assert_eq!(
        validate(&asked, &server).unwrap_err()[0].path,
        "spec.host_id"
    );
    assert!(validate(&asked, &ServerFacts::offline()).is_ok());
    assert!(validate(&request(json!({"spec": {"host_id": "here"}})), &server).is_ok());
}

// check: CONF-28
#[test]
fn secret_requests_need_a_sealing_server() {
    let asked = request(
        json!({"hitl": {"requests": {"secret": {"targets": [{"env": "A", "label": "l"}]}}}}),
    );
    assert!(validate(&asked, &ServerFacts::offline()).is_ok());
    let open = ServerFacts {
        sealed: false,
        ..ServerFacts::offline()
    };
    assert!(
        validate(&asked, &open).unwrap_err()[0]
            .path
            .starts_with("hitl.requests.secret")
    );
}
