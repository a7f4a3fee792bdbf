use std::time::Instant;

use super::*;
use crate::{AnthropicConfig, RetryPolicy, standin::Turn};

// check: FISK-50
#[tokio::test]
async fn rate_limits_overload_and_faults_are_tried_again() {
    for status in [408, 429, 500, 502, 503, 504, 529] {
        let mut n = 0;
        let server = Server::answering(move |_| {
            n += 1;
            if n % 3 == 0 {
                Turn::text("at last")
            } else {
                Turn::error(status, "overloaded_error", "busy")
            }
        })
        .await;
        for provider in both(&server) {
            let heard = Heard::default();
            let cancel = CancellationToken::new();
            let reply = ask_with(provider.as_ref(), &[], LONG, &heard, &cancel)
                .await
                .unwrap();
            assert_eq!(reply.content, [text("at last")]);
            assert_eq!(heard.retries(), 2);
            let Delta::Retrying { reason, .. } = &heard.all()[0] else {
                panic!()
            };
            assert_eq!(*reason, format!("{status}: overloaded_error: busy"));
        }
    }
}

// check: FISK-50
#[tokio::test]
async fn refusals_are_never_tried_again() {
    for status in [400, 401, 403, 404, 413, 422, 501] {
        let server = Server::answering(move |_| Turn::error(status, "some_error", "no")).await;
        for provider in both(&server) {
            let error = ask(provider.as_ref()).await.unwrap_err();
            let message = "some_error: no".to_owned();
            if matches!(status, 401 | 403) {
                assert_eq!(error, LlmError::Unauthorized(message));
            } else {
                assert_eq!(error, LlmError::Refused { status, message });
            }
        }
        assert_eq!(server.requests().len(), 2);
    }
}

// check: FISK-50
#[tokio::test]
async fn retry_after_is_waited_for() {
    let wait = Duration::from_millis(150);
    let server = Server::start(vec![
        Turn::error(429, "rate_limit_error", "slow down").header("retry-after", "0.15"),
        Turn::text("hi"),
    ])
    .await;
    let heard = Heard::default();
    let begin = Instant::now();
    ask_with(
        &anthropic(&server),
        &[],
        LONG,
        &heard,
        &CancellationToken::new(),
    )
    .await
    .unwrap();
    assert!(begin.elapsed() >= wait);
    assert!(matches!(heard.all()[0], Delta::Retrying { after, .. } if after == wait));
}

// check: FISK-50
#[tokio::test]
async fn a_wait_longer_than_the_call_has_left_ends_it_at_once() {
    let server = Server::answering(|_| {
        Turn::error(429, "rate_limit_error", "slow down").header("retry-after", "3600")
    })
    .await;
    for provider in both(&server) {
        let begin = Instant::now();
        let error = ask(provider.as_ref()).await.unwrap_err();
        assert!(begin.elapsed() < LONG / 2);
        let LlmError::Unavailable(reason) = error else {
            panic!("{error}")
        };
        assert_eq!(
            reason,
            "429: rate_limit_error: slow down (it asks to wait for longer than this call may take)"
        );
    }
    assert_eq!(server.requests().len(), 2);
}

// check: FISK-50
#[tokio::test]
async fn a_reply_that_breaks_off_is_asked_for_again_and_its_beginning_does_not_count() {
    let server = Server::answering({
        let mut n = 0;
        move |_| {
            n += 1;
            let turn = Turn::text("a long answer that goes on and on");
            if n % 2 == 1 {
                turn.drop_after(700)
            } else {
                turn
            }
        }
    })
    .await;
    for provider in both(&server) {
        let heard = Heard::default();
        let cancel = CancellationToken::new();
        let reply = ask_with(provider.as_ref(), &[], LONG, &heard, &cancel)
            .await
            .unwrap();
        assert_eq!(reply.content, [text("a long answer that goes on and on")]);
        let all = heard.all();
        let at = all
            .iter()
            .position(|delta| matches!(delta, Delta::Retrying { .. }))
            .unwrap();
        assert!(at > 0, "something was said before the connection was lost");
        let Delta::Retrying { reason, .. } = &all[at] else {
            panic!()
        };
        assert!(reason.contains("connection was lost"), "{reason}");
    }
}

#[tokio::test]
async fn what_a_broken_reply_cost_is_counted() {
    let server = Server::start(vec![
        Turn::text(&"on and on ".repeat(20)).drop_after(900),
        Turn::text("hi"),
    ])
    .await;
    let usage = ask(&anthropic(&server)).await.unwrap().usage;
    assert_eq!((usage.input, usage.output), (20, 6));
}

// check: FISK-50
#[tokio::test]
async fn tries_end() {
    let server = Server::answering(|_| Turn::error(529, "overloaded_error", "busy")).await;
    let retry = RetryPolicy {
        retries: 3,
        min_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(1),
    };
    let provider = Anthropic::new(AnthropicConfig {
        retry,
        ..server.anthropic(MODEL)
    })
    .unwrap();
    let error = ask(&provider).await.unwrap_err();
    assert_eq!(
        error,
        LlmError::Unavailable("529: overloaded_error: busy".to_owned())
    );
    assert_eq!(server.requests().len(), 4);
}

// check: FISK-50
#[tokio::test]
async fn a_silent_server_costs_the_time_of_the_call_and_no_more() {
    let short = Duration::from_millis(200);
    let server = Server::answering({
        let mut n = 0;
        move |_| {
            n += 1;
            match n % 3 {
                0 => Turn::text("hi").hang_after(60),
                1 => Turn::text("hi").delay(LONG),
                _ => Turn::text("hi").in_pieces(1, LONG),
            }
        }
    })
    .await;
    for provider in both(&server) {
        for _ in 0..3 {
            let begin = Instant::now();
            let error = ask_with(
                provider.as_ref(),
                &[],
                short,
                &Heard::default(),
                &CancellationToken::new(),
            )
            .await;
            assert_eq!(error, Err(LlmError::Timeout(short)));
            assert!(begin.elapsed() < LONG / 2);
        }
    }
}

#[tokio::test]
async fn time_that_runs_out_after_a_failure_tells_the_failure() {
    let server = Server::start(vec![
        Turn::error(529, "overloaded_error", "busy"),
        Turn::text("hi").delay(LONG),
    ])
    .await;
    let short = Duration::from_secs(1);
    let error = ask_with(
        &anthropic(&server),
        &[],
        short,
        &Heard::default(),
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(
        error,
        Err(LlmError::Unavailable(
            "529: overloaded_error: busy (and then no answer within 1s)".to_owned()
        ))
    );
}

// check: FISK-50
#[tokio::test]
async fn cancelling_ends_a_call_at_once_wherever_it_is() {
    let server = Server::answering({
        let mut n = 0;
        move |_| {
            n += 1;
            match n % 3 {
                0 => Turn::text("hi").hang_after(60),
                1 => Turn::text("hi").delay(LONG),
                _ => Turn::error(529, "overloaded_error", "busy").header("retry-after", "30"),
            }
        }
    })
    .await;
    for provider in both(&server) {
        for _ in 0..3 {
            let cancel = CancellationToken::new();
            let before = server.requests().len();
            let heard = Heard::default();
            let call = ask_with(provider.as_ref(), &[], LONG, &heard, &cancel);
            let begin = Instant::now();
            let arrived = async {
                while server.requests().len() == before {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                cancel.cancel();
            };
            let (result, ()) = tokio::join!(call, arrived);
            assert_eq!(result, Err(LlmError::Cancelled));
            assert!(begin.elapsed() < LONG / 4);
        }
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_begins_sends_nothing() {
    let server = Server::answering(|_| Turn::text("hi")).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    for provider in both(&server) {
        let result = ask_with(provider.as_ref(), &[], LONG, &Heard::default(), &cancel).await;
        assert_eq!(result, Err(LlmError::Cancelled));
    }
    assert!(server.requests().is_empty());
}

// check: FISK-50
#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let server = Server::start(vec![]).await;
    let (first, second) = (anthropic(&server), openai(&server));
    let port = server.base_url();
    drop(server);
    for provider in [&first as &dyn Provider, &second] {
        let error = loop {
            // The listener goes when its task does, which is soon but not at once.
            match ask(provider).await.unwrap_err() {
                LlmError::Refused { status: 400, .. } => tokio::task::yield_now().await,
                error => break error,
            }
        };
        let LlmError::Unavailable(reason) = error else {
            panic!("{error}")
        };
        assert!(!reason.contains(&port), "{reason}");
    }
}

#[tokio::test]
async fn a_call_without_a_sensible_end_is_still_a_call() {
    let server = Server::answering(|_| Turn::text("hi")).await;
    let cancel = CancellationToken::new();
    let reply = ask_with(
        &anthropic(&server),
        &[],
        Duration::MAX,
        &Heard::default(),
        &cancel,
    )
    .await;
    assert!(reply.is_ok());
}

#[tokio::test]
async fn where_the_provider_says_that_no_try_would_help_there_is_none() {
    let server = Server::answering({
        let mut n = 0;
        move |_| {
            n += 1;
            if n % 2 == 1 {
                Turn::error(429, "rate_limit_error", "spent").header("x-should-retry", "false")
            } else {
                Turn::error(429, "insufficient_quota", "spent")
            }
        }
    })
    .await;
    for provider in both(&server) {
        let error = ask(provider.as_ref()).await.unwrap_err();
        assert_eq!(
            error,
            LlmError::Unavailable("429: rate_limit_error: spent".to_owned())
        );
        let error = ask(provider.as_ref()).await.unwrap_err();
        assert!(matches!(error, LlmError::Refused { status: 429, .. }));
    }
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn an_error_names_the_request_where_its_id_is_plain() {
    let server = Server::start(vec![
        Turn::error(404, "not_found_error", "no model").header("request-id", "req_01-a"),
        Turn::error(404, "not_found_error", "no model").header("request-id", "re q;x"),
    ])
    .await;
    for message in [
        "not_found_error: no model (request req_01-a)",
        "not_found_error: no model",
    ] {
        let error = ask(&anthropic(&server)).await.unwrap_err();
        assert_eq!(
            error,
            LlmError::Refused {
                status: 404,
                message: message.to_owned()
            }
        );
    }
}
