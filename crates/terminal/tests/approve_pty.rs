//! Approving a command on a real pseudo-terminal.

mod person;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};

use fuse_terminal::prompt::{Answer, Approved, Prompt, PromptError};
use fuse_terminal::{Exact, is_dangerous};
use nix::pty::openpty;
use nix::sys::termios::tcgetattr;
use person::{Person, Setting, hung_up};

const READY: &str = "[y/s/v/N] ";

fn ask(command: &Exact) -> impl FnOnce(&mut Prompt<'_, File>) -> Answer<Approved> + Send + 'static {
    let command = command.clone();
    move |prompt| prompt.approve("Run it?", &command).expect("a terminal")
}

fn short() -> Exact {
    Exact::argv(["nats", "stream", "rm", "ORDERS"])
}

fn long() -> Exact {
    let subjects = (0..400).map(|n| format!("subject.{n}.深圳"));
    Exact::argv(["nats".to_owned()].into_iter().chain(subjects))
}

// check: FISK-10, FISK-16
#[test]
fn only_y_and_s_approve_and_the_screen_says_so() {
    for (key, expected) in [
        (&b"y"[..], Answer::Given(Approved::Once)),
        (b"Y", Answer::Given(Approved::Once)),
        (b"s", Answer::Given(Approved::Session)),
        (b"n", Answer::Given(Approved::No)),
        (b"\r", Answer::Given(Approved::No)),
        (b"\n", Answer::Given(Approved::No)),
        (b"\x1b", Answer::Escaped),
        (b"\x03", Answer::Interrupted),
        (b"\x04", Answer::Ended),
    ] {
        let mut person = Person::asked(b"", ask(&short()));
        let seen = person.sees(READY);
        for said in [
            "Run it?\r\n│ nats stream rm ORDERS\r\n",
            "y: run it once.",
            "s: run it, and this command again until the run ends.",
            "v: page the whole command line.",
            "n, Enter, Escape, Ctrl-C and Ctrl-D: deny it.",
            "Other keys do nothing.",
        ] {
            assert!(seen.contains(said), "{said:?} not in {seen:?}");
        }
        person.types(key);
        assert_eq!(person.answer(), expected, "{key:?}");
    }
}

/// Two commands, one after the other.
fn twice(prompt: &mut Prompt<'_, File>) -> (Answer<Approved>, Answer<Approved>) {
    (ask(&short())(prompt), ask(&short())(prompt))
}

// check: FISK-40
#[test]
fn a_key_that_is_pressed_again_at_once_does_not_approve_the_next_command() {
    let mut person = Person::asked(b"", twice);
    person.sees(READY);
    person.types(b"y");
    person.sees("yes, once");
    // Sooner than the next question can have been read.
    person.types(b"y");
    person.sees(READY);
    person.gets_no_answer();
    person.types(b"n");
    let (once, no) = (Answer::Given(Approved::Once), Answer::Given(Approved::No));
    assert_eq!(person.answer(), (once, no));
}

// check: FISK-40
#[test]
fn a_key_counts_as_soon_as_the_question_can_be_seen() {
    let mut person = Person::asked(b"", ask(&short()));
    person.sees("│ nats stream rm ORDERS");
    person.types(b"y");
    assert_eq!(person.answer(), Answer::Given(Approved::Once));
}

// check: FISK-16
#[test]
fn an_enter_that_comes_with_the_key_belongs_to_it() {
    for (keys, answer) in [
        (&b"y\r"[..], Approved::Once),
        (b"s\n", Approved::Session),
        (b"n\r", Approved::No),
    ] {
        let mut person = Person::asked(b"", ask(&short()));
        person.sees(READY);
        person.types(keys);
        assert_eq!(person.answer(), Answer::Given(answer), "{keys:?}");
    }
}

// check: FISK-40
#[test]
fn ctrl_c_is_heard_before_the_question_is_drawn() {
    let mut person = Person::asked(b"", twice);
    person.sees(READY);
    person.types(b"n");
    person.sees("no");
    person.types(b"\x03");
    let no = Answer::Given(Approved::No);
    assert_eq!(person.answer(), (no, Answer::Interrupted));
}

// check: FISK-16
#[test]
fn other_keys_do_nothing() {
    for key in [
        &b"\x1b[A"[..],
        b"\x1bOC",
        b"\x1b[3~",
        b"x",
        b" ",
        b"\t",
        b"1",
        "é".as_bytes(),
        b"\xff",
        b"\x1b[200~y\x1b[201~",
        b"\x1b[200~s\r\x03\x1b[201~",
    ] {
        let mut person = Person::asked(b"", ask(&short()));
        person.sees(READY);
        person.types(key);
        person.gets_no_answer();
        assert_eq!(
            person.insists(b"y"),
            Answer::Given(Approved::Once),
            "{key:?}"
        );
    }
}

// check: FISK-10, FISK-40
#[test]
fn keys_in_one_piece_never_approve() {
    for (keys, denied) in [
        (&b"yes"[..], None),
        (b"sy", None),
        (b"yy\r", Some(Answer::Given(Approved::No))),
        (b"yes\nls\n", Some(Answer::Given(Approved::No))),
        (b"\x1by", Some(Answer::Escaped)),
        (b"y\x03", Some(Answer::Interrupted)),
        (b"\x1b[", Some(Answer::Escaped)),
    ] {
        let mut person = Person::asked(b"", ask(&short()));
        person.sees(READY);
        person.types(keys);
        match denied {
            Some(answer) => assert_eq!(person.answer(), answer, "{keys:?}"),
            None => {
                person.sees("One key at a time.");
                person.gets_no_answer();
                assert_eq!(person.insists(b"\x1b"), Answer::Escaped);
            }
        }
    }
}

// check: FISK-10, FISK-40
#[test]
fn what_was_typed_before_the_question_neither_approves_nor_denies() {
    let mut person = Person::asked(b"y\rs\x03", ask(&short()));
    person.sees(READY);
    person.gets_no_answer();
    person.types(b"s");
    assert_eq!(person.answer(), Answer::Given(Approved::Session));
}

// check: FISK-10
#[test]
fn a_terminal_that_hangs_up_denies() {
    assert_eq!(hung_up(READY, ask(&short())), Answer::Ended);
}

// check: FISK-10, FISK-16, FISK-41
#[test]
fn a_long_command_line_is_read_to_its_end_before_it_is_approved() {
    let command = long();
    assert!(command.is_cut());
    let mut person = Person::asked_in(Setting::sized(60, 12), ask(&command));
    let seen = person.sees(READY);
    assert!(seen.contains("\r\n[cut: "), "{seen}");
    for key in [b"y", b"s"] {
        person.types(key);
        person.sees("count once v has shown all of it");
        person.sees(READY);
    }
    // Broken off, it was not read.
    person.types(b"v");
    person.sees("q: back.");
    person.types(b"q");
    person.sees(READY);
    person.types(b"y");
    person.sees("count once v has shown all of it");
    person.sees(READY);

    person.types(b"v");
    let mut pages = String::new();
    loop {
        let page = person.sees("q: back.");
        pages.push_str(&page);
        if page.contains("The end.") {
            break;
        }
        person.types(b" ");
    }
    let rows = pages.split(['\r', '\n']).filter_map(|row| {
        let row = row.strip_prefix("\x1b[K").unwrap_or(row);
        row.strip_prefix("│ ")
    });
    assert_eq!(rows.collect::<String>(), command.whole());
    // Neither does Enter leave the last page, nor y approve there.
    person.types(b"\r");
    person.types(b"y");
    person.gets_no_answer();
    person.types(b"\x1b");
    let seen = person.sees(READY);
    assert!(!seen.contains("count once v"), "{seen}");
    person.types(b"y");
    assert_eq!(person.answer(), Answer::Given(Approved::Once));
}

// check: FISK-10
#[test]
fn reading_it_ends_with_a_denial_like_the_question() {
    for (key, expected) in [(b"\x03", Answer::Interrupted), (b"\x04", Answer::Ended)] {
        let mut person = Person::asked(b"", ask(&short()));
        person.sees(READY);
        person.types(b"v");
        person.sees("The end. q: back.");
        person.types(key);
        assert_eq!(person.answer(), expected);
    }
}

// check: FISK-10, FISK-41
#[test]
fn what_does_not_fit_on_the_screen_has_to_be_read_first() {
    let command = Exact::argv(["nats", &"x".repeat(300)]);
    assert!(!command.is_cut());
    let mut person = Person::asked_in(Setting::sized(20, 6), ask(&command));
    person.sees(READY);
    person.types(b"y");
    person.sees("count once v has shown all of it");
    person.sees(READY);
    // Once all of it is there to be seen, it may be approved.
    person.resizes(200, 50);
    let seen = person.sees(READY);
    assert!(seen.contains(&"x".repeat(190)), "{seen}");
    person.types(b"y");
    assert_eq!(person.answer(), Answer::Given(Approved::Once));
}

// check: FISK-10
#[test]
fn a_question_is_drawn_again_for_another_size_and_nothing_is_answered_by_it() {
    let mut person = Person::asked_in(Setting::sized(80, 24), ask(&short()));
    person.sees(READY);
    person.resizes(23, 30);
    let seen = person.sees(READY);
    assert!(seen.contains("│ nats stream rm ORDER\r\n│ S\r\n"), "{seen}");
    person.gets_no_answer();
    person.types(b"\x1b");
    assert_eq!(person.answer(), Answer::Escaped);
}

// check: FISK-10, FISK-13
#[test]
fn a_command_line_cannot_drive_the_terminal_nor_imitate_the_prompt() {
    let argv = [
        "nats\u{1b}[2J",
        "\r[y/s/v/N] yes, once\n",
        "\u{202e}ti nur",
        "\u{1b}]0;x",
    ];
    let command = Exact::argv(argv);
    let title = "Run\u{1b}[2J \u{202e}it?\nn: run it";
    let mut person = Person::asked(b"", move |prompt| {
        prompt.approve(title, &command).expect("a terminal")
    });
    let seen = person.sees("Other keys do nothing.\r\n[y/s/v/N] ");
    let drawn = seen.replace("\x1b[?2004h", "").replace("\r\n", "");
    assert!(!drawn.chars().any(is_dangerous), "{seen:?}");
    assert!(seen.contains("Run it? n: run it\r\n"), "{seen:?}");
    assert!(seen.contains(r"\u{202e}ti nur"), "{seen:?}");
    for line in seen.lines().filter(|line| line.contains("yes, once")) {
        assert!(line.starts_with("│ "), "{line:?}");
    }
    person.types(b"n");
    assert_eq!(person.answer(), Answer::Given(Approved::No));
}

// check: FISK-10, FISK-42
#[test]
fn a_question_that_is_cancelled_denies_and_leaves_the_terminal_as_it_was() {
    for paging in [false, true] {
        let (cancel, canceller) = io::pipe().expect("a pipe");
        let setting = Setting {
            cancel: Some(cancel),
            bell: true,
            ..Setting::default()
        };
        let mut person = Person::asked_in(setting, ask(&short()));
        let seen = person.sees(READY);
        assert!(seen.contains('\u{7}'));
        if paging {
            person.types(b"v");
            person.sees("The end. q: back.");
        }
        drop(canceller);
        assert_eq!(person.answer(), Answer::Cancelled);
        let rest = String::from_utf8(person.rest()).expect("text");
        assert!(rest.contains("\x1b[?2004l"), "{rest:?}");
    }
}

/// Draws, and panics where a certain text comes.
struct Failing(File);

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(bytes != READY.as_bytes(), "out of paper");
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl AsFd for Failing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

// check: FISK-42
#[test]
fn a_panic_leaves_the_terminal_as_it_was() {
    let pty = openpty(None, None).expect("a pty");
    let before = tcgetattr(&pty.slave).expect("a terminal");
    let output = Failing(File::from(pty.slave.try_clone().expect("a copy")));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        Prompt::new(pty.slave.as_fd(), output)
            .expect("a terminal")
            .approve("Run it?", &short())
    }));
    assert!(panicked.is_err());
    let after = tcgetattr(&pty.slave).expect("a terminal");
    assert_eq!(after.local_flags, before.local_flags);
}

const CHILD: &str = "FUSE_TERMINAL_TEST_BACKGROUND";

// check: FISK-10, FISK-42
#[test]
fn a_process_in_the_background_is_refused_and_not_stopped() {
    if std::env::var_os(CHILD).is_some() {
        let refused = Prompt::new(io::stdin().as_fd(), io::stderr())
            .expect("a terminal")
            .approve("Run it?", &short());
        assert!(
            matches!(refused, Err(PromptError::Background)),
            "{refused:?}"
        );
        assert!(!fuse_terminal::prompt::can_ask());
        println!("asked nobody");
        return;
    }
    let pty = openpty(None, None).expect("a pty");
    let terminal = || Stdio::from(pty.slave.try_clone().expect("a copy"));
    // Job control puts what runs with & into a group of its own, behind the shell's.
    let test = "a_process_in_the_background_is_refused_and_not_stopped";
    let script = r#"set -m; "$0" --exact "$1" --nocapture <&3 & wait"#;
    let child = Command::new("setsid")
        .args(["--ctty", "--wait", "sh", "-c"])
        .arg(format!("exec 3<&0; {script}"))
        .arg(std::env::current_exe().expect("a path"))
        .arg(test)
        .env(CHILD, "1")
        .stdin(terminal())
        .stderr(terminal())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let output = child.wait_with_output().expect("it ends");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("asked nobody"),
        "{output:?}"
    );
}
