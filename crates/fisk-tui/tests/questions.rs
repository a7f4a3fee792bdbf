//! Which keys answer which question.

mod support;

use fisk_domain::{Approval, PromptFailure};
use fisk_tui::{Effect, Key, Reply};
use support::{Person, approve, confirm, input, select};

const DENIED: Reply = Reply::Approve(Approval::Denied { reason: None });

fn failed(failure: PromptFailure) -> Option<Reply> {
    Some(Reply::Failed(failure))
}

fn others() -> Vec<Key> {
    vec![
        Key::Char('a'),
        Key::Char(' '),
        Key::Char('Ы'),
        Key::Erase,
        Key::Delete,
        Key::EraseLine,
        Key::EraseWord,
        Key::Left,
        Key::Right,
        Key::Home,
        Key::End,
        Key::Tab,
        Key::BackTab,
        Key::PageUp,
        Key::PageDown,
        Key::Other,
        Key::Paste("y".to_owned()),
        Key::Paste("y\ry\ns".to_owned()),
    ]
}

// check: FISK-16
#[test]
fn y_runs_it_once_and_s_for_the_session() {
    for (key, approval) in [
        ('y', Approval::Once),
        ('Y', Approval::Once),
        ('s', Approval::Session),
        ('S', Approval::Session),
    ] {
        let mut person = Person::new(80, 24);
        person.ask(approve(["nats", "stream", "rm", "orders"]));
        person.sees("nats stream rm orders");
        person.sees("Other keys do nothing.");
        assert_eq!(
            person.types(&[Key::Char(key)]),
            Some(Reply::Approve(approval))
        );
        person.sees_not("APPROVAL");
    }
}

// check: FISK-10
// check: FISK-16
#[test]
fn every_other_way_out_of_an_approval_denies() {
    for (key, reply) in [
        (Key::Enter, DENIED),
        (Key::Char('n'), DENIED),
        (Key::Char('N'), DENIED),
        (Key::Escape, Reply::Failed(PromptFailure::Dismissed)),
        (Key::Interrupt, Reply::Failed(PromptFailure::Interrupted)),
        (Key::EndOfInput, Reply::Failed(PromptFailure::EndOfInput)),
    ] {
        let mut person = Person::new(80, 24);
        person.ask(approve(["x"]));
        assert_eq!(person.types(&[key]), Some(reply));
    }
}

// check: FISK-16
#[test]
fn keys_that_are_none_of_a_prompt_do_nothing() {
    let mut person = Person::new(80, 24);
    person.ask(approve(["x"]));
    let mut before = others();
    before.extend([Key::Up, Key::Down]);
    assert_eq!(person.types(&before), None);
    person.sees("APPROVAL");
    assert_eq!(
        person.types(&[Key::Char('y')]),
        Some(Reply::Approve(Approval::Once))
    );
    let mut person = Person::new(80, 24);
    person.ask(confirm("Go on?"));
    assert_eq!(person.types(&before), None);
    assert_eq!(
        person.types(&[Key::Char('s'), Key::Char('y')]),
        Some(Reply::Confirm(true))
    );
}

#[test]
fn keys_that_come_at_once_agree_to_nothing() {
    let mut person = Person::new(80, 24);
    person.ask(approve(["x"]));
    let burst = [Key::Char('l'), Key::Char('y')];
    assert_eq!(person.at_once(&burst), None);
    assert_eq!(person.at_once(&[Key::Char('y'), Key::Char('y')]), None);
    let yes_and_enter = [Key::Char('y'), Key::Char('y'), Key::Enter];
    assert_eq!(person.at_once(&yes_and_enter), Some(DENIED));
    person.ask(approve(["x"]));
    assert_eq!(
        person.at_once(&[Key::Char('y'), Key::Escape]),
        failed(PromptFailure::Dismissed)
    );
}

// check: FISK-16
#[test]
fn an_enter_that_comes_with_the_key_belongs_to_it() {
    let mut person = Person::new(80, 24);
    person.ask(approve(["x"]));
    assert_eq!(
        person.at_once(&[Key::Char('y'), Key::Enter]),
        Some(Reply::Approve(Approval::Once))
    );
}

// check: FISK-10
#[test]
fn keys_before_the_question_is_drawn_and_armed_answer_nothing() {
    let mut person = Person::new(80, 24);
    assert_eq!(person.app.ask(1, approve(["x"])), None);
    assert_eq!(person.app.on_keys(&[Key::Char('y')]), []);
    person.sees_not("y: run it once");
    assert_eq!(person.app.on_keys(&[Key::Char('y')]), []);
    person.app.arm();
    // Armed, but what the keys do was not drawn yet.
    assert_eq!(person.app.on_keys(&[Key::Char('y')]), []);
    person.sees("y: run it once");
    assert_eq!(
        person.types(&[Key::Char('y')]),
        Some(Reply::Approve(Approval::Once))
    );
}

#[test]
fn a_new_size_has_to_be_drawn_before_anything_is_agreed_to() {
    let mut person = Person::new(80, 24);
    person.ask(approve(["x"]));
    person.resize(60, 10);
    assert_eq!(person.app.on_keys(&[Key::Char('y')]), []);
    person.sees("APPROVAL");
    assert!(person.types(&[Key::Char('y')]).is_some());
}

// check: FISK-10
#[test]
fn a_command_line_that_is_cut_is_approved_only_after_it_was_read_whole() {
    let long = format!("{}END", "x".repeat(12_000));
    let mut person = Person::new(80, 60);
    person.ask(approve(["nats", &long]));
    person.sees("[cut: ");
    person.sees("count once v has shown all of it");
    assert_eq!(person.text("yYsS"), None);
    person.text("v");
    // The end alone is not the whole.
    person.types(&[Key::End]);
    person.sees("END");
    person.text("v");
    assert_eq!(person.text("ys"), None);
    person.text("v");
    person.types(&[Key::PageDown, Key::PageDown, Key::PageDown]);
    person.sees("The end.");
    assert_eq!(person.text("y"), None, "the pager approves nothing");
    person.text("q");
    person.sees("y: run it once");
    assert_eq!(person.text("s"), Some(Reply::Approve(Approval::Session)));
}

// check: FISK-10
#[test]
fn a_command_line_that_does_not_fit_is_approved_only_after_it_was_read_whole() {
    let mut person = Person::new(30, 8);
    person.ask(approve(["nats", &"word ".repeat(60), "--force"]));
    person.sees("there is more");
    person.sees("Read all: v");
    assert_eq!(person.text("y"), None);
    person.text("v");
    for _ in 0..20 {
        person.types(&[Key::Char(' ')]);
    }
    person.sees("--force");
    person.types(&[Key::Escape]);
    assert_eq!(person.text("y"), Some(Reply::Approve(Approval::Once)));
}

#[test]
fn the_pager_of_a_command_line_denies_like_the_prompt() {
    for (key, reply) in [
        (Key::Char('n'), DENIED),
        (Key::Interrupt, Reply::Failed(PromptFailure::Interrupted)),
        (Key::EndOfInput, Reply::Failed(PromptFailure::EndOfInput)),
    ] {
        let mut person = Person::new(80, 24);
        person.ask(approve(["x", "y"]));
        assert_eq!(person.text("v"), None);
        person.sees("THE WHOLE");
        assert_eq!(person.types(&[key]), Some(reply));
    }
}

#[test]
fn a_screen_that_is_too_small_agrees_to_nothing_and_still_denies() {
    for (columns, rows) in [(19, 24), (80, 5), (1, 1), (0, 0)] {
        for question in [approve(["x"]), confirm("?"), select(&["a", "b"])] {
            let mut person = Person::new(columns, rows);
            person.ask(question);
            let keys = [Key::Char('y'), Key::Char('s'), Key::Char('1')];
            assert_eq!(person.types(&keys), None, "{columns}x{rows}");
            assert_eq!(
                person.types(&[Key::Escape]),
                failed(PromptFailure::Dismissed)
            );
        }
    }
}

#[test]
fn the_smallest_screen_can_still_approve() {
    let mut person = Person::new(20, 6);
    person.ask(approve(["ls", "-l"]));
    person.text("v");
    person.sees("ls -l");
    person.text("v");
    person.sees("y once");
    assert_eq!(person.text("y"), Some(Reply::Approve(Approval::Once)));
}

#[test]
fn confirm_is_no_unless_y() {
    for (key, reply) in [
        (Key::Char('y'), Reply::Confirm(true)),
        (Key::Char('n'), Reply::Confirm(false)),
        (Key::Enter, Reply::Confirm(false)),
        (Key::Escape, Reply::Failed(PromptFailure::Dismissed)),
        (Key::Interrupt, Reply::Failed(PromptFailure::Interrupted)),
        (Key::EndOfInput, Reply::Failed(PromptFailure::EndOfInput)),
    ] {
        let mut person = Person::new(80, 24);
        person.ask(confirm("Go on?"));
        person.sees("It suggests: yes");
        assert_eq!(person.types(&[key]), Some(reply));
    }
}

#[test]
fn nothing_is_selected_at_first() {
    let mut person = Person::new(80, 24);
    person.ask(select(&["red", "green"]));
    person.sees("It suggests:");
    assert_eq!(person.types(&[Key::Enter]), Some(Reply::Select(None)));
}

#[test]
fn arrows_and_digits_choose_and_enter_takes() {
    let names: Vec<String> = (1..=25).map(|n| format!("option {n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (keys, index) in [
        (vec![Key::Down], 0),
        (vec![Key::Down, Key::Down, Key::Up], 0),
        (vec![Key::Char('1'), Key::Char('2')], 11),
        (vec![Key::Char('2'), Key::Char('7')], 1),
        (vec![Key::Char('1'), Key::Char('2'), Key::Erase], 0),
    ] {
        let mut person = Person::new(80, 24);
        person.ask(select(&names));
        assert_eq!(person.types(&keys), None);
        person.sees(&format!(">{:2}  option {}", index + 1, index + 1));
        assert_eq!(
            person.types(&[Key::Enter]),
            Some(Reply::Select(Some(index)))
        );
    }
    let mut person = Person::new(80, 24);
    person.ask(select(&names));
    person.types(&[Key::Down]);
    assert_eq!(
        person.at_once(&[Key::Down, Key::Enter]),
        Some(Reply::Select(Some(1))),
        "in their order"
    );
}

#[test]
fn options_that_cannot_be_told_apart_are_not_offered() {
    let mut person = Person::new(80, 24);
    let refused = person.ask(select(&["a", "a\u{200b}"]));
    assert!(matches!(
        refused,
        Some(Effect::Reply {
            reply: Reply::Failed(PromptFailure::Failed(_)),
            ..
        })
    ));
    person.sees_not("QUESTION");
}

#[test]
fn an_input_is_what_stands_on_the_screen() {
    let mut person = Person::new(80, 24);
    person.ask(input(None));
    person.text("or?s");
    person.types(&[Key::Left, Key::Erase, Key::Char('d'), Key::End]);
    person.types(&[Key::Paste("e\u{1b}[2Jr\u{202e}\ns".to_owned())]);
    person.sees("> ordser s");
    assert_eq!(
        person.types(&[Key::Enter]),
        Some(Reply::Input(Some("ordser s".to_owned())))
    );
}

#[test]
fn an_empty_input_is_no_value_unless_a_default_was_shown() {
    let mut person = Person::new(80, 24);
    person.ask(input(None));
    assert_eq!(person.types(&[Key::Enter]), Some(Reply::Input(None)));
    person.ask(input(Some("dev\u{7}")));
    person.sees("It suggests:");
    assert_eq!(
        person.types(&[Key::Enter]),
        Some(Reply::Input(Some("dev".to_owned())))
    );
    for (key, failure) in [
        (Key::Escape, PromptFailure::Dismissed),
        (Key::Interrupt, PromptFailure::Interrupted),
        (Key::EndOfInput, PromptFailure::EndOfInput),
    ] {
        person.ask(input(Some("dev")));
        person.text("half");
        assert_eq!(person.types(&[key]), failed(failure));
    }
}

#[test]
fn a_pasted_line_end_sends_nothing() {
    let mut person = Person::new(80, 24);
    person.ask(input(None));
    assert_eq!(person.types(&[Key::Paste("a\r\n".to_owned())]), None);
    person.sees("> a");
    assert_eq!(
        person.at_once(&[Key::Char('b'), Key::Enter]),
        Some(Reply::Input(Some("a b".to_owned())))
    );
}

// check: FISK-82
#[test]
fn help_hides_a_question_and_answers_nothing_but_no() {
    let mut person = Person::new(80, 24);
    person.ask(approve(["x"]));
    assert_eq!(person.text("?"), None);
    person.sees("HELP (a question waits)");
    assert_eq!(person.text("ysv"), None);
    person.types(&[Key::Escape]);
    person.sees("APPROVAL");
    assert_eq!(person.text("?"), None);
    assert_eq!(
        person.types(&[Key::Interrupt]),
        failed(PromptFailure::Interrupted)
    );
    person.ask(input(None));
    assert_eq!(person.text("?"), None);
    person.sees("> ?");
}

#[test]
fn ctrl_c_counts_as_an_interrupt_at_a_prompt_and_elsewhere() {
    let mut person = Person::new(80, 24);
    assert_eq!(person.app.on_keys(&[Key::Interrupt]), [Effect::Interrupt]);
    person.ask(approve(["x"]));
    let effects = person.app.on_keys(&[Key::Interrupt, Key::Interrupt]);
    assert_eq!(effects.len(), 3);
    assert_eq!(effects[..2], [Effect::Interrupt, Effect::Interrupt]);
}

#[test]
fn a_question_that_is_withdrawn_can_no_longer_be_answered() {
    let mut person = Person::new(80, 24);
    person.ask(approve(["x"]));
    person.app.withdraw(99);
    person.sees("APPROVAL");
    person.app.withdraw(1);
    person.sees_not("APPROVAL");
    assert_eq!(person.text("y"), None);
}

// check: FISK-13
#[test]
fn texts_of_a_model_are_stripped_before_they_are_cut() {
    let mut question = "Safe?\u{1b}[2J\u{202e}".to_owned();
    question.push_str(&"a".repeat(600));
    question.push_str("\u{1b}]0;TITLE\u{7}");
    let mut person = Person::new(100, 24);
    person.ask(confirm(&question));
    person.sees("Safe?aaa");
    person.sees("aaa…");
    person.sees_not("TITLE");
    person.sees_not("[2J");
    // What will run keeps everything, to be seen.
    person.types(&[Key::Escape]);
    person.ask(approve(["rm", "a\u{202e}b\u{1b}[2J"]));
    person.sees(r"rm $'a\u{202e}b\u{1b}[2J'");
}
