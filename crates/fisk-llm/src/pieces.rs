//! What both providers make of a reply.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::types::{Block, Message, Reply, Request, Role, StopReason, Usage};

/// The most blocks of one reply.
pub(crate) const MAX_BLOCKS: usize = 4_096;

/// Bytes per token where a provider counts nothing: fewer than in plain English, so that a budget ends early rather than late.
const BYTES_PER_TOKEN: usize = 3;

/// The input of a call as the model wrote it: an object, or what it is instead.
pub(crate) fn tool_input(text: String) -> (Map<String, Value>, Option<String>) {
    if text.trim().is_empty() {
        return (Map::new(), None);
    }
    match serde_json::from_str(&text) {
        Ok(Value::Object(input)) => (input, None),
        Ok(_) | Err(_) => (Map::new(), Some(text)),
    }
}

/// Makes good what providers leave open in a reply to a request of `sent` bytes.
pub(crate) fn settle(reply: &mut Reply, conversation: &[Message], sent: usize) {
    settle_ids(&mut reply.content, conversation);
    settle_stop(&mut reply.stop, &reply.content);
    settle_usage(&mut reply.usage, sent, &reply.content);
}

/// Gives calls an id that have none, or one that an earlier call of the reply or the conversation has: a result could not be told apart.
fn settle_ids(content: &mut [Block], conversation: &[Message]) {
    let mut taken: HashSet<String> = conversation
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.clone()),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::ToolResult { .. }
            | Block::Provider { .. } => None,
        })
        .collect();
    for block in content {
        let Block::ToolUse { id, .. } = block else {
            continue;
        };
        if id.is_empty() || taken.contains(id) {
            let mut n = taken.len();
            while taken.contains(&format!("call_{n}")) {
                n += 1;
            }
            *id = format!("call_{n}");
        }
        taken.insert(id.clone());
    }
}

/// Some servers say that the turn is over although they wait for a tool, or the reverse.
fn settle_stop(stop: &mut StopReason, content: &[Block]) {
    let calls = content
        .iter()
        .any(|block| matches!(block, Block::ToolUse { .. }));
    if calls && *stop == StopReason::EndTurn {
        *stop = StopReason::ToolUse;
    } else if !calls && *stop == StopReason::ToolUse {
        *stop = StopReason::EndTurn;
    }
}

/// Estimates the usage where nothing was told.
fn settle_usage(usage: &mut Usage, sent: usize, content: &[Block]) {
    if usage.total() > 0 {
        return;
    }
    let written: usize = content.iter().map(size).sum();
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
    *usage = Usage {
        input: tokens(sent),
        output: tokens(written),
        ..Usage::default()
    };
}

fn size(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Thinking { thinking, .. } => thinking.len(),
        Block::ToolUse {
            name,
            input,
            malformed,
            ..
        } => {
            let raw = malformed.as_ref().map_or(0, String::len);
            name.len() + raw + serde_json::to_string(input).map_or(0, |text| text.len())
        }
        Block::ToolResult { content, .. } => content.len(),
        Block::Provider { value } => value.to_string().len(),
    }
}

/// The messages of what can be sent, never an empty one, with neighbours of one role joined and, of the operator's, results before text,
/// as both APIs demand.
pub(crate) fn turns<'a>(
    request: &Request<'a>,
    sendable: impl Fn(&Block) -> bool,
) -> Vec<(Role, Vec<&'a Block>)> {
    let mut turns: Vec<(Role, Vec<&Block>)> = Vec::new();
    for message in request.messages {
        let content: Vec<_> = message.content.iter().filter(|b| sendable(b)).collect();
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some((role, blocks)) if *role == message.role => blocks.extend(content),
            _ => turns.push((message.role, content)),
        }
    }
    for (role, blocks) in &mut turns {
        if *role == Role::User {
            blocks.sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Block {
        Block::ToolUse {
            id: id.to_owned(),
            name: "t".to_owned(),
            input: Map::new(),
            malformed: None,
        }
    }

    #[test]
    fn calls_of_a_reply_differ_in_their_ids_from_all_before() {
        let before = [Message {
            role: Role::Assistant,
            content: vec![call("a"), call("call_1")],
        }];
        let mut content = [call(""), call("b"), call("b"), call("a"), call("")];
        settle_ids(&mut content, &before);
        let ids: HashSet<_> = content
            .iter()
            .chain(&before[0].content)
            .map(|block| match block {
                Block::ToolUse { id, .. } => id.clone(),
                _ => unreachable!(),
            })
            .collect();
        assert_eq!(ids.len(), 7);
        assert!(content.contains(&call("b")));
    }

    #[test]
    fn input_that_is_no_object_is_kept_as_it_was_written() {
        for raw in ["[1]", "null", "{\"a\":", "{\"a\":1}}", "\"x\""] {
            let (input, malformed) = tool_input(raw.to_owned());
            assert!(input.is_empty());
            assert_eq!(malformed.as_deref(), Some(raw));
        }
        assert_eq!(tool_input(" ".to_owned()), (Map::new(), None));
        let (input, malformed) = tool_input("{\"a\":{\"b\":1}}".to_owned());
        assert_eq!((input["a"]["b"].as_u64(), malformed), (Some(1), None));
    }

    #[test]
    fn input_nested_without_end_is_malformed_rather_than_a_crash() {
        let deep = format!("{{\"a\":{}", "[".repeat(1 << 20));
        assert!(tool_input(deep).1.is_some());
    }

    #[test]
    fn usage_that_nobody_told_is_estimated() {
        let content = [Block::Text {
            text: "x".repeat(300),
        }];
        let mut usage = Usage::default();
        settle_usage(&mut usage, 3_000, &content);
        assert_eq!((usage.input, usage.output), (1_000, 100));
        let told = Usage {
            output: 1,
            ..Usage::default()
        };
        let mut usage = told;
        settle_usage(&mut usage, 3_000, &content);
        assert_eq!(usage, told);
    }
}
