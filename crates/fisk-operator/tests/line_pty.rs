//! The line prompter on real pseudo-terminals.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use fisk_domain::{Approval, PromptFailure};
use fisk_operator::{
    ApprovalRequest, AskTool, Exact, Interrupts, LineOptions, LinePrompter, Prompter,
};
use nix::pty::openpty;
use nix::sys::termios::{FlowArg, LocalFlags, tcflow, tcgetattr};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(20);
const READY: &str = "[y/s/v/N] ";

/// The operator's side of a terminal.
struct Operator {
    keyboard: File,
    terminal: OwnedFd,
    screen: Receiver<u8>,
    interrupts: Interrupts,
    prompter: Arc<LinePrompter>,
}

impl Operator {
    fn new() -> Self {
        Self::with(LineOptions::default())
    }

    fn with(options: LineOptions) -> Self {
        let pty = openpty(None, None).expect("a pty");
        let interrupts = options.interrupts.clone();
        let copy = || pty.slave.try_clone().expect("a copy");
        let prompter = LinePrompter::on(options, copy(), File::from(copy()));
        let keyboard = File::from(pty.master);
        Self {
            screen: follow(keyboard.try_clone().expect("a copy")),
            keyboard,
            terminal: pty.slave,
            interrupts,
            prompter: Arc::new(prompter),
        }
    }

    fn sees(&self, text: &str) -> String {
        sees(&self.screen, text)
    }

    fn types(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("typed");
    }

    fn is_restored(&self) -> bool {
        let flags = tcgetattr(&self.terminal).expect("a terminal").local_flags;
        flags.contains(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG)
    }

    fn approve(&self, tool: &str, cancel: &CancellationToken) -> Approving {
        let (prompter, request, cancel) = (self.prompter.clone(), request(tool), cancel.clone());
        tokio::spawn(async move { prompter.approve(&request, &cancel).await })
    }

    fn call(&self, tool: AskTool, input: Value) -> tokio::task::JoinHandle<Value> {
        let prompter = self.prompter.clone();
        tokio::spawn(async move {
            let input = input.as_object().expect("an object").clone();
            let cancel = CancellationToken::new();
            tool.call(&input, &*prompter, &cancel)
                .await
                .expect("good input")
        })
    }
}

type Approving = tokio::task::JoinHandle<Result<Approval, PromptFailure>>;

fn follow(mut from: File) -> Receiver<u8> {
    let (on_screen, screen) = channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        while matches!(from.read(&mut byte), Ok(1)) && on_screen.send(byte[0]).is_ok() {}
    });
    screen
}

fn sees(screen: &Receiver<u8>, text: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(text) {
        match screen.recv_timeout(SOON) {
            Ok(byte) => seen.push(byte),
            Err(_) => panic!("{text:?} not in {:?}", String::from_utf8_lossy(&seen)),
        }
    }
    String::from_utf8(seen).expect("text")
}

fn request(tool: &str) -> ApprovalRequest {
    ApprovalRequest {
        tool: tool.to_owned(),
        command: Exact::argv(["nats", "stream", "rm", "a\u{202e}b"]),
        tags: vec!["ai:confirm".to_owned(), "impact:\u{1b}[2Jrw".to_owned()],
    }
}

// check: FISK-10, FISK-16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_what_the_key_says_and_all_else_denies() {
    for (key, expected) in [
        (&b"y"[..], Ok(Approval::Once)),
        (b"s", Ok(Approval::Session)),
        (b"n", Ok(Approval::Denied { reason: None })),
        (b"\r", Ok(Approval::Denied { reason: None })),
        (b"\x1b", Err(PromptFailure::Dismissed)),
        (b"\x03", Err(PromptFailure::Interrupted)),
        (b"\x04", Err(PromptFailure::EndOfInput)),
    ] {
        let mut operator = Operator::new();
        let approving = operator.approve("nats_stream_rm", &CancellationToken::new());
        let seen = operator.sees(READY);
        assert!(seen.contains(r"│ nats stream rm $'a\u{202e}b'"), "{seen}");
        assert!(
            seen.contains(
                "run nats_stream_rm, which needs your approval (tagged ai:confirm, impact:rw):"
            ),
            "{seen}"
        );
        operator.types(key);
        assert_eq!(approving.await.expect("it ends"), expected, "{key:?}");
        assert!(operator.is_restored());
        assert_eq!(operator.interrupts.count(), u32::from(key == b"\x03"));
    }
}

// check: FISK-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_interrupt_ends_the_run() {
    let mut operator = Operator::new();
    for ended in [false, true] {
        let approving = operator.approve("x", &CancellationToken::new());
        operator.sees(READY);
        operator.types(b"\x03");
        let answer = approving.await.expect("it ends");
        assert_eq!(answer, Err(PromptFailure::Interrupted));
        assert_eq!(operator.interrupts.second().is_cancelled(), ended);
    }
}

// check: FISK-12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ask_tools_ask_and_answer() {
    let mut operator = Operator::new();
    let confirm = operator.call(AskTool::Confirm, json!({"question": "Go\u{1b}[2J on?"}));
    let seen = operator.sees("[y/N] ");
    assert!(seen.contains("The agent asks:\r\n│ Go on?\r\n"), "{seen}");
    operator.types(b"y");
    assert_eq!(confirm.await.expect("it ends"), json!({"confirmed": true}));
    let options = json!({"question": "Which?", "options": ["red\u{200b}", "blue"]});
    let select = operator.call(AskTool::Select, options);
    operator.sees("> ");
    operator.types(b"1");
    operator.sees("> 1  red");
    operator.types(b"\r");
    assert_eq!(
        select.await.expect("it ends"),
        json!({"selected": "red\u{200b}"})
    );
    let input = operator.call(AskTool::Input, json!({"question": "Name?"}));
    operator.sees("> ");
    operator.types("wéb\r".as_bytes());
    assert_eq!(input.await.expect("it ends"), json!({"value": "wéb"}));
    let input = operator.call(AskTool::Input, json!({"question": "Name?"}));
    operator.sees("> ");
    operator.types(b"\x1b");
    assert_eq!(
        input.await.expect("it ends"),
        json!({"value": null, "reason": "the operator dismissed the question; this decision is final, do not retry"})
    );
}

// check: FISK-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_takes_its_question_off_the_screen() {
    let operator = Operator::new();
    let cancel = CancellationToken::new();
    let approving = operator.approve("x", &cancel);
    operator.sees(READY);
    // One more waits for its turn.
    let waiting = operator.approve("y", &cancel);
    cancel.cancel();
    for one in [approving, waiting] {
        assert_eq!(one.await.expect("it ends"), Err(PromptFailure::Cancelled));
    }
    assert!(operator.is_restored());
    assert_eq!(operator.interrupts.count(), 0);
    let late = operator.approve("z", &cancel).await.expect("it ends");
    assert_eq!(late, Err(PromptFailure::Cancelled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_that_takes_no_output_does_not_hold_up_the_end() {
    let operator = Operator::new();
    tcflow(&operator.terminal, FlowArg::TCOOFF).expect("a terminal");
    let cancel = CancellationToken::new();
    let approving = operator.approve("x", &cancel);
    let end = Instant::now() + SOON;
    while operator.is_restored() {
        assert!(Instant::now() < end, "the question never came");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    cancel.cancel();
    let answer = approving.await.expect("it ends");
    assert_eq!(answer, Err(PromptFailure::Cancelled));
    tcflow(&operator.terminal, FlowArg::TCOON).expect("a terminal");
    operator.sees("denied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_question_stands_at_a_time_and_a_dropped_one_makes_way() {
    let mut operator = Operator::new();
    let cancel = CancellationToken::new();
    let first = operator.approve("first", &cancel);
    assert!(operator.sees(READY).contains("run first,"));
    let second = operator.approve("second", &cancel);
    assert!(
        operator
            .screen
            .recv_timeout(Duration::from_millis(300))
            .is_err()
    );
    first.abort();
    assert!(operator.sees(READY).contains("denied\r\n"));
    operator.types(b"y");
    assert_eq!(second.await.expect("it ends"), Ok(Approval::Once));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bell_rings_unless_it_is_switched_off() {
    for no_bell in [false, true] {
        let mut operator = Operator::with(LineOptions {
            no_bell,
            ..LineOptions::default()
        });
        let approving = operator.approve("x", &CancellationToken::new());
        assert_eq!(operator.sees(READY).contains('\u{7}'), !no_bell);
        operator.types(b"n");
        let denied = approving.await.expect("it ends");
        assert_eq!(denied, Ok(Approval::Denied { reason: None }));
    }
}

const CHILD: &str = "FISK_OPERATOR_TEST_CHILD";

/// What a program does that asks on its own terminal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let prompter = LinePrompter::new(LineOptions::default());
    let cancel = CancellationToken::new();
    let answer = prompter.approve(&request("x"), &cancel).await;
    println!("<{} {answer:?}>", prompter.interactive());
}

fn program(stdin: Stdio, stderr: Stdio) -> std::process::Child {
    Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, "1")
        .stdin(stdin)
        .stderr(stderr)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child")
}

fn said(child: std::process::Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("text")
}

// check: FISK-13
#[test]
fn questions_go_to_stderr_and_leave_stdout_clean() {
    let pty = openpty(None, None).expect("a pty");
    let copy = || Stdio::from(pty.slave.try_clone().expect("a copy"));
    let child = program(copy(), copy());
    let mut keyboard = File::from(pty.master);
    let screen = follow(keyboard.try_clone().expect("a copy"));
    sees(&screen, READY);
    keyboard.write_all(b"y").expect("typed");
    let said = said(child);
    assert!(said.contains("<true Ok(Once)>"), "{said}");
    assert!(!said.contains("nats") && !said.contains('\u{1b}'), "{said}");
}

// check: FISK-9, FISK-10
#[test]
fn without_a_terminal_on_both_sides_nobody_is_asked() {
    for (input, output) in [(true, false), (false, true), (false, false)] {
        let pty = openpty(None, None).expect("a pty");
        let side = |is_terminal| match is_terminal {
            true => Stdio::from(pty.slave.try_clone().expect("a copy")),
            false => Stdio::null(),
        };
        let child = program(side(input), side(output));
        let said = said(child);
        assert!(said.contains("<false Err(NoOperator)>"), "{said}");
        drop(pty.slave);
        let mut drawn = Vec::new();
        // A terminal that all have left reads as an error after what was drawn.
        let _ = File::from(pty.master).read_to_end(&mut drawn);
        assert!(!String::from_utf8_lossy(&drawn).contains("nats"));
    }
}
