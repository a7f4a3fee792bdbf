//! Prompts on a real pseudo-terminal.

mod person;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};

use fuse_terminal::prompt::{MAX_SECRET, Prompt, PromptError, secret_from};
use nix::pty::openpty;
use nix::sys::termios::{LocalFlags, tcgetattr};
use person::{Person, hung_up};

fn confirm(prompt: &mut Prompt<'_, File>) -> bool {
    prompt.confirm("Go on?").expect("a terminal")
}

fn secret(prompt: &mut Prompt<'_, File>) -> Result<String, String> {
    prompt
        .secret("Token")
        .map(|value| value.to_string())
        .map_err(|error| error.to_string())
}

#[test]
fn only_y_confirms() {
    for (keys, expected) in [
        (&b"y"[..], true),
        (b"Y", true),
        (b"n", false),
        (b"\r", false),
        (b"\n", false),
        (b"\x1b", false),
        (b"\x03", false),
        (b"\x04", false),
        (b"qn", false),
        // In doubt an escape is one.
        (b"\x1by", false),
    ] {
        let mut person = Person::asked(b"", confirm);
        person.sees("Go on? [y/N] ");
        person.types(keys);
        assert_eq!(person.answer(), expected, "{keys:?}");
    }
}

#[test]
fn a_yes_typed_before_the_question_does_not_count() {
    let mut person = Person::asked(b"y\ryyy\r", confirm);
    person.sees("[y/N] ");
    person.gets_no_answer();
    person.types(b"\r");
    assert!(!person.answer());
}

#[test]
fn a_terminal_that_hangs_up_says_no() {
    assert!(!hung_up("[y/N] ", confirm));
}

#[test]
fn a_question_cannot_drive_the_terminal() {
    let mut person = Person::asked(b"", |prompt| {
        prompt
            .confirm("Safe?\u{1b}[2J\u{202e}\r\nfake line")
            .expect("a terminal")
    });
    let seen = person.sees("[y/N] ");
    assert!(seen.ends_with("Safe? fake line [y/N] "), "{seen:?}");
    person.types(b"n");
    assert!(!person.answer());
}

#[test]
fn a_secret_is_read_and_never_shown() {
    let mut person = Person::asked(b"early\r", secret);
    person.sees("Token: ");
    person.types("hünter2\r".as_bytes());
    assert_eq!(person.answer(), Ok("hünter2".to_owned()));
    assert_eq!(person.rest(), b"\r\n");
}

#[test]
fn a_secret_can_be_corrected_while_typing() {
    for (keys, expected) in [
        ("abx\u{7f}c\r", "abc"),
        ("aé\u{8}b\n", "ab"),
        ("wrong\u{15}right\r", "right"),
        ("a\u{1}\tb\r", "a\tb"),
        ("\u{7f}\u{7f}a\r", "a"),
    ] {
        let mut person = Person::asked(b"", secret);
        person.sees("Token: ");
        person.types(keys.as_bytes());
        assert_eq!(person.answer(), Ok(expected.to_owned()), "{keys:?}");
    }
}

#[test]
fn a_secret_that_is_broken_off_is_no_secret() {
    for keys in ["half\x03", "half\x04", "half\x1b", "\r"] {
        let mut person = Person::asked(b"", secret);
        person.sees("Token: ");
        person.types(keys.as_bytes());
        assert_eq!(
            person.answer(),
            Err(PromptError::Cancelled.to_string()),
            "{keys:?}"
        );
    }
}

#[test]
fn the_terminal_is_as_before_and_the_rest_of_a_paste_is_gone() {
    let mut person = Person::asked(b"", secret);
    person.sees("Token: ");
    let during = tcgetattr(&person.terminal).expect("a terminal").local_flags;
    assert!(!during.intersects(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG));
    person.types(b"first\rrm -rf /\r");
    assert_eq!(person.answer(), Ok("first".to_owned()));
    let after = tcgetattr(&person.terminal).expect("a terminal").local_flags;
    assert!(after.contains(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG));
    let mut terminal = File::from(person.terminal.try_clone().expect("a copy"));
    person.keyboard.write_all(b"next\n").expect("typed");
    let mut line = [0; 64];
    let length = terminal.read(&mut line).expect("a line");
    assert_eq!(&line[..length], b"next\n");
}

#[test]
fn a_pipe_is_no_terminal() {
    let pty = openpty(None, None).expect("a pty");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let screen = || File::from(pty.slave.try_clone().expect("a copy"));
    assert!(matches!(
        Prompt::new(reader.as_fd(), screen()),
        Err(PromptError::NotATerminal)
    ));
    let writer = File::from(OwnedFd::from(writer));
    assert!(matches!(
        Prompt::new(pty.slave.as_fd(), writer),
        Err(PromptError::NotATerminal)
    ));
}

#[test]
fn a_process_with_redirected_input_asks_nobody() {
    if std::env::var_os("FUSE_TERMINAL_TEST_CHILD").is_some() {
        let refused = fuse_terminal::prompt::confirm("Go on?");
        assert!(matches!(refused, Err(PromptError::NotATerminal)));
        println!("asked nobody");
        return;
    }
    let pty = openpty(None, None).expect("a pty");
    let child = Command::new(std::env::current_exe().expect("a path"))
        .args([
            "--exact",
            "a_process_with_redirected_input_asks_nobody",
            "--nocapture",
        ])
        .env("FUSE_TERMINAL_TEST_CHILD", "1")
        .stdin(Stdio::null())
        .stderr(pty.slave)
        .output()
        .expect("a child");
    assert!(child.status.success());
    assert!(String::from_utf8_lossy(&child.stdout).contains("asked nobody"));
}

#[test]
fn a_piped_secret_loses_one_line_end_and_keeps_the_rest() {
    let read = |bytes: &[u8]| secret_from(bytes).map(|value| value.to_string());
    assert_eq!(read(b"a b\n\n").expect("a secret"), "a b\n");
    assert_eq!(read(b"a\r\n").expect("a secret"), "a");
    assert_eq!(read(b"a").expect("a secret"), "a");
    assert!(matches!(read(b"\n"), Err(PromptError::Cancelled)));
    assert!(matches!(read(b"a\0b"), Err(PromptError::Nul)));
    assert!(matches!(read(b"\xff"), Err(PromptError::NotUtf8)));
    let longest = vec![b'a'; MAX_SECRET];
    assert_eq!(read(&longest).expect("a secret").len(), MAX_SECRET);
    assert_eq!(
        read(&[&longest[..], b"\r\n"].concat())
            .expect("a secret")
            .len(),
        MAX_SECRET
    );
    assert!(matches!(
        read(&[&longest[..], b"a"].concat()),
        Err(PromptError::TooLong)
    ));
}
