//! The gate's order, with every combination of what it looks at.

mod common;

use common::{call, derive};
use fisk_domain::{
    Approval, CommandTool, FINAL, Facts, Gate, PromptFailure, Selection, Step, Toolset, Verdict,
};
use proptest::prelude::*;
use serde_json::json;

fn tools() -> Toolset {
    let model = json!({"commands": [
        {"name": "free", "flags": [{"name": "x"}]},
        {"name": "gated", "tags": ["ai:confirm"], "args": [{"name": "what", "required": true}]},
        {"name": "other", "tags": ["impact:rw"]}]});
    let selection = Selection {
        confirm_tags: vec!["impact:rw".into()],
        ..Selection::default()
    };
    derive(model, &selection).unwrap().0
}

fn tool(name: &str) -> CommandTool {
    tools().get(name).unwrap().clone()
}

fn check(gate: &Gate, tool: &CommandTool, interactive: bool, cancelled: bool) -> Step {
    let input = tool
        .required()
        .map(|name| (name.to_owned(), json!("v")))
        .collect();
    let call = tool.args_from_json(&input).unwrap();
    gate.check(
        tool,
        &call,
        Facts {
            interactive,
            cancelled,
        },
    )
}

fn reason(step: &Step) -> &str {
    match step {
        Step::Deny(denial) => denial.reason(),
        other => panic!("not denied: {other:?}"),
    }
}

fn failures() -> Vec<PromptFailure> {
    vec![
        PromptFailure::NoOperator,
        PromptFailure::Cancelled,
        PromptFailure::Interrupted,
        PromptFailure::EndOfInput,
        PromptFailure::Dismissed,
        PromptFailure::Expired,
        PromptFailure::Failed("broken".into()),
    ]
}

// check: FISK-6
#[test]
fn a_gated_command_asks_and_another_runs() {
    let gate = Gate::default();
    assert_eq!(check(&gate, &tool("gated"), true, false), Step::Ask);
    assert_eq!(check(&gate, &tool("other"), true, false), Step::Ask);
    for (interactive, cancelled) in [(true, false), (false, false), (true, true), (false, true)] {
        assert_eq!(
            check(&gate, &tool("free"), interactive, cancelled),
            Step::Run
        );
    }
}

// check: FISK-7
#[test]
fn a_call_that_lacks_a_parameter_never_gets_to_the_gate() {
    let refused = call(&tool("gated"), json!({})).unwrap_err();
    assert!(refused.to_string().contains("required: what"), "{refused}");
}

// check: FISK-8
#[test]
fn a_session_allowance_is_of_one_command_whatever_its_arguments_and_comes_before_the_terminal() {
    let mut gate = Gate::default();
    let gated = tool("gated");
    assert_eq!(gate.answer(&gated, &Ok(Approval::Session)), Verdict::Run);
    for (interactive, cancelled) in [(true, false), (false, false), (false, true)] {
        assert_eq!(check(&gate, &gated, interactive, cancelled), Step::Run);
    }
    let another = call(&gated, json!({"what": "--something else"})).unwrap();
    let facts = Facts {
        interactive: false,
        cancelled: false,
    };
    assert_eq!(gate.check(&gated, &another, facts), Step::Run);
    assert_eq!(check(&gate, &tool("other"), true, false), Step::Ask);
    // Another run has another gate.
    assert_eq!(check(&Gate::default(), &gated, true, false), Step::Ask);
}

// check: FISK-9
#[test]
fn without_a_terminal_or_when_cancelled_it_denies_before_any_prompt() {
    let gate = Gate::default();
    let gated = tool("gated");
    let alone = check(&gate, &gated, false, false);
    assert!(reason(&alone).contains("no terminal") && reason(&alone).ends_with(FINAL));
    for interactive in [true, false] {
        let cancelled = check(&gate, &gated, interactive, true);
        assert!(reason(&cancelled).contains("canceled"), "{cancelled:?}");
    }
}

// check: FISK-10
#[test]
fn every_failure_to_answer_denies_and_allows_nothing_later() {
    let gated = tool("gated");
    for failure in failures() {
        let mut gate = Gate::default();
        match gate.answer(&gated, &Err(failure.clone())) {
            Verdict::Deny(denial) => assert!(denial.reason().ends_with(FINAL)),
            Verdict::Run => panic!("{failure} let it run"),
        }
        assert_eq!(gate.allowed().count(), 0);
        assert_eq!(check(&gate, &gated, true, false), Step::Ask);
    }
}

#[test]
fn once_is_once() {
    let mut gate = Gate::default();
    let gated = tool("gated");
    assert_eq!(gate.answer(&gated, &Ok(Approval::Once)), Verdict::Run);
    assert_eq!(check(&gate, &gated, true, false), Step::Ask);
}

#[test]
fn the_operators_words_are_in_the_denial() {
    let mut gate = Gate::default();
    let why = Some("not on a Friday".to_owned());
    let Verdict::Deny(denial) = gate.answer(&tool("gated"), &Ok(Approval::Denied { reason: why }))
    else {
        panic!("it runs");
    };
    assert!(denial.reason().contains("not on a Friday") && denial.reason().ends_with(FINAL));
}

#[test]
fn a_call_of_another_command_is_denied() {
    let call = call(&tool("free"), json!({})).unwrap();
    let facts = Facts {
        interactive: true,
        cancelled: false,
    };
    let step = Gate::default().check(&tool("gated"), &call, facts);
    assert!(reason(&step).contains("does not belong"));
}

fn answer() -> impl Strategy<Value = Result<Approval, PromptFailure>> {
    prop_oneof![
        Just(Ok(Approval::Once)),
        Just(Ok(Approval::Session)),
        prop::option::of("[a-z]{0,5}").prop_map(|reason| Ok(Approval::Denied { reason })),
        prop::sample::select(failures()).prop_map(Err),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // check: FISK-8
    // check: FISK-9
    #[test]
    fn a_gated_command_runs_unasked_only_after_an_allowance_of_its_own(
        steps in prop::collection::vec((prop::sample::select(vec!["gated", "other", "free"]), any::<bool>(), any::<bool>(), answer()), 0..20)
    ) {
        let mut gate = Gate::default();
        let mut allowed = std::collections::BTreeSet::new();
        for (name, interactive, cancelled, answer) in steps {
            let tool = tool(name);
            let step = check(&gate, &tool, interactive, cancelled);
            if name == "free" || allowed.contains(name) {
                prop_assert_eq!(&step, &Step::Run);
            } else if interactive && !cancelled {
                prop_assert_eq!(&step, &Step::Ask);
            } else {
                prop_assert!(matches!(step, Step::Deny(_)));
            }
            if step == Step::Ask {
                let verdict = gate.answer(&tool, &answer);
                let agreed = matches!(answer, Ok(Approval::Once | Approval::Session));
                prop_assert_eq!(agreed, verdict == Verdict::Run);
                if answer == Ok(Approval::Session) {
                    allowed.insert(name);
                }
            }
            prop_assert_eq!(gate.allowed().count(), allowed.len());
        }
    }
}
