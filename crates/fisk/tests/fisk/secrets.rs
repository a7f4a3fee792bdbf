//! What a command cannot see.

use fisk_llm::standin::{KEY, Turn};
use serde_json::json;

use crate::support::*;

// check: FISK-3
// check: FISK-4
#[test]
fn an_address_that_cannot_be_used_is_refused_by_the_name_of_where_it_stands() {
    let world = World::new("", vec![]);
    let mut command = world.fisk(&["run", "go"]);
    command.env("ANTHROPIC_BASE_URL", "nonsense");
    let ran = ran(&mut command);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            Some(2),
            "error: ANTHROPIC_BASE_URL: is no URL; write e.g. https://api.example.com\n"
        )
    );
}

// check: FISK-22
#[test]
fn the_key_is_in_no_environment_and_no_memory_that_a_command_can_read() {
    let look =
        Turn::tool_use("t1", "env", json!({})).and_tool_use("t2", "parent", json!({"needle": KEY}));
    let world = World::new(
        "harness: {strip_env: ['MY_*']}\n",
        vec![look, Turn::text("ok")],
    );
    let mut command = world.fisk(&["run", "--checkpoint", "--name", "one", "go"]);
    command
        .env("MY_PASSWORD", "pw-1")
        .env("OPENAI_API_KEY", "sk-2")
        .env("KEPT", "kept-3");
    let ran = ran(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = world.results();
    let (env, parent) = (&results[0].0, &results[1].0);
    assert!(
        env.contains("KEPT=kept-3") && env.contains("LLMFORMAT=1"),
        "{env}"
    );
    for secret in [KEY, "pw-1", "sk-2"] {
        assert!(!env.contains(secret), "{env}");
        assert!(!world.journal("one").contains(secret) || secret == KEY);
    }
    // The needle is the model's own here; besides the call itself the journal holds no key.
    let journal = world.journal("one");
    let held = journal.lines().filter(|line| line.contains(KEY)).count();
    let told = journal
        .lines()
        .filter(|line| line.contains("needle") && line.contains(KEY))
        .count();
    assert_eq!(held, told, "{journal}");
    assert!(
        parent.contains("environ") && !parent.contains("\\\"found\\\":true"),
        "{parent}"
    );
    assert_eq!(world.requests()[0].header("x-api-key"), Some(KEY));
}

#[test]
fn without_a_key_nothing_is_started() {
    let world = World::new("", vec![]);
    let mut command = world.fisk(&["run", "go"]);
    command.env_remove("ANTHROPIC_API_KEY");
    let ran = ran(&mut command);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            Some(2),
            "error: there is no key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN\n"
        )
    );
}

// check: FISK-22
#[test]
fn another_process_of_the_same_user_cannot_read_the_key_either() {
    use std::os::unix::process::CommandExt as _;
    let look = Turn::tool_use("t1", "parent", json!({"needle": KEY}));
    let world = World::new("", vec![look, Turn::text("ok")]);
    let mut command = world.fisk(&["run", "go"]);
    if nix::unistd::geteuid().is_root() {
        // Root may read what it likes; anybody else is the one to hold it against.
        let nobody = 65_534;
        for path in [world.path(""), world.path("agent.yaml")] {
            nix::unistd::chown(&path, Some(nobody.into()), Some(nobody.into())).unwrap();
        }
        command.uid(nobody).gid(nobody);
    }
    let ran = ran(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let output = world.result()["output"].as_str().unwrap().to_owned();
    let seen: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(seen["environ"]["found"], false, "{seen}");
    assert!(
        seen["environ"]["error"]
            .as_str()
            .unwrap()
            .contains("permission denied"),
        "{seen}"
    );
    assert!(
        seen["mem"].as_str().unwrap().contains("permission denied"),
        "{seen}"
    );
}

// check: FISK-38
#[test]
fn in_a_sandbox_a_command_writes_to_the_working_folder_and_sees_no_other() {
    let outside = tempfile::TempDir::new().unwrap();
    let escape = outside.path().join("escape");
    let calls = Turn::tool_use("t1", "write", json!({"path": "inside"})).and_tool_use(
        "t2",
        "write",
        json!({"path": escape}),
    );
    let world = World::new("harness: {sandbox: true}\n", vec![calls, Turn::text("ok")]);
    let ran = world.run(&["run", "go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.read("inside"), "written\n", "{:?}", world.results());
    assert!(!escape.exists());
}
