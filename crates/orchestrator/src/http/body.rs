//! Reading a request's body: bounded in size and in time.

use super::error::Failure;
use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The largest body, in bytes.
pub const MAX_BODY: usize = 2 * 1024 * 1024;
/// How long the whole body may take.
const WHOLE: Duration = Duration::from_secs(60);
/// How long its next part may take.
const STALL: Duration = Duration::from_secs(15);
/// How much of a body that nobody wants is read and dropped, so that its sender gets to read the answer.
const DRAIN: usize = 32 * 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Reads a body.
///
/// # Errors
/// 413 over [`MAX_BODY`]; 400 where it breaks off or stalls.
pub async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Failure> {
    read_within(headers, body, WHOLE, STALL).await
}

async fn read_within(
    headers: &HeaderMap,
    mut body: Body,
    whole_time: Duration,
    stall_time: Duration,
) -> Result<Bytes, Failure> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if declared(headers).is_some_and(|length| length > MAX_BODY) {
        drain(headers, body).await;
        return Err(too_large());
    }
    let end = Instant::now() + whole_time;
    let mut whole = BytesMut::new();
    loop {
        let stall = end.min(Instant::now() + stall_time);
        let frame = match timeout_at(stall, body.frame()).await {
            Err(_) => return Err(Failure::invalid("body", "did not arrive in time")),
            Ok(None) => return Ok(whole.freeze()),
            Ok(Some(Err(_))) => return Err(Failure::invalid("body", "broke off")),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(data) = frame.into_data() {
            if whole.len() + data.len() > MAX_BODY {
                drop((whole, data));
                drain(headers, body).await;
                return Err(too_large());
            }
            whole.extend_from_slice(&data);
        }
    }
}

/// Reads a body that nobody wants and drops it, up to a bound. A sender that is cut off in the middle would see a broken
/// connection in place of the answer.
pub async fn drain(headers: &HeaderMap, mut body: Body) {
    let waits_for_leave = headers
        .get(header::EXPECT)
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if body.is_end_stream() || waits_for_leave || declared(headers).is_some_and(|n| n > DRAIN) {
        return;
    }
    let end = Instant::now() + DRAIN_TIME;
    let mut left = DRAIN;
    while let Ok(Some(Ok(frame))) = timeout_at(end, body.frame()).await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        left = left.saturating_sub(size);
        if left == 0 {
            return;
        }
    }
}

fn declared(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

fn too_large() -> Failure {
    Failure::too_large(format!("the body is over {MAX_BODY} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: HTTP-5
    #[tokio::test]
    async fn a_body_over_two_mebibytes_is_a_413_whether_it_says_so_or_not() {
        let full = vec![b' '; MAX_BODY];
        let read_full = read(&HeaderMap::new(), Body::from(full.clone())).await;
        assert_eq!(read_full.expect("just fits").len(), MAX_BODY);
        let over = [full, vec![b' ']].concat();
        let failure = read(&HeaderMap::new(), Body::from(over)).await;
        assert_eq!(failure.expect_err("too large").status(), 413);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, (MAX_BODY + 1).into());
        let failure = read(&headers, Body::from("{}")).await;
        assert_eq!(failure.expect_err("says it is too large").status(), 413);
    }

    // check: HTTP-12
    #[tokio::test]
    async fn a_body_that_stalls_is_given_up() {
        let never = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let soon = Duration::from_millis(20);
        let failure = read_within(&HeaderMap::new(), Body::from_stream(never), WHOLE, soon).await;
        assert_eq!(failure.expect_err("stalled").status(), 400);
    }
}
