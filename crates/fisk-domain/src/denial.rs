//! Negative answers, as the model reads them.

use serde::Serialize;
use serde_json::{Value, json};

/// Ends the reason of every negative answer, so that the model reasons about it and does not try its way around it.
pub const FINAL: &str = "this decision is final, do not retry";

/// A gated command that does not run. It is an ordinary result of the tool, not an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denial {
    allowed: bool,
    reason: String,
}

impl Denial {
    /// `why` says who or what denied, without a full stop.
    pub fn new(why: &str) -> Self {
        Self {
            allowed: false,
            reason: reason(why),
        }
    }

    /// The whole reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The tool result.
    pub fn to_json(&self) -> Value {
        json!({"allowed": false, "reason": self.reason})
    }
}

/// The negative answer of an `ask_human_*` tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Negative {
    /// `ask_human_confirm`: no.
    Confirm,
    /// `ask_human_select`: none of the options.
    Select,
    /// `ask_human_input`: no value.
    Input,
}

impl Negative {
    /// The tool result. `why` says what happened, without a full stop.
    pub fn to_json(self, why: &str) -> Value {
        let reason = reason(why);
        match self {
            Self::Confirm => json!({"confirmed": false, "reason": reason}),
            Self::Select => json!({"selected": null, "reason": reason}),
            Self::Input => json!({"value": null, "reason": reason}),
        }
    }
}

fn reason(why: &str) -> String {
    format!("{why}; {FINAL}")
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: FISK-11
    #[test]
    fn every_negative_answer_ends_with_the_note_not_to_retry() {
        let denial = Denial::new("the operator denied this command");
        let all = [
            denial.to_json(),
            serde_json::to_value(&denial).unwrap(),
            Negative::Confirm.to_json("no"),
            Negative::Select.to_json("no"),
            Negative::Input.to_json("no"),
        ];
        for answer in all {
            assert!(
                answer["reason"].as_str().unwrap().ends_with(FINAL),
                "{answer}"
            );
        }
    }

    // check: FISK-12
    #[test]
    fn a_negative_answer_says_no_in_the_words_of_its_tool() {
        assert_eq!(Negative::Confirm.to_json("x")["confirmed"], json!(false));
        assert!(Negative::Select.to_json("x")["selected"].is_null());
        assert!(Negative::Input.to_json("x")["value"].is_null());
        assert!(Negative::Input.to_json("x").get("selected").is_none());
    }
}
