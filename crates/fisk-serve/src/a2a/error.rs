//! Errors as the HTTP+JSON binding tells them.

use a2a::{A2AError, PROTOCOL_DOMAIN, TypedDetail, error_code, error_reason};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde_json::json;

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum Problem {
    /// An error of the protocol.
    Protocol(A2AError),
    /// There are as many tasks as there may be.
    Busy,
}

impl From<A2AError> for Problem {
    fn from(error: A2AError) -> Self {
        Self::Protocol(error)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Self::Protocol(error) => {
                let status = StatusCode::from_u16(error.http_status_code())
                    .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let reason = error_reason(error.code);
                let details = TypedDetail::error_info(reason, PROTOCOL_DOMAIN, None);
                told(status, canonical(error.code), &error.message, &[details])
            }
            Self::Busy => told(
                StatusCode::TOO_MANY_REQUESTS,
                "RESOURCE_EXHAUSTED",
                "too many tasks are under way; try again later",
                &[],
            ),
        }
    }
}

fn told(status: StatusCode, name: &str, message: &str, details: &[TypedDetail]) -> Response {
    let body = json!({
        "error": {
            "code": status.as_u16(),
            "status": name,
            "message": message,
            "details": details,
        },
    });
    (status, Json(body)).into_response()
}

/// The general name of an error.
fn canonical(code: i32) -> &'static str {
    match code {
        error_code::TASK_NOT_FOUND => "NOT_FOUND",
        error_code::METHOD_NOT_FOUND => "UNIMPLEMENTED",
        error_code::TASK_NOT_CANCELABLE
        | error_code::PUSH_NOTIFICATION_NOT_SUPPORTED
        | error_code::UNSUPPORTED_OPERATION
        | error_code::VERSION_NOT_SUPPORTED => "FAILED_PRECONDITION",
        error_code::INVALID_PARAMS
        | error_code::INVALID_REQUEST
        | error_code::PARSE_ERROR
        | error_code::CONTENT_TYPE_NOT_SUPPORTED => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}
