//! Where a provider is.

use std::net::IpAddr;

use reqwest::Url;
use thiserror::Error;

/// Why a provider cannot be set up. It never holds a value, only the field's name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct ConfigError {
    field: String,
    problem: &'static str,
}

impl ConfigError {
    pub(crate) fn new(field: &str, problem: &'static str) -> Self {
        Self {
            field: field.to_owned(),
            problem,
        }
    }
}

/// An address that requests go to.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) url: Url,
    /// Whether the key and the conversation go unencrypted; such requests never pass a proxy.
    pub(crate) plain: bool,
}

impl Endpoint {
    /// `base` with `path` behind it, whether or not `base` ends with a slash or already with the beginning of `path`.
    ///
    /// Plain HTTP is for this machine alone unless `allow_plain_http`: whoever is on the way could read the key, and could write the
    /// commands that the model asks for.
    pub(crate) fn join(
        base: &str,
        path: &[&str],
        allow_plain_http: bool,
    ) -> Result<Self, ConfigError> {
        let fail = |problem| Err(ConfigError::new("base_url", problem));
        let Ok(mut url) = Url::parse(base.trim()) else {
            return fail("is no URL; write e.g. https://api.example.com");
        };
        let plain = match url.scheme() {
            "https" => false,
            "http" => true,
            _ => return fail("has to begin with https:// or http://"),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return fail("holds a user or password, which is not allowed");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return fail("has a query or fragment, which is not allowed");
        }
        if plain && !allow_plain_http && !is_local(&url) {
            return fail(
                "is plain http to another machine; use https, or set allow_plain_http: true",
            );
        }
        let present: Vec<String> = url
            .path_segments()
            .map(|parts| parts.filter(|p| !p.is_empty()).map(str::to_owned).collect())
            .unwrap_or_default();
        // `…/v1` and `…/v1/messages` are often written for `…`.
        let overlap = (0..=path.len().min(present.len()))
            .rev()
            .find(|n| present[present.len() - n..] == path[..*n])
            .unwrap_or(0);
        let all = present
            .iter()
            .map(String::as_str)
            .chain(path[overlap..].iter().copied())
            .collect::<Vec<_>>()
            .join("/");
        url.set_path(&all);
        Ok(Self { url, plain })
    }
}

fn is_local(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: [&str; 2] = ["v1", "messages"];

    #[test]
    fn the_path_is_joined_whatever_the_base_ends_with() {
        for (base, whole) in [
            ("https://a.example", "https://a.example/v1/messages"),
            ("https://a.example/", "https://a.example/v1/messages"),
            ("https://a.example/v1/", "https://a.example/v1/messages"),
            (
                "https://a.example/v1/messages",
                "https://a.example/v1/messages",
            ),
            (
                "https://a.example/gate//way/",
                "https://a.example/gate/way/v1/messages",
            ),
            ("http://[::1]:80/x", "http://[::1]/x/v1/messages"),
        ] {
            let joined = Endpoint::join(base, &MESSAGES, false).unwrap();
            assert_eq!(joined.url.as_str(), whole);
        }
    }

    // check: FISK-53
    #[test]
    fn plain_http_is_for_this_machine_alone_unless_allowed() {
        for base in [
            "http://127.0.0.1:1",
            "http://localhost/v1",
            "http://[::1]:9",
        ] {
            assert!(Endpoint::join(base, &[], false).unwrap().plain);
        }
        for base in [
            "http://10.0.0.1",
            "http://localhost.evil.example",
            "http://127.0.0.1.example",
        ] {
            assert!(Endpoint::join(base, &[], false).is_err(), "{base}");
            assert!(Endpoint::join(base, &[], true).unwrap().plain);
        }
    }

    #[test]
    fn a_base_that_is_no_plain_web_address_is_refused() {
        for base in [
            "",
            "api.example.com",
            "ftp://a.example",
            "file:///etc/passwd",
            "https://user:hunter2@a.example",
            "https://a.example/?q=1",
            "https://a.example/#f",
        ] {
            let error = Endpoint::join(base, &[], true).unwrap_err().to_string();
            assert!(error.starts_with("base_url: "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
