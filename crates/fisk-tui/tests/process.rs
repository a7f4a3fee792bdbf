//! A process of its own that ends in every way.

mod terminal;

use std::{
    process::{Child, Command, Stdio},
    sync::mpsc,
};

use fisk_domain::event::Event;
use fisk_operator::{Confirm, Prompter};
use fisk_tui::{StartError, Tui};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use terminal::{Side, options};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

const ROLE: &str = "FISK_TUI_TEST_ROLE";

/// What this binary does when it is started as a child: not a test of its own.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(act(&role));
}

async fn act(role: &str) {
    let (on_signal, _signals) = mpsc::channel();
    let started = Tui::start(options(false, on_signal));
    if role == "piped" {
        assert!(matches!(started, Err(StartError::NotATerminal)));
        println!("nothing was drawn");
        return;
    }
    let (tui, prompter, watcher) = started.expect("an interface");
    watcher.event(Event::Text("it runs".to_owned()));
    match role {
        "ends" => {
            let question = Confirm {
                question: "End?".to_owned(),
                default: None,
            };
            let answer = prompter.confirm(&question, &CancellationToken::new()).await;
            tui.stop();
            println!("the answer is {answer:?}");
        }
        "panics" => {
            let question = Confirm {
                question: "Panic?".to_owned(),
                default: None,
            };
            let cancel = CancellationToken::new();
            let asked = prompter.confirm(&question, &cancel);
            assert!(
                !asked.await.expect("an answer"),
                "it panicked as it was told"
            );
            panic!("broken on purpose");
        }
        "terminated" => {
            let mut term = signal(SignalKind::terminate()).expect("a signal");
            watcher.event(Event::Notice("it waits".to_owned()));
            term.recv().await;
            tui.stop();
            println!("terminated cleanly");
        }
        other => panic!("no role {other}"),
    }
}

fn child(side: &Side, role: &str, stdout: Stdio) -> Child {
    let slave = || Stdio::from(side.slave.try_clone().expect("a copy"));
    Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "role", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env_remove("RUST_BACKTRACE")
        .stdin(slave())
        .stdout(stdout)
        .stderr(slave())
        .spawn()
        .expect("a child")
}

fn on_terminal(role: &str) -> (Side, Child) {
    let side = Side::new();
    let slave = Stdio::from(side.slave.try_clone().expect("a copy"));
    let child = child(&side, role, slave);
    (side, child)
}

fn ended(side: &mut Side, child: &mut Child) -> bool {
    let mut status = None;
    side.until("the child has ended", |_| {
        status = child.try_wait().expect("a child");
        status.is_some()
    });
    status.is_some_and(|status| status.success())
}

// check: FISK-84
#[test]
fn a_process_that_ends_gives_the_terminal_back_before_it_prints() {
    let (mut side, mut child) = on_terminal("ends");
    side.sees("y: yes.");
    side.types(b"y");
    assert!(ended(&mut side, &mut child));
    side.is_as_before();
    side.sees("the answer is Ok(true)");
}

// check: FISK-84
#[test]
fn a_process_that_panics_gives_the_terminal_back_before_it_says_why() {
    let (mut side, mut child) = on_terminal("panics");
    side.sees("y: yes.");
    side.types(b"n");
    assert!(!ended(&mut side, &mut child));
    side.is_as_before();
    side.sees("broken on purpose");
}

// check: FISK-84
#[test]
fn a_process_that_is_terminated_gives_the_terminal_back() {
    let (mut side, mut child) = on_terminal("terminated");
    side.sees("! it waits");
    let pid = i32::try_from(child.id()).expect("a pid");
    kill(Pid::from_raw(pid), Signal::SIGTERM).expect("a signal");
    assert!(ended(&mut side, &mut child));
    side.is_as_before();
    side.sees("terminated cleanly");
}

// check: FISK-80
#[test]
fn it_is_never_drawn_when_one_of_the_streams_is_no_terminal() {
    for piped in ["stdin", "stdout", "stderr"] {
        let side = Side::new();
        let pick = |stream: &str| {
            if stream == piped {
                Stdio::null()
            } else {
                Stdio::from(side.slave.try_clone().expect("a copy"))
            }
        };
        let status = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .env(ROLE, "piped")
            .stdin(pick("stdin"))
            .stdout(pick("stdout"))
            .stderr(pick("stderr"))
            .status()
            .expect("a child");
        assert!(status.success(), "{piped}");
        let mut side = side;
        while side.pump() {}
        assert!(!side.drawn_text().contains('\u{1b}'), "{piped}");
    }
}
