use std::time::Duration;

use super::*;
use crate::{anthropic::features::Remembered, types::Message};

const THINK: Thinking = Thinking::Enabled { budget: 4_096 };

fn tool(name: &str, deferrable: bool) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("does {name}"),
        input_schema: json!({"type": "object", "properties": {}}),
        deferrable,
    }
}

fn text(text: &str) -> Block {
    Block::Text {
        text: text.to_owned(),
    }
}

fn call(id: &str) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: "t".to_owned(),
        input: Map::new(),
        malformed: Some("[".to_owned()),
    }
}

fn result(id: &str, content: &str) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: content.to_owned(),
        is_error: false,
    }
}

fn user(content: Vec<Block>) -> Message {
    Message {
        role: Role::User,
        content,
    }
}

fn assistant(content: Vec<Block>) -> Message {
    Message {
        role: Role::Assistant,
        content,
    }
}

fn build(model: &str, messages: &[Message], tools: &[ToolSpec], thinking: Thinking) -> Value {
    build_with(model, messages, tools, thinking, 8_192)
}

fn build_with(
    model: &str,
    messages: &[Message],
    tools: &[ToolSpec],
    thinking: Thinking,
    max_tokens: u64,
) -> Value {
    let request = Request {
        system: "be careful",
        messages,
        tools,
        max_tokens,
        timeout: Duration::from_secs(1),
    };
    let features = Remembered::new(model, thinking).get();
    serde_json::from_slice(&body(model, &request, features, thinking)).unwrap()
}

fn marks(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            usize::from(map.contains_key("cache_control")) + map.values().map(marks).sum::<usize>()
        }
        Value::Array(list) => list.iter().map(marks).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

// check: FISK-51
#[test]
fn system_prompt_last_tool_and_the_newest_messages_are_cached() {
    let messages = [
        user(vec![text("one")]),
        assistant(vec![call("a"), call("b")]),
        user(vec![result("a", "1"), result("b", "")]),
        assistant(vec![call("c")]),
        user(vec![result("c", "3")]),
    ];
    let body = build(
        "claude-sonnet-5",
        &messages,
        &[tool("x", true), tool("y", true)],
        THINK,
    );
    assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(marks(&body["tools"][0]), 0);
    assert_eq!(marks(&body["tools"][1]), 1);
    assert_eq!(marks(&body["messages"][2]["content"][1]), 1);
    assert_eq!(marks(&body["messages"][4]["content"][0]), 1);
    assert_eq!(marks(&body), 4);
}

// check: FISK-51
#[test]
fn what_cannot_carry_a_cache_mark_does_not_get_one() {
    let provider = Block::Provider {
        value: json!({"type": "redacted_thinking", "data": "x"}),
    };
    let body = build(
        "claude-sonnet-5",
        &[user(vec![text("hi"), text(" \n"), provider])],
        &[],
        THINK,
    );
    let content = &body["messages"][0]["content"];
    assert_eq!(content[0]["cache_control"]["type"], "ephemeral");
    assert_eq!(
        content[1],
        json!({"type": "redacted_thinking", "data": "x"})
    );
    assert_eq!(body.get("tools"), None);
}

// check: FISK-52
#[test]
fn above_ten_deferrable_tools_the_model_searches_for_them() {
    let mut tools: Vec<_> = (0..11).map(|n| tool(&format!("t{n}"), true)).collect();
    tools.insert(3, tool("ask_human_input", false));
    let body = build(
        "claude-opus-4-6",
        &[user(vec![text("hi")])],
        &tools,
        Thinking::Unset,
    );
    let list = body["tools"].as_array().unwrap();
    assert_eq!(list[0]["type"], SEARCH_TYPE);
    assert_eq!(list[1]["name"], "ask_human_input");
    assert_eq!(marks(&list[1]), 1);
    assert_eq!(list.len(), 13);
    for late in &list[2..] {
        assert_eq!(late["defer_loading"], true);
        assert_eq!(marks(late), 0);
    }
    assert!(
        list[..2]
            .iter()
            .all(|tool| tool.get("defer_loading").is_none())
    );
}

// check: FISK-52
#[test]
fn ten_tools_or_a_model_without_search_get_all_tools_plainly() {
    let many: Vec<_> = (0..40).map(|n| tool(&format!("t{n}"), true)).collect();
    let hi = [user(vec![text("hi")])];
    for body in [
        build("claude-opus-4-6", &hi, &many[..10], Thinking::Unset),
        build("claude-3-5-haiku-latest", &hi, &many, Thinking::Unset),
    ] {
        let list = body["tools"].as_array().unwrap();
        assert!(
            list.iter()
                .all(|tool| tool.get("defer_loading").is_none() && tool.get("type").is_none())
        );
        assert_eq!(marks(list.last().unwrap()), 1);
    }
}

// check: FISK-52
#[test]
fn only_deferred_tools_leave_the_search_itself_in_the_prefix() {
    let tools: Vec<_> = (0..11).map(|n| tool(&format!("t{n}"), true)).collect();
    let body = build(
        "claude-opus-4-6",
        &[user(vec![text("hi")])],
        &tools,
        Thinking::Unset,
    );
    assert_eq!(marks(&body["tools"][0]), 1);
    assert_eq!(marks(&body["tools"]), 1);
}

#[test]
fn a_search_goes_back_unchanged_and_is_left_out_where_there_is_none() {
    let search =
        json!({"type": "server_tool_use", "id": "s", "name": SEARCH_NAME, "input": {"query": "q"}});
    let found = json!({"type": "tool_search_tool_result", "tool_use_id": "s", "content": {"x": 1}});
    let messages = [
        user(vec![text("hi")]),
        assistant(vec![
            Block::Provider {
                value: search.clone(),
            },
            Block::Provider {
                value: found.clone(),
            },
            text("ok"),
        ]),
        user(vec![text("go on")]),
    ];
    let tools: Vec<_> = (0..11).map(|n| tool(&format!("t{n}"), true)).collect();
    let with = build("claude-opus-4-6", &messages, &tools, Thinking::Unset);
    assert_eq!(with["messages"][1]["content"][0], search);
    assert_eq!(with["messages"][1]["content"][1], found);
    let without = build("claude-opus-4-6", &messages, &tools[..3], Thinking::Unset);
    assert_eq!(
        without["messages"][1]["content"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn results_come_first_in_one_message_and_empty_content_is_never_sent() {
    let messages = [
        user(vec![text("hi")]),
        assistant(vec![call("a"), call("b")]),
        user(vec![text("note"), result("a", "1")]),
        assistant(vec![]),
        assistant(vec![text(" \n")]),
        user(vec![result("b", "")]),
    ];
    let body = build("claude-sonnet-5", &messages, &[], Thinking::Unset);
    let list = body["messages"].as_array().unwrap();
    assert_eq!(list.len(), 3, "{body}");
    let kinds: Vec<_> = list[2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
    for message in list {
        assert!(!message["content"].as_array().unwrap().is_empty());
    }
    // The input of a call that was no object is sent as an empty one.
    assert_eq!(list[1]["content"][0]["input"], json!({}));
}

#[test]
fn an_assistant_message_of_nothing_sendable_joins_its_neighbours() {
    let messages = [
        user(vec![text("one")]),
        assistant(vec![text("")]),
        user(vec![text("two")]),
    ];
    let body = build("claude-sonnet-5", &messages, &[], Thinking::Unset);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn thoughts_go_back_unchanged_even_when_their_text_is_left_out() {
    let thought = Block::Thinking {
        thinking: String::new(),
        signature: "seal".to_owned(),
    };
    let unsealed = Block::Thinking {
        thinking: "hm".to_owned(),
        signature: String::new(),
    };
    let messages = [
        user(vec![text("hi")]),
        assistant(vec![thought, unsealed, text("ok")]),
    ];
    let body = build("claude-sonnet-5", &messages, &[], THINK);
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "", "signature": "seal"},
            {"type": "text", "text": "ok"},
        ])
    );
}

#[test]
fn thinking_is_asked_for_as_the_model_takes_it() {
    let hi = [user(vec![text("hi")])];
    let ask = |model, max| {
        build_with(model, &hi, &[], THINK, max)
            .get("thinking")
            .cloned()
    };
    assert_eq!(
        ask("claude-opus-5-5", 100),
        Some(json!({"type": "adaptive", "display": "summarized"}))
    );
    assert_eq!(
        ask("claude-sonnet-4-5", 16_000),
        Some(json!({"type": "enabled", "budget_tokens": 4_096}))
    );
    assert_eq!(
        ask("claude-sonnet-4-5", 4_000),
        Some(json!({"type": "enabled", "budget_tokens": 2_000}))
    );
    assert_eq!(ask("claude-sonnet-4-5", 2_000), None);
    assert_eq!(
        build("claude-opus-5-5", &hi, &[], Thinking::Unset).get("thinking"),
        None
    );
}

#[test]
fn a_turn_of_calls_begun_without_a_thought_goes_on_without() {
    let go = |first: Vec<Block>| {
        let messages = [
            user(vec![text("hi")]),
            assistant(first),
            user(vec![result("a", "1")]),
        ];
        build("claude-sonnet-4-5", &messages, &[], THINK)
            .get("thinking")
            .is_some()
    };
    let thought = Block::Thinking {
        thinking: "hm".to_owned(),
        signature: "seal".to_owned(),
    };
    assert!(!go(vec![call("a")]));
    assert!(go(vec![thought, call("a")]));
}
