//! What a command cannot see.

use fisk_llm::standin::{KEY, Turn};
use serde_json::json;

use crate::support::*;

// check: FISK-3
// check: FISK-4
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
