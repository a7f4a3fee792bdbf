//! Blocks in the words of both APIs.

use serde_json::{Value, json};

use crate::types::{Block, Usage};

/// How many characters one piece of a stream has.
const PIECE: usize = 7;

fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(PIECE)
        .map(|piece| piece.iter().collect())
        .collect()
}

fn written(input: &serde_json::Map<String, Value>, malformed: Option<&String>) -> String {
    malformed
        .cloned()
        .unwrap_or_else(|| Value::Object(input.clone()).to_string())
}

fn calls(blocks: &[Block]) -> bool {
    blocks
        .iter()
        .any(|block| matches!(block, Block::ToolUse { .. }))
}

fn anthropic_stop<'a>(blocks: &[Block], stop: Option<&'a str>) -> &'a str {
    stop.unwrap_or(if calls(blocks) {
        "tool_use"
    } else {
        "end_turn"
    })
}

fn anthropic_usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

fn anthropic_block(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Thinking {
            thinking,
            signature,
        } => json!({"type": "thinking", "thinking": thinking, "signature": signature}),
        Block::ToolUse {
            id,
            name,
            input,
            malformed,
        } => match malformed {
            Some(raw) => json!({"type": "tool_use", "id": id, "name": name, "input": raw}),
            None => json!({"type": "tool_use", "id": id, "name": name, "input": input}),
        },
        Block::ToolResult {
            tool_use_id,
            content,
            ..
        } => json!({"type": "tool_result", "tool_use_id": tool_use_id, "content": content}),
        Block::Provider { value } => value.clone(),
    }
}

pub(super) fn anthropic_whole(blocks: &[Block], stop: Option<&str>, usage: Option<Usage>) -> Value {
    let content: Vec<_> = blocks.iter().map(anthropic_block).collect();
    json!({
        "id": "msg_standin",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": anthropic_stop(blocks, stop),
        "usage": usage.map(anthropic_usage),
    })
}

pub(super) fn anthropic_stream(
    blocks: &[Block],
    stop: Option<&str>,
    usage: Option<Usage>,
) -> String {
    let begun = usage.map(|usage| anthropic_usage(Usage { output: 1, ..usage }));
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_standin", "role": "assistant", "content": [], "usage": begun}}),
        json!({"type": "ping"}),
    ];
    for (index, block) in blocks.iter().enumerate() {
        let mut start = anthropic_block(block);
        let mut deltas = Vec::new();
        match block {
            Block::Text { text } => {
                start["text"] = "".into();
                deltas.extend(
                    pieces(text)
                        .into_iter()
                        .map(|t| json!({"type": "text_delta", "text": t})),
                );
            }
            Block::Thinking {
                thinking,
                signature,
            } => {
                start["thinking"] = "".into();
                start["signature"] = "".into();
                let parts = pieces(thinking).into_iter();
                deltas.extend(parts.map(|t| json!({"type": "thinking_delta", "thinking": t})));
                deltas.push(json!({"type": "signature_delta", "signature": signature}));
            }
            Block::ToolUse {
                input, malformed, ..
            } => {
                start["input"] = json!({});
                let parts = pieces(&written(input, malformed.as_ref())).into_iter();
                deltas
                    .extend(parts.map(|t| json!({"type": "input_json_delta", "partial_json": t})));
            }
            Block::ToolResult { .. } | Block::Provider { .. } => {}
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": anthropic_stop(blocks, stop)},
        "usage": usage.map(|usage| json!({"output_tokens": usage.output})),
    }));
    events.push(json!({"type": "message_stop"}));
    let line = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}

fn openai_stop<'a>(blocks: &[Block], stop: Option<&'a str>) -> &'a str {
    stop.unwrap_or(if calls(blocks) { "tool_calls" } else { "stop" })
}

fn openai_usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input + usage.cache_read,
        "completion_tokens": usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    })
}

pub(super) fn openai_whole(blocks: &[Block], stop: Option<&str>, usage: Option<Usage>) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    let mut list = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text } => message["content"] = text.as_str().into(),
            Block::Thinking { thinking, .. } => {
                message["reasoning_content"] = thinking.as_str().into()
            }
            Block::ToolUse {
                id,
                name,
                input,
                malformed,
            } => list.push(
                json!({"id": id, "type": "function", "function": {"name": name,
                "arguments": written(input, malformed.as_ref())}}),
            ),
            Block::ToolResult { .. } | Block::Provider { .. } => {}
        }
    }
    if !list.is_empty() {
        message["tool_calls"] = Value::Array(list);
    }
    json!({
        "id": "chatcmpl-standin",
        "choices": [{"index": 0, "message": message, "finish_reason": openai_stop(blocks, stop)}],
        "usage": usage.map(openai_usage),
    })
}

pub(super) fn openai_stream(blocks: &[Block], stop: Option<&str>, usage: Option<Usage>) -> String {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let mut call = 0;
    for block in blocks {
        match block {
            Block::Text { text } => {
                deltas.extend(pieces(text).into_iter().map(|t| json!({"content": t})));
            }
            Block::Thinking { thinking, .. } => {
                let parts = pieces(thinking).into_iter();
                deltas.extend(parts.map(|t| json!({"reasoning_content": t})));
            }
            Block::ToolUse {
                id,
                name,
                input,
                malformed,
            } => {
                deltas.push(
                    json!({"tool_calls": [{"index": call, "id": id, "type": "function",
                    "function": {"name": name, "arguments": ""}}]}),
                );
                for part in pieces(&written(input, malformed.as_ref())) {
                    let function = json!({"arguments": part});
                    deltas.push(json!({"tool_calls": [{"index": call, "function": function}]}));
                }
                call += 1;
            }
            Block::ToolResult { .. } | Block::Provider { .. } => {}
        }
    }
    let mut chunks: Vec<_> = deltas
        .into_iter()
        .map(|delta| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
        .collect();
    chunks.push(
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": openai_stop(blocks, stop)}]}),
    );
    if let Some(usage) = usage {
        chunks.push(json!({"choices": [], "usage": openai_usage(usage)}));
    }
    let lines: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    lines + "data: [DONE]\n\n"
}
