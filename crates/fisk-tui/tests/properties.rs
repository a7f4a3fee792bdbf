//! What holds whatever happens.

mod support;

use fisk_domain::{
    Approval,
    event::{Ending, Event},
};
use fisk_tui::{Effect, Key, Question, Reply};
use fuse_terminal::{is_dangerous, keys::without_habit};
use proptest::prelude::*;
use serde_json::json;
use support::{Person, approve, confirm, input, select};

#[derive(Debug, Clone)]
enum Step {
    Event(Event),
    Keys(Vec<Key>),
    Resize(u16, u16),
    Ask(Question),
    Draw,
    Arm,
    Withdraw(u64),
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[ -~]{0,12}",
        2 => prop::sample::select(vec![
            "\u{1b}[2J", "\u{1b}]0;", "\u{9b}", "\u{7}", "\r", "\n", "\t", "\u{202e}", "\u{200d}", "\u{fe0f}",
            "深", "🇩🇪", "ﾞ", "한", "שלום", "क्ष", "\u{1100}\u{1161}", "\0",
        ]).prop_map(String::from),
        1 => (0usize..12).prop_map(|n| "\u{301}".repeat(n)),
        1 => any::<char>().prop_map(String::from),
        1 => (0usize..300).prop_map(|n| "long ".repeat(n)),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn event() -> impl Strategy<Value = Event> {
    let id = prop::sample::select(vec!["1".to_owned(), "2".to_owned()]);
    prop_oneof![
        hostile().prop_map(Event::Text),
        hostile().prop_map(Event::Thinking),
        hostile().prop_map(Event::Notice),
        hostile().prop_map(Event::Failed),
        (
            id.clone(),
            hostile(),
            prop::collection::vec(hostile(), 0..3),
            any::<bool>()
        )
            .prop_map(|(id, tool, argv, known)| Event::ToolCalled {
                id,
                tool,
                input: json!({"a": argv}),
                argv: known.then_some(argv),
            }),
        (id.clone(), hostile(), any::<bool>()).prop_map(|(id, text, is_json)| Event::ToolEnded {
            id,
            result: if is_json {
                json!({"output": text}).to_string()
            } else {
                text
            },
            ending: Ending::Ran(Some(1)),
        }),
        id.prop_map(|id| Event::Waiting { id }),
        (any::<u64>(), any::<u64>()).prop_map(|(input, output)| Event::Usage {
            input,
            output,
            budget: 1
        }),
        (hostile(), any::<u64>())
            .prop_map(|(reason, after_ms)| Event::Retrying { reason, after_ms }),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        4 => prop::sample::select(vec![
            Key::Char('v'), Key::Char('t'), Key::Char('o'), Key::Char('?'), Key::Char('q'), Key::Char(' '),
            Key::Char('1'), Key::Up, Key::Down, Key::PageUp, Key::PageDown, Key::Home, Key::End, Key::Tab,
            Key::BackTab, Key::Left, Key::Right, Key::Erase, Key::Delete, Key::EraseWord, Key::EraseLine,
            Key::Escape, Key::Other,
        ]),
        2 => prop::sample::select(vec![Key::Char('y'), Key::Char('s'), Key::Enter]),
        1 => any::<char>().prop_map(Key::Char),
        1 => hostile().prop_map(Key::Paste),
    ]
}

fn question() -> impl Strategy<Value = Question> {
    prop_oneof![
        3 => prop::collection::vec(hostile(), 1..4)
            .prop_map(|argv| approve([&argv[0], argv.last().expect("one")])),
        1 => hostile().prop_map(|text| confirm(&text)),
        1 => hostile().prop_map(|text| select(&["a", &format!("b{text}"), "c"])),
        1 => prop::option::of(hostile()).prop_map(|text| input(text.as_deref())),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let size = || prop_oneof![0u16..8, 8u16..100];
    prop_oneof![
        3 => event().prop_map(Step::Event),
        5 => prop::collection::vec(key(), 1..3).prop_map(Step::Keys),
        1 => (size(), size()).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        2 => question().prop_map(Step::Ask),
        3 => Just(Step::Draw),
        2 => Just(Step::Arm),
        1 => (0u64..20).prop_map(Step::Withdraw),
    ]
}

fn approves(reply: &Reply) -> bool {
    match reply {
        Reply::Approve(approval) => match approval {
            Approval::Once | Approval::Session => true,
            Approval::Denied { .. } => false,
        },
        Reply::Confirm(yes) => *yes,
        Reply::Select(chosen) => chosen.is_some(),
        Reply::Input(text) => text.is_some(),
        Reply::Failed(_) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // check: FISK-10
    // check: FISK-13
    #[test]
    fn nothing_panics_nothing_hostile_is_drawn_and_nothing_is_agreed_to_unseen(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let mut person = Person::new(80, 24);
        let (mut id, mut armed, mut drawn) = (100, false, false);
        for step in steps {
            match step {
                Step::Event(event) => person.event(event),
                Step::Resize(columns, rows) => {
                    person.resize(columns, rows);
                    drawn = false;
                }
                Step::Ask(question) => {
                    let refused = person.app.ask(id, question);
                    id += 1;
                    if refused.is_none() {
                        (armed, drawn) = (false, false);
                    }
                }
                Step::Draw => {
                    let buffer = person.buffer();
                    for cell in buffer.content() {
                        prop_assert!(!cell.symbol().chars().any(is_dangerous), "{:?}", cell.symbol());
                    }
                    drawn = true;
                }
                Step::Arm => {
                    person.app.arm();
                    (armed, drawn) = (true, false);
                }
                Step::Withdraw(id) => person.app.withdraw(id),
                Step::Keys(keys) => {
                    for effect in person.app.on_keys(&keys) {
                        let Effect::Reply { reply, .. } = effect else { continue };
                        if approves(&reply) {
                            prop_assert!(armed && drawn, "{keys:?} gave {reply:?}");
                            let typed = matches!(reply, Reply::Select(_) | Reply::Input(_));
                            prop_assert!(typed || without_habit(&keys).len() == 1, "{keys:?} gave {reply:?}");
                            prop_assert!(person.size.0 >= 20 && person.size.1 >= 6);
                        }
                        if let Reply::Approve(Approval::Once) = reply {
                            prop_assert!(matches!(without_habit(&keys), [Key::Char('y' | 'Y')]));
                        }
                        if let Reply::Approve(Approval::Session) = reply {
                            prop_assert!(matches!(without_habit(&keys), [Key::Char('s' | 'S')]));
                        }
                    }
                }
            }
        }
    }
}
