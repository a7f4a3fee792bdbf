//! The one place where a failure becomes a status and a body.

use crate::app::AppError;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use fuse_api::error::{ErrorBody, ErrorCode, ErrorInfo};
use fuse_domain::policy::Violation;
use fuse_domain::refusal::{Refusal, What};
use http::{HeaderValue, StatusCode, header};
use std::collections::BTreeMap;

/// A call that is not carried out, as the wire tells it.
#[derive(Debug)]
pub struct Failure {
    status: StatusCode,
    info: ErrorInfo,
    cause: Option<String>,
}

/// Why a 5xx was answered. It rides on the response to the line in the log and no further.
#[derive(Debug, Clone)]
pub struct Cause(pub String);

impl Failure {
    fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            status,
            info: ErrorInfo {
                code,
                message: message.into(),
                details: BTreeMap::new(),
            },
            cause: None,
        }
    }

    /// One part of the request is malformed.
    #[must_use]
    pub fn invalid(path: &str, message: &str) -> Self {
        Refusal::invalid(path, message).into()
    }

    /// The body, or a part of it, is over its limit.
    #[must_use]
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::PayloadTooLarge,
            message,
        )
    }

    /// There is no such path.
    #[must_use]
    pub fn no_route(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::RouteNotFound, message)
    }

    /// The path is known and does not take this method.
    #[must_use]
    pub fn wrong_method(message: impl Into<String>) -> Self {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Self::new(status, ErrorCode::MethodNotAllowed, message)
    }

    /// A part that is needed does not answer.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::Unavailable,
            message,
        )
    }

    /// A fault of the orchestrator. The cause is logged under the request's id and never sent.
    #[must_use]
    pub fn internal(cause: impl Into<String>) -> Self {
        let mut failure = Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ErrorCode::Internal,
            "a fault of the orchestrator; its log has the cause under this answer's X-Request-ID",
        );
        failure.cause = Some(cause.into());
        failure
    }

    /// The status that goes over the wire.
    #[cfg(test)]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    fn details(mut self, details: BTreeMap<String, String>) -> Self {
        self.info.details = details;
        self
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(violations) => invalid(violations),
            Refusal::Unauthenticated => Self::new(
                StatusCode::UNAUTHORIZED,
                ErrorCode::Unauthorized,
                "a valid credential is needed: Authorization: Bearer TOKEN",
            ),
            Refusal::MasterOnly => Self::new(
                StatusCode::FORBIDDEN,
                ErrorCode::Unauthorized,
                "this call is for the master token alone",
            ),
            Refusal::Forbidden {
                reason,
                message,
                mut details,
            } => {
                details.insert("reason".to_owned(), reason.as_str().to_owned());
                Self::new(StatusCode::FORBIDDEN, ErrorCode::Forbidden, message).details(details)
            }
            Refusal::NotFound(what) => not_found(what),
            Refusal::Conflict { message, details } => {
                Self::new(StatusCode::CONFLICT, ErrorCode::Conflict, message).details(details)
            }
            Refusal::TooLarge(message) => Self::too_large(message),
            Refusal::Unserved(message) => Self::new(
                StatusCode::NOT_IMPLEMENTED,
                ErrorCode::Unimplemented,
                message,
            ),
        }
    }
}

fn not_found(what: What) -> Failure {
    Failure::new(
        StatusCode::NOT_FOUND,
        ErrorCode::NotFound,
        format!("there is no such {}", what.as_str()),
    )
}

/// The first broken rule is the message; all of them are the details.
fn invalid(violations: Vec<Violation>) -> Failure {
    let more = violations.len().saturating_sub(1);
    let mut message = match violations.first() {
        Some(first) if first.path.is_empty() => first.message.clone(),
        Some(first) => format!("{}: {}", first.path, first.message),
        None => "the request breaks a rule".to_owned(),
    };
    if more > 0 {
        message.push_str(&format!(" (and {more} more)"));
    }
    let mut details = BTreeMap::new();
    for violation in violations {
        if !violation.path.is_empty() {
            // Two rules broken at one path: the first one is what to look at.
            details.entry(violation.path).or_insert(violation.message);
        }
    }
    Failure::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidArgument, message).details(details)
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        match error {
            AppError::Refused(refusal) => refusal.into(),
            AppError::Unavailable(message) => {
                let mut failure = Self::unavailable(message.clone());
                failure.cause = Some(message);
                failure
            }
            AppError::Internal(cause) => Self::internal(cause),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self {
            status,
            info,
            cause,
        } = self;
        let mut response = super::json_response(status, &ErrorBody { error: info });
        if status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(cause) = cause {
            response.extensions_mut().insert(Cause(cause));
        }
        response
    }
}

/// What a panic in a handler comes to.
#[must_use]
pub fn panicked(payload: Box<dyn std::any::Any + Send>) -> Response<Body> {
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    Failure::internal(format!("a handler panicked: {text}")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuse_api::error::Reason;
    use fuse_api::ids::InterventionId;
    use fuse_api::intervention::State;
    use fuse_api::keys::Scope;
    use http_body_util::BodyExt;

    async fn answer(failure: Failure) -> (StatusCode, http::HeaderMap, ErrorBody) {
        let (parts, body) = failure.into_response().into_parts();
        let bytes = body.collect().await.expect("body").to_bytes();
        let body = serde_json::from_slice(&bytes).expect("an error body");
        (parts.status, parts.headers, body)
    }

    // check: HTTP-1
    #[tokio::test]
    async fn each_refusal_has_the_status_of_its_code() {
        let id = InterventionId::parse(&format!("int_{}", "0".repeat(32))).expect("id");
        let cases = [
            (
                Refusal::invalid("a", "is wrong"),
                400,
                ErrorCode::InvalidArgument,
            ),
            (Refusal::Unauthenticated, 401, ErrorCode::Unauthorized),
            (Refusal::MasterOnly, 403, ErrorCode::Unauthorized),
            (
                Refusal::missing_scope(Scope::Decide),
                403,
                ErrorCode::Forbidden,
            ),
            (
                Refusal::NotFound(What::Environment),
                404,
                ErrorCode::NotFound,
            ),
            (
                Refusal::already(&id, State::Expired),
                409,
                ErrorCode::Conflict,
            ),
            (
                Refusal::TooLarge("content".into()),
                413,
                ErrorCode::PayloadTooLarge,
            ),
            (
                Refusal::Unserved("fork".into()),
                501,
                ErrorCode::Unimplemented,
            ),
        ];
        for (refusal, status, code) in cases {
            let told = format!("{refusal:?}");
            let (got, _, body) = answer(refusal.into()).await;
            assert_eq!((got.as_u16(), body.error.code), (status, code), "{told}");
        }
    }

    // check: GATE-6
    #[tokio::test]
    async fn a_denial_names_reason_and_gate() {
        let id = InterventionId::parse(&format!("int_{}", "0".repeat(32))).expect("id");
        let (_, _, body) =
            answer(Refusal::denied("force-push", "push to a branch", &id).into()).await;
        assert_eq!(body.error.message, "push to a branch");
        assert_eq!(body.error.details["reason"], Reason::HitlDenied.as_str());
        assert_eq!(body.error.details["gate"], "force-push");
    }

    // check: CONF-6
    #[tokio::test]
    async fn several_broken_rules_are_all_told() {
        let refusal = Refusal::Invalid(vec![
            Violation {
                path: "hitl.gates[0].match".into(),
                message: "is empty".into(),
            },
            Violation {
                path: "task_id".into(),
                message: "is blank".into(),
            },
        ]);
        let (_, _, body) = answer(refusal.into()).await;
        assert_eq!(
            body.error.message,
            "hitl.gates[0].match: is empty (and 1 more)"
        );
        assert_eq!(body.error.details["task_id"], "is blank");
        assert_eq!(body.error.details.len(), 2);
    }

    #[tokio::test]
    async fn a_fault_says_nothing_of_the_inside() {
        let failure = Failure::from(AppError::Internal("row 7 of table keys is corrupt".into()));
        let response = failure.into_response();
        let cause = response
            .extensions()
            .get::<Cause>()
            .expect("a cause for the log");
        assert!(cause.0.contains("row 7"));
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("body")
            .to_bytes();
        assert!(!String::from_utf8_lossy(&bytes).contains("row 7"));
    }

    // check: ACCESS-1
    #[tokio::test]
    async fn a_missing_credential_is_answered_with_the_scheme() {
        let (_, headers, _) = answer(Refusal::Unauthenticated.into()).await;
        assert_eq!(headers[header::WWW_AUTHENTICATE], "Bearer");
    }
}
