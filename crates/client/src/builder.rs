//! The client and how it is made.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fuse_api::keys::ActorLabel;
use reqwest::Url;
use reqwest::header::HeaderValue;

use crate::error::Error;

/// A connection to an orchestrator. Copies share it and are cheap.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
    pub(crate) actor: Option<ActorLabel>,
}

pub(crate) struct Inner {
    pub http: reqwest::Client,
    pub base: Url,
    pub token: Option<HeaderValue>,
    pub tries: u32,
    pub no_wait: bool,
}

// By hand, so that the token cannot get into a log.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.inner.base.as_str())
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Starts to describe a client for the orchestrator at `url`, such as `http://127.0.0.1:8080`.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/connect.rs")]
    /// ```
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            url: url.into(),
            token: None,
            actor: None,
            tries: 5,
            no_wait: false,
        }
    }

    /// A client for the orchestrator and the token that `FUSE_URL` and `FUSE_TOKEN` name.
    ///
    /// # Errors
    /// [`Error::Config`] where one of them is missing or unusable.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/connect.rs")]
    /// ```
    pub fn from_env() -> Result<Self, Error> {
        let get = |name: &str| {
            std::env::var(name).map_err(|_| Error::Config(format!("{name} has to be set")))
        };
        Self::builder(get("FUSE_URL")?)
            .token(get("FUSE_TOKEN")?)
            .build()
    }

    /// A copy whose calls name the actor that they are made for. This one stays as it is.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/actor.rs")]
    /// ```
    #[must_use]
    pub fn with_actor(&self, actor: ActorLabel) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            actor: Some(actor),
        }
    }
}

/// A client to be.
pub struct ClientBuilder {
    url: String,
    token: Option<String>,
    actor: Option<ActorLabel>,
    tries: u32,
    no_wait: bool,
}

impl ClientBuilder {
    /// The master token or an API key's secret.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The actor that all calls are made for.
    #[must_use]
    pub fn actor(mut self, actor: ActorLabel) -> Self {
        self.actor = Some(actor);
        self
    }

    /// How often a call is tried that is safe to repeat; 5 unless set, 1 at least. Waiting on an intervention is not counted.
    #[must_use]
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = tries.max(1);
        self
    }

    /// No call of this client waits for a person, as if each was told so.
    #[must_use]
    pub fn no_wait(mut self) -> Self {
        self.no_wait = true;
        self
    }

    /// Makes the client. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::Config`] where the URL is not a plain `http` or `https` one or the token cannot be sent.
    pub fn build(self) -> Result<Client, Error> {
        let base = base(&self.url)?;
        let token = self.token.as_deref().map(bearer).transpose()?;
        // Fails where the process has chosen a provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("fuse-client/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(10))
            .tcp_keepalive(Duration::from_secs(15))
            // A redirect would take the token elsewhere.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&base) {
            http = http.no_proxy();
        }
        let http = http
            .build()
            .map_err(|error| Error::Config(format!("no HTTP client can be made: {error}")))?;
        Ok(Client {
            inner: Arc::new(Inner {
                http,
                base,
                token,
                tries: self.tries,
                no_wait: self.no_wait,
            }),
            actor: self.actor,
        })
    }
}

fn base(text: &str) -> Result<Url, Error> {
    let wrong = |what: &str| Error::Config(format!("the URL {what}, like http://127.0.0.1:8080"));
    let url = Url::parse(text.trim()).map_err(|_| wrong("has to be absolute"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("has to be an http or https one"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("must not hold a user or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("must not hold a query or a fragment"));
    }
    Ok(url)
}

fn bearer(token: &str) -> Result<HeaderValue, Error> {
    let token = token.trim();
    if token.is_empty() {
        return Err(Error::Config("the token is empty".to_owned()));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| Error::Config("the token holds characters no token has".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_cannot_be_called_is_refused_with_the_reason() {
        for (url, reason) in [
            ("127.0.0.1:8080", "absolute"),
            ("ftp://host", "http or https"),
            ("http://user:pw@host", "user or a password"),
            ("http://host/?a=b", "query"),
            ("", "absolute"),
        ] {
            let error = Client::builder(url).build().expect_err(url).to_string();
            assert!(error.contains(reason), "{url}: {error}");
        }
    }

    #[test]
    fn a_token_shows_neither_in_errors_nor_in_debug_output() {
        let error = Client::builder("http://h")
            .token("sec\nret")
            .build()
            .expect_err("a bad token");
        assert!(!error.to_string().contains("sec"));
        let client = Client::builder("http://h")
            .token("s3cret")
            .build()
            .expect("a client");
        assert!(!format!("{client:?}").contains("s3cret"));
        assert!(!format!("{:?}", client.inner.token).contains("s3cret"));
    }
}
