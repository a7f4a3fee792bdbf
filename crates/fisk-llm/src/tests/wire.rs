use super::*;
use crate::{
    AnthropicConfig, Secret, StopReason, Usage,
    standin::{KEY, Turn},
};

#[tokio::test]
async fn the_key_goes_in_its_header_and_the_prompt_to_messages() {
    let server = Server::start(vec![Turn::text("hi")]).await;
    let reply = ask(&anthropic(&server)).await.unwrap();
    assert_eq!(
        (reply.content, reply.stop),
        (vec![text("hi")], StopReason::EndTurn)
    );
    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(
        request.body["messages"][0]["content"][0]["text"],
        "list the streams"
    );
}

#[tokio::test]
async fn an_auth_token_is_a_bearer_token_and_own_headers_win() {
    let server = Server::start(vec![Turn::text("hi")]).await;
    let config = AnthropicConfig {
        key: Some(Secret::new(" \n".to_owned())),
        auth_token: Some(Secret::new("token-0123456789\n".to_owned())),
        headers: crate::parse_headers("anthropic-version: 2099-01-01\nX-Team: red").unwrap(),
        ..server.anthropic(MODEL)
    };
    ask(&Anthropic::new(config).unwrap()).await.unwrap();
    let request = &server.requests()[0];
    assert_eq!(
        request.header("authorization"),
        Some("Bearer token-0123456789")
    );
    assert_eq!(request.header("x-api-key"), None);
    assert_eq!(request.header("anthropic-version"), Some("2099-01-01"));
    assert_eq!(request.header("x-team"), Some("red"));
}

// check: FISK-53
#[tokio::test]
async fn no_provider_shows_its_key_and_none_starts_with_what_it_lacks() {
    let server = Server::start(vec![]).await;
    assert!(!format!("{:?}", anthropic(&server)).contains("standin-key"));
    assert!(!format!("{:?}", openai(&server)).contains("standin-key"));
    assert!(!format!("{:?}", server.anthropic(MODEL)).contains("standin-key"));
    let refused = |config| Anthropic::new(config).unwrap_err().to_string();
    let keyless = AnthropicConfig {
        key: None,
        ..server.anthropic(MODEL)
    };
    assert_eq!(
        refused(keyless),
        "key: is missing; set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"
    );
    assert_eq!(refused(server.anthropic(" ")), "model: is empty");
    let far = AnthropicConfig {
        base_url: "http://192.0.2.1".to_owned(),
        ..server.anthropic(MODEL)
    };
    assert!(refused(far).starts_with("base_url: is plain http"));
}

#[tokio::test]
async fn a_whole_conversation_goes_there_and_back() {
    let turn = || {
        Turn::thinking("höm, let me see", "seal")
            .and_text("Grüße 🦀")
            .and_tool_use(
                "t1",
                "tool_0",
                json!({"näme": "ö", "deep": {"a": [1, null]}}),
            )
            .usage(Some(Usage {
                input: 9,
                cache_write: 0,
                cache_read: 2,
                output: 7,
            }))
    };
    let server = Server::answering(move |_| turn()).await;
    for provider in both(&server) {
        let heard = Heard::default();
        let cancel = CancellationToken::new();
        let reply = ask_with(provider.as_ref(), &tools(1), LONG, &heard, &cancel)
            .await
            .unwrap();
        assert_eq!(reply.stop, StopReason::ToolUse);
        assert_eq!(reply.usage.total(), 18);
        let Block::ToolUse {
            id,
            input,
            malformed,
            ..
        } = reply.content.last().unwrap()
        else {
            panic!()
        };
        assert_eq!((id.as_str(), malformed), ("t1", &None));
        assert_eq!(input["deep"], json!({"a": [1, null]}));
        let said: String = heard
            .all()
            .into_iter()
            .filter_map(|delta| match delta {
                Delta::Text(text) => Some(text),
                Delta::Thinking(_) | Delta::Retrying { .. } => None,
            })
            .collect();
        assert_eq!(said, "Grüße 🦀");
    }
}

#[tokio::test]
async fn one_byte_at_a_time_and_all_in_one_piece_give_the_same() {
    let turn = || Turn::text("Grüße 🦀").and_tool_use("t1", "tool_0", json!("not json"));
    let mut n = 0;
    let server = Server::answering(move |_| {
        n += 1;
        match n % 3 {
            0 => turn().in_one_piece(),
            1 => turn().in_pieces(1, Duration::ZERO),
            _ => turn(),
        }
    })
    .await;
    for provider in both(&server) {
        let first = ask(provider.as_ref()).await.unwrap();
        for _ in 0..2 {
            assert_eq!(ask(provider.as_ref()).await.unwrap(), first);
        }
        let Block::ToolUse { malformed, .. } = &first.content[1] else {
            panic!()
        };
        assert!(malformed.as_ref().unwrap().contains("not json"));
    }
}

#[tokio::test]
async fn a_stream_that_is_not_called_one_is_read_as_one() {
    let body = "\u{feff}: hello\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = Server::start(vec![
        Turn::raw("text/plain", body).in_pieces(2, Duration::ZERO),
    ])
    .await;
    assert_eq!(ask(&openai(&server)).await.unwrap().content, [text("hi")]);
}

#[tokio::test]
async fn usage_that_is_not_told_is_estimated() {
    let server = Server::answering(|_| Turn::text(&"x".repeat(300)).usage(None)).await;
    for provider in both(&server) {
        let usage = ask(provider.as_ref()).await.unwrap().usage;
        assert_eq!(usage.output, 100);
        assert!(usage.input > 20);
    }
}

#[tokio::test]
async fn an_openai_server_needs_no_key_and_gets_a_bearer_token_where_there_is_one() {
    let server = Server::answering(|_| Turn::text("hi")).await;
    ask(&openai(&server)).await.unwrap();
    let keyless = crate::OpenAiConfig {
        key: None,
        ..server.openai("local")
    };
    ask(&OpenAi::new(keyless).unwrap()).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert_eq!(
        requests[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(requests[1].header("authorization"), None);
}

#[tokio::test]
async fn a_server_that_says_stop_although_it_calls_waits_for_the_tool() {
    let server = Server::answering(|recorded| {
        let stop = if recorded.path.ends_with("/messages") {
            "end_turn"
        } else {
            "stop"
        };
        Turn::tool_use("", "tool_0", json!({}))
            .and_tool_use("", "tool_0", json!({}))
            .stop(stop)
    })
    .await;
    for provider in both(&server) {
        let reply = ask(provider.as_ref()).await.unwrap();
        assert_eq!(reply.stop, StopReason::ToolUse);
        let ids: Vec<_> = reply
            .content
            .iter()
            .map(|block| match block {
                Block::ToolUse { id, .. } => id.clone(),
                _ => panic!("{block:?}"),
            })
            .collect();
        assert_eq!(ids, ["call_0", "call_1"]);
    }
}
