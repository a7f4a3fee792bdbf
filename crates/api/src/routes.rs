//! The one table of routes: what is served, and which credentials each call admits.
//!
//! The server serves nothing that has no row here and refuses by it, the OpenAPI document takes its security from it, and a
//! test tries every row with every kind of credential.

use crate::keys::Scope;

/// Which credentials a call admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No credential is needed.
    Public,
    /// The master token or a full-access key.
    Full,
    /// The master token alone; anything else is a 403 `unauthorized`.
    Master,
    /// The master token, or a key that holds this scope. A full-access key holds `hitl:read`.
    Scoped(Scope),
    /// Minting: the master token; what a key may mint is the domain's verdict.
    Mint,
}

/// Whether a call does something yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// It does.
    Yes,
    /// It answers 501.
    Later,
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The HTTP method.
    pub method: &'static str,
    /// The path, with `{id}` for an id.
    pub path: &'static str,
    /// The value of `action`, where the call has one.
    pub action: Option<&'static str>,
    /// Which credentials it admits.
    pub access: Access,
    /// Whether it does something yet.
    pub served: Served,
}

const fn row(
    method: &'static str,
    path: &'static str,
    action: Option<&'static str>,
    access: Access,
    served: Served,
) -> Route {
    Route {
        method,
        path,
        action,
        access,
        served,
    }
}

use Access::{Full, Master, Mint, Public, Scoped};
use Served::{Later, Yes};

/// Every call that the server knows.
pub const ROUTES: &[Route] = &[
    row("GET", "/health", None, Public, Yes),
    row("GET", "/ready", None, Public, Yes),
    row("GET", "/metrics", None, Public, Yes),
    row("GET", "/v1/version", None, Public, Yes),
    row("GET", "/v1/openapi.json", None, Public, Yes),
    row("POST", "/v1/environments", None, Full, Yes),
    row("GET", "/v1/environments", None, Full, Yes),
    row("GET", "/v1/environments/{id}", None, Full, Yes),
    row("DELETE", "/v1/environments/{id}", None, Full, Yes),
    row("POST", "/v1/environments/{id}", Some("exec"), Master, Yes),
    row("POST", "/v1/environments/{id}", Some("request"), Full, Yes),
    row("POST", "/v1/environments/{id}", Some("fork"), Full, Later),
    row(
        "POST",
        "/v1/environments/{id}",
        Some("migrate"),
        Full,
        Later,
    ),
    row("POST", "/v1/environments/{id}", Some("drain"), Full, Later),
    row(
        "POST",
        "/v1/environments/{id}",
        Some("rotate-token"),
        Full,
        Later,
    ),
    row(
        "POST",
        "/v1/environments/{id}",
        Some("takeover"),
        Scoped(Scope::Takeover),
        Later,
    ),
    row(
        "POST",
        "/v1/environments/{id}",
        Some("release"),
        Scoped(Scope::Takeover),
        Later,
    ),
    row("GET", "/v1/environments/{id}/events", None, Full, Yes),
    row("GET", "/v1/environments/{id}/attach", None, Master, Later),
    row("POST", "/v1/environments/{id}/snapshots", None, Full, Later),
    row("POST", "/v1/environments/{id}/computer", None, Full, Later),
    row("GET", "/v1/environments/{id}/computer", None, Full, Later),
    row(
        "GET",
        "/v1/environments/{id}/computer/stream",
        None,
        Master,
        Later,
    ),
    row("GET", "/v1/snapshots", None, Full, Later),
    row("GET", "/v1/snapshots/{id}", None, Full, Later),
    row("DELETE", "/v1/snapshots/{id}", None, Full, Later),
    row("POST", "/v1/snapshots/{id}", Some("restore"), Full, Later),
    row("GET", "/v1/interventions", None, Scoped(Scope::Read), Yes),
    row(
        "GET",
        "/v1/interventions/{id}",
        None,
        Scoped(Scope::Read),
        Yes,
    ),
    row(
        "POST",
        "/v1/interventions/{id}",
        Some("approve"),
        Scoped(Scope::Decide),
        Yes,
    ),
    row(
        "POST",
        "/v1/interventions/{id}",
        Some("reject"),
        Scoped(Scope::Decide),
        Yes,
    ),
    row(
        "POST",
        "/v1/interventions/{id}",
        Some("secret"),
        Scoped(Scope::Secret),
        Later,
    ),
    row(
        "GET",
        "/v1/interventions/{id}/attach",
        None,
        Scoped(Scope::Takeover),
        Later,
    ),
    row(
        "GET",
        "/v1/interventions/{id}/desktop",
        None,
        Scoped(Scope::Takeover),
        Later,
    ),
    row("GET", "/v1/hitl/audit", None, Scoped(Scope::Read), Yes),
    row(
        "GET",
        "/v1/hitl/recordings/{id}",
        None,
        Scoped(Scope::Read),
        Later,
    ),
    row("POST", "/v1/api-keys", None, Mint, Yes),
    row("GET", "/v1/api-keys", None, Master, Yes),
    row("DELETE", "/v1/api-keys/{id}", None, Master, Yes),
];

/// The row of a call, by its method, its path pattern and its `action`.
#[must_use]
pub fn find(method: &str, path: &str, action: Option<&str>) -> Option<&'static Route> {
    ROUTES
        .iter()
        .find(|r| r.method == method && r.path == path && r.action == action)
}

/// Whether a path takes a method. What answers `GET` answers `HEAD` too.
#[must_use]
pub fn takes(path: &str, method: &str) -> bool {
    let method = if method == "HEAD" { "GET" } else { method };
    ROUTES
        .iter()
        .any(|row| row.path == path && row.method == method)
}

/// The methods that a path takes, in order. What answers `GET` answers `HEAD` too.
#[must_use]
pub fn methods(path: &str) -> Vec<&'static str> {
    let mut methods: Vec<_> = ROUTES
        .iter()
        .filter(|row| row.path == path)
        .map(|row| row.method)
        .collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.sort_unstable();
    methods.dedup();
    methods
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: HTTP-17
    #[test]
    fn a_path_takes_the_methods_of_its_rows_and_head_beside_get() {
        assert_eq!(methods("/v1/api-keys"), ["GET", "HEAD", "POST"]);
        assert_eq!(methods("/v1/api-keys/{id}"), ["DELETE"]);
        assert!(methods("/v1/none").is_empty());
        for row in ROUTES {
            assert!(takes(row.path, row.method), "{row:?}");
            assert!(methods(row.path).iter().all(|m| takes(row.path, m)));
        }
        assert!(!takes("/v1/api-keys/{id}", "HEAD") && !takes("/v1/none", "GET"));
    }

    #[test]
    fn no_call_stands_in_the_table_twice() {
        for (i, a) in ROUTES.iter().enumerate() {
            for b in &ROUTES[i + 1..] {
                assert!(
                    (a.method, a.path, a.action) != (b.method, b.path, b.action),
                    "{a:?}"
                );
            }
        }
    }
}
