//! The whole interface on a real pseudo-terminal.

mod terminal;

use fisk_domain::{PromptFailure, event::Event};
use fisk_operator::{ApprovalRequest, Confirm, Input, Prompter, Select};
use fisk_tui::{Signal, StartError, Tui};
use fuse_terminal::Exact;
use nix::sys::termios::{LocalFlags, tcgetattr};
use std::{fmt::Debug, future::Future, os::fd::OwnedFd, sync::Arc};
use terminal::{Desk, options};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

type Answer = Result<String, PromptFailure>;

/// Asks one of the four questions, and gives the answer in words.
fn ask(desk: &Desk, kind: &str) -> JoinHandle<Answer> {
    ask_with(desk, kind, CancellationToken::new())
}

fn ask_with(desk: &Desk, kind: &str, cancel: CancellationToken) -> JoinHandle<Answer> {
    async fn words<T: Debug>(answer: impl Future<Output = Result<T, PromptFailure>>) -> Answer {
        answer.await.map(|answer| format!("{answer:?}"))
    }
    let prompter = Arc::clone(&desk.prompter);
    let kind = kind.to_owned();
    tokio::spawn(async move {
        let request = |argv: &[&str]| ApprovalRequest {
            tool: "stream_rm".to_owned(),
            command: Exact::argv(argv),
            tags: vec!["ai:confirm".to_owned()],
        };
        match kind.as_str() {
            "approve" => {
                words(prompter.approve(&request(&["nats", "stream", "rm", "orders"]), &cancel))
                    .await
            }
            "hostile" => {
                let argv = ["rm", "a\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}b", "\r\ny"];
                words(prompter.approve(&request(&argv), &cancel)).await
            }
            "long" => {
                let long = "x".repeat(3000);
                words(prompter.approve(&request(&["nats", &long]), &cancel)).await
            }
            "confirm" => {
                let question = Confirm {
                    question: "Go on?\u{1b}[2J\u{202e}\r\nfake".to_owned(),
                    default: Some(true),
                };
                words(prompter.confirm(&question, &cancel)).await
            }
            "select" => {
                let question = Select {
                    question: "Which one?".to_owned(),
                    options: vec!["red".to_owned(), "green\u{7}".to_owned()],
                    default: Some("red".to_owned()),
                };
                words(prompter.select(&question, &cancel)).await
            }
            "input" => {
                let question = Input {
                    question: "What name?".to_owned(),
                    default: None,
                };
                words(prompter.input(&question, &cancel)).await
            }
            other => panic!("no question {other}"),
        }
    })
}

/// What the screen says when keys count.
fn ready(kind: &str) -> &'static str {
    match kind {
        "approve" | "hostile" => "y: run it once",
        "long" => "count once v has",
        "confirm" => "y: yes.",
        "select" => "Type a number",
        _ => "Enter: send it",
    }
}

fn said(text: &str) -> Option<Answer> {
    Some(Ok(text.to_owned()))
}

// check: FISK-10
// check: FISK-16
#[tokio::test(flavor = "multi_thread")]
async fn every_key_answers_every_prompt_as_it_says() {
    let escape = || Some(Err(PromptFailure::Dismissed));
    let interrupt = || Some(Err(PromptFailure::Interrupted));
    let end = || Some(Err(PromptFailure::EndOfInput));
    let denied = || said("Denied { reason: None }");
    let table: Vec<(&'static str, &'static [u8], Option<Answer>)> = vec![
        ("approve", b"y", said("Once")),
        ("approve", b"s", said("Session")),
        ("approve", b"v", None),
        ("approve", b"n", denied()),
        ("approve", b"\r", denied()),
        ("approve", b"\x1b", escape()),
        ("approve", b"\x1b[A", None),
        ("approve", b"\x1bOB", None),
        ("approve", b"\x03", interrupt()),
        ("approve", b"\x04", end()),
        ("approve", b"x", None),
        ("approve", b"yes", None),
        ("approve", b"\x1b[200~y\x1b[201~", None),
        ("approve", b"\x1b[200~y\r\x1b[201~", None),
        ("approve", b"\x1b[121;1:3u", None),
        ("confirm", b"y", said("true")),
        ("confirm", b"s", None),
        ("confirm", b"v", None),
        ("confirm", b"n", said("false")),
        ("confirm", b"\r", said("false")),
        ("confirm", b"\x1b", escape()),
        ("confirm", b"\x1b[A", None),
        ("confirm", b"\x03", interrupt()),
        ("confirm", b"\x04", end()),
        ("confirm", b"\x1b[200~y\x1b[201~", None),
        ("select", b"\r", said("None")),
        ("select", b"y", None),
        ("select", b"s", None),
        ("select", b"n", None),
        ("select", b"\x1b", escape()),
        ("select", b"\x1b[B", None),
        ("select", b"2", None),
        ("select", b"\x03", interrupt()),
        ("select", b"\x04", end()),
        ("input", b"\r", said("None")),
        ("input", b"y", None),
        ("input", b"s", None),
        ("input", b"v", None),
        ("input", b"n", None),
        ("input", b"\x1b", escape()),
        ("input", b"\x1b[A", None),
        ("input", b"\x03", interrupt()),
        ("input", b"\x04", end()),
    ];
    // Each kind of question at a terminal of its own, since most of the time passes until keys count.
    let desks: Vec<_> = ["approve", "confirm", "select", "input"]
        .map(|kind| {
            let rows = table.iter().filter(|row| row.0 == kind).cloned().collect();
            tokio::task::spawn_blocking(move || each_key_answers(kind, rows))
        })
        .into();
    for desk in desks {
        desk.await.expect("the keys of a question");
    }
}

fn each_key_answers(kind: &str, rows: Vec<(&'static str, &'static [u8], Option<Answer>)>) {
    let mut desk = Desk::new();
    for (_, keys, expected) in rows {
        let answer = ask(&desk, kind);
        desk.sees(ready(kind));
        desk.types(keys);
        let what = format!("{kind} {:?}", String::from_utf8_lossy(keys));
        match expected {
            Some(expected) => assert_eq!(desk.answer(answer), expected, "{what}"),
            None => {
                assert!(!answer.is_finished(), "{what}");
                // Twice where the first one leaves the pager.
                while !answer.is_finished() {
                    desk.types(b"\x1b");
                }
                assert_eq!(desk.answer(answer), Err(PromptFailure::Dismissed), "{what}");
            }
        }
        desk.sees_no_more(ready(kind));
    }
    let interrupts = desk.signals.try_iter().collect::<Vec<_>>();
    assert_eq!(interrupts, [Signal::Interrupt], "{kind}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_and_a_text_are_what_was_typed() {
    let mut desk = Desk::new();
    let answer = ask(&desk, "select");
    desk.sees(ready("select"));
    desk.types(b"\x1b[B");
    desk.types(b"\x1b[B");
    desk.sees("> 2  green");
    desk.types(b"\r");
    assert_eq!(desk.answer(answer), Ok("Some(1)".to_owned()));
    let answer = ask(&desk, "input");
    desk.sees(ready("input"));
    desk.types("née".as_bytes());
    desk.types(b"\x1b[200~ a\x1b[2Jb\r\ny\x1b[201~");
    desk.sees("> née ab y");
    desk.types(b"\r");
    // Pasted escapes are taken out as they would be from any text.
    assert_eq!(desk.answer(answer), Ok("Some(\"née ab y\")".to_owned()));
    // Typed at once, in their order.
    for (kind, keys, expected) in [
        ("select", "2\r", "Some(1)"),
        ("select", "\r2", "None"),
        ("input", "web\r", "Some(\"web\")"),
    ] {
        let answer = ask(&desk, kind);
        desk.sees(ready(kind));
        desk.types(keys.as_bytes());
        assert_eq!(desk.answer(answer), said(expected).expect("an answer"));
    }
}

// check: FISK-10
// check: FISK-84
#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_hangs_up_denies_at_once() {
    for kind in ["approve", "confirm", "select", "input"] {
        let mut desk = Desk::new();
        let answer = ask(&desk, kind);
        desk.sees(ready(kind));
        let prompter = Arc::clone(&desk.prompter);
        let signals = desk.hang_up();
        assert_eq!(
            answer.await.expect("an answer"),
            Err(PromptFailure::EndOfInput)
        );
        assert!(!prompter.interactive());
        let told = signals.recv_timeout(terminal::SOON);
        assert_eq!(told, Ok(Signal::HangUp));
        let cancel = CancellationToken::new();
        let question = Confirm {
            question: "Still there?".to_owned(),
            default: None,
        };
        let later = prompter.confirm(&question, &cancel).await;
        assert_eq!(later, Err(PromptFailure::EndOfInput));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_typed_before_a_hang_up_agrees_to_nothing() {
    let mut desk = Desk::new();
    let answer = ask(&desk, "approve");
    desk.sees(ready("approve"));
    desk.press(b"y");
    desk.hang_up();
    // It was read before, or it counts for nothing; never does the wait go on.
    let answer = answer.await.expect("an answer");
    assert!(
        answer == Err(PromptFailure::EndOfInput) || answer == Ok("Once".to_owned()),
        "{answer:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interface_that_ends_denies_what_waits() {
    let mut desk = Desk::new();
    let answer = ask(&desk, "approve");
    desk.sees(ready("approve"));
    desk.stop();
    assert!(matches!(desk.answer(answer), Err(PromptFailure::Failed(_))));
    assert!(!desk.prompter.interactive());
    let answer = ask(&desk, "approve");
    assert_eq!(desk.answer(answer), Err(PromptFailure::NoOperator));
}

// check: FISK-9
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_its_question_and_takes_it_off_the_screen() {
    let mut desk = Desk::new();
    for kind in ["approve", "confirm", "select", "input"] {
        let cancel = CancellationToken::new();
        let answer = ask_with(&desk, kind, cancel.clone());
        desk.sees(ready(kind));
        let second = ask_with(&desk, kind, cancel.clone());
        cancel.cancel();
        assert_eq!(desk.answer(answer), Err(PromptFailure::Cancelled));
        assert_eq!(desk.answer(second), Err(PromptFailure::Cancelled));
        desk.sees_no_more(ready(kind));
        let never = ask_with(&desk, kind, cancel);
        assert_eq!(desk.answer(never), Err(PromptFailure::Cancelled));
    }
}

// check: FISK-10
#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_before_the_question_is_thrown_away() {
    let mut desk = Desk::new();
    for kind in ["approve", "confirm", "select", "input"] {
        desk.press(b"y");
        let answer = ask(&desk, kind);
        desk.press(b"y");
        desk.sees(ready(kind));
        desk.types(b"\x1b");
        assert_eq!(desk.answer(answer), Err(PromptFailure::Dismissed));
        desk.sees_no_more(ready(kind));
    }
}

// check: FISK-10
// check: FISK-13
#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_cannot_drive_the_terminal() {
    let mut desk = Desk::new();
    let text =
        "A\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31mB\u{1b}[?1049l\u{202e}C\u{8}\u{8}\r\nD\u{1b}c";
    desk.watcher.event(Event::Text(text.to_owned()));
    desk.watcher.event(Event::Notice(text.to_owned()));
    desk.sees("! D");
    let answer = ask(&desk, "hostile");
    desk.sees(r"rm $'a\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}b' $'\r\ny'");
    desk.sees(ready("hostile"));
    desk.sees("  ABC");
    assert!(desk.parser.screen().alternate_screen());
    desk.types(b"\x1b");
    assert_eq!(desk.answer(answer), Err(PromptFailure::Dismissed));
    let answer = ask(&desk, "confirm");
    desk.sees("│ Go on? fake");
    desk.sees(ready("confirm"));
    desk.types(b"n");
    assert_eq!(desk.answer(answer), Ok("false".to_owned()));
    assert!(!desk.drawn_text().contains("owned\u{7}"));
    assert!(!desk.drawn_text().contains('\u{202e}'));
}

// check: FISK-40
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_pressed_again_at_once_does_not_answer_the_next_question() {
    let mut desk = Desk::new();
    let answer = ask(&desk, "approve");
    desk.sees(ready("approve"));
    desk.types(b"y");
    assert_eq!(desk.answer(answer), Ok("Once".to_owned()));
    let answer = ask(&desk, "approve");
    desk.types(b"y");
    desk.sees(ready("approve"));
    assert!(!answer.is_finished());
    desk.types(b"\x03");
    assert_eq!(desk.answer(answer), Err(PromptFailure::Interrupted));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resize_draws_anew_and_the_question_stays() {
    let mut desk = Desk::new();
    let answer = ask(&desk, "approve");
    desk.sees(ready("approve"));
    desk.resize(30, 10);
    desk.sees("y once, s session");
    desk.resize(3, 2);
    desk.sees("too");
    desk.types(b"y");
    desk.resize(80, 24);
    desk.sees(ready("approve"));
    assert!(!answer.is_finished());
    desk.types(b"y");
    assert_eq!(desk.answer(answer), Ok("Once".to_owned()));
}

// check: FISK-10
#[tokio::test(flavor = "multi_thread")]
async fn a_long_command_line_is_read_whole_before_it_is_approved() {
    let mut desk = Desk::new();
    let answer = ask(&desk, "long");
    desk.sees(ready("long"));
    desk.types(b"y");
    desk.types(b"v");
    desk.sees("THE WHOLE");
    desk.types(b"q");
    desk.sees(ready("long"));
    desk.types(b"s");
    assert!(!answer.is_finished());
    desk.types(b"v");
    desk.types(b" ");
    desk.sees("The end.");
    desk.types(b"q");
    desk.sees("y: run it once");
    desk.types(b"y");
    assert_eq!(desk.answer(answer), Ok("Once".to_owned()));
}

// check: FISK-82
#[tokio::test(flavor = "multi_thread")]
async fn the_bell_rings_once_a_question_unless_it_is_off() {
    for (bell, rings) in [(true, 2), (false, 0)] {
        let mut desk = Desk::with_bell(bell);
        for _ in 0..2 {
            let answer = ask(&desk, "confirm");
            desk.sees(ready("confirm"));
            desk.types(b"\x1b[A");
            desk.types(b"n");
            assert_eq!(desk.answer(answer), Ok("false".to_owned()));
            desk.sees_no_more(ready("confirm"));
        }
        let heard = desk.drawn.iter().filter(|byte| **byte == 7).count();
        assert_eq!(heard, rings);
    }
}

// check: FISK-84
#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_is_as_before_when_the_interface_ends() {
    let mut desk = Desk::new();
    desk.watcher.event(Event::Text("hello".to_owned()));
    desk.sees("  hello");
    let during = tcgetattr(&desk.slave).expect("a terminal").local_flags;
    assert!(!during.intersects(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG));
    assert!(desk.parser.screen().alternate_screen() && desk.parser.screen().hide_cursor());
    desk.watcher.event(Event::Text("-goodbye".to_owned()));
    desk.stop();
    desk.is_as_before();
    assert!(desk.drawn_text().contains("goodbye"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_is_no_terminal() {
    let desk = Desk::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let (signal, _) = std::sync::mpsc::channel();
    let slave = || desk.slave.try_clone().expect("a copy");
    for (input, output) in [
        (OwnedFd::from(reader), slave()),
        (slave(), OwnedFd::from(writer)),
    ] {
        let refused = Tui::start_on(input, output, options(true, signal.clone()));
        assert!(matches!(refused, Err(StartError::NotATerminal)));
    }
}
