//! The body of a request.

use serde_json::{Map, Value, json};

use crate::{
    pieces::turns,
    types::{Block, Request, Role},
};

/// Chat completions have no mark for a failed result, so the text says it.
const ERROR: &str = "ERROR: ";

pub(super) fn body(model: &str, request: &Request<'_>, usage: bool, completion: bool) -> Vec<u8> {
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for (role, blocks) in turns(request, sendable) {
        match role {
            Role::User => user(&blocks, &mut messages),
            Role::Assistant => messages.push(assistant(&blocks)),
        }
    }
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("messages".into(), messages.into());
    body.insert("stream".into(), true.into());
    if usage {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    let limit = if completion {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    body.insert(limit.into(), request.max_tokens.into());
    if !request.tools.is_empty() {
        let tools: Vec<_> = request
            .tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                }})
            })
            .collect();
        body.insert("tools".into(), tools.into());
    }
    // A map of strings and values always serializes.
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Thoughts are not sent back, and another provider's blocks mean nothing here.
fn sendable(block: &Block) -> bool {
    match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::ToolUse { .. } | Block::ToolResult { .. } => true,
        Block::Thinking { .. } | Block::Provider { .. } => false,
    }
}

fn text(blocks: &[&Block]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::Thinking { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Provider { .. } => None,
        })
        .collect();
    texts.join("\n\n")
}

/// Each result is a message of its own; what the operator says follows.
fn user(blocks: &[&Block], messages: &mut Vec<Value>) {
    for block in blocks {
        if let Block::ToolResult {
            tool_use_id,
            content,
            is_error,
        } = block
        {
            let mark = if *is_error { ERROR } else { "" };
            messages.push(json!({
                "role": "tool",
                "tool_call_id": tool_use_id,
                "content": format!("{mark}{content}"),
            }));
        }
    }
    let text = text(blocks);
    if !text.is_empty() {
        messages.push(json!({"role": "user", "content": text}));
    }
}

fn assistant(blocks: &[&Block]) -> Value {
    let text = text(blocks);
    let calls: Vec<_> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse {
                id, name, input, ..
            } => Some(json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": Value::Object(input.clone()).to_string()},
            })),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::ToolResult { .. }
            | Block::Provider { .. } => None,
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": text});
    if text.is_empty() {
        message["content"] = Value::Null;
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    message
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::types::{Message, ToolSpec};

    fn build(messages: &[Message], completion: bool) -> Value {
        let tools = [ToolSpec {
            name: "ls".to_owned(),
            description: "lists".to_owned(),
            input_schema: json!({"type": "object"}),
            deferrable: true,
        }];
        let request = Request {
            system: "sys",
            messages,
            tools: &tools,
            max_tokens: 7,
            timeout: Duration::from_secs(1),
        };
        serde_json::from_slice(&body("m", &request, true, completion)).unwrap()
    }

    fn text(text: &str) -> Block {
        Block::Text {
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_conversation_becomes_messages_of_four_roles() {
        let call = |id: &str| Block::ToolUse {
            id: id.to_owned(),
            name: "ls".to_owned(),
            input: json!({"a": 1}).as_object().unwrap().clone(),
            malformed: None,
        };
        let result = |id: &str, is_error| Block::ToolResult {
            tool_use_id: id.to_owned(),
            content: "out".to_owned(),
            is_error,
        };
        let thought = Block::Thinking {
            thinking: "hm".to_owned(),
            signature: String::new(),
        };
        let messages = [
            Message {
                role: Role::User,
                content: vec![text("hi")],
            },
            Message {
                role: Role::Assistant,
                content: vec![thought.clone(), call("a"), call("b")],
            },
            Message {
                role: Role::User,
                content: vec![text("and?"), result("a", false)],
            },
            Message {
                role: Role::User,
                content: vec![result("b", true)],
            },
            Message {
                role: Role::Assistant,
                content: vec![thought],
            },
            Message {
                role: Role::Assistant,
                content: vec![text("done"), text("really")],
            },
        ];
        let body = build(&messages, false);
        let call = |id| json!({"id": id, "type": "function", "function": {"name": "ls", "arguments": "{\"a\":1}"}});
        assert_eq!(
            body["messages"],
            json!([
                {"role": "system", "content": "sys"},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
                {"role": "tool", "tool_call_id": "a", "content": "out"},
                {"role": "tool", "tool_call_id": "b", "content": "ERROR: out"},
                {"role": "user", "content": "and?"},
                {"role": "assistant", "content": "done\n\nreally"},
            ])
        );
        assert_eq!(
            body["tools"][0]["function"]["parameters"],
            json!({"type": "object"})
        );
        assert_eq!(body["stream_options"], json!({"include_usage": true}));
    }

    #[test]
    fn the_limit_has_the_name_that_the_server_takes() {
        let hi = [Message {
            role: Role::User,
            content: vec![text("hi")],
        }];
        let (old, new) = (build(&hi, false), build(&hi, true));
        assert_eq!(
            (&old["max_tokens"], old.get("max_completion_tokens")),
            (&json!(7), None)
        );
        assert_eq!(
            (&new["max_completion_tokens"], new.get("max_tokens")),
            (&json!(7), None)
        );
    }
}
