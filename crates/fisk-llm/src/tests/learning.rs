use serde_json::Value;

use super::*;
use crate::{AnthropicConfig, Thinking, standin::Turn};

fn searches(body: &Value) -> bool {
    body["tools"].to_string().contains("tool_search") || body.to_string().contains("defer_loading")
}

// check: FISK-52
#[tokio::test]
async fn a_server_without_tool_search_gets_plain_tools_from_then_on() {
    let server = Server::answering(|recorded| {
        if searches(&recorded.body) {
            Turn::error(
                400,
                "invalid_request_error",
                "tools.0: 'tool_search_tool_bm25_20251119' is not supported",
            )
        } else {
            Turn::text("hi")
        }
    })
    .await;
    let provider = anthropic(&server);
    for told in [1, 0] {
        let heard = Heard::default();
        let cancel = CancellationToken::new();
        ask_with(&provider, &tools(11), LONG, &heard, &cancel)
            .await
            .unwrap();
        assert_eq!(heard.retries(), told);
    }
    let seen: Vec<_> = server
        .requests()
        .iter()
        .map(|r| searches(&r.body))
        .collect();
    assert_eq!(seen, [true, false, false]);
    assert_eq!(
        server.requests()[2].body["tools"].as_array().unwrap().len(),
        11
    );
}

#[tokio::test]
async fn a_refusal_that_has_another_cause_is_told_and_teaches_nothing() {
    let server = Server::answering(|recorded| {
        let message = if searches(&recorded.body) {
            "tool_search: no"
        } else {
            "the credit is too low"
        };
        Turn::error(400, "invalid_request_error", message)
    })
    .await;
    let provider = anthropic(&server);
    for _ in 0..2 {
        let error = ask_with(
            &provider,
            &tools(11),
            LONG,
            &Heard::default(),
            &CancellationToken::new(),
        )
        .await
        .unwrap_err();
        let LlmError::Refused { message, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(message, "invalid_request_error: tool_search: no");
    }
    let seen: Vec<_> = server
        .requests()
        .iter()
        .map(|r| searches(&r.body))
        .collect();
    assert_eq!(seen, [true, false, true, false]);
}

#[tokio::test]
async fn the_form_of_thinking_that_the_server_takes_is_found_and_kept() {
    for (model, taken) in [
        ("claude-opus-4-6", "enabled"),
        ("claude-sonnet-4-5", "adaptive"),
        ("claude-sonnet-5", "none"),
    ] {
        let server = Server::answering(move |recorded| {
            let form = recorded.body["thinking"]["type"].as_str().unwrap_or("none");
            if form == taken {
                Turn::text("hi")
            } else {
                Turn::error(
                    400,
                    "invalid_request_error",
                    &format!("\"thinking.type.{form}\" is not supported for this model."),
                )
            }
        })
        .await;
        let thinking = Thinking::Enabled { budget: 2_000 };
        let provider = Anthropic::new(AnthropicConfig {
            thinking,
            ..server.anthropic(model)
        })
        .unwrap();
        ask(&provider).await.unwrap();
        let before = server.requests().len();
        ask(&provider).await.unwrap();
        assert_eq!(server.requests().len(), before + 1);
    }
}

#[tokio::test]
async fn an_openai_server_is_asked_for_what_it_takes() {
    let server = Server::answering(|recorded| {
        let body = &recorded.body;
        if body.get("stream_options").is_some() {
            Turn::error(
                400,
                "invalid_request_error",
                "Unrecognized request argument: stream_options",
            )
        } else if body.get("max_tokens").is_some() {
            Turn::error(
                400,
                "invalid_request_error",
                "'max_tokens' is not supported, use 'max_completion_tokens'",
            )
        } else {
            Turn::text("hi")
        }
    })
    .await;
    let provider = openai(&server);
    ask(&provider).await.unwrap();
    ask(&provider).await.unwrap();
    assert_eq!(server.requests().len(), 4);
    assert_eq!(server.requests()[3].body["max_completion_tokens"], 4_096);
}

#[tokio::test]
async fn an_openai_server_that_refuses_every_name_is_not_asked_for_ever() {
    let server = Server::answering(|_| {
        Turn::error(
            400,
            "invalid_request_error",
            "max_tokens or max_completion_tokens: too large",
        )
    })
    .await;
    assert!(matches!(
        ask(&openai(&server)).await,
        Err(LlmError::Refused { status: 400, .. })
    ));
    assert_eq!(server.requests().len(), 2);
}
