//! Keys: never printed, wiped when dropped.

use std::fmt;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use zeroize::Zeroizing;

use crate::endpoint::ConfigError;

/// A key. `Debug` shows nothing of it, and its memory is wiped when it goes.
///
/// The HTTP library needs a copy per request, which lives as long as the request and is not wiped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a key; blanks around it (the line end of a file) are no part of it.
    pub fn new(value: String) -> Self {
        let value = Zeroizing::new(value);
        Self(Zeroizing::new(value.trim().to_owned()))
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// As the value of a header that HTTP logs leave out.
    pub(crate) fn header(&self, prefix: &str, field: &str) -> Result<HeaderValue, ConfigError> {
        let text = Zeroizing::new(format!("{prefix}{}", self.expose()));
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            ConfigError::new(field, "has characters that an HTTP header cannot hold")
        })?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Headers that describe the transport itself; setting them would break or redirect the request.
const RESERVED: [&str; 7] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
];

/// Reads `Name: value` lines, as `ANTHROPIC_CUSTOM_HEADERS` holds them. Values may be secret.
///
/// # Errors
/// A line without a colon, a name that is no header's, or one of the transport's own headers.
pub fn parse_headers(lines: &str) -> Result<Vec<(String, Secret)>, ConfigError> {
    let mut headers = Vec::new();
    for (number, line) in lines.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let field = format!("custom headers, line {}", number + 1);
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| ConfigError::new(&field, "has no colon; write `Name: value`"))?;
        let name = name.trim().to_ascii_lowercase();
        header_name(&name, &field)?;
        headers.push((name, Secret::new(value.to_owned())));
    }
    Ok(headers)
}

fn header_name(name: &str, field: &str) -> Result<HeaderName, ConfigError> {
    let parsed = HeaderName::try_from(name)
        .map_err(|_| ConfigError::new(field, "is no name of an HTTP header"))?;
    if RESERVED.contains(&parsed.as_str()) {
        return Err(ConfigError::new(
            field,
            "names a header of the transport, which cannot be set",
        ));
    }
    Ok(parsed)
}

/// Puts the operator's own headers over those of the provider.
pub(crate) fn add_headers(
    map: &mut HeaderMap,
    headers: &[(String, Secret)],
) -> Result<(), ConfigError> {
    for (name, value) in headers {
        let field = format!("headers.{name}");
        let name = header_name(name, &field)?;
        map.insert(name, value.header("", &field)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: FISK-53
    #[test]
    fn debug_shows_nothing_of_a_secret() {
        let secret = Secret::new("sk-very-secret\n".to_owned());
        assert_eq!(format!("{secret:?}"), "Secret");
        assert_eq!(secret.expose(), "sk-very-secret");
        let value = secret.header("Bearer ", "key").unwrap();
        assert!(!format!("{value:?}").contains("very"));
    }

    #[test]
    fn a_key_that_no_header_can_hold_is_refused_without_being_shown() {
        let error = Secret::new("se\ncret".to_owned())
            .header("", "key")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "key: has characters that an HTTP header cannot hold"
        );
    }

    #[test]
    fn custom_headers_are_name_and_value_lines() {
        let headers = parse_headers("X-Team: red: 1\n\n anthropic-beta : a\n").unwrap();
        let seen: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose()))
            .collect();
        assert_eq!(seen, [("x-team", "red: 1"), ("anthropic-beta", "a")]);
    }

    #[test]
    fn headers_of_the_transport_cannot_be_set() {
        for line in ["Host: evil", "content-length: 1", "no colon", "b@d name: 1"] {
            let error = parse_headers(&format!("x-ok: 1\n{line}")).unwrap_err();
            assert!(
                error.to_string().starts_with("custom headers, line 2: "),
                "{error}"
            );
        }
    }
}
