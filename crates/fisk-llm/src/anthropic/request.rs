//! The body of a request.

use serde_json::{Map, Value, json};

use super::{
    Thinking,
    features::{Features, Form},
};
use crate::{
    pieces::turns,
    types::{Block, Request, Role, ToolSpec},
};

/// Above so many tools that may be deferred, the model searches for them.
const TOOLS_WITHOUT_SEARCH: usize = 10;
/// The least that the API takes as a budget for thinking.
const LEAST_BUDGET: u64 = 1_024;
const SEARCH_TYPE: &str = "tool_search_tool_bm25_20251119";
const SEARCH_NAME: &str = "tool_search_tool_bm25";

pub(super) fn body(
    model: &str,
    request: &Request<'_>,
    features: Features,
    thinking: Thinking,
) -> Vec<u8> {
    let search = features.search
        && request.tools.iter().filter(|tool| tool.deferrable).count() > TOOLS_WITHOUT_SEARCH;
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("max_tokens".into(), request.max_tokens.into());
    body.insert("stream".into(), true.into());
    if !request.system.trim().is_empty() {
        body.insert(
            "system".into(),
            json!([cached(json!({"type": "text", "text": request.system}))]),
        );
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), tools(request.tools, search));
    }
    let (messages, starts_with_thought) = messages(request, search);
    body.insert("messages".into(), messages);
    if let Some(value) = ask_to_think(features, thinking, request.max_tokens, starts_with_thought) {
        body.insert("thinking".into(), value);
    }
    // A map of strings and values always serializes.
    serde_json::to_vec(&body).unwrap_or_default()
}

fn cached(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral"});
    block
}

fn ask_to_think(
    features: Features,
    thinking: Thinking,
    max_tokens: u64,
    starts_with_thought: bool,
) -> Option<Value> {
    let Thinking::Enabled { budget } = thinking else {
        return None;
    };
    match features.thinking {
        Form::Off => None,
        Form::Adaptive if features.display => {
            Some(json!({"type": "adaptive", "display": "summarized"}))
        }
        Form::Adaptive => Some(json!({"type": "adaptive"})),
        // With a budget, a turn that calls tools has to have begun with a thought; one begun without goes on without.
        Form::Budget if !starts_with_thought => None,
        Form::Budget => {
            // The answer needs room too.
            let budget = budget.max(LEAST_BUDGET).min(max_tokens / 2);
            (budget >= LEAST_BUDGET).then(|| json!({"type": "enabled", "budget_tokens": budget}))
        }
    }
}

/// The tools, those that are always there first: deferred ones are no part of the cached prefix and cannot carry its mark.
fn tools(specs: &[ToolSpec], search: bool) -> Value {
    let mut list = Vec::new();
    if search {
        list.push(json!({"type": SEARCH_TYPE, "name": SEARCH_NAME}));
    }
    let (late, early): (Vec<_>, Vec<_>) = specs.iter().partition(|tool| search && tool.deferrable);
    let plain = |tool: &&ToolSpec| {
        json!({
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.input_schema,
        })
    };
    list.extend(early.iter().map(plain));
    if let Some(last) = list.pop() {
        list.push(cached(last));
    }
    list.extend(late.iter().map(plain).map(|mut tool| {
        tool["defer_loading"] = true.into();
        tool
    }));
    Value::Array(list)
}

/// The messages, and whether the turn that is going on began with a thought (true where none is).
fn messages(request: &Request<'_>, search: bool) -> (Value, bool) {
    let mut list: Vec<(Role, Vec<Value>)> = turns(request, |block| sendable(block, search))
        .into_iter()
        .map(|(role, blocks)| (role, blocks.into_iter().map(block).collect()))
        .collect();
    let starts_with_thought = list
        .iter()
        .rev()
        .find(|(role, _)| *role == Role::Assistant)
        .is_none_or(|(_, content)| {
            let is = |block: &Value, kind: &str| block["type"] == kind;
            !content.iter().any(|b| is(b, "tool_use"))
                || content
                    .first()
                    .is_some_and(|b| is(b, "thinking") || is(b, "redacted_thinking"))
        });
    // The end of this request is the beginning of the next, and the end of the last one is what can be read back now.
    let newest = list
        .iter_mut()
        .rev()
        .filter(|(role, _)| *role == Role::User);
    for (_, content) in newest.take(2) {
        if let Some(block) = content.iter_mut().rev().find(|block| cacheable(block)) {
            *block = cached(block.take());
        }
    }
    let list = list
        .into_iter()
        .map(|(role, content)| {
            let role = match role {
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            json!({"role": role, "content": content})
        })
        .collect();
    (Value::Array(list), starts_with_thought)
}

fn cacheable(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("text" | "tool_use" | "tool_result")
    )
}

/// What the API takes: no text without a visible character, no thought without its seal (the text of a sealed one may be empty), no
/// search where there is none.
fn sendable(block: &Block, search: bool) -> bool {
    match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Thinking { signature, .. } => !signature.is_empty(),
        Block::Provider { value } => search || !is_search(value),
        Block::ToolUse { .. } | Block::ToolResult { .. } => true,
    }
}

fn block(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Thinking {
            thinking,
            signature,
        } => json!({"type": "thinking", "thinking": thinking, "signature": signature}),
        Block::ToolUse {
            id, name, input, ..
        } => json!({"type": "tool_use", "id": id, "name": name, "input": input}),
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => {
            let mut value = json!({"type": "tool_result", "tool_use_id": tool_use_id});
            if !content.is_empty() {
                value["content"] = content.as_str().into();
            }
            if *is_error {
                value["is_error"] = true.into();
            }
            value
        }
        Block::Provider { value } => value.clone(),
    }
}

/// Whether a block is of a tool search, which a request without the search tool cannot hold.
fn is_search(value: &Value) -> bool {
    match value["type"].as_str() {
        Some("tool_search_tool_result") => true,
        Some("server_tool_use") => value["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("tool_search")),
        _ => false,
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
