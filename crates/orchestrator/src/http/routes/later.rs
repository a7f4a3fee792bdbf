//! Calls that are known and not served by this release. They refuse by the same table as the others, and then say so.

use crate::http::call::{Call, pattern};
use crate::http::error::Failure;
use crate::http::{Answer, Site};
use axum::extract::{Request, State};
use axum::routing::{MethodFilter, MethodRouter, on};
use fuse_api::routes::{ROUTES, Route, Served};
use fuse_domain::refusal::Refusal;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;

/// Whether a handler of another file has the row's path and method already.
fn is_shared(row: &Route) -> bool {
    let mut rows = ROUTES.iter();
    rows.any(|other| {
        (other.method, other.path, other.served) == (row.method, row.path, Served::Yes)
    })
}

/// The rows that need a handler of their own: one for each path and method.
pub fn rows() -> impl Iterator<Item = &'static Route> {
    ROUTES
        .iter()
        .enumerate()
        .filter(|(i, row)| {
            let before = &ROUTES[..*i];
            row.served == Served::Later
                && !is_shared(row)
                && !before
                    .iter()
                    .any(|b| (b.method, b.path) == (row.method, row.path))
        })
        .map(|(_, row)| row)
}

/// Adds a handler for each of them.
pub fn add(mut router: OpenApiRouter<Arc<Site>>) -> OpenApiRouter<Arc<Site>> {
    for row in rows() {
        let filter = match row.method {
            "POST" => MethodFilter::POST,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        let handler: MethodRouter<Arc<Site>> = on(filter, not_yet);
        router = router.route(row.path, handler);
    }
    router
}

async fn not_yet(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let path = pattern(&request);
    let method = match request.method().as_str() {
        "HEAD" => "GET".to_owned(),
        other => other.to_owned(),
    };
    let call = Call::open(&site, request).await?;
    let by_action = ROUTES
        .iter()
        .any(|row| (row.method, row.path) == (method.as_str(), path) && row.action.is_some());
    let row = if by_action {
        call.action(&method, path)?
    } else {
        fuse_api::routes::find(&method, path, None)
            .ok_or_else(|| Failure::internal("a route without a row in the table"))?
    };
    refuse(&call, row)
}

/// 403 where the credential does not reach the call, else 501.
pub fn refuse(call: &Call, row: &'static Route) -> Answer {
    call.who.admit(row.access)?;
    let action = row
        .action
        .map(|a| format!("?action={a}"))
        .unwrap_or_default();
    let message = format!(
        "{} {}{action} is not served by this release",
        row.method, row.path
    );
    Err(Refusal::Unserved(message).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: HTTP-9
    #[test]
    fn every_planned_call_has_a_handler_and_only_one() {
        for row in ROUTES.iter().filter(|row| row.served == Served::Later) {
            let own = rows()
                .filter(|r| (r.method, r.path) == (row.method, row.path))
                .count();
            assert_eq!(own + usize::from(is_shared(row)), 1, "{row:?}");
        }
    }
}
