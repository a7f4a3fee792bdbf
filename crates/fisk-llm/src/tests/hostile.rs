use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;
use crate::{
    AnthropicConfig,
    standin::{KEY, Turn},
};

fn protocol(result: Result<Reply, LlmError>) -> String {
    match result {
        Err(LlmError::Protocol(what)) => what,
        other => panic!("{other:?}"),
    }
}

// check: FISK-53
#[tokio::test]
async fn a_redirect_is_not_followed_so_the_key_stays() {
    let thief = Server::answering(|_| Turn::text("thanks")).await;
    for status in [301, 302, 303, 307, 308] {
        let to = format!("{}/v1/messages", thief.base_url());
        let server =
            Server::answering(move |_| Turn::error(status, "x", "y").header("location", &to)).await;
        for provider in both(&server) {
            let error = ask(provider.as_ref()).await.unwrap_err();
            let message = "it redirects, and redirects are not followed".to_owned();
            assert_eq!(error, LlmError::Refused { status, message });
        }
    }
    assert!(thief.requests().is_empty());
}

// check: FISK-53
#[tokio::test]
async fn a_key_that_the_server_repeats_is_in_no_error_and_no_delta() {
    let mut n = 0;
    let server = Server::answering(move |_| {
        n += 1;
        match n % 4 {
            1 => Turn::error(401, "authentication_error", &format!("{KEY} is bad")),
            2 => Turn::error(529, "overloaded_error", &format!("{KEY} waits")),
            3 => Turn::raw("text/event-stream", format!("data: {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\"message\":\"{KEY}\"}}}}\n\n")),
            _ => Turn::text("hi"),
        }
    })
    .await;
    let heard = Heard::default();
    for provider in both(&server) {
        let error = ask(provider.as_ref()).await.unwrap_err();
        assert_eq!(
            error,
            LlmError::Unauthorized("authentication_error: [key] is bad".to_owned())
        );
        ask_with(
            provider.as_ref(),
            &[],
            LONG,
            &heard,
            &CancellationToken::new(),
        )
        .await
        .unwrap();
    }
    assert_eq!(heard.retries(), 4);
    assert!(!format!("{:?}", heard.all()).contains(KEY));
}

// check: FISK-54
#[tokio::test]
async fn an_event_without_end_is_given_up() {
    let server = Server::answering({
        let mut first = true;
        move |_| {
            first = !first;
            let body = if first {
                "x".repeat(1 << 20)
            } else {
                format!("data: \"{}\"\ndata", "x".repeat(1 << 20))
            };
            Turn::raw("text/event-stream", body).endless()
        }
    })
    .await;
    for provider in both(&server) {
        for _ in 0..2 {
            assert_eq!(
                protocol(ask(provider.as_ref()).await),
                "an event is larger than 16 MiB"
            );
        }
    }
}

// check: FISK-54
#[tokio::test]
async fn a_reply_without_end_is_given_up() {
    let filler = "x".repeat(64 << 10);
    for (kind, body) in [
        (
            "text/event-stream",
            format!("data: {{\"type\":\"ping\",\"x\":\"{filler}\"}}\n\n"),
        ),
        ("application/json", format!("\"{filler}")),
        ("text/html", filler),
    ] {
        let server = Server::answering(move |_| Turn::raw(kind, body.clone()).endless()).await;
        for provider in both(&server) {
            assert_eq!(
                protocol(ask(provider.as_ref()).await),
                "the reply is larger than 32 MiB"
            );
        }
    }
}

// check: FISK-54
#[tokio::test]
async fn keep_alives_without_end_are_given_up() {
    let server = Server::answering(|_| {
        Turn::raw("text/event-stream", ": still here\n\n".repeat(50_000)).endless()
    })
    .await;
    for provider in both(&server) {
        let what = protocol(ask(provider.as_ref()).await);
        assert!(what.contains("larger than"), "{what}");
    }
}

// check: FISK-54
#[tokio::test]
async fn the_body_of_an_error_is_read_in_part() {
    let server = Server::answering(|_| {
        Turn::raw("text/plain", "no ".repeat(10_000))
            .status(400)
            .endless()
    })
    .await;
    for provider in both(&server) {
        let error = ask(provider.as_ref()).await.unwrap_err();
        let LlmError::Refused {
            status: 400,
            message,
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!(message.chars().count(), 2_001);
    }
}

#[tokio::test]
async fn a_page_instead_of_a_reply_cannot_be_read() {
    let server = Server::answering(|_| Turn::raw("text/html", "<html>please log in</html>")).await;
    for provider in both(&server) {
        assert_eq!(
            protocol(ask(provider.as_ref()).await),
            "it is neither an event stream nor JSON"
        );
    }
}

#[tokio::test]
async fn a_server_that_speaks_no_http_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 1024];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(b"SSH-2.0-OpenSSH\r\n\r\n\0\0\0").await;
        }
    });
    let server = Server::start(vec![]).await;
    let config = AnthropicConfig {
        base_url,
        ..server.anthropic(MODEL)
    };
    let error = ask(&Anthropic::new(config).unwrap()).await.unwrap_err();
    task.abort();
    assert!(matches!(error, LlmError::Unavailable(_)), "{error}");
}

// check: FISK-54
#[tokio::test]
async fn headers_without_end_are_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let line = format!("x-filler: {}\r\n", "y".repeat(8_000));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
            while stream.write_all(line.as_bytes()).await.is_ok() {}
        }
    });
    let server = Server::start(vec![]).await;
    let config = AnthropicConfig {
        base_url,
        ..server.anthropic(MODEL)
    };
    let error = ask(&Anthropic::new(config).unwrap()).await.unwrap_err();
    task.abort();
    assert!(matches!(error, LlmError::Unavailable(_)), "{error}");
}

// check: FISK-53
#[tokio::test]
async fn https_to_a_server_without_tls_sends_no_key() {
    let server = Server::answering(|_| Turn::text("hi")).await;
    let base_url = server.base_url().replace("http://", "https://");
    let config = AnthropicConfig {
        base_url,
        ..server.anthropic(MODEL)
    };
    let error = ask(&Anthropic::new(config).unwrap()).await.unwrap_err();
    assert!(matches!(error, LlmError::Unavailable(_)), "{error}");
    assert!(server.requests().is_empty());
}

/// Runs the test of the key's header again, in a process with another environment.
fn again_with(environment: &[(&str, &str)]) {
    let test = "tests::wire::the_key_goes_in_its_header_and_the_prompt_to_messages";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .envs(environment.iter().copied())
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

// check: FISK-53
#[test]
fn plain_http_passes_no_proxy() {
    let nowhere = "http://127.0.0.1:9";
    again_with(&[
        ("http_proxy", nowhere),
        ("HTTP_PROXY", nowhere),
        ("ALL_PROXY", nowhere),
    ]);
}

#[test]
fn plain_http_needs_no_certificate_authorities() {
    again_with(&[
        ("SSL_CERT_FILE", "/nonexistent"),
        ("SSL_CERT_DIR", "/nonexistent"),
    ]);
}
