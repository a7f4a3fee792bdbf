//! What a request has to be before anything reads it: meant for this server, from no foreign page, by somebody who has the token.

use std::{net::IpAddr, net::SocketAddr, str::FromStr, sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE},
    uri::Authority,
};
use serde_json::json;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::Limits;

/// Where a connection arrived. The server adds it to each request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local(pub(crate) SocketAddr);

/// The checks, in their order: `Host`, `Origin`, token, body.
#[derive(Clone)]
pub(crate) struct Guard {
    /// Its hash, so that the comparison takes the same time whatever the length.
    token: Option<Arc<[u8; 32]>>,
    body: usize,
    body_time: Duration,
}

impl Guard {
    pub(crate) fn new(token: Option<&str>, limits: &Limits) -> Self {
        Self {
            token: token.map(|token| Arc::new(hash(token.as_bytes()))),
            body: limits.body,
            body_time: limits.body_time,
        }
    }

    fn admits(&self, request: &Request) -> Result<(), (StatusCode, &'static str)> {
        let Some(Local(local)) = request.extensions().get::<Local>().copied() else {
            return Err((StatusCode::FORBIDDEN, "the connection has no local address"));
        };
        let headers = request.headers();
        let host = only(headers, &HOST)
            .map_err(|()| (StatusCode::BAD_REQUEST, "more than one Host header"))?
            .ok_or((StatusCode::BAD_REQUEST, "a Host header is required"))?;
        let target = request.uri().authority().map(Authority::as_str);
        if !is_us(host, local) || target.is_some_and(|target| !is_us(target, local)) {
            return Err((
                StatusCode::FORBIDDEN,
                "this Host is not served; use localhost or the server's address, with its port",
            ));
        }
        let origin = only(headers, &ORIGIN)
            .map_err(|()| (StatusCode::FORBIDDEN, "more than one Origin header"))?;
        let foreign = |origin: &str| {
            !origin
                .strip_prefix("http://")
                .is_some_and(|from| is_us(from, local))
        };
        if origin.is_some_and(foreign) {
            return Err((
                StatusCode::FORBIDDEN,
                "requests from this Origin are not served",
            ));
        }
        match &self.token {
            Some(token) if !carries(headers, token) => {
                Err((StatusCode::UNAUTHORIZED, "a bearer token is required"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Refuses a request, or hands it on with its whole body read.
pub(crate) async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    if let Err((status, why)) = guard.admits(&request) {
        tracing::debug!(%status, "refused a request");
        let mut response = closing(status, why);
        if status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        return response;
    }
    let (head, body) = request.into_parts();
    let body = match tokio::time::timeout(guard.body_time, to_bytes(body, guard.body)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => {
            let too_large = std::error::Error::source(&error)
                .is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>);
            return if too_large {
                closing(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    &format!("a body may have {} bytes", guard.body),
                )
            } else {
                closing(StatusCode::BAD_REQUEST, "the body cannot be read")
            };
        }
        Err(_elapsed) => {
            return closing(StatusCode::REQUEST_TIMEOUT, "the body took too long");
        }
    };
    next.run(Request::from_parts(head, Body::from(body))).await
}

/// The header, where it is there once.
fn only<'a>(
    headers: &'a HeaderMap,
    name: &http::header::HeaderName,
) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(());
    }
    // What is no text names nobody.
    Ok(first.map(|value| value.to_str().unwrap_or_default()))
}

/// Whether an authority names this server: by a loopback name or by the address on which the connection arrived, and by its
/// port. No other name is trusted, since whoever owns one may point it here.
fn is_us(authority: &str, local: SocketAddr) -> bool {
    if authority.contains('@') {
        return false;
    }
    let Ok(authority) = Authority::from_str(authority) else {
        return false;
    };
    if authority.port_u16().unwrap_or(80) != local.port() {
        return false;
    }
    let host = authority.host();
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    IpAddr::from_str(bare).is_ok_and(|ip| {
        let ip = ip.to_canonical();
        ip.is_loopback() || ip == local.ip().to_canonical()
    })
}

fn carries(headers: &HeaderMap, token: &[u8; 32]) -> bool {
    let Ok(Some(header)) = only(headers, &AUTHORIZATION) else {
        return false;
    };
    let Some((scheme, given)) = header.split_once(' ') else {
        return false;
    };
    let same: bool = hash(given.trim().as_bytes()).ct_eq(token).into();
    scheme.eq_ignore_ascii_case("bearer") && same
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// A refusal. What is left of the body is not read.
fn closing(status: StatusCode, message: &str) -> Response {
    let body = json!({"error": {"code": status.as_u16(), "message": message}});
    (
        status,
        [
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (CONNECTION, HeaderValue::from_static("close")),
        ],
        body.to_string(),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: FISK-17
    #[test]
    fn only_loopback_names_and_the_address_itself_name_the_server() {
        let local: SocketAddr = "192.0.2.7:8080".parse().unwrap();
        for ours in [
            "localhost:8080",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "[::1]:8080",
            "192.0.2.7:8080",
        ] {
            assert!(is_us(ours, local), "{ours}");
        }
        for foreign in [
            "",
            "localhost",
            "localhost:8081",
            "192.0.2.8:8080",
            "evil.example:8080",
            "localhost.evil.example:8080",
            "127.0.0.1.evil.example:8080",
            "user@localhost:8080",
            "localhost:8080/x",
            "localhost:8080 ",
            "[::2]:8080",
        ] {
            assert!(!is_us(foreign, local), "{foreign}");
        }
    }

    #[test]
    fn a_name_without_a_port_stands_for_port_80() {
        assert!(is_us("localhost", "127.0.0.1:80".parse().unwrap()));
    }
}
