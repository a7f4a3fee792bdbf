//! What a question looks like in Fuse.

use std::collections::BTreeSet;

use fisk_domain::PromptFailure;
use fuse_terminal::{MAX_TEXT, strip_and_cut};

use crate::line::title;
use crate::prompter::{ApprovalRequest, Confirm, Input, Select};

pub(super) const APPROVE: &str = "approve";
pub(super) const APPROVE_SESSION: &str = "approve for the session";
const DENY: &str = "deny";
pub(super) const YES: &str = "yes";
const NO: &str = "no";

/// Bytes of a choice, of a question and of a review's content that Fuse takes.
const MAX_CHOICE: usize = 500;
const MAX_CONTENT: usize = 1024 * 1024;

/// What is raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    Ask {
        question: String,
        /// Any answer where there are none.
        choices: Vec<String>,
    },
    Review {
        content: String,
        message: String,
    },
}

/// An approval. What is shown is what runs: a question that would be cut where it is shown becomes a review, which is shown whole.
pub(super) fn approval(request: &ApprovalRequest, once_only: bool) -> Result<Form, PromptFailure> {
    let title = title(request);
    let command = request.command.whole();
    let question = format!("{title} {command}");
    // It holds nothing that would be stripped, either, or it could not be equal.
    if strip_and_cut(&question, MAX_TEXT) == question {
        let offered: &[&str] = match once_only {
            true => &[APPROVE, DENY],
            false => &[APPROVE, APPROVE_SESSION, DENY],
        };
        let choices = offered.iter().copied().map(str::to_owned).collect();
        return Ok(Form::Ask { question, choices });
    }
    if command.len() > MAX_CONTENT {
        return Err(PromptFailure::Failed(format!(
            "the command line has {} bytes, and at most {MAX_CONTENT} can be shown",
            command.len()
        )));
    }
    Ok(Form::Review {
        content: command.to_owned(),
        message: format!(
            "{title} approving this review runs the command line below once, as it stands there"
        ),
    })
}

/// A text of the model as it is shown, if anything of it is.
pub(super) fn shown(text: &str) -> Option<String> {
    let text = strip_and_cut(text, MAX_TEXT);
    (!text.trim().is_empty()).then_some(text)
}

/// Who asks stands first, so that no question of the model can pass for one about a command.
fn asks(question: &str, suggestion: Option<String>) -> String {
    let question = strip_and_cut(question, MAX_TEXT);
    match suggestion {
        Some(suggestion) => format!("The agent asks: {question} (It suggests: {suggestion})"),
        None => format!("The agent asks: {question}"),
    }
}

pub(super) fn confirm(asked: &Confirm) -> Form {
    let suggestion = asked
        .default
        .map(|yes| if yes { YES } else { NO }.to_owned());
    Form::Ask {
        question: asks(&asked.question, suggestion),
        choices: [YES, NO].map(str::to_owned).into(),
    }
}

pub(super) fn select(asked: &Select, choices: Vec<String>) -> Form {
    Form::Ask {
        question: asks(&asked.question, asked.default.as_deref().and_then(shown)),
        choices,
    }
}

pub(super) fn input(asked: &Input) -> Form {
    let suggestion = asked.default.as_deref().and_then(shown);
    let empty = match suggestion {
        Some(_) => " An empty answer takes the suggestion.",
        None => "",
    };
    Form::Ask {
        question: asks(&asked.question, suggestion) + empty,
        choices: Vec::new(),
    }
}

/// The options as choices, stripped, and cut to what Fuse takes.
pub(super) fn choices(options: &[String]) -> Result<Vec<String>, PromptFailure> {
    let failed = |error: String| PromptFailure::Failed(error);
    let shown = fuse_terminal::options(options).map_err(|error| failed(error.to_string()))?;
    let choices: Vec<String> = shown.iter().map(|option| short(option)).collect();
    // As Fuse tells them apart.
    let different: BTreeSet<&str> = choices.iter().map(|choice| choice.trim()).collect();
    if different.len() < choices.len() {
        return Err(failed(format!(
            "two options are the same in their first {MAX_CHOICE} bytes"
        )));
    }
    Ok(choices)
}

fn short(option: &str) -> String {
    let mut graphemes = MAX_TEXT;
    loop {
        let choice = strip_and_cut(option, graphemes);
        if choice.len() <= MAX_CHOICE || graphemes <= 1 {
            return choice;
        }
        graphemes -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuse_terminal::Exact;
    use proptest::prelude::*;

    fn request(argv: &[&str]) -> ApprovalRequest {
        ApprovalRequest {
            tool: "nats_stream_rm".to_owned(),
            command: Exact::argv(argv),
            tags: vec!["ai:confirm".to_owned()],
        }
    }

    // check: FISK-10
    #[test]
    fn a_command_line_is_in_the_question_whole_or_in_a_review_whole() {
        let Form::Ask { question, choices } =
            approval(&request(&["nats", "rm \u{202e}x"]), false).unwrap()
        else {
            panic!("a short one is an ask");
        };
        assert!(question.ends_with(r": nats $'rm \u{202e}x'"), "{question}");
        assert_eq!(choices, ["approve", "approve for the session", "deny"]);
        let long = "x".repeat(3000);
        let Form::Review { content, .. } = approval(&request(&["nats", &long]), false).unwrap()
        else {
            panic!("a long one is a review");
        };
        assert_eq!(content, format!("nats {long}"));
        let longest = "x".repeat(MAX_CONTENT);
        assert!(approval(&request(&["nats", &longest]), false).is_err());
    }

    #[test]
    fn options_that_fuse_could_not_tell_apart_are_refused() {
        let long = |end: &str| format!("{}{end}", "é".repeat(300));
        assert!(choices(&[long("a"), long("b")]).is_err());
        let fine = choices(&[long("a"), "b\u{7}".to_owned()]).unwrap();
        assert!(fine[0].len() <= MAX_CHOICE && fine[0].ends_with('…'));
        assert_eq!(fine[1], "b");
    }

    proptest! {
        #[test]
        fn an_approval_shows_all_of_the_command_line_and_nothing_hidden(argv in prop::collection::vec(any::<String>(), 1..40)) {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            let request = request(&argv);
            let (shown, whole) = match approval(&request, false).unwrap() {
                Form::Ask { question, .. } => (question.clone(), strip_and_cut(&question, MAX_TEXT)),
                Form::Review { content, .. } => (content.clone(), fuse_terminal::strip(&content)),
            };
            prop_assert!(shown.ends_with(request.command.whole()));
            prop_assert_eq!(shown, whole);
        }

        // check: FISK-13
        #[test]
        fn a_question_of_the_model_says_so_and_holds_nothing_hidden(question: String, default: String) {
            let asked = Input { question, default: Some(default) };
            let Form::Ask { question, .. } = input(&asked) else { unreachable!() };
            prop_assert!(question.starts_with("The agent asks: "));
            prop_assert!(!question.chars().any(fuse_terminal::is_dangerous));
        }
    }
}
