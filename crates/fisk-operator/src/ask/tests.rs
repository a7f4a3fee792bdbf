use std::sync::Mutex;

use fisk_domain::{Approval, FINAL};
use fuse_terminal::{MAX_TEXT, is_dangerous, options, strip_and_cut};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use proptest::prelude::*;

use super::*;
use crate::prompter::ApprovalRequest;

/// An operator who answers everything alike.
struct Operator {
    there: bool,
    fails: Option<PromptFailure>,
    picks: Option<usize>,
    asked: Mutex<u32>,
}

impl Operator {
    fn new() -> Self {
        Self {
            there: true,
            fails: None,
            picks: Some(1),
            asked: Mutex::new(0),
        }
    }

    fn answer<T: Send + 'static>(&self, value: T) -> BoxFuture<'_, Result<T, PromptFailure>> {
        *self.asked.lock().unwrap() += 1;
        let answer = match &self.fails {
            Some(failure) => Err(failure.clone()),
            None => Ok(value),
        };
        async move { answer }.boxed()
    }

    fn times(&self) -> u32 {
        *self.asked.lock().unwrap()
    }
}

impl Prompter for Operator {
    fn interactive(&self) -> bool {
        self.there
    }

    fn approve<'a>(
        &'a self,
        _: &'a ApprovalRequest,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Approval, PromptFailure>> {
        self.answer(Approval::Once)
    }

    fn confirm<'a>(
        &'a self,
        _: &'a Confirm,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, PromptFailure>> {
        self.answer(self.picks.is_some())
    }

    fn select<'a>(
        &'a self,
        _: &'a Select,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<usize>, PromptFailure>> {
        self.answer(self.picks)
    }

    fn input<'a>(
        &'a self,
        _: &'a Input,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<String>, PromptFailure>> {
        self.answer(self.picks.map(|n| format!("value {n}")))
    }
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn good(tool: AskTool) -> Map<String, Value> {
    object(&match tool {
        AskTool::Confirm => json!({"question": "Go?", "default": true}),
        AskTool::Select => json!({"question": "Which?", "options": ["a", "b\u{7}"]}),
        AskTool::Input => json!({"question": "Name?"}),
    })
}

fn call(tool: AskTool, operator: &Operator, cancel: &CancellationToken) -> Value {
    tool.call(&good(tool), operator, cancel)
        .now_or_never()
        .expect("it does not wait")
        .expect("good input")
}

fn is_negative(tool: AskTool, result: &Value) -> bool {
    let no = match tool {
        AskTool::Confirm => result["confirmed"] == json!(false),
        AskTool::Select => result.get("selected") == Some(&Value::Null),
        AskTool::Input => result.get("value") == Some(&Value::Null),
    };
    let final_note = result["reason"]
        .as_str()
        .is_some_and(|reason| reason.ends_with(FINAL));
    no && final_note && result.as_object().is_some_and(|members| members.len() == 2)
}

// check: FISK-12, FISK-43
#[test]
fn an_answer_is_told_in_the_words_of_its_tool() {
    let (operator, cancel) = (Operator::new(), CancellationToken::new());
    let told = AskTool::ALL.map(|tool| call(tool, &operator, &cancel));
    assert_eq!(
        told,
        [
            json!({"confirmed": true}),
            // The model's own string, not what was shown.
            json!({"selected": "b\u{7}"}),
            json!({"value": "value 1"}),
        ]
    );
}

// check: FISK-11, FISK-12
#[test]
fn whatever_is_no_answer_is_negative_and_says_why() {
    let cancel = CancellationToken::new();
    for tool in AskTool::ALL {
        let mut operator = Operator::new();
        operator.picks = None;
        assert!(is_negative(tool, &call(tool, &operator, &cancel)));
        for failure in [
            PromptFailure::NoOperator,
            PromptFailure::Cancelled,
            PromptFailure::Interrupted,
            PromptFailure::EndOfInput,
            PromptFailure::Dismissed,
            PromptFailure::Expired,
            PromptFailure::Refused("not today".to_owned()),
            PromptFailure::Failed("broken".to_owned()),
        ] {
            operator.fails = Some(failure.clone());
            let result = call(tool, &operator, &cancel);
            assert!(is_negative(tool, &result), "{result}");
            let reason = result["reason"].as_str().unwrap_or_default();
            assert!(reason.starts_with(&failure.to_string()), "{reason}");
        }
    }
}

// check: FISK-9, FISK-12
#[test]
fn without_an_operator_or_in_a_cancelled_run_nobody_is_asked() {
    for tool in AskTool::ALL {
        let cancel = CancellationToken::new();
        let mut operator = Operator::new();
        operator.there = false;
        let result = call(tool, &operator, &cancel);
        assert!(is_negative(tool, &result), "{result}");
        operator.there = true;
        cancel.cancel();
        let result = call(tool, &operator, &cancel);
        assert!(is_negative(tool, &result), "{result}");
        assert!(result["reason"].as_str().unwrap().contains("canceled"));
        assert_eq!(operator.times(), 0);
    }
}

// check: FISK-12
#[test]
fn an_index_that_is_none_of_the_options_selects_nothing() {
    let mut operator = Operator::new();
    operator.picks = Some(2);
    let result = call(AskTool::Select, &operator, &CancellationToken::new());
    assert!(is_negative(AskTool::Select, &result), "{result}");
}

// check: FISK-43
#[test]
fn wrong_input_is_rejected_by_name_and_asks_nobody() {
    let many: Vec<String> = (0..26).map(|n| n.to_string()).collect();
    let select = |options: Value| json!({"question": "Q", "options": options});
    let cases = [
        (AskTool::Confirm, json!({}), "question", "missing"),
        (
            AskTool::Confirm,
            json!({"question": 1}),
            "question",
            "a number; a text",
        ),
        (
            AskTool::Confirm,
            json!({"question": null}),
            "question",
            "null",
        ),
        (
            AskTool::Confirm,
            json!({"question": " \u{200b}\n"}),
            "question",
            "blank",
        ),
        (
            AskTool::Confirm,
            json!({"question": "Q", "default": "yes"}),
            "default",
            "true or false",
        ),
        (
            AskTool::Confirm,
            json!({"question": "Q", "options": []}),
            "options",
            "unknown; question, default",
        ),
        (
            AskTool::Confirm,
            json!({"question": "Q", "Default": true}),
            "Default",
            "unknown",
        ),
        (
            AskTool::Input,
            json!({"question": "Q", "default": true}),
            "default",
            "a text",
        ),
        (
            AskTool::Input,
            json!({"question": "Q", "default": ""}),
            "default",
            "blank",
        ),
        (
            AskTool::Select,
            json!({"question": "Q"}),
            "options",
            "missing; a list of 1 to 25",
        ),
        (AskTool::Select, select(json!("a")), "options", "a list"),
        (
            AskTool::Select,
            select(json!([])),
            "options",
            "empty; 1 to 25",
        ),
        (
            AskTool::Select,
            select(json!(many)),
            "options",
            "26 options are too many",
        ),
        (
            AskTool::Select,
            select(json!(["a", 2])),
            "options[1]",
            "a text",
        ),
        (
            AskTool::Select,
            select(json!(["a", "\u{200b}"])),
            "options[1]",
            "blank",
        ),
        (
            AskTool::Select,
            select(json!(["a", "b", "a\u{200b}"])),
            "options[2]",
            "options[0]",
        ),
        (
            AskTool::Select,
            json!({"question": "Q", "options": ["a"], "default": "b"}),
            "default",
            "\"a\"",
        ),
        (
            AskTool::Select,
            json!({"question": "Q", "options": ["a"], "default": null}),
            "default",
            "null",
        ),
    ];
    let (operator, cancel) = (Operator::new(), CancellationToken::new());
    for (tool, input, property, says) in cases {
        let rejected = tool
            .call(&object(&input), &operator, &cancel)
            .now_or_never()
            .expect("it does not wait")
            .expect_err("wrong input");
        assert_eq!(rejected.property.as_deref(), Some(property), "{input}");
        assert!(rejected.message.contains(says), "{input}: {rejected}");
    }
    assert_eq!(operator.times(), 0);
}

#[test]
fn the_schema_allows_what_the_check_allows() {
    for tool in AskTool::ALL {
        assert_eq!(AskTool::parse(tool.name()), Some(tool));
        let schema = tool.input_schema();
        assert_eq!(schema["additionalProperties"], json!(false));
        let properties = schema["properties"].as_object().expect("properties");
        for name in properties.keys() {
            assert!(["question", "options", "default"].contains(&name.as_str()));
        }
        for name in good(tool).keys() {
            assert!(properties.contains_key(name), "{name}");
        }
        for required in schema["required"].as_array().expect("a list") {
            let mut input = good(tool);
            input.remove(required.as_str().expect("a name"));
            assert!(tool.question(&input).is_err(), "{required}");
        }
    }
    assert_eq!(AskTool::parse("ask_human"), None);
}

fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("\u{1b}[2J".to_owned()),
        Just("\u{1b}]0;".to_owned()),
        Just("\u{1b}".to_owned()),
        Just("\u{9b}31m".to_owned()),
        Just("\u{202e}".to_owned()),
        Just("\u{200b}".to_owned()),
        Just("\r\n".to_owned()),
        "[a-z]{1,40}",
        ".{0,20}",
    ];
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    // check: FISK-13
    #[test]
    fn what_is_shown_of_a_question_is_short_and_holds_nothing_dangerous(
        question in hostile(),
        choices in prop::collection::vec(hostile(), 1..6),
    ) {
        let input = object(&json!({"question": question, "options": choices}));
        if let Ok(Question::Select(asked)) = AskTool::Select.question(&input) {
            let shown = options(&asked.options).expect("they were checked");
            for text in shown.iter().chain([&strip_and_cut(&asked.question, MAX_TEXT)]) {
                prop_assert!(!text.trim().is_empty());
                prop_assert!(!text.chars().any(is_dangerous));
                prop_assert!(text.chars().count() <= 16 * MAX_TEXT);
            }
            prop_assert_eq!(asked.options, choices);
        }
    }
}
