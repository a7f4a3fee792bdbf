//! What a run prints, refuses, and ends with.

use std::time::Duration;

use fisk_llm::{Usage, standin::Turn};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::*;

fn done() -> Turn {
    Turn::text("done")
}

#[test]
fn only_the_answer_is_on_standard_output() {
    let call = Turn::blocks([])
        .and_text("let me look")
        .and_tool_use("t1", "status", json!({}));
    let world = World::new("", vec![call, Turn::text("all \u{1b}[31mgreen")]);
    let ran = world.run(&["run", "how is it?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "all \u{1b}[31mgreen\n");
    assert_eq!(ran.stderr, "");
}

// check: FISK-67
#[test]
fn on_a_terminal_the_answer_is_stripped_and_the_work_is_seen() {
    let call = Turn::blocks([])
        .and_text("let \u{1b}]0;x\u{7}me look")
        .and_tool_use("t1", "status", json!({}));
    let world = World::new("", vec![call, Turn::text("all \u{1b}[31mgreen\u{202e}")]);
    let ran = world.on_screen(&["run", "--no-tui", "how is it?"]).ends();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains("let me look") && ran.stderr.contains("status"),
        "{ran:?}"
    );
    assert!(ran.stderr.ends_with("all green\r\n"), "{ran:?}");
    assert!(
        !ran.stderr.contains("\u{1b}]0") && !ran.stderr.contains('\u{202e}'),
        "{ran:?}"
    );
}

// check: FISK-18
#[test]
fn a_result_is_code_output_and_truncated_and_a_failure_is_no_error() {
    let world = World::new(
        "",
        vec![Turn::tool_use("t1", "exit", json!({"code": 7})), done()],
    );
    assert_eq!(world.run(&["run", "go"]).code, Some(0));
    let result = world.result();
    assert_eq!(result["exit_code"], 7);
    assert_eq!(result["truncated"], false);
    assert!(
        result["output"]
            .as_str()
            .unwrap()
            .contains("to standard error"),
        "{result}"
    );
    assert_eq!(result.as_object().unwrap().len(), 3);
}

// check: FISK-18
#[test]
fn a_call_that_cannot_be_made_is_an_error_that_says_what_can() {
    for (tool, input, told) in [
        (
            "statsu",
            json!({}),
            "there is no tool \"statsu\"; the nearest of ",
        ),
        ("destroy", json!({}), "there is no tool \"destroy\""),
        (
            "ask_human_confirm",
            json!({"question": "x"}),
            "there is no tool",
        ),
        ("status", json!({"colour": 1}), "property \"colour\""),
        ("need", json!({"alpha": "x"}), "beta"),
    ] {
        let world = World::new("", vec![Turn::tool_use("t1", tool, input), done()]);
        assert_eq!(world.run(&["run", "go"]).code, Some(0));
        let results = world.results();
        let [(content, true)] = results.as_slice() else {
            panic!("{tool}: {results:?}")
        };
        assert!(content.contains(told), "{tool}: {content}");
    }
}

#[test]
fn an_input_that_is_no_object_runs_nothing() {
    let world = World::new(
        "",
        vec![Turn::tool_use("t1", "status", json!("{broken")), done()],
    );
    assert_eq!(world.run(&["run", "go"]).code, Some(0));
    let (content, is_error) = &world.results()[0];
    assert!(*is_error && content.contains("no JSON object"), "{content}");
}

// check: FISK-68
#[test]
fn a_call_at_the_end_of_a_cut_reply_does_not_run_and_one_before_it_does() {
    let world = World::new("", Vec::new());
    let target = world.path("target");
    let (a, b) = (
        json!({"path": target, "content": "a"}),
        json!({"path": target, "content": "b"}),
    );
    let turn = Turn::tool_use("t1", "write", a)
        .and_tool_use("t2", "write", b)
        .stop("max_tokens");
    let world = World::new("", vec![turn, done()]);
    std::fs::write(&target, "").unwrap_or_default();
    let ran = world.run(&["run", "go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = world.results();
    assert!(!results[0].1 && results[1].1, "{results:?}");
    assert!(results[1].0.contains("was cut"), "{results:?}");
}

// check: FISK-73
#[test]
fn a_command_that_never_ends_is_killed_and_the_run_goes_on() {
    let turns = vec![Turn::tool_use("t1", "sleep", json!({"for": "10m"})), done()];
    let world = World::new("harness: {tool_timeout: 1s}", turns);
    assert_eq!(world.run(&["run", "go"]).code, Some(0));
    let (content, is_error) = &world.results()[0];
    assert!(*is_error && content.contains("within 1s"), "{content}");
}

// check: FISK-24
#[test]
fn a_spent_budget_ends_with_exit_1_and_its_name() {
    let usage = Usage {
        input: 60,
        cache_read: 30,
        output: 15,
        ..Usage::default()
    };
    for (budget, name) in [
        (
            "max_tokens: 100",
            "budget spent: max_tokens (105 of 100 tokens are used)",
        ),
        (
            "max_iterations: 1",
            "budget spent: max_iterations (the model was called 1 times of 1)",
        ),
    ] {
        let call = Turn::tool_use("t1", "status", json!({})).usage(Some(usage));
        let world = World::new("", vec![call, done()]);
        let text = world.read("agent.yaml").replace(
            "model: claude-test",
            &format!("model: claude-test, budget: {{{budget}}}"),
        );
        std::fs::write(world.path("agent.yaml"), text).unwrap();
        let ran = world.run(&["run", "go"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.as_str()),
            ("", format!("error: {name}\n").as_str())
        );
        assert_eq!(world.requests().len(), 1);
    }
}

// check: FISK-24
#[test]
fn a_call_of_the_model_that_takes_too_long_ends_the_run() {
    let world = World::new("", vec![done().delay(Duration::from_secs(50))]);
    let text = world.read("agent.yaml").replace(
        "model: claude-test",
        "model: claude-test, budget: {call_timeout: 1s}",
    );
    std::fs::write(world.path("agent.yaml"), text).unwrap();
    let ran = world.run(&["run", "go"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("did not answer within 1s"), "{ran:?}");
}

#[test]
fn a_retry_is_told_and_the_run_goes_on() {
    let world = World::new(
        "",
        vec![
            Turn::error(529, "overloaded_error", "busy \u{1b}[2J"),
            done(),
        ],
    );
    let ran = world.run(&["run", "go"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "done\n"),
        "{ran:?}"
    );
    assert!(
        ran.stderr.contains("asking again in") && !ran.stderr.contains('\u{1b}'),
        "{ran:?}"
    );
}

#[test]
fn a_refusal_and_a_cut_answer_end_with_exit_1() {
    let world = World::new("", vec![Turn::text("no").stop("refusal")]);
    let ran = world.run(&["run", "go"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(1), "error: the model refused: no\n")
    );
    let world = World::new("", vec![Turn::text("half of").stop("max_tokens")]);
    let ran = world.run(&["run", "go"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "half of\n"));
    assert!(ran.stderr.contains("the answer is cut"), "{ran:?}");
}

#[test]
fn a_paused_turn_goes_on() {
    let world = World::new("", vec![Turn::text("one").stop("pause_turn"), done()]);
    let ran = world.run(&["run", "go"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "done\n"),
        "{ran:?}"
    );
    assert_eq!(world.requests().len(), 2);
}

#[test]
fn the_prompt_can_come_on_standard_input() {
    let world = World::new("", vec![done()]);
    std::fs::write(world.path("prompt"), "from a file").unwrap();
    let mut command = world.fisk(&["run", "-"]);
    command.stdin(std::fs::File::open(world.path("prompt")).unwrap());
    assert_eq!(ran(&mut command).code, Some(0));
    let body = world.requests()[0].body["messages"].to_string();
    assert!(body.contains("from a file"), "{body}");
    assert_eq!(world.run(&["run", "  "]).code, Some(2));
}

#[test]
fn a_local_model_needs_no_key() {
    let world = World::new("", vec![Turn::tool_use("t1", "status", json!({})), done()]);
    let text = world.read("agent.yaml").replace(
        "model: claude-test",
        &format!(
            "provider: openai, model: local, base_url: '{}/v1'",
            world.base_url()
        ),
    );
    std::fs::write(world.path("agent.yaml"), text).unwrap();
    let mut command = world.fisk(&["run", "go"]);
    command.env_remove("ANTHROPIC_API_KEY");
    let ran = ran(&mut command);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "done\n"),
        "{ran:?}"
    );
    let requests = world.requests();
    assert_eq!(requests[1].path, "/v1/chat/completions");
    assert!(
        requests[1].body.to_string().contains("exit_code"),
        "{:?}",
        requests[1].body
    );
    assert_eq!(requests[0].header("authorization"), None);
}

// check: FISK-66
#[test]
fn the_first_signal_ends_the_command_and_the_run() {
    for (number, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let world = World::new(
            "",
            vec![Turn::tool_use("t1", "sleep", json!({"for": "50s"})), done()],
        );
        let mut child = world.fisk(&["run", "go"]).spawn().unwrap();
        until("the command", || is_running(&child));
        signal(&child, number);
        assert_eq!(end(&mut child).code(), Some(code));
        assert_eq!(world.requests().len(), 1);
    }
}

// check: FISK-66
#[test]
fn the_second_ctrl_c_ends_at_once_whatever_the_command_does() {
    let deaf = Turn::tool_use("t1", "sleep", json!({"for": "50s", "deaf": true}));
    let world = World::new("", vec![deaf, done()]);
    let mut child = world.fisk(&["run", "go"]).spawn().unwrap();
    until("the command", || is_running(&child));
    let pid = grandchild(&child).unwrap();
    let since = std::time::Instant::now();
    signal(&child, Signal::SIGINT);
    // Two that come together are one to the kernel, so it is pressed until it is heard again.
    until("the end", || {
        signal(&child, Signal::SIGINT);
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(end(&mut child).code(), Some(130));
    // Sooner than the grace of a command that is asked to end.
    assert!(
        since.elapsed() < Duration::from_secs(8),
        "{:?}",
        since.elapsed()
    );
    until("the end of the command", || {
        !exists(std::path::Path::new(&format!("/proc/{pid}/exe")))
    });
}

/// The application's process, as a child of the run.
pub fn grandchild(child: &std::process::Child) -> Option<u32> {
    let app = application();
    let all = std::fs::read_dir("/proc").unwrap();
    for entry in all.flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let is_child = status.contains(&format!("PPid:\t{}\n", child.id()));
        if is_child && std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == app) {
            return Some(pid);
        }
    }
    None
}

/// Whether the command `sleep` runs, past its start.
pub fn is_running(child: &std::process::Child) -> bool {
    grandchild(child).is_some_and(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // The description was asked for first, by a process of its own.
        String::from_utf8_lossy(&line).contains("sleep")
    })
}
