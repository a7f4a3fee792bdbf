//! What an agent may ask for: the content of `ask` and `review` (spec: "Asking", "Reviews").

use crate::refusal::Refusal;
use crate::text::{is_blank, seen};
use fuse_api::intervention::{AskPayload, Kind, RaiseRequest, ReviewFormat, ReviewPayload};

/// The longest question, in bytes.
pub const MAX_QUESTION: usize = 16 * 1024;
/// The longest message, reason, answer or note, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// The most choices.
pub const MAX_CHOICES: usize = 25;
/// The longest choice, in bytes.
pub const MAX_CHOICE: usize = 500;
/// The longest review content, in bytes.
pub const MAX_REVIEW: usize = 1024 * 1024;

/// A request whose content is in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A question.
    Ask(AskPayload),
    /// A text to judge, given inline.
    ReviewContent(ReviewPayload),
    /// A file of the guest to judge; its content is a fact still to come.
    ReviewPath {
        /// An absolute, clean guest path.
        path: String,
        /// How it reads, where the agent said so.
        format: Option<ReviewFormat>,
        /// The agent's note.
        message: Option<String>,
    },
}

/// Which kind a request names.
///
/// # Errors
/// Blank, unknown, or a kind that only Fuse itself raises.
pub fn kind(request: &RaiseRequest) -> Result<Kind, Refusal> {
    match Kind::parse(&request.kind) {
        Some(kind @ (Kind::Ask | Kind::Review | Kind::Secret | Kind::Takeover)) => Ok(kind),
        Some(Kind::Exec | Kind::Lifecycle | Kind::Computer | Kind::Stall | Kind::Expiry) | None => {
            Err(Refusal::invalid(
                "kind",
                format!(
                    "is {:?}; ask, review, secret and takeover are allowed",
                    clip(&request.kind)
                ),
            ))
        }
    }
}

/// Checks an ask's content.
///
/// # Errors
/// Names the first member that is wrong.
pub fn ask(request: &RaiseRequest) -> Result<Request, Refusal> {
    foreign(
        "ask",
        &[
            ("path", request.path.is_some()),
            ("content", request.content.is_some()),
            ("format", request.format.is_some()),
            ("message", request.message.is_some()),
            ("target", request.target.is_some()),
            ("reason", request.reason.is_some()),
            ("via", request.via.is_some()),
        ],
    )?;
    let question = request.question.as_deref().unwrap_or_default();
    if is_blank(question) {
        return Err(Refusal::invalid(
            "question",
            "is blank; an ask needs a question",
        ));
    }
    bounded("question", question, MAX_QUESTION)?;
    let choices = match &request.choices {
        None => Vec::new(),
        Some(choices) => {
            check_choices(choices)?;
            choices.clone()
        }
    };
    Ok(Request::Ask(AskPayload {
        question: question.to_owned(),
        choices,
    }))
}

fn check_choices(choices: &[String]) -> Result<(), Refusal> {
    if choices.is_empty() || choices.len() > MAX_CHOICES {
        return Err(Refusal::invalid(
            "choices",
            format!(
                "holds {}; 1 to {MAX_CHOICES} are allowed, or leave it out for a free answer",
                choices.len()
            ),
        ));
    }
    for (i, choice) in choices.iter().enumerate() {
        let path = format!("choices[{i}]");
        if choice.is_empty() || choice.len() > MAX_CHOICE {
            return Err(Refusal::invalid(
                path,
                format!(
                    "is {} bytes long; 1 to {MAX_CHOICE} are allowed",
                    choice.len()
                ),
            ));
        }
        if is_blank(choice) {
            return Err(Refusal::invalid(path, "is blank"));
        }
        no_nul(&path, choice)?;
        // Told apart as they are seen: a person picks among what is on the screen.
        if choices[..i].iter().any(|c| seen(c) == seen(choice)) {
            return Err(Refusal::invalid(path, "stands in the list twice"));
        }
    }
    Ok(())
}

/// Checks a review's content.
///
/// # Errors
/// Names the first member that is wrong; inline content over 1 MiB is too large.
pub fn review(request: &RaiseRequest) -> Result<Request, Refusal> {
    foreign(
        "review",
        &[
            ("question", request.question.is_some()),
            ("choices", request.choices.is_some()),
            ("target", request.target.is_some()),
            ("reason", request.reason.is_some()),
            ("via", request.via.is_some()),
        ],
    )?;
    let format = match request.format.as_deref() {
        None | Some("") => None,
        Some(text) => Some(ReviewFormat::parse(text).ok_or_else(|| {
            Refusal::invalid(
                "format",
                format!(
                    "is {:?}; text and diff are allowed, or leave it out",
                    clip(text)
                ),
            )
        })?),
    };
    let message = match &request.message {
        Some(message) => {
            bounded("message", message, MAX_TEXT)?;
            Some(message.clone()).filter(|m| !m.is_empty())
        }
        None => None,
    };
    match (&request.path, &request.content) {
        (Some(_), Some(_)) | (None, None) => Err(Refusal::invalid(
            "path",
            "a review takes exactly one of path and content",
        )),
        (Some(path), None) => {
            clean_path(path)?;
            Ok(Request::ReviewPath {
                path: path.clone(),
                format,
                message,
            })
        }
        (None, Some(content)) => {
            if content.len() > MAX_REVIEW {
                return Err(Refusal::TooLarge(format!(
                    "content: is {} bytes long; {MAX_REVIEW} are allowed",
                    content.len()
                )));
            }
            if content.is_empty() {
                return Err(Refusal::invalid(
                    "content",
                    "is empty; there is nothing to review",
                ));
            }
            no_nul("content", content)?;
            Ok(Request::ReviewContent(ReviewPayload {
                path: None,
                resolved_path: None,
                format: format.unwrap_or_else(|| guess_format(content, None)),
                content: content.clone(),
                message,
                truncated: false,
                lossy: false,
            }))
        }
    }
}

/// What was read of a guest's file, through one descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// The file that was read, links resolved.
    pub resolved_path: String,
    /// Its first bytes, at most [`MAX_REVIEW`] of them and a few more.
    pub bytes: Vec<u8>,
    /// The file held more.
    pub truncated: bool,
}

/// The payload of a review of a guest's file, from what was read of it.
#[must_use]
pub fn review_of_file(
    path: String,
    format: Option<ReviewFormat>,
    message: Option<String>,
    read: FileRead,
) -> ReviewPayload {
    let mut truncated = read.truncated;
    let mut bytes = read.bytes;
    if bytes.len() > MAX_REVIEW {
        bytes.truncate(MAX_REVIEW);
        truncated = true;
    }
    if truncated {
        let keep = bytes.len() - partial_tail(&bytes);
        bytes.truncate(keep);
    }
    let (content, lossy) = match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(e) => (String::from_utf8_lossy(e.as_bytes()).into_owned(), true),
    };
    // Each bad byte grows to three when it is replaced, and the bound is on what a person is shown.
    let cut = floor_char_boundary(&content, MAX_REVIEW);
    let (content, truncated) = if cut < content.len() {
        (content[..cut].to_owned(), true)
    } else {
        (content, truncated)
    };
    ReviewPayload {
        format: format.unwrap_or_else(|| guess_format(&content, Some(&path))),
        resolved_path: Some(read.resolved_path).filter(|p| *p != path),
        path: Some(path),
        content,
        message,
        truncated,
        lossy,
    }
}

/// How many bytes at the end are the start of a character that was cut.
fn partial_tail(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        if byte < 0x80 {
            return 0;
        }
        if byte >= 0xc0 {
            let whole = match byte {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            return if back < whole { back } else { 0 };
        }
    }
    0
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at)
        .rev()
        .find(|&i| text.is_char_boundary(i))
        .unwrap_or(0)
}

/// How a text reads, where nobody said so (spec: "Reviews").
#[must_use]
pub fn guess_format(content: &str, path: Option<&str>) -> ReviewFormat {
    let mut lines = content.lines();
    let first = lines.next().unwrap_or_default();
    let second = lines.next().unwrap_or_default();
    let is_diff = first.starts_with("diff --git")
        || (first.starts_with("--- ") && second.starts_with("+++ "))
        || path.is_some_and(|p| p.ends_with(".diff") || p.ends_with(".patch"));
    if is_diff {
        ReviewFormat::Diff
    } else {
        ReviewFormat::Text
    }
}

/// Checks that a guest path is absolute and clean.
fn clean_path(path: &str) -> Result<(), Refusal> {
    let clean = path.starts_with('/')
        && path.len() <= 4096
        && !path.contains('\0')
        && path != "/"
        && path[1..]
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..");
    if clean {
        Ok(())
    } else {
        Err(Refusal::invalid(
            "path",
            "has to be an absolute, clean path (no //, no . or .., no slash at the end, 4096 bytes at most)",
        ))
    }
}

fn foreign(kind: &str, members: &[(&str, bool)]) -> Result<(), Refusal> {
    match members.iter().find(|(_, present)| *present) {
        Some((name, _)) => Err(Refusal::invalid(
            *name,
            format!("a request of kind {kind} has no such member"),
        )),
        None => Ok(()),
    }
}

/// Checks a text's length, and that it holds no NUL.
///
/// # Errors
/// It is longer than `max` bytes or holds a NUL.
pub fn bounded(path: &str, text: &str, max: usize) -> Result<(), Refusal> {
    if text.len() > max {
        return Err(Refusal::invalid(
            path,
            format!("is {} bytes long; {max} are allowed", text.len()),
        ));
    }
    no_nul(path, text)
}

fn no_nul(path: &str, text: &str) -> Result<(), Refusal> {
    if text.contains('\0') {
        return Err(Refusal::invalid(path, "holds a NUL character"));
    }
    Ok(())
}

fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask_request(question: &str, choices: Option<&[&str]>) -> RaiseRequest {
        RaiseRequest {
            kind: "ask".into(),
            question: Some(question.into()),
            choices: choices.map(|c| c.iter().map(|s| (*s).to_owned()).collect()),
            ..RaiseRequest::default()
        }
    }

    fn field(result: Result<Request, Refusal>) -> String {
        match result {
            Err(Refusal::Invalid(v)) => v[0].path.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_ask_needs_a_question_of_bounded_length() {
        assert!(ask(&ask_request("Deploy?", None)).is_ok());
        assert_eq!(field(ask(&ask_request(" \n", None))), "question");
        assert_eq!(
            field(ask(&ask_request(&"x".repeat(MAX_QUESTION + 1), None))),
            "question"
        );
        assert!(ask(&ask_request(&"x".repeat(MAX_QUESTION), None)).is_ok());
    }

    #[test]
    fn choices_are_few_short_and_distinct() {
        assert!(ask(&ask_request("q", Some(&["yes", "no"]))).is_ok());
        assert_eq!(field(ask(&ask_request("q", Some(&[])))), "choices");
        for twin in ["a", "a\u{200b}"] {
            let refused = field(ask(&ask_request("q", Some(&["a", twin]))));
            assert_eq!(refused, "choices[1]", "{twin:?}");
        }
        assert_eq!(field(ask(&ask_request("q", Some(&[""])))), "choices[0]");
        let long = "x".repeat(501);
        assert_eq!(field(ask(&ask_request("q", Some(&[&long])))), "choices[0]");
        let many: Vec<String> = (0..26).map(|i| i.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(field(ask(&ask_request("q", Some(&many)))), "choices");
    }

    #[test]
    fn a_member_of_another_kind_is_refused_by_name() {
        let request = RaiseRequest {
            path: Some("/x".into()),
            ..ask_request("q", None)
        };
        assert_eq!(field(ask(&request)), "path");
    }

    #[test]
    fn a_review_takes_exactly_one_of_path_and_content() {
        let none = RaiseRequest::default();
        assert_eq!(field(review(&none)), "path");
        let both = RaiseRequest {
            path: Some("/a".into()),
            content: Some("x".into()),
            ..RaiseRequest::default()
        };
        assert_eq!(field(review(&both)), "path");
    }

    #[test]
    fn a_review_path_is_absolute_and_clean() {
        for bad in ["a", "/", "/a/", "/a//b", "/a/../b", "/./a", "/a\0"] {
            let request = RaiseRequest {
                path: Some(bad.into()),
                ..RaiseRequest::default()
            };
            assert_eq!(field(review(&request)), "path", "{bad:?}");
        }
    }

    #[test]
    fn inline_content_over_a_mebibyte_is_too_large() {
        let request = RaiseRequest {
            content: Some("x".repeat(MAX_REVIEW + 1)),
            ..RaiseRequest::default()
        };
        assert!(matches!(review(&request), Err(Refusal::TooLarge(_))));
    }

    #[test]
    fn a_unified_diff_is_recognised() {
        assert_eq!(
            guess_format("diff --git a/x b/x\n", None),
            ReviewFormat::Diff
        );
        assert_eq!(guess_format("--- a\n+++ b\n", None), ReviewFormat::Diff);
        assert_eq!(guess_format("--- a\nnot\n", None), ReviewFormat::Text);
        assert_eq!(
            guess_format("---\ntitle: x\n---\n", None),
            ReviewFormat::Text
        );
        assert_eq!(guess_format("x", Some("/a.patch")), ReviewFormat::Diff);
        assert_eq!(guess_format("x", Some("/a.sql")), ReviewFormat::Text);
    }

    fn read(bytes: Vec<u8>, truncated: bool) -> ReviewPayload {
        let resolved_path = "/f".to_owned();
        review_of_file(
            "/f".into(),
            None,
            None,
            FileRead {
                resolved_path,
                bytes,
                truncated,
            },
        )
    }

    #[test]
    fn a_long_file_is_cut_between_characters() {
        let mut bytes = vec![b'a'; MAX_REVIEW - 1];
        bytes.extend("\u{e9}\u{e9}".as_bytes());
        let got = read(bytes, true);
        assert!(got.truncated && !got.lossy);
        assert_eq!(got.content.len(), MAX_REVIEW - 1);
        let whole = read(vec![b'a'; MAX_REVIEW], false);
        assert!(!whole.truncated);
    }

    #[test]
    fn bytes_that_are_no_utf8_are_replaced_and_said() {
        let got = read(vec![b'a', 0xff, b'b'], false);
        assert_eq!(got.content, "a\u{fffd}b");
        assert!(got.lossy && !got.truncated);
        assert!(read(vec![0xff; MAX_REVIEW], false).content.len() <= MAX_REVIEW);
    }
}
