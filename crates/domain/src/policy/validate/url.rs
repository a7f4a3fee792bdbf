//! Where deciders and webhooks may be.

use super::text::shown;

/// Checks that an address is plain http or https, without credentials and without a fragment. It is stricter than what dials it, so that
/// both read the same host.
pub(super) fn check(url: &str) -> Result<(), String> {
    if url.is_empty() {
        return Err("is missing; an http:// or https:// address is needed".to_owned());
    }
    let complain = |what: &str| {
        // The address may hold a password: it is not repeated.
        Err(format!(
            "{what}; an http:// or https:// address without user info and without a fragment is allowed"
        ))
    };
    if url.len() > 2048 {
        return complain("is longer than 2048 bytes");
    }
    if let Some(odd) = url.chars().find(|c| !c.is_ascii_graphic() || *c == '\\') {
        return complain(&format!("holds {odd:?}, which belongs into no address"));
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return complain("has no scheme");
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return complain(&format!("has the scheme {}", shown(scheme)));
    }
    if rest.contains('#') {
        return complain("has a fragment");
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if authority.contains('@') {
        return complain("has user info");
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((address, port)) => {
                if address.parse::<core::net::Ipv6Addr>().is_err() {
                    return complain("has no valid IPv6 address between its brackets");
                }
                (
                    "v6",
                    port.strip_prefix(':').or(port.is_empty().then_some("80")),
                )
            }
            None => return complain("has a bracket that is not closed"),
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, Some("80")),
        },
    };
    let name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if host.is_empty()
        || host.len() > 253
        || !host.bytes().all(name)
        || host.starts_with('.')
        || host.contains("..")
    {
        return complain("has no valid host");
    }
    let digits = |port: &str| {
        port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|p| p != 0)
    };
    if !port.is_some_and(digits) {
        return complain("has no valid port");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    // check: CONF-23
    fn plain_http_and_https_addresses_pass() {
        for url in [
            "https://decider.example.com/fuse",
            "http://localhost:8080",
            "HTTPS://h.example.com",
            "http://127.0.0.1:1/x?y=z@w",
            "https://[::1]:8443/a",
            "https://[2001:db8::1]",
            "https://h_x.example.com/?q",
        ] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
    }

    #[test]
    // check: CONF-23
    fn every_other_address_is_refused_without_being_repeated() {
        for url in [
            "",
            "decider",
            "ftp://h/x",
            "file:///etc/passwd",
            "https://",
            "https:///x",
            "https://u@h/",
            "https://u:hunter2@h/",
            "https://h/#f",
            "https://h#f",
            "https://h:0/",
            "https://h:99999/",
            "https://h:/",
            "https://h:x/",
            "https://a b/",
            "https://h\\@evil/",
            "https://[::1",
            "https://[::1]x",
            "https://[::g]/",
            "//h/x",
            "https://..",
            "https://h\u{e4}/",
            "https://h/\n",
            "javascript:alert(1)",
            "https://h:+80/",
        ] {
            let message = check(url).expect_err(url);
            assert!(message.contains("http:// or https://"), "{url}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
