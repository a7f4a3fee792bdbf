//! Questions of the agent on a real pseudo-terminal.

mod person;

use std::fs::File;
use std::io;

use fuse_terminal::prompt::{Answer, MAX_LINE, Prompt, PromptError};
use fuse_terminal::{OptionsError, is_dangerous};
use person::{Person, Setting, hung_up};

const HOSTILE: &str = "Sure?\u{1b}[2J\u{1b}]0;t\u{7} \u{202e}on\r\n[y/N] yes\n> 1 \u{200b}";

fn ask(prompt: &mut Prompt<'_, File>) -> Answer<bool> {
    prompt.ask("Go on?", Some(true)).expect("a terminal")
}

fn options() -> Vec<String> {
    ["red", "green", "blue"].map(str::to_owned).into()
}

fn select(prompt: &mut Prompt<'_, File>) -> Answer<Option<usize>> {
    prompt
        .select("Which?", &options(), Some("green"))
        .expect("a terminal")
}

fn line(prompt: &mut Prompt<'_, File>) -> Answer<Option<String>> {
    prompt.line("Name?", None).expect("a terminal")
}

fn line_with_default(prompt: &mut Prompt<'_, File>) -> Answer<Option<String>> {
    prompt.line("Name?", Some("web-1")).expect("a terminal")
}

fn given(text: &str) -> Answer<Option<String>> {
    Answer::Given(Some(text.to_owned()))
}

// check: FISK-12, FISK-16
#[test]
fn only_y_is_a_yes_whatever_is_suggested() {
    for (key, expected) in [
        (&b"y"[..], Answer::Given(true)),
        (b"Y", Answer::Given(true)),
        (b"n", Answer::Given(false)),
        (b"\r", Answer::Given(false)),
        (b"\x1b", Answer::Escaped),
        (b"\x03", Answer::Interrupted),
        (b"\x04", Answer::Ended),
    ] {
        let mut person = Person::asked(b"y", ask);
        let seen = person.sees("[y/N] ");
        assert!(
            seen.contains("The agent asks:\r\n│ Go on?\r\nIt suggests: yes\r\n"),
            "{seen}"
        );
        person.types(key);
        assert_eq!(person.answer(), expected, "{key:?}");
    }
}

// check: FISK-12, FISK-40
#[test]
fn a_pasted_yes_is_none() {
    for paste in [&b"\x1b[200~y\x1b[201~"[..], b"\x1b[200~y", b"yy", b"\x1b[B"] {
        let mut person = Person::asked(b"", ask);
        person.sees("[y/N] ");
        person.types(paste);
        person.gets_no_answer();
        assert_eq!(person.insists(b"n"), Answer::Given(false), "{paste:?}");
    }
}

// check: FISK-12
#[test]
fn a_number_and_enter_choose() {
    let mut person = Person::asked(b"1\r", select);
    let seen = person.sees("> ");
    for said in [
        "The agent asks:\r\n│ Which?\r\n",
        "│  1  red\r\n│  2  green\r\n│  3  blue\r\n",
        "It suggests:\r\n│ green\r\n",
        "Enter with no number, Escape, Ctrl-C and Ctrl-D: none of them.",
    ] {
        assert!(seen.contains(said), "{said:?} not in {seen:?}");
    }
    person.types(b"3");
    person.sees("> 3  blue");
    person.types(b"\r");
    assert_eq!(person.answer(), Answer::Given(Some(2)));
}

// check: FISK-12
#[test]
fn arrows_choose_and_what_leads_nowhere_does_nothing() {
    let mut person = Person::asked(b"", select);
    person.sees("> ");
    for (key, shown) in [
        (&b"\x1b[B"[..], "> 1  red"),
        (b"\x1b[B", "> 2  green"),
        (b"7", "> 2  green"),
        (b"y", "> 2  green"),
        (b"\x1b[A", "> 1  red"),
        (b"\x1b[200~3\x1b[201~", "> 1  red"),
    ] {
        person.types(key);
        person.sees(shown);
    }
    person.types(b"\n");
    assert_eq!(person.answer(), Answer::Given(Some(0)));
}

// check: FISK-12
#[test]
fn nothing_is_chosen_unless_it_is() {
    for (key, expected) in [
        (&b"\r"[..], Answer::Given(None)),
        (b"\r\r", Answer::Given(None)),
        (b"\x1b", Answer::Escaped),
        (b"\x03", Answer::Interrupted),
        (b"\x04", Answer::Ended),
        (b"2\x1b", Answer::Escaped),
    ] {
        let mut person = Person::asked(b"", select);
        person.sees("> ");
        person.types(key);
        assert_eq!(person.answer(), expected, "{key:?}");
    }
}

// check: FISK-12
#[test]
fn keys_of_a_choice_count_in_their_order() {
    for (keys, expected) in [
        (&b"2\r"[..], Some(1)),
        (b"\x1b[B\x1b[B\r", Some(1)),
        (b"\r2", None),
        (b"7\r", None),
    ] {
        let mut person = Person::asked(b"", select);
        person.sees("> ");
        person.types(keys);
        assert_eq!(person.answer(), Answer::Given(expected), "{keys:?}");
    }
}

#[test]
fn options_that_cannot_be_told_apart_are_not_offered() {
    let person = Person::asked(b"", |prompt| {
        let options = ["a".to_owned(), "a\u{200b}".to_owned()];
        prompt.select("Which?", &options, None)
    });
    assert!(matches!(
        person.answer(),
        Err(PromptError::Options(OptionsError::Same { .. }))
    ));
    assert!(person.rest().is_empty());
}

// check: FISK-12
#[test]
fn a_line_is_edited_while_it_is_typed() {
    for (keys, expected) in [
        ("web 深圳\r", "web 深圳"),
        ("abx\u{7f}c\n", "abc"),
        ("ae\u{301}\u{8}b\r", "ab"),
        ("one two\u{17}three\r", "one three"),
        ("wrong\u{15}right\r", "right"),
        ("a\u{1}\u{0}\tb\r", "ab"),
        ("a\u{202e}\u{200b}b\r", "ab"),
        ("a\u{1b}[Ab\r", "ab"),
        (
            "\u{1b}[200~two\r\nlines\u{1b}[2J\u{1b}[201~\r",
            "two  lines",
        ),
    ] {
        let mut person = Person::asked(b"early\r", line);
        person.sees("> ");
        person.types(keys.as_bytes());
        assert_eq!(person.answer(), given(expected), "{keys:?}");
        let drawn = String::from_utf8(person.rest()).expect("text");
        let drawn = drawn
            .replace("\x1b[?2004l", "")
            .replace("\r\x1b[K", "")
            .replace("\r\n", "");
        assert!(!drawn.chars().any(is_dangerous), "{drawn:?}");
    }
}

// check: FISK-12
#[test]
fn what_is_typed_is_shown_and_the_rest_is_thrown_away() {
    let mut person = Person::asked(b"", line);
    person.sees("> ");
    person.types(b"web");
    person.sees("\r\x1b[K> web");
    person.types(b"-1\rrm -rf /\r");
    assert_eq!(person.answer(), given("web-1"));
}

// check: FISK-12
#[test]
fn an_empty_line_is_no_value_unless_a_default_was_shown() {
    for (key, expected) in [
        (&b"\r"[..], Answer::Given(None)),
        (b"  \r", Answer::Given(None)),
        (b"half\x1b", Answer::Escaped),
        (b"half\x03", Answer::Interrupted),
        (b"half\x04", Answer::Ended),
    ] {
        let mut person = Person::asked(b"", line);
        let seen = person.sees("> ");
        assert!(seen.contains("Enter alone, Escape, Ctrl-C and Ctrl-D: no value."));
        person.types(key);
        assert_eq!(person.answer(), expected, "{key:?}");
    }
    for (key, expected) in [
        (&b"\r"[..], given("web-1")),
        (b"db\r", given("db")),
        (b" \r", Answer::Given(None)),
        (b"\x1b", Answer::Escaped),
    ] {
        let mut person = Person::asked(b"", line_with_default);
        let seen = person.sees("> ");
        assert!(seen.contains("It suggests:\r\n│ web-1\r\nEnter alone takes the suggestion."));
        person.types(key);
        assert_eq!(person.answer(), expected, "{key:?}");
    }
}

// check: FISK-13
#[test]
fn a_default_is_taken_as_it_was_shown() {
    let mut person = Person::asked(b"", |prompt| {
        let default = format!("\u{1b}[31m{}", "x".repeat(600));
        prompt.line("Name?", Some(&default)).expect("a terminal")
    });
    person.sees("> ");
    person.types(b"\r");
    assert_eq!(person.answer(), given(&format!("{}…", "x".repeat(499))));
}

#[test]
fn a_line_takes_no_more_than_its_bound() {
    let mut person = Person::asked(b"", line);
    person.sees("> ");
    let mut keyboard = person.keyboard.try_clone().expect("a copy");
    // The terminal holds 4 KiB: the prompt has to read on while this writes.
    let typing = std::thread::spawn(move || {
        let text = "x".repeat(MAX_LINE + 500);
        io::Write::write_all(&mut keyboard, text.as_bytes()).expect("typed");
    });
    typing.join().expect("typed");
    let answer = person.insists(b"\r");
    assert_eq!(answer, given(&"x".repeat(MAX_LINE)));
}

// check: FISK-13
#[test]
fn the_agents_text_is_stripped_cut_and_kept_behind_a_margin() {
    let long = format!("{HOSTILE} {}", "w".repeat(600));
    let options = [long.clone(), "b\u{1b}[31m".to_owned()];
    let person = Person::asked(b"", move |prompt| {
        prompt
            .select(&long, &options, Some(&long))
            .expect("a terminal")
    });
    let seen = person.sees("Other keys do nothing.\r\n> ");
    let drawn = seen.replace("\x1b[?2004h", "").replace("\r\n", "");
    assert!(!drawn.chars().any(is_dangerous), "{seen:?}");
    for line in seen.lines().filter(|line| line.contains("yes")) {
        assert!(line.starts_with("│ "), "{line:?}");
    }
    // Cut after it was stripped, three times over.
    assert_eq!(seen.matches('…').count(), 3, "{seen}");
}

// check: FISK-12
#[test]
fn every_question_ends_where_the_terminal_hangs_up_or_the_run_is_cancelled() {
    assert_eq!(hung_up("[y/N] ", ask), Answer::Ended);
    assert_eq!(hung_up("> ", select), Answer::Ended);
    assert_eq!(hung_up("> ", line), Answer::Ended);
    let cancelled = || {
        let (cancel, canceller) = io::pipe().expect("a pipe");
        let setting = Setting {
            cancel: Some(cancel),
            ..Setting::default()
        };
        (setting, canceller)
    };
    let (setting, canceller) = cancelled();
    let person = Person::asked_in(setting, ask);
    person.sees("[y/N] ");
    drop(canceller);
    assert_eq!(person.answer(), Answer::Cancelled);
    let (setting, canceller) = cancelled();
    let person = Person::asked_in(setting, select);
    person.sees("> ");
    drop(canceller);
    assert_eq!(person.answer(), Answer::Cancelled);
    let (setting, canceller) = cancelled();
    let mut person = Person::asked_in(setting, line);
    person.sees("> ");
    person.types(b"half");
    person.sees("> half");
    drop(canceller);
    assert_eq!(person.answer(), Answer::Cancelled);
}

#[test]
fn a_question_is_drawn_again_with_what_was_typed_for_another_size() {
    let mut person = Person::asked_in(Setting::sized(80, 24), line);
    person.sees("> ");
    person.types(b"web-production");
    person.sees("> web-production");
    person.resizes(12, 5);
    person.sees("> …oduction");
    person.types(b"\r");
    assert_eq!(person.answer(), given("web-production"));

    let mut person = Person::asked_in(Setting::sized(80, 24), select);
    person.sees("> ");
    person.types(b"2");
    person.sees("> 2  green");
    person.resizes(9, 5);
    person.sees("> 2  gr…");
    person.types(b"\r");
    assert_eq!(person.answer(), Answer::Given(Some(1)));
}

// check: FISK-85
#[test]
fn what_a_slow_line_carries_byte_by_byte_is_read_whole() {
    let mut person = Person::asked(b"", line);
    person.sees("> ");
    // An Escape alone is a key of its own soon; everything else may come as slowly as it likes.
    let start = "é深".bytes().map(|byte| vec![byte]);
    let arrow = [b"\x1b[".to_vec(), b"B".to_vec()];
    let end = "😀".bytes().map(|byte| vec![byte]);
    for piece in start.chain(arrow).chain(end) {
        person.types(&piece);
        // Longer than what belongs to one key takes on a quick line.
        std::thread::sleep(std::time::Duration::from_millis(45));
    }
    person.sees("😀");
    person.types(b"\r");
    assert_eq!(person.answer(), given("é深😀"));
}

// check: FISK-85
#[test]
fn bytes_that_never_become_a_character_hold_nothing_up() {
    let mut person = Person::asked(b"", line);
    person.sees("> ");
    person.types(b"\xf0\x9f");
    std::thread::sleep(std::time::Duration::from_millis(700));
    person.types(b"\xffok");
    person.sees("ok");
    person.types(b"\r");
    assert_eq!(person.answer(), given("ok"));
}
