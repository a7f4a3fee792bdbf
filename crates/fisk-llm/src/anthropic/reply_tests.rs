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

impl Heard {
    fn text(&self) -> String {
        let of = |delta: &Delta| match delta {
            Delta::Text(text) => text.clone(),
            Delta::Thinking(_) | Delta::Retrying { .. } => String::new(),
        };
        self.0.lock().unwrap().iter().map(of).collect()
    }
}

fn read(chunks: Vec<Bytes>) -> (Result<Reply, Failure>, Heard) {
    let heard = Heard::default();
    let bytes = stream::iter(chunks.into_iter().map(Ok::<_, BodyError>)).boxed();
    let events = transport::events(transport::bounded(bytes));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let reply = runtime.block_on(stream(events, &heard, &|text| text));
    (reply, heard)
}

fn sse(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect()
}

fn one(events: &[Value]) -> Result<Reply, Failure> {
    read(vec![Bytes::from(sse(events))]).0
}

fn recorded() -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 7, "cache_creation_input_tokens": 3,
            "cache_read_input_tokens": 2, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "höm"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "seal"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "zzz"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Grüße 🦀 "}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {}}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "日本\r\n"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3,
            "content_block": {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {}}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{\"query\":\"strea"}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "m\"}"}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "content_block_start", "index": 4, "content_block": {"type": "tool_search_tool_result", "tool_use_id": "s1",
            "content": {"type": "tool_search_tool_search_result", "tool_references": []}}}),
        json!({"type": "content_block_stop", "index": 4}),
        json!({"type": "content_block_start", "index": 5, "content_block": {"type": "tool_use", "id": "t1", "name": "stream_ls", "input": {}}}),
        json!({"type": "content_block_delta", "index": 5, "delta": {"type": "input_json_delta", "partial_json": ""}}),
        json!({"type": "content_block_delta", "index": 5, "delta": {"type": "input_json_delta", "partial_json": "{\"näme\":"}}),
        json!({"type": "content_block_delta", "index": 5, "delta": {"type": "input_json_delta", "partial_json": "\"ö\"}"}}),
        json!({"type": "content_block_stop", "index": 5}),
        json!({"type": "something_new", "x": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 42}}),
        json!({"type": "message_stop"}),
    ]
}

fn check(reply: &Reply) {
    assert_eq!(reply.stop, StopReason::ToolUse);
    assert_eq!(
        reply.usage,
        Usage {
            input: 7,
            cache_write: 3,
            cache_read: 2,
            output: 42
        }
    );
    assert_eq!(reply.content.len(), 6);
    assert_eq!(
        reply.content[0],
        Block::Thinking {
            thinking: "höm".into(),
            signature: "seal".into()
        }
    );
    assert_eq!(
        reply.content[1],
        Block::Provider {
            value: json!({"type": "redacted_thinking", "data": "zzz"})
        }
    );
    assert_eq!(
        reply.content[2],
        Block::Text {
            text: "Grüße 🦀 日本\r\n".into()
        }
    );
    let Block::Provider { value } = &reply.content[3] else {
        panic!("{:?}", reply.content[3])
    };
    assert_eq!(value["input"], json!({"query": "stream"}));
    let Block::ToolUse {
        id,
        name,
        input,
        malformed,
    } = &reply.content[5]
    else {
        panic!("{:?}", reply.content[5])
    };
    assert_eq!(
        (
            id.as_str(),
            name.as_str(),
            input["näme"].as_str(),
            malformed
        ),
        ("t1", "stream_ls", Some("ö"), &None)
    );
}

#[test]
fn a_recorded_stream_becomes_its_blocks() {
    let (reply, heard) = read(vec![Bytes::from(sse(&recorded()))]);
    check(&reply.unwrap());
    assert_eq!(heard.text(), "Grüße 🦀 日本\r\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    // check: FISK-54
    #[test]
    fn however_a_stream_is_cut_into_chunks_the_reply_is_the_same(
        cuts in prop::collection::vec(1usize..400, 1..200),
        ending in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        keepalive in any::<bool>(),
        bom in any::<bool>(),
    ) {
        let mut text = sse(&recorded()).replace('\n', ending);
        if keepalive {
            text = format!(": hello{ending}{ending}{text}");
        }
        if bom {
            text.insert(0, '\u{feff}');
        }
        let mut rest = Bytes::from(text);
        let mut chunks = Vec::new();
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let cut = (*cuts.next().unwrap()).min(rest.len());
            chunks.push(rest.split_to(cut));
        }
        check(&read(chunks).0.unwrap());
    }
}

#[test]
fn one_byte_at_a_time_gives_the_same_reply() {
    let text = Bytes::from(sse(&recorded()));
    let chunks = (0..text.len()).map(|at| text.slice(at..=at)).collect();
    check(&read(chunks).0.unwrap());
}

#[test]
fn input_that_is_no_object_is_malformed() {
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "n", "input": {}}});
    let piece = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"a\":"}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}});
    let reply = one(&[start, piece, end]).unwrap();
    assert_eq!(reply.stop, StopReason::MaxTokens);
    let Block::ToolUse {
        input, malformed, ..
    } = &reply.content[0]
    else {
        panic!()
    };
    assert!(input.is_empty());
    assert_eq!(malformed.as_deref(), Some("{\"a\":"));
}

#[test]
fn a_stream_that_breaks_off_is_tried_again_and_its_cost_is_kept() {
    let mut events = recorded();
    events.truncate(10);
    let Err(Failure::Again { reason, spent, .. }) = one(&events) else {
        panic!()
    };
    assert_eq!(reason, "the reply broke off");
    assert_eq!(spent.total(), 13);
}

#[test]
fn an_error_in_the_stream_is_judged_by_its_type() {
    let fail = |kind: &str| {
        one(&[json!({"type": "error", "error": {"type": kind, "message": "why"}})]).unwrap_err()
    };
    for kind in [
        "overloaded_error",
        "api_error",
        "rate_limit_error",
        "timeout_error",
        "novel_error",
    ] {
        assert!(
            matches!(fail(kind), Failure::Again { reason, .. } if reason == format!("{kind}: why"))
        );
    }
    assert!(matches!(
        fail("authentication_error"),
        Failure::Final(LlmError::Unauthorized(_))
    ));
    assert!(matches!(
        fail("invalid_request_error"),
        Failure::Final(LlmError::Refused { status: 400, .. })
    ));
    assert!(matches!(
        fail("request_too_large"),
        Failure::Final(LlmError::Refused { status: 413, .. })
    ));
}

#[test]
fn nonsense_in_a_stream_ends_the_call_with_a_bounded_message() {
    let huge = format!(
        "data: {{\"type\":\"message_start\",\"message\":\"{}\"}}\n\n",
        "x".repeat(1 << 20)
    );
    for text in [
        "data: {\n\n".to_owned(),
        "data: 7\n\n".to_owned(),
        "data: {\"type\":4}\n\n".to_owned(),
        huge,
    ] {
        let Err(Failure::Final(LlmError::Protocol(message))) = read(vec![Bytes::from(text)]).0
        else {
            panic!()
        };
        assert!(message.len() < 3_000);
    }
    let bad_utf8 = Bytes::from_static(b"data: \"\xff\xfe\"\n\n");
    assert!(matches!(
        read(vec![bad_utf8]).0,
        Err(Failure::Final(LlmError::Protocol(_)))
    ));
}

#[test]
fn events_of_blocks_that_are_not_open_are_refused() {
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}});
    let piece = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "b"}});
    let wrong = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "b"}});
    let stop = json!({"type": "content_block_stop", "index": 0});
    for events in [
        vec![piece.clone()],
        vec![stop.clone()],
        vec![start.clone(), start.clone()],
        vec![start.clone(), wrong],
        vec![start, stop, piece],
    ] {
        assert!(
            matches!(one(&events), Err(Failure::Final(LlmError::Protocol(_)))),
            "{events:?}"
        );
    }
}

// check: FISK-54
#[test]
fn a_reply_of_endless_blocks_is_refused() {
    let events: Vec<_> = (0..=MAX_BLOCKS)
        .map(|index| json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}))
        .collect();
    assert!(matches!(
        one(&events),
        Err(Failure::Final(LlmError::Protocol(_)))
    ));
}

#[test]
fn every_stop_reason_has_its_meaning() {
    for (name, stop) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("tool_use", StopReason::ToolUse),
        ("max_tokens", StopReason::MaxTokens),
        ("pause_turn", StopReason::Pause),
        ("refusal", StopReason::Refusal),
        (
            "model_context_window_exceeded",
            StopReason::Other("model_context_window_exceeded".into()),
        ),
    ] {
        assert_eq!(stop_reason(name.to_owned()), stop);
    }
}

#[test]
fn a_reply_in_one_piece_is_taken_too() {
    let body = json!({"content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "n", "input": [1]}],
        "stop_reason": "tool_use", "usage": {"input_tokens": 4, "output_tokens": 5}});
    let heard = Heard::default();
    let reply = whole(body.to_string().as_bytes(), &heard, &|text| text).unwrap();
    assert_eq!(heard.text(), "hi");
    assert_eq!(reply.usage.total(), 9);
    let Block::ToolUse { malformed, .. } = &reply.content[1] else {
        panic!()
    };
    assert_eq!(malformed.as_deref(), Some("[1]"));
    for bad in ["<html>", "{}", "[]", "{\"content\": 3}"] {
        assert!(matches!(
            whole(bad.as_bytes(), &heard, &|text| text),
            Err(Failure::Final(LlmError::Protocol(_)))
        ));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    // check: FISK-54
    #[test]
    fn whatever_comes_is_a_reply_or_a_failure(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        order in prop::collection::vec(0usize..27, 0..40),
    ) {
        let recorded = recorded();
        let events: Vec<_> = order.iter().map(|at| recorded[*at].clone()).collect();
        let (reply, _) = read(vec![Bytes::from(sse(&events)), Bytes::from(noise.clone())]);
        if let Ok(reply) = reply {
            prop_assert!(order.contains(&25), "only a stop reason makes a reply");
            prop_assert!(reply.content.len() <= order.len());
        }
        let heard = Heard::default();
        prop_assert!(whole(&noise, &heard, &|text| text).is_err());
    }
}
