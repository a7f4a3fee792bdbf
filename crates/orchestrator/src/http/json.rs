//! Strict JSON: what a request's body may be, and complaints that name the place.
//!
//! A body is read twice. The first reading knows no types and finds what a typed one would pass over: broken syntax, duplicate
//! keys at any depth, NUL characters. The second one builds the value and complains with the path of the field.

mod explain;
mod objects;
mod scan;

use super::error::Failure;
use serde::de::DeserializeOwned;

/// The longest path or message part that is given back to the caller, in characters.
const LONGEST: usize = 240;

/// Reads a body that has to be there.
///
/// # Errors
/// It is empty, no JSON, or not of this shape: 400 with the path.
pub fn required<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    if body.trim_ascii().is_empty() {
        return Err(Failure::invalid(
            "body",
            "is empty; a JSON object is expected",
        ));
    }
    read(body)
}

/// Reads a body that may be left out, which means `{}`.
///
/// # Errors
/// As for [`required`], but for the empty body.
pub fn optional<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    if body.trim_ascii().is_empty() {
        return read(b"{}");
    }
    read(body)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    let text = std::str::from_utf8(body).map_err(|e| {
        let at = e.valid_up_to();
        Failure::invalid("body", &format!("is not UTF-8 (from byte {at} on)"))
    })?;
    scan::scan(text).map_err(|(path, message)| Failure::invalid(&shown(&path), &message))?;
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(objects::Objects(&mut reader)).map_err(|e| {
        let path = e.path().to_string();
        let (path, message) = explain::explain(&path, &e.into_inner());
        Failure::invalid(&shown(&path), &shown(&message))
    })
}

/// A caller's own text, given back: bounded.
fn shown(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use fuse_api::environment::CreateEnvironment;
    use fuse_api::error::ErrorBody;
    use fuse_api::exec::ExecRequest;
    use fuse_api::intervention::{RaiseRequest, RejectRequest};
    use http_body_util::BodyExt;

    async fn message<T: DeserializeOwned + std::fmt::Debug>(body: &[u8]) -> String {
        let failure = required::<T>(body).expect_err("it is refused");
        assert_eq!(failure.status(), 400);
        let bytes = failure.into_response().into_body().collect().await;
        let body: ErrorBody =
            serde_json::from_slice(&bytes.expect("body").to_bytes()).expect("json");
        body.error.message
    }

    // check: HTTP-3
    // check: CONF-5
    #[tokio::test]
    async fn an_unknown_field_is_named_with_its_path() {
        let body =
            br#"{"task_id":"a","hitl":{"gates":[{"name":"x","on":"exec","match":{"program":"a"}},
            {"name":"y","on":"exec","match":{"shel":true}}]}}"#;
        let told = message::<CreateEnvironment>(body).await;
        assert!(
            told.starts_with("hitl.gates[1].match.shel: unknown field, expected one of `program`"),
            "{told}"
        );
        let told = message::<RejectRequest>(br#"{"reson":"no"}"#).await;
        assert!(
            told.starts_with("reson: unknown field, expected one of `reason`"),
            "{told}"
        );
    }

    // check: HTTP-4
    #[tokio::test]
    async fn a_duplicate_key_is_found_at_any_depth() {
        for (body, path) in [
            (r#"{"task_id":"a","task_id":"b"}"#, "task_id: "),
            (
                r#"{"env":{"A":{"value":"1"},"A":{"value":"2"}}}"#,
                "env.A: ",
            ),
            (r#"{"expose":[{"x":{"p":1,"p":2}}]}"#, "expose[0].x.p: "),
            (
                r#"{"spec":{"labels":{"a":"1","\u0061":"2"}}}"#,
                "spec.labels.a: ",
            ),
        ] {
            let told = message::<CreateEnvironment>(body.as_bytes()).await;
            assert_eq!(told, format!("{path}the key stands there twice"), "{body}");
        }
    }

    // check: HTTP-4
    #[tokio::test]
    async fn what_is_no_json_is_told_with_line_and_column() {
        for body in [
            "{",
            "{} x",
            "{}{}",
            "\u{feff}{}",
            "{'a':1}",
            r#"{"cmd":[1,]}"#,
            r#"{"shell":"\ud800"}"#,
            "{\"shell\":\"a\nb\"}",
            r#"{"timeout_ms":1e999}"#,
            "nul",
        ] {
            let told = message::<ExecRequest>(body.as_bytes()).await;
            assert!(told.starts_with("body: is not JSON: "), "{body}: {told}");
            assert!(told.contains(" at line "), "{body}: {told}");
        }
        let deep = format!("{{\"shell\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let told = message::<ExecRequest>(deep.as_bytes()).await;
        assert!(told.contains("recursion limit"), "{told}");
    }

    // check: HTTP-4
    #[tokio::test]
    async fn a_wrong_type_says_what_is_expected_and_never_shows_the_value() {
        for (body, told) in [
            (r#"{"cmd":"ls"}"#, "cmd: expected a list, found a string"),
            (
                r#"{"cmd":["ls",7]}"#,
                "cmd[1]: expected a string, found an integer",
            ),
            (
                r#"{"timeout_ms":-1}"#,
                "timeout_ms: expected a whole number of 0 or more, found an integer that is out of range",
            ),
            (
                r#"{"timeout_ms":1.5}"#,
                "timeout_ms: expected a whole number of 0 or more, found a decimal number",
            ),
            (r"[]", "body: expected an object, found a list"),
            ("null", "body: expected an object, found null"),
        ] {
            assert_eq!(
                message::<ExecRequest>(body.as_bytes()).await,
                told,
                "{body}"
            );
        }
        let told = message::<CreateEnvironment>(br#"{"env":{"A":"hunter2"}}"#).await;
        assert_eq!(told, "env.A: expected an object, found a string");
        let told = message::<CreateEnvironment>(br#"{"spec":[2,512]}"#).await;
        assert_eq!(told, "spec: expected an object, found a list");
        let told = message::<CreateEnvironment>(br#"{"hitl":{"gates":[["a","exec"]]}}"#).await;
        assert_eq!(told, "hitl.gates[0]: expected an object, found a list");
        let told = message::<CreateEnvironment>(br#"{"run":7}"#).await;
        assert!(told.starts_with("run: expected a command line"), "{told}");
    }

    // check: HTTP-18
    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        for (written, read) in [
            ("60", 60),
            ("60.0", 60),
            ("6e1", 60),
            ("0.0", 0),
            ("-0.0", 0),
        ] {
            let body = format!(r#"{{"shell":"a","timeout_ms":{written}}}"#);
            let body = required::<ExecRequest>(body.as_bytes()).expect(written);
            assert_eq!(body.timeout_ms, Some(read), "{written}");
        }
        for broken in ["60.5", "-60.0", "1e19", "1e300"] {
            let body = format!(r#"{{"shell":"a","timeout_ms":{broken}}}"#);
            assert!(
                required::<ExecRequest>(body.as_bytes()).is_err(),
                "{broken}"
            );
        }
        let block = br#"{"task_id":"a","hitl":{"timeout_seconds":60.0},"desktop":{"width":8e2,"height":600.0}}"#;
        let body = required::<CreateEnvironment>(block).expect("whole numbers");
        assert_eq!(body.hitl.map(|hitl| hitl.timeout_seconds), Some(60));
        assert_eq!(body.desktop.map(|d| (d.width, d.height)), Some((800, 600)));
    }

    #[tokio::test]
    async fn a_missing_field_is_named() {
        assert_eq!(message::<RaiseRequest>(b"{}").await, "kind: is required");
        let told = message::<CreateEnvironment>(br#"{"desktop":{"width":800}}"#).await;
        assert_eq!(told, "desktop.height: is required");
    }

    // check: HTTP-4
    #[tokio::test]
    async fn broken_utf8_and_nul_are_refused() {
        let told = message::<ExecRequest>(b"{\"shell\":\"\xff\"}").await;
        assert_eq!(told, "body: is not UTF-8 (from byte 10 on)");
        let told = message::<ExecRequest>(br#"{"cmd":["a","b\u0000c"]}"#).await;
        assert_eq!(told, "cmd[1]: holds a NUL character");
        let told = message::<CreateEnvironment>(br#"{"env":{"A\u0000":{}}}"#).await;
        assert!(told.ends_with("holds a NUL character"), "{told}");
    }

    #[tokio::test]
    async fn an_empty_body_is_refused_where_one_is_needed() {
        assert_eq!(
            message::<ExecRequest>(b" \n").await,
            "body: is empty; a JSON object is expected"
        );
        assert_eq!(
            optional::<RejectRequest>(b"").expect("left out"),
            RejectRequest::default()
        );
    }

    #[tokio::test]
    async fn what_is_given_back_is_bounded() {
        let body = format!(r#"{{"{}":1}}"#, "k".repeat(100_000));
        assert!(message::<ExecRequest>(body.as_bytes()).await.len() < 2_000);
    }
}
