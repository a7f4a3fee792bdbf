use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn fingerprint() -> Fingerprint {
    let tool = ToolPrint {
        schema: "d1".into(),
        tags: BTreeSet::from(["impact:rw".into()]),
        gating: BTreeSet::new(),
    };
    Fingerprint {
        provider: "anthropic".into(),
        model: "m1".into(),
        base_url: None,
        system_prompt: "s1".into(),
        application: "/bin/app".into(),
        version: "1".into(),
        global_flags: vec![],
        include: vec![],
        exclude: vec![],
        confirm_tags: BTreeSet::new(),
        human_in_the_loop: false,
        sandbox: false,
        tools: BTreeMap::from([("stream_rm".into(), tool)]),
    }
}

fn started() -> Record {
    Record::Started {
        format: FORMAT,
        session: "s".into(),
        fingerprint: Box::new(fingerprint()),
        prompt: "do it".into(),
    }
}

fn reply(calls: &[&str], stop: Stop) -> Record {
    let mut content = vec![json!({"type": "text", "text": "hm"})];
    content.extend(
        calls
            .iter()
            .map(|id| json!({"type": "tool_use", "id": id, "name": "t", "input": {}})),
    );
    Record::Reply {
        content,
        stop,
        tokens: Tokens {
            input: 10,
            output: 1,
        },
    }
}

fn begun(call: &str) -> Record {
    Record::ToolStarted { call: call.into() }
}

fn result(call: &str) -> Record {
    Record::ToolResult {
        call: call.into(),
        content: "ok".into(),
        is_error: false,
    }
}

fn replayed(records: impl IntoIterator<Item = Record>) -> Replay {
    let mut replay = Replay::default();
    for record in records {
        replay.apply(record).unwrap();
    }
    replay
}

/// Every call has exactly one result in the message behind it, and roles are what they should be.
fn is_valid(replay: &Replay) -> bool {
    let messages = replay.messages();
    messages.iter().enumerate().all(|(n, message)| {
        let ids = |of: &Value, kind: &str, key: &str| -> Vec<String> {
            of["content"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|block| block["type"] == kind)
                .map(|block| block[key].as_str().unwrap().to_owned())
                .collect()
        };
        let called = ids(message, "tool_use", "id");
        match messages.get(n + 1) {
            Some(next) => called == ids(next, "tool_result", "tool_use_id"),
            None => {
                called.is_empty()
                    || matches!(replay.next(), Next::Tool(_) | Next::End(_) | Next::Over)
            }
        }
    })
}

// check: FISK-23
#[test]
fn a_started_call_without_a_result_is_started_once_more_and_never_a_third_time() {
    let mut replay = replayed([started(), reply(&["a"], Stop::ToolUse), begun("a")]);
    let Next::Tool(call) = replay.next() else {
        panic!("{:?}", replay.next())
    };
    assert!(call.starts == 1 && call.may_start());
    replay.apply(Record::Resumed).unwrap();
    replay.apply(begun("a")).unwrap();
    let Next::Tool(call) = replay.next() else {
        panic!("{:?}", replay.next())
    };
    assert!(!call.may_start());
    assert!(replay.apply(begun("a")).is_err());
    replay.apply(result("a")).unwrap();
    assert_eq!(replay.next(), Next::Model);
}

// check: FISK-68
#[test]
fn a_call_at_the_cut_end_of_a_reply_is_marked_and_one_before_it_is_not() {
    let overflow = Stop::Other("model_context_window_exceeded".to_owned());
    for stop in [Stop::MaxTokens, overflow] {
        let replay = replayed([started(), reply(&["a", "b"], stop)]);
        assert!(!replay.pending_cut("a") && replay.pending_cut("b"));
    }
    for stop in [Stop::ToolUse, Stop::EndTurn, Stop::Pause] {
        let replay = replayed([started(), reply(&["a", "b"], stop)]);
        assert!(!replay.pending_cut("a") && !replay.pending_cut("b"));
    }
}

impl Replay {
    fn pending_cut(&self, id: &str) -> bool {
        let mut copy = self.clone();
        loop {
            match copy.next() {
                Next::Tool(call) if call.id == id => return call.cut,
                Next::Tool(call) => {
                    let record = result(&call.id.clone());
                    copy.apply(record).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_refusal_ends_the_run_and_its_calls_do_not_run() {
    let replay = replayed([started(), reply(&["a"], Stop::Refusal)]);
    assert_eq!(replay.next(), Next::End(Finish::Refused("hm".into())));
}

#[test]
fn two_calls_with_one_id_are_no_reply() {
    let mut replay = replayed([started()]);
    assert!(replay.apply(reply(&["a", "a"], Stop::ToolUse)).is_err());
    assert_eq!(replay.next(), Next::Model);
}

#[test]
fn what_a_run_has_cost_is_part_of_its_record() {
    let records = [
        started(),
        reply(&["a"], Stop::ToolUse),
        result("a"),
        Record::Suspended { why: "x".into() },
        Record::Resumed,
        reply(&[], Stop::EndTurn),
    ];
    let replay = replayed(records);
    assert_eq!(replay.spent().tokens.total(), 22);
    assert_eq!(replay.spent().iterations, 2);
}

// check: FISK-23
#[test]
fn a_resume_with_anything_else_is_told_what_changed() {
    let then = fingerprint();
    assert!(then.changes(&then).is_empty());
    let mut now = then.clone();
    now.provider = "openai".into();
    now.model = "m2".into();
    now.system_prompt = "s2".into();
    now.version = "2".into();
    now.confirm_tags.insert("impact:rw".into());
    let tool = now.tools.get_mut("stream_rm").unwrap();
    tool.tags.clear();
    tool.schema = "d2".into();
    tool.gating.insert("impact:rw".into());
    now.tools.insert(
        "new".into(),
        ToolPrint {
            schema: "d".into(),
            tags: BTreeSet::new(),
            gating: BTreeSet::new(),
        },
    );
    assert_eq!(
        then.changes(&now),
        [
            "llm.provider was \"anthropic\" and is \"openai\"",
            "llm.model was \"m1\" and is \"m2\"",
            "the application's version was \"1\" and is \"2\"",
            "system_prompt changed",
            "harness.confirm_tags: was none, is impact:rw",
            "the description or the input of the tool \"stream_rm\" changed",
            "the tags of the tool \"stream_rm\": was impact:rw, is none",
            "the gate of the tool \"stream_rm\": was none, is impact:rw",
            "the tool \"new\" is new",
        ]
    );
    now.tools.remove("stream_rm");
    assert!(
        then.changes(&now)
            .contains(&"the tool \"stream_rm\" is gone".to_owned())
    );
}

#[test]
fn a_session_is_named_by_a_dns_label() {
    for good in ["a", "nightly-2", &"x".repeat(63)] {
        assert!(is_session_name(good), "{good}");
    }
    for bad in [
        "",
        "-a",
        "a-",
        "A",
        "a.b",
        "../x",
        "a/b",
        "ä",
        &"x".repeat(64),
    ] {
        assert!(!is_session_name(bad), "{bad}");
    }
}

/// What a run may do at each point, chosen by numbers.
fn walk(choices: &[u8]) -> Vec<Record> {
    let mut records = vec![started()];
    let mut replay = replayed([started()]);
    let mut ids = 0;
    for choice in choices {
        let next = match (replay.next(), choice % 8) {
            (Next::Over, _) => break,
            (_, 7) => Record::Suspended { why: "s".into() },
            (_, 6) => Record::Resumed,
            (Next::End(finish), _) => Record::Ended { finish },
            (Next::Tool(call), 0..=2) if call.may_start() => begun(&call.id),
            (Next::Tool(call), _) => result(&call.id),
            (Next::Model, n) => {
                let calls: Vec<String> = (0..n % 4)
                    .map(|_| {
                        ids += 1;
                        format!("c{ids}")
                    })
                    .collect();
                let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
                let stop = match choice / 32 {
                    0 => Stop::MaxTokens,
                    1 => Stop::Pause,
                    2 => Stop::Refusal,
                    _ => Stop::ToolUse,
                };
                reply(&calls, stop)
            }
        };
        replay.apply(next.clone()).unwrap();
        records.push(next);
    }
    records
}

proptest! {
    // check: FISK-23
    #[test]
    fn every_prefix_of_a_record_resumes_to_a_valid_conversation(choices in prop::collection::vec(any::<u8>(), 0..60)) {
        let records = walk(&choices);
        for end in 1..=records.len() {
            let mut replay = replayed(records[..end].to_vec());
            prop_assert!(is_valid(&replay));
            if replay.is_over() {
                continue;
            }
            // It can be resumed and brought to the model or to its end, with no call left behind.
            replay.apply(Record::Resumed).unwrap();
            while let Next::Tool(call) = replay.next() {
                let record = result(&call.id.clone());
                replay.apply(record).unwrap();
            }
            prop_assert!(is_valid(&replay));
            prop_assert!(matches!(replay.next(), Next::Model | Next::End(_)));
        }
    }

    #[test]
    fn a_record_survives_its_journal(choices in prop::collection::vec(any::<u8>(), 0..30)) {
        for record in walk(&choices) {
            let line = serde_json::to_string(&record).unwrap();
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
        }
    }
}
