//! One call, opened: who it is from and what it brings, before anything is done.

use super::edge::{Peer, Trace};
use super::error::Failure;
use super::query::{self, Query};
use super::{Site, body, json};
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request};
use bytes::Bytes;
use fuse_api::ids::{EnvId, InterventionId, KeyId};
use fuse_api::routes::{self, Route};
use fuse_domain::access::Presented;
use fuse_domain::access::actor::ActorHeader;
use fuse_domain::refusal::{Refusal, What};
use http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use std::pin::Pin;
use std::sync::Arc;

/// A call whose credential is valid. The request itself is gone by then, so that a parked call holds no buffer of it.
pub struct Call {
    /// The credential, and the actor that is claimed.
    pub who: Presented,
    /// The request's place in the log.
    pub trace: Arc<Trace>,
    id: Option<String>,
    query: String,
    body: Bytes,
}

/// A call on its way to being open. It is boxed, so that a parked call does not carry the room that opening it took.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Call, Failure>> + Send + 'a>>;

impl Call {
    /// Authenticates, reads the body, and takes the request apart.
    ///
    /// # Errors
    /// 401 first, then 413 and 400.
    pub fn open(site: &Site, request: Request) -> Opening<'_> {
        Box::pin(Self::open_inline(site, request))
    }

    async fn open_inline(site: &Site, request: Request) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        let trace = parts.extensions.get::<Arc<Trace>>().cloned();
        let trace = trace.ok_or_else(|| Failure::internal("a request without a trace"))?;
        let credential = match site.app.authenticate(bearer(&parts.headers)).await {
            Ok(credential) => credential,
            Err(error) => {
                body::drain(&parts.headers, body).await;
                return Err(error.into());
            }
        };
        trace.credential_is(&credential);
        let peer = parts.extensions.get::<Peer>().copied();
        let remote_addr = match peer {
            Some(Peer(peer)) => site.proxies.remote_addr(peer, &parts.headers).to_string(),
            None => String::new(),
        };
        // An id that is not even UTF-8 is one that nothing has.
        let id = RawPathParams::from_request_parts(&mut parts, &())
            .await
            .ok();
        let id = id.and_then(|all| all.iter().next().map(|(_, value)| value.to_owned()));
        let body = body::read(&parts.headers, body).await?;
        let actor = ActorHeader::parse(
            single(&parts.headers, "Fuse-Actor")?,
            single(&parts.headers, "Fuse-Actor-Name")?,
        )?;
        Ok(Self {
            who: Presented {
                credential,
                actor,
                remote_addr,
            },
            trace,
            id,
            query: parts.uri.query().unwrap_or_default().to_owned(),
            body,
        })
    }

    /// The query string, which may hold these parameters.
    ///
    /// # Errors
    /// 400, see [`Query::parse`].
    pub fn query(&self, allowed: &[&'static str]) -> Result<Query, Failure> {
        Query::parse(&self.query, allowed)
    }

    /// Which of the calls on this path it is, by `action`.
    ///
    /// # Errors
    /// 400 that names all of them, where it is none of them; 400 for any other parameter.
    pub fn action(&self, method: &str, path: &str) -> Result<&'static Route, Failure> {
        let query = self.query(&["action"])?;
        let row = query
            .get("action")
            .and_then(|action| routes::find(method, path, Some(action)));
        let row = row.ok_or_else(|| {
            let rows = routes::ROUTES.iter();
            let here = rows.filter(|r| r.method == method && r.path == path);
            query::one_of("action", here.filter_map(|r| r.action))
        })?;
        self.trace.action(row);
        Ok(row)
    }

    /// The body, which has to be there.
    ///
    /// # Errors
    /// 400, see [`json::required`].
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        json::required(&self.body)
    }

    /// The body, where an empty one means `{}`.
    ///
    /// # Errors
    /// 400, see [`json::optional`].
    pub fn optional_body<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        json::optional(&self.body)
    }

    /// The environment in the path.
    ///
    /// # Errors
    /// 404: no environment has such an id.
    pub fn env_id(&self) -> Result<EnvId, Failure> {
        let id = self.id.as_deref().and_then(|id| EnvId::parse(id).ok());
        id.ok_or_else(|| Refusal::NotFound(What::Environment).into())
    }

    /// The intervention in the path.
    ///
    /// # Errors
    /// 404: no intervention has such an id.
    pub fn intervention_id(&self) -> Result<InterventionId, Failure> {
        let id = self
            .id
            .as_deref()
            .and_then(|id| InterventionId::parse(id).ok());
        id.ok_or_else(|| Refusal::NotFound(What::Intervention).into())
    }

    /// The API key in the path.
    ///
    /// # Errors
    /// 404: no key has such an id.
    pub fn key_id(&self) -> Result<KeyId, Failure> {
        let id = self.id.as_deref().and_then(|id| KeyId::parse(id).ok());
        id.ok_or_else(|| Refusal::NotFound(What::Key).into())
    }
}

/// The pattern of the path that a request came in by.
#[must_use]
pub fn pattern(request: &Request) -> &'static str {
    request
        .extensions()
        .get::<MatchedPath>()
        .and_then(|matched| routes::ROUTES.iter().find(|r| r.path == matched.as_str()))
        .map_or("", |row| row.path)
}

/// The token of `Authorization: Bearer TOKEN`. Anything else is no credential.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// A header that stands there once at most.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h [u8]>, Failure> {
    let mut all = headers.get_all(name).iter();
    let first = all.next();
    if all.next().is_some() {
        return Err(Failure::invalid(name, "the header stands there twice"));
    }
    Ok(first.map(http::HeaderValue::as_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_static(value));
        }
        headers
    }

    // check: ACCESS-1
    #[test]
    fn a_credential_is_one_bearer_token_in_any_case_of_the_scheme() {
        for value in ["Bearer t0ken", "bearer t0ken", "BEARER  t0ken "] {
            assert_eq!(bearer(&headers(&[value])), Some("t0ken"), "{value}");
        }
        for values in [
            &[][..],
            &["Basic t0ken"],
            &["Bearer"],
            &["Bearer "],
            &["t0ken"],
        ] {
            assert_eq!(bearer(&headers(values)), None, "{values:?}");
        }
        assert_eq!(bearer(&headers(&["Bearer a", "Bearer b"])), None);
    }
}
