//! Gates and questions, at a terminal and without one.

use fisk_llm::standin::Turn;
use serde_json::{Value, json};

use crate::support::*;

/// The end of the question about a command: from here on keys count.
const APPROVE: &str = "[y/s/v/N] ";
const ASK: &str = "harness: {human_in_the_loop: {enabled: true}}\n";

fn call(id: &str, tool: &str) -> Turn {
    Turn::tool_use(id, tool, json!({}))
}

fn denial(world: &World) -> String {
    let result = world.result();
    assert_eq!(result["allowed"], false, "{result}");
    result["reason"].as_str().unwrap().to_owned()
}

// check: FISK-9
#[test]
fn without_a_terminal_a_gated_command_is_denied_and_the_run_goes_on() {
    let world = World::new("", vec![call("t1", "restart"), Turn::text("could not")]);
    let ran = world.run(&["run", "go"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "could not\n"));
    assert_eq!(
        denial(&world),
        "the operator did not approve this command: there is no terminal to ask the operator on; this decision is final, do not retry"
    );
}

// check: FISK-10
#[test]
fn one_y_runs_the_command_that_was_shown_once() {
    let world = World::new("", vec![call("t1", "restart"), Turn::text("ok")]);
    let mut screen = world.at_terminal(&["run", "go"]);
    screen.sees("app restart");
    screen.sees(APPROVE);
    screen.types("y");
    let ran = screen.ends();
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "ok\n"),
        "{ran:?}"
    );
    assert_eq!(world.result()["exit_code"], 0);
}

// check: FISK-10
#[test]
fn every_other_way_out_of_the_question_denies() {
    for key in ["n", "\r", "\u{1b}", "\u{3}", "\u{4}"] {
        let world = World::new("", vec![call("t1", "restart"), Turn::text("ok")]);
        let mut screen = world.at_terminal(&["run", "go"]);
        screen.sees(APPROVE);
        screen.types(key);
        let ran = screen.ends();
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), "ok\n"),
            "{key:?} {ran:?}"
        );
        denial(&world);
    }
}

// check: FISK-8
#[test]
fn s_allows_the_command_for_the_run_and_no_other() {
    let world = World::new(
        "",
        vec![
            call("t1", "restart"),
            call("t2", "restart"),
            call("t3", "purge"),
            Turn::text("ok"),
        ],
    );
    let mut screen = world.at_terminal(&["run", "go"]);
    screen.sees(APPROVE);
    screen.types("s");
    let seen = screen.sees("app purge");
    assert!(
        !seen[seen.find("done").unwrap()..].contains(APPROVE),
        "{seen}"
    );
    screen.sees(APPROVE);
    screen.types("n");
    assert_eq!(screen.ends().code, Some(0));
    let results = world.results();
    let ran: Vec<Value> = results
        .iter()
        .map(|(text, _)| serde_json::from_str(text).unwrap())
        .collect();
    assert_eq!(
        (&ran[0]["exit_code"], &ran[1]["exit_code"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(ran[2]["allowed"], false);
}

// check: FISK-6
#[test]
fn a_tag_of_confirm_tags_gates() {
    let world = World::new(
        "harness: {confirm_tags: ['impact:rw']}\n",
        vec![call("t1", "update"), Turn::text("ok")],
    );
    assert_eq!(world.run(&["run", "go"]).code, Some(0));
    denial(&world);
}

// check: FISK-7
#[test]
fn a_call_without_its_parameters_is_never_asked_about() {
    let gate = "harness: {confirm_tags: ['impact:rw']}\n";
    let world = World::new(
        gate,
        vec![
            Turn::tool_use("t1", "restart", json!({"force": true})),
            Turn::text("ok"),
        ],
    );
    let ran = world.at_terminal(&["run", "go"]).ends();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains(APPROVE), "{ran:?}");
    assert!(world.results()[0].1);
}

// check: FISK-12
#[test]
fn the_model_can_ask_the_operator_where_that_is_on() {
    let ask = Turn::tool_use(
        "t1",
        "ask_human_confirm",
        json!({"question": "Shall \u{1b}[2JI?"}),
    );
    let world = World::new(ASK, vec![ask, Turn::text("ok")]);
    let mut screen = world.at_terminal(&["run", "go"]);
    let seen = screen.sees("[y/N] ");
    assert!(seen.contains("Shall I?"), "{seen}");
    screen.types("y");
    let ran = screen.ends();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.result(), json!({"confirmed": true}));
}

// check: FISK-12
#[test]
fn questions_are_negative_without_a_terminal() {
    for (tool, input, key) in [
        ("ask_human_confirm", json!({"question": "q"}), "confirmed"),
        (
            "ask_human_select",
            json!({"question": "q", "options": ["a", "b"]}),
            "selected",
        ),
        ("ask_human_input", json!({"question": "q"}), "value"),
    ] {
        let world = World::new(
            ASK,
            vec![Turn::tool_use("t1", tool, input), Turn::text("ok")],
        );
        assert_eq!(world.run(&["run", "go"]).code, Some(0));
        let result = world.result();
        assert!(result[key] == false || result[key].is_null(), "{result}");
        assert!(
            result["reason"].as_str().unwrap().ends_with("do not retry"),
            "{result}"
        );
    }
}

// check: FISK-66
#[test]
fn ctrl_c_at_two_questions_ends_the_run() {
    let world = World::new(
        "",
        vec![call("t1", "restart"), call("t2", "purge"), Turn::text("ok")],
    );
    let mut screen = world.at_terminal(&["run", "go"]);
    screen.sees("app restart");
    screen.sees(APPROVE);
    screen.types("\u{3}");
    screen.sees("app purge");
    screen.sees(APPROVE);
    screen.types("\u{3}");
    let ran = screen.ends();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(130), ""), "{ran:?}");
    assert_eq!(world.requests().len(), 2);
}

// check: FISK-69
#[test]
fn the_full_screen_asks_too_and_gives_the_terminal_back() {
    let world = World::new("", vec![call("t1", "restart"), Turn::text("final words")]);
    let mut screen = world.on_screen(&["run", "go"]);
    screen.sees("\u{1b}[?1049h");
    screen.sees("restart");
    screen.sees("deny");
    screen.types("y");
    let ran = screen.ends();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, after) = ran.stderr.rsplit_once("\u{1b}[?1049l").unwrap();
    assert!(after.contains("final words\r\n"), "{after:?}");
    assert_eq!(world.result()["exit_code"], 0);
}

// check: FISK-69
#[test]
fn the_full_screen_is_never_drawn_where_output_is_piped_or_it_is_not_wanted() {
    for (arguments, all, harness) in [
        (&["run", "go"][..], false, ""),
        (&["run", "--no-tui", "go"], true, ""),
        (&["run", "go"], true, "harness: {no_tui: true}\n"),
    ] {
        let world = World::new(harness, vec![Turn::text("ok")]);
        let screen = if all {
            world.on_screen(arguments)
        } else {
            world.at_terminal(arguments)
        };
        let ran = screen.ends();
        assert_eq!(ran.code, Some(0));
        assert!(!ran.stderr.contains("\u{1b}[?1049h"), "{ran:?}");
    }
}
