//! What the model may ask.

use fisk_domain::Rejected;
use fuse_terminal::{MAX_OPTIONS, MAX_TEXT, OptionsError, options, strip};
use serde_json::{Map, Value, json};

use super::{AskTool, Question};
use crate::prompter::{Confirm, Input, Select};

pub(super) fn schema(tool: AskTool) -> Value {
    let question = json!({
        "type": "string",
        "minLength": 1,
        "description": format!("What to ask: plain text on one line, of which {MAX_TEXT} characters are shown."),
    });
    let (properties, required) = match tool {
        AskTool::Confirm => (
            json!({
                "question": question,
                "default": {"type": "boolean", "description": "What you suggest. It is shown, and never chosen for the operator."},
            }),
            json!(["question"]),
        ),
        AskTool::Select => (
            json!({
                "question": question,
                "options": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "minItems": 1,
                    "maxItems": MAX_OPTIONS,
                    "uniqueItems": true,
                    "description": "What to choose from. They have to look different.",
                },
                "default": {"type": "string", "description": "Which of the options you suggest. It is shown, and never chosen for the operator."},
            }),
            json!(["question", "options"]),
        ),
        AskTool::Input => (
            json!({
                "question": question,
                "default": {"type": "string", "minLength": 1, "description": "What you suggest. It is shown, and taken where the operator answers with nothing else."},
            }),
            json!(["question"]),
        ),
    };
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

pub(super) fn question(tool: AskTool, input: &Map<String, Value>) -> Result<Question, Rejected> {
    let allowed: &[&str] = match tool {
        AskTool::Confirm | AskTool::Input => &["question", "default"],
        AskTool::Select => &["question", "options", "default"],
    };
    for name in input.keys() {
        if !allowed.contains(&name.as_str()) {
            return Err(Rejected::property(
                name,
                format!("is unknown; {} are allowed", allowed.join(", ")),
            ));
        }
    }
    let question = required_text(input, "question")?;
    Ok(match tool {
        AskTool::Confirm => Question::Confirm(Confirm {
            question,
            default: match input.get("default") {
                None => None,
                Some(Value::Bool(default)) => Some(*default),
                Some(other) => return Err(mistyped("default", "true or false", other)),
            },
        }),
        AskTool::Select => {
            let options = choices(input)?;
            let default = text(input, "default")?;
            if let Some(default) = &default
                && !options.contains(default)
            {
                let message = format!("has to be one of the options: {}", listed(&options));
                return Err(Rejected::property("default", message));
            }
            Question::Select(Select {
                question,
                options,
                default,
            })
        }
        AskTool::Input => {
            let default = match input.get("default") {
                None => None,
                Some(_) => Some(required_text(input, "default")?),
            };
            Question::Input(Input { question, default })
        }
    })
}

fn listed(options: &[String]) -> String {
    let all: Vec<String> = options.iter().map(|option| format!("{option:?}")).collect();
    all.join(", ")
}

fn choices(input: &Map<String, Value>) -> Result<Vec<String>, Rejected> {
    let list = match input.get("options") {
        None => {
            return Err(Rejected::property(
                "options",
                format!("is missing; a list of 1 to {MAX_OPTIONS} texts is required"),
            ));
        }
        Some(Value::Array(list)) => list,
        Some(other) => return Err(mistyped("options", "a list of texts", other)),
    };
    if list.is_empty() {
        return Err(Rejected::property(
            "options",
            format!("is empty; 1 to {MAX_OPTIONS} are allowed"),
        ));
    }
    let mut texts = Vec::with_capacity(list.len().min(MAX_OPTIONS));
    for (index, value) in list.iter().enumerate() {
        match value {
            Value::String(text) => texts.push(text.clone()),
            other => return Err(mistyped(&format!("options[{index}]"), "a text", other)),
        }
    }
    match options(&texts) {
        Ok(_) => Ok(texts),
        Err(error @ OptionsError::TooMany { .. }) => {
            Err(Rejected::property("options", error.to_string()))
        }
        Err(OptionsError::Blank { index }) => Err(Rejected::property(
            format!("options[{index}]"),
            "is blank once it is made safe to show; at least one visible character is required",
        )),
        Err(OptionsError::Same { first, second }) => Err(Rejected::property(
            format!("options[{second}]"),
            format!(
                "looks like options[{first}] once it is made safe to show; the first {MAX_TEXT} characters have to differ"
            ),
        )),
    }
}

/// A text of which something can be seen.
fn required_text(input: &Map<String, Value>, name: &str) -> Result<String, Rejected> {
    let text = text(input, name)?.ok_or_else(|| {
        Rejected::property(name, "is missing; a text that is not blank is required")
    })?;
    if strip(&text).trim().is_empty() {
        return Err(Rejected::property(
            name,
            "is blank once it is made safe to show; a text that is not blank is required",
        ));
    }
    Ok(text)
}

fn text(input: &Map<String, Value>, name: &str) -> Result<Option<String>, Rejected> {
    match input.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(mistyped(name, "a text", other)),
    }
}

fn mistyped(name: &str, wanted: &str, got: &Value) -> Rejected {
    let got = match got {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Rejected::property(name, format!("is {got}; {wanted} is required"))
}
