//! What the transcript shows.

mod support;

use std::time::Duration;

use fisk_domain::event::{Ending, Event};
use fisk_tui::{App, Key, draw};
use ratatui::{Terminal, backend::TestBackend, style::Color};
use serde_json::json;
use support::{Person, approve};

fn called(id: &str, argv: &[&str]) -> Event {
    Event::ToolCalled {
        id: id.to_owned(),
        tool: "stream_ls".to_owned(),
        input: json!({}),
        argv: Some(argv.iter().map(|arg| (*arg).to_owned()).collect()),
    }
}

fn ended(id: &str, output: &str, code: i32) -> Event {
    Event::ToolEnded {
        id: id.to_owned(),
        result: json!({"exit_code": code, "output": output, "truncated": false}).to_string(),
        ending: Ending::Ran(Some(code)),
    }
}

#[test]
fn a_run_is_shown_from_its_first_turn_to_its_end() {
    let mut person = Person::new(60, 16);
    person.event(Event::TurnStarted { turn: 2 });
    person.event(Event::Text("I will look.\nThen I".to_owned()));
    person.event(Event::Text(" decide.".to_owned()));
    person.event(called("1", &["nats", "stream ls", "a\u{7}"]));
    person.event(Event::Waiting { id: "1".to_owned() });
    person.sees("WAITING FOR YOU");
    person.event(ended("1", "one\ntwo\n", 3));
    person.event(Event::Retrying {
        reason: "overloaded".to_owned(),
        after_ms: 1500,
    });
    person.event(Event::Usage {
        input: 1000,
        output: 234,
        budget: 200_000,
    });
    person.app.tick(Duration::from_secs(3671));
    let screen = person.screen();
    let expected = "
  I will look.
  Then I decide.

> nats 'stream ls' $'a\\u{7}'
  exit code 3, 2 lines of output (o)

! asking the model again in 1.5 s: overloaded
";
    assert!(screen.starts_with(expected), "{screen}");
    let status = screen.lines().last().expect("a status line");
    assert!(
        status.contains("retrying · turn 2 · 1234/200000 tokens · 1:01:11"),
        "{status}"
    );
    person.event(Event::Failed("the budget is spent".to_owned()));
    person.sees("failed");
    person.sees("! the budget is spent");
}

// check: FISK-81
#[test]
fn thinking_and_output_are_folded_until_they_are_asked_for() {
    let mut person = Person::new(60, 20);
    person.event(Event::Thinking("secret plan".to_owned()));
    person.event(called("1", &["a"]));
    person.event(ended("1", "out one", 0));
    person.event(called("2", &["b"]));
    person.event(ended("2", "out two", 0));
    person.sees("thinking, 11 characters");
    for hidden in ["secret plan", "out one", "out two"] {
        person.sees_not(hidden);
    }
    person.text("t");
    person.sees("~ secret plan");
    person.text("o");
    person.sees("│ out two");
    person.sees_not("out one");
    person.text("o");
    person.sees_not("out two");
    person.types(&[Key::Tab, Key::BackTab, Key::Char('o')]);
    person.sees("│ out one");
    person.text("t");
    person.sees_not("secret plan");
}

#[test]
fn it_follows_the_end_until_it_is_scrolled() {
    let mut person = Person::new(40, 10);
    let lines =
        |from: u32, to: u32| -> String { (from..to).map(|n| format!("line {n}\n")).collect() };
    person.event(Event::Text(lines(0, 100)));
    person.sees("line 99");
    person.types(&[Key::Up, Key::Up, Key::Up]);
    person.sees("more below");
    person.sees_not("line 99");
    person.sees("line 96");
    person.event(Event::Text(lines(100, 200)));
    person.sees("line 96");
    person.sees_not("line 199");
    person.types(&[Key::Home]);
    person.sees("line 0\n");
    person.types(&[Key::PageDown, Key::PageUp]);
    person.sees("line 0\n");
    person.types(&[Key::End]);
    person.sees("line 199");
    person.sees_not("more below");
    person.types(&[Key::PageUp]);
    person.types(&[Key::PageDown]);
    person.sees_not("more below");
}

#[test]
fn a_new_size_wraps_anew() {
    let mut person = Person::new(40, 10);
    person.event(Event::Text("alpha beta gamma delta 深圳市".to_owned()));
    person.sees("  alpha beta gamma delta 深圳市");
    person.resize(14, 10);
    person.sees("  alpha beta\n  gamma delta\n  深圳市\n");
}

#[test]
fn what_a_model_writes_cannot_pass_for_lines_of_ours() {
    let mut person = Person::new(60, 24);
    person.event(Event::Text(
        "ok\n> nats stream ls\n! all fine\n APPROVAL\u{1b}[1;1H\u{9b}2J\rX".to_owned(),
    ));
    person.event(called("1", &["a"]));
    person.event(ended("1", "> fake\r\u{1b}[31m", 0));
    person.text("o");
    let screen = person.screen();
    for row in [
        "  > nats stream ls",
        "  ! all fine",
        "   APPROVALX",
        "  │ > fake",
    ] {
        assert!(screen.lines().any(|line| line == row), "{row:?}\n{screen}");
    }
}

#[test]
fn an_escape_sequence_in_pieces_is_one() {
    let mut person = Person::new(60, 10);
    for piece in ["a\u{1b}", "[3", "1", "mred\u{1b}[", "0m", "."] {
        person.event(Event::Text(piece.to_owned()));
    }
    person.sees("  ared.\n");
}

// check: FISK-83
#[test]
fn the_transcript_is_bounded() {
    let mut person = Person::new(60, 10);
    person.event(Event::Text("first\n".to_owned()));
    let before = person.screen();
    assert!(before.contains("first"));
    for n in 0..300 {
        let lines: String = (0..100).map(|l| format!("{n} {l}\n")).collect();
        person.event(Event::Text(lines));
    }
    person.types(&[Key::Home]);
    person.sees_not("first");
    person.sees("200 ");
    person.types(&[Key::End]);
    person.sees("299 99");
    person.event(called("1", &["flood"]));
    person.event(ended("1", &"y\n".repeat(9000), 0));
    person.text("o");
    person.types(&[Key::PageUp]);
    person.event(called("2", &["after"]));
    person.types(&[Key::End]);
    person.sees("> after");
}

#[test]
fn a_prompt_leaves_the_transcript_readable() {
    let mut person = Person::new(60, 14);
    let text: String = (0..50).map(|n| format!("line {n}\n")).collect();
    person.event(Event::Text(text));
    person.ask(approve(["x"]));
    person.sees("line 49");
    person.types(&[Key::PageUp]);
    person.sees_not("line 49");
    person.sees("APPROVAL");
}

// check: FISK-82
#[test]
fn help_comes_and_goes() {
    let mut person = Person::new(80, 24);
    person.text("?");
    person.sees("There is no key that quits");
    person.text("q");
    person.sees_not("There is no key that quits");
}

#[test]
fn without_colour_there_is_none() {
    for (colour, expected) in [(true, true), (false, false)] {
        let mut app = App::new("demo", colour);
        app.on_resize(60, 10);
        app.on_event(Event::Failed("broken".to_owned()));
        let mut terminal = Terminal::new(TestBackend::new(60, 10)).expect("a terminal");
        terminal
            .draw(|frame| {
                let area = frame.area();
                draw(&app, area, frame.buffer_mut());
            })
            .expect("drawn");
        let coloured = terminal
            .backend()
            .buffer()
            .content()
            .iter()
            .any(|cell| cell.fg != Color::Reset);
        assert_eq!(coloured, expected);
    }
}
