//! Why one try failed, and what follows from it.

use std::time::{Duration, SystemTime};

use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use crate::types::{LlmError, Usage};

/// The most characters of a provider's message that are kept.
const MAX_MESSAGE: usize = 2_000;

/// What a failed try leads to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It may go well the next time.
    Again {
        reason: String,
        /// What the provider asks to wait.
        wait: Option<Duration>,
        /// What the try has cost all the same.
        spent: Usage,
    },
    /// It will not go well.
    Final(LlmError),
}

impl Failure {
    pub(crate) fn again(reason: impl Into<String>) -> Self {
        Self::Again {
            reason: reason.into(),
            wait: None,
            spent: Usage::default(),
        }
    }

    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Self::Final(LlmError::Protocol(what.into()))
    }

    /// JSON that is not what it should be. The parser's message may hold as much as the document.
    pub(crate) fn unreadable(what: &str, error: &serde_json::Error) -> Self {
        Self::protocol(shorten(&format!("{what} is unreadable: {error}")))
    }

    /// A refusal with this status, or another try.
    pub(crate) fn of_status(status: StatusCode, message: String, wait: Option<Duration>) -> Self {
        match status.as_u16() {
            401 | 403 => Self::Final(LlmError::Unauthorized(message)),
            // A spent quota comes with the status of a rate limit, but no wait brings it back.
            429 if message.starts_with("insufficient_quota") => Self::Final(LlmError::Refused {
                status: 429,
                message,
            }),
            408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=529 => Self::Again {
                reason: format!("{}: {message}", status.as_u16()),
                wait,
                spent: Usage::default(),
            },
            300..=399 => Self::Final(LlmError::Refused {
                status: status.as_u16(),
                message: "it redirects, and redirects are not followed".to_owned(),
            }),
            other => Self::Final(LlmError::Refused {
                status: other,
                message,
            }),
        }
    }

    /// An error that came in the midst of a stream, by its type.
    pub(crate) fn of_type(kind: &str, message: String, spent: Usage) -> Self {
        let again = |reason| Self::Again {
            reason,
            wait: None,
            spent,
        };
        let refused = |status, message| Self::Final(LlmError::Refused { status, message });
        match kind {
            "authentication_error" | "permission_error" | "invalid_api_key" => {
                Self::Final(LlmError::Unauthorized(message))
            }
            "invalid_request_error" => refused(400, message),
            "billing_error" | "insufficient_quota" => refused(402, message),
            "not_found_error" => refused(404, message),
            "request_too_large" => refused(413, message),
            // Overload, rate limits, faults, and whatever has no known name: the request itself had been accepted.
            _ => again(message),
        }
    }

    /// The same without another try, where the provider says that none would help.
    pub(crate) fn for_good(self) -> Self {
        match self {
            Self::Again { reason, .. } => Self::Final(LlmError::Unavailable(reason)),
            Self::Final(error) => Self::Final(error),
        }
    }

    /// Adds what the try cost before it failed.
    pub(crate) fn costing(self, usage: Usage) -> Self {
        match self {
            Self::Again { reason, wait, .. } => Self::Again {
                reason,
                wait,
                spent: usage,
            },
            Self::Final(error) => Self::Final(error),
        }
    }
}

/// A connection's failure in words, with causes and without the address (which may hold more than the operator wants shown).
pub(crate) fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    shorten(&text)
}

/// The message of an error body, however it is written, without any of `secrets`.
pub(crate) fn message_of(body: &[u8], status: StatusCode, secrets: &[&str]) -> String {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(value) => error_text(&value).unwrap_or_else(|| value.to_string()),
        Err(_) => String::from_utf8_lossy(body).trim().to_owned(),
    };
    let text = if text.is_empty() {
        status.canonical_reason().unwrap_or("no message").to_owned()
    } else {
        text
    };
    shorten(&redact(text, secrets))
}

/// `type: message` of the known shapes of an error.
pub(crate) fn error_text(value: &Value) -> Option<String> {
    let error = value.get("error").unwrap_or(value);
    if let Some(text) = error.as_str() {
        return Some(text.to_owned());
    }
    let part = |name| {
        error
            .get(name)
            .and_then(Value::as_str)
            .filter(|t| !t.is_empty())
    };
    match (part("type").or_else(|| part("code")), part("message")) {
        (Some(kind), Some(message)) => Some(format!("{kind}: {message}")),
        (None, Some(message)) => Some(message.to_owned()),
        (Some(kind), None) if value.get("error").is_some() => Some(kind.to_owned()),
        (_, None) => value.get("detail").map(|detail| {
            detail
                .as_str()
                .map_or_else(|| detail.to_string(), str::to_owned)
        }),
    }
}

/// Takes out the keys: some servers repeat what they were sent.
pub(crate) fn redact(mut text: String, secrets: &[&str]) -> String {
    for secret in secrets {
        // A very short one would cut harmless words to pieces, and is no key.
        if secret.len() >= 8 && text.contains(secret) {
            text = text.replace(secret, "[key]");
        }
    }
    text
}

pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// The provider's id of a request, by which its support finds it, where it looks like one.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers
        .get("request-id")
        .or_else(|| headers.get("x-request-id"))?;
    let id = id.to_str().ok()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (!id.is_empty() && id.len() <= 80 && id.chars().all(plain)).then(|| id.to_owned())
}

/// What `retry-after` asks for: seconds (a fraction is allowed) or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    if let Some(ms) = headers.get("retry-after-ms") {
        let ms: u64 = ms.to_str().ok()?.trim().parse().ok()?;
        return Some(Duration::from_millis(ms));
    }
    let text = headers.get("retry-after")?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = httpdate::parse_http_date(text).ok()?;
    Some(at.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", text.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(
            read("Sun, 06 Nov 1994 08:50:37 GMT"),
            Some(Duration::from_secs(60))
        );
        assert_eq!(read("Sun, 06 Nov 1994 08:40:37 GMT"), Some(Duration::ZERO));
        for bad in ["-1", "soon", "NaN", "1e300"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_error_body_is_read_in_every_usual_shape() {
        for (body, message) in [
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Busy"}}"#,
                "overloaded_error: Busy",
            ),
            (
                r#"{"error":{"message":"no such model","type":null,"code":"model_not_found"}}"#,
                "model_not_found: no such model",
            ),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"{"detail":"nope"}"#, "nope"),
            (r#"{"message":"hm"}"#, "hm"),
            ("<html>bad</html>", "<html>bad</html>"),
            ("", "Bad Gateway"),
        ] {
            assert_eq!(
                message_of(body.as_bytes(), StatusCode::BAD_GATEWAY, &[]),
                message
            );
        }
    }

    // check: FISK-53
    #[test]
    fn a_server_that_repeats_the_key_does_not_bring_it_into_the_error() {
        let body = br#"{"error":{"message":"bad key sk-123456789, really sk-123456789"}}"#;
        let text = message_of(body, StatusCode::UNAUTHORIZED, &["sk-123456789"]);
        assert_eq!(text, "bad key [key], really [key]");
    }

    // check: FISK-54
    #[test]
    fn a_message_is_cut_between_characters() {
        let text = shorten(&"ü".repeat(5_000));
        assert_eq!(text.chars().count(), MAX_MESSAGE + 1);
        assert!(text.ends_with('…'));
    }
}
