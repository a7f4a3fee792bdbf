//! What every call passes on its way in and out: its id, its line in the log, its figures.

use super::Site;
use super::call::pattern;
use super::error::Cause;
use super::routes::{unknown_method, unknown_path};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use fuse_api::routes::{Route, takes};
use fuse_domain::access::Credential;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tracing::Instrument;

/// The header that carries a request's id, both ways.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that is taken over from a caller.
const MAX_REQUEST_ID: usize = 128;
/// From here on an answer that was ours to give sooner is worth a line in the log.
const SLOW: Duration = Duration::from_secs(1);

/// Who is at the other end of the connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// What becomes known of a call on its way, for its line in the log.
#[derive(Debug, Default)]
pub struct Trace {
    credential: OnceLock<String>,
    action: OnceLock<&'static str>,
    caller_sets_length: AtomicBool,
}

impl Trace {
    /// The call's credential is valid.
    pub fn credential_is(&self, credential: &Credential) {
        let name = match credential {
            Credential::Master => "master".to_owned(),
            Credential::Key(key) => key.id.to_string(),
        };
        let _ = self.credential.set(name);
    }

    /// Which of several calls on one path it is.
    pub fn action(&self, row: &'static Route) {
        if let Some(action) = row.action {
            let _ = self.action.set(action);
        }
    }

    /// How long it takes is up to the caller: a long poll, a command, a stream. It does not count as slow.
    pub fn caller_sets_length(&self) {
        self.caller_sets_length.store(true, Ordering::Relaxed);
    }
}

/// Gives the call an id, lets it through, and tells how it went.
pub async fn edge(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let route = pattern(&request);
    let method = method_name(request.method());
    let trace = Arc::new(Trace::default());
    request.extensions_mut().insert(Arc::clone(&trace));
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let begun = Instant::now();
    let mut response = next.run(request).instrument(span.clone()).await;
    let took = begun.elapsed();
    let status = response.status();
    let action = trace.action.get().copied().unwrap_or_default();
    let timed = (!trace.caller_sets_length.load(Ordering::Relaxed)).then_some(took);
    site.app
        .metrics
        .request(method, route, action, status_name(status), timed);

    let cause = response.extensions_mut().remove::<Cause>();
    span.in_scope(|| {
        let by = trace
            .credential
            .get()
            .map(String::as_str)
            .unwrap_or_default();
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let (status, route) = (
            status.as_u16(),
            if route.is_empty() { "none" } else { route },
        );
        match cause {
            Some(Cause(cause)) => {
                tracing::error!(method, route, action, status, ms, by, cause, "failed");
            }
            None if timed.is_some_and(|took| took >= SLOW) => {
                tracing::info!(method, route, action, status, ms, by, "answered slowly");
            }
            // Every call is in the figures; a line for each would cost more than many a call itself.
            None => tracing::debug!(method, route, action, status, ms, by, "answered"),
        }
    });

    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Lets through what has a row in the table of routes. A handler that was added without one is never reached: nothing would say
/// which credentials it admits.
pub async fn only_the_table(request: Request, next: Next) -> Response {
    if request.extensions().get::<MatchedPath>().is_none() {
        return next.run(request).await;
    }
    let path = pattern(&request);
    if path.is_empty() {
        return unknown_path(request).await.into_response();
    }
    if !takes(path, request.method().as_str()) {
        return unknown_method(request).await;
    }
    next.run(request).await
}

/// The caller's id where it is well formed, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let mut all = headers.get_all(REQUEST_ID).iter();
    if let (Some(given), None) = (all.next(), all.next())
        && (1..=MAX_REQUEST_ID).contains(&given.len())
        && given
            .as_bytes()
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        && let Ok(copy) = HeaderValue::from_bytes(given.as_bytes())
    {
        // A copy: a clone would keep the buffer of the whole request alive for as long as a call is parked.
        return copy;
    }
    let fresh = uuid::Uuid::now_v7().simple().to_string();
    HeaderValue::from_str(&fresh).unwrap_or_else(|_| HeaderValue::from_static("none"))
}

fn method_name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

/// The status as a label. The set is closed, so that no series is made per whim.
fn status_name(status: StatusCode) -> &'static str {
    match status.as_u16() {
        200 => "200",
        201 => "201",
        202 => "202",
        204 => "204",
        400 => "400",
        401 => "401",
        403 => "403",
        404 => "404",
        405 => "405",
        409 => "409",
        413 => "413",
        423 => "423",
        500 => "500",
        501 => "501",
        503 => "503",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower::ServiceExt;

    fn with(id: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for id in id {
            headers.append(REQUEST_ID, HeaderValue::from_bytes(id).expect("a header"));
        }
        headers
    }

    // check: HTTP-2
    #[test]
    fn a_well_formed_request_id_is_taken_over_and_any_other_replaced() {
        let long = [b'a'; 128];
        for good in [&b"a"[..], b"Aa0_-", &long] {
            assert_eq!(request_id(&with(&[good])).as_bytes(), good);
        }
        let longer = [b'a'; 129];
        for bad in [&b""[..], b"a b", b"a.b", b"\xff", &longer] {
            let fresh = request_id(&with(&[bad]));
            assert_ne!(fresh.as_bytes(), bad);
            assert_eq!(
                request_id(&with(&[fresh.as_bytes()])),
                fresh,
                "a fresh one is well formed"
            );
        }
        assert_ne!(request_id(&with(&[b"a", b"b"])).as_bytes(), b"a");
    }

    // check: ACCESS-21
    #[tokio::test]
    async fn a_handler_without_a_row_in_the_table_is_not_served() {
        let handler = || async { "open" };
        let router = axum::Router::new()
            .route("/v1/side-door", axum::routing::get(handler))
            .route("/v1/version", axum::routing::get(handler).post(handler))
            .layer(axum::middleware::from_fn(only_the_table));
        for (method, path, status) in [
            ("GET", "/v1/side-door", 404),
            ("POST", "/v1/version", 405),
            ("GET", "/v1/version", 200),
            ("HEAD", "/v1/version", 200),
        ] {
            let request = Request::builder().method(method).uri(path);
            let request = request.body(axum::body::Body::empty()).expect("a request");
            let response = router.clone().oneshot(request).await.expect("an answer");
            assert_eq!(response.status(), status, "{method} {path}");
        }
    }
}
