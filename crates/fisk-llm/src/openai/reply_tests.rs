use std::sync::Mutex;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::transport::{self, BodyError};
use crate::types::LlmError;

#[derive(Default)]
struct Heard(Mutex<Vec<Delta>>);

impl Sink for Heard {
    fn delta(&self, delta: Delta) {
        self.0.lock().unwrap().push(delta);
    }
}

fn read(chunks: Vec<Bytes>) -> Result<Reply, Failure> {
    let bytes = stream::iter(chunks.into_iter().map(Ok::<_, BodyError>)).boxed();
    let events = transport::events(transport::bounded(bytes));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(stream(events, &Heard::default(), &|text| text))
}

fn sse(chunks: &[Value]) -> String {
    let lines: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    lines + "data: [DONE]\n\n"
}

fn deltas(list: &[Value], finish: Value) -> String {
    let mut chunks: Vec<_> = list
        .iter()
        .map(|delta| json!({"choices": [{"delta": delta, "finish_reason": null}]}))
        .collect();
    chunks.push(json!({"choices": [{"delta": {}, "finish_reason": finish}]}));
    sse(&chunks)
}

fn one(list: &[Value], finish: Value) -> Result<Reply, Failure> {
    read(vec![Bytes::from(deltas(list, finish))])
}

fn call(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input: input.as_object().unwrap().clone(),
        malformed: None,
    }
}

fn recorded() -> String {
    sse(&[
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
        json!({"choices": [{"delta": {"reasoning_content": "höm"}}]}),
        json!({"choices": [{"delta": {"reasoning": " hm"}}]}),
        json!({"choices": [{"delta": {"content": "Grüße "}}]}),
        json!({"choices": [{"delta": {"content": [{"type": "text", "text": "🦀"}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "ls", "arguments": ""}}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{\"x\":"}}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "rm", "arguments": "{}"}}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "\"ö\"}"}}]}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}], "usage": null}),
        json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}}),
    ])
}

fn check(reply: &Reply) {
    let thought = Block::Thinking {
        thinking: "höm hm".into(),
        signature: String::new(),
    };
    let text = Block::Text {
        text: "Grüße 🦀".into(),
    };
    let calls = [
        call("a", "ls", json!({"x": "ö"})),
        call("b", "rm", json!({})),
    ];
    assert_eq!(reply.content[..2], [thought, text]);
    assert_eq!(reply.content[2..], calls);
    assert_eq!(reply.stop, StopReason::ToolUse);
    assert_eq!(
        reply.usage,
        Usage {
            input: 7,
            cache_write: 0,
            cache_read: 3,
            output: 4
        }
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    // check: FISK-54
    #[test]
    fn however_a_stream_is_cut_into_chunks_the_reply_is_the_same(
        cuts in prop::collection::vec(1usize..300, 1..200),
        ending in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let mut rest = Bytes::from(recorded().replace('\n', ending));
        let mut chunks = Vec::new();
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let cut = (*cuts.next().unwrap()).min(rest.len());
            chunks.push(rest.split_to(cut));
        }
        check(&read(chunks).unwrap());
    }
}

#[test]
fn whole_calls_without_an_index_or_with_the_same_one_stay_apart() {
    for index in [json!(null), json!(0)] {
        let part = |id: &str, name: &str| json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": "{\"a\":1}"}}]});
        let reply = one(&[part("x", "ls"), part("y", "ls")], json!("stop")).unwrap();
        let input = json!({"a": 1});
        assert_eq!(
            reply.content,
            [call("x", "ls", input.clone()), call("y", "ls", input)]
        );
    }
}

#[test]
fn calls_with_neither_index_nor_id_begin_with_a_name() {
    let part = |name: Option<&str>, arguments: &str| json!({"tool_calls": [{"function": {"name": name, "arguments": arguments}}]});
    let list = [
        part(Some("ls"), "{"),
        part(None, "}"),
        part(Some("rm"), "{}"),
    ];
    let reply = one(&list, json!("tool_calls")).unwrap();
    assert_eq!(
        reply.content,
        [call("", "ls", json!({})), call("", "rm", json!({}))]
    );
}

#[test]
fn arguments_may_be_an_object_or_missing() {
    let part = |index: u64, arguments: Value| json!({"tool_calls": [{"index": index, "id": index.to_string(), "function": {"name": "n", "arguments": arguments}}]});
    let list = [
        part(0, json!({"a": 1})),
        part(1, json!(null)),
        part(2, json!("")),
        part(3, json!("null")),
        part(4, json!("[1]")),
    ];
    let reply = one(&list, json!("tool_calls")).unwrap();
    assert_eq!(reply.content[0], call("0", "n", json!({"a": 1})));
    for (n, block) in reply.content[1..4].iter().enumerate() {
        assert_eq!(*block, call(&(n + 1).to_string(), "n", json!({})));
    }
    let Block::ToolUse { malformed, .. } = &reply.content[4] else {
        panic!()
    };
    assert_eq!(malformed.as_deref(), Some("[1]"));
}

#[test]
fn a_repeated_id_does_not_begin_another_call() {
    let part = |arguments: &str| json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ls", "arguments": arguments}}]});
    let reply = one(&[part("{\"x\""), part(":1}")], json!("tool_calls")).unwrap();
    assert_eq!(reply.content, [call("a", "ls", json!({"x": 1}))]);
}

#[test]
fn every_finish_reason_has_its_meaning() {
    for (name, stop) in [
        ("stop", StopReason::EndTurn),
        ("tool_calls", StopReason::ToolUse),
        ("function_call", StopReason::ToolUse),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal),
        ("novel", StopReason::Other("novel".into())),
    ] {
        assert_eq!(one(&[], json!(name)).unwrap().stop, stop);
    }
    assert_eq!(
        one(&[json!({"refusal": "no"})], json!("stop"))
            .unwrap()
            .stop,
        StopReason::Refusal
    );
}

#[test]
fn a_stream_that_breaks_off_is_tried_again() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"hal\"}}]}\n\n";
    assert!(matches!(
        read(vec![Bytes::from(text)]),
        Err(Failure::Again { .. })
    ));
}

#[test]
fn an_error_in_the_stream_is_judged_by_its_code_or_type() {
    let fail = |error: Value| read(vec![Bytes::from(sse(&[json!({"error": error})]))]).unwrap_err();
    for error in [
        json!("boom"),
        json!({"message": "x", "code": 503}),
        json!({"message": "x", "type": "server_error"}),
    ] {
        assert!(matches!(fail(error), Failure::Again { .. }));
    }
    assert!(matches!(
        fail(json!({"message": "x", "code": 401})),
        Failure::Final(LlmError::Unauthorized(_))
    ));
    assert!(matches!(
        fail(json!({"message": "x", "code": "invalid_api_key"})),
        Failure::Final(LlmError::Unauthorized(_))
    ));
}

#[test]
fn nonsense_is_no_completion() {
    for bad in ["{}", "[]", "<html>", "{\"choices\":[]}", "{\"choices\":7}"] {
        let result = whole(bad.as_bytes(), &Heard::default(), &|text| text);
        assert!(
            matches!(result, Err(Failure::Final(LlmError::Protocol(_)))),
            "{bad}"
        );
    }
    let nameless =
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]});
    assert!(matches!(
        one(&[nameless], json!("tool_calls")),
        Err(Failure::Final(LlmError::Protocol(_)))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    // check: FISK-54
    #[test]
    fn whatever_comes_is_a_reply_or_a_failure(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        order in prop::collection::vec(0usize..12, 0..40),
    ) {
        let recorded = recorded();
        let events: Vec<_> = recorded.split_inclusive("\n\n").collect();
        let stream: String = order.iter().map(|at| events[*at]).collect();
        let reply = read(vec![Bytes::from(stream), Bytes::from(noise.clone())]);
        if reply.is_ok() {
            prop_assert!(order.contains(&9) || order.contains(&11), "only an end makes a reply");
        }
        prop_assert!(whole(&noise, &Heard::default(), &|text| text).is_err());
    }
}
