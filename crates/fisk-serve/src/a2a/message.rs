//! What a message asks for. There is no model to read it, so it has one shape.

use a2a::{A2AError, Message, Part, PartContent, SendMessageRequest};
use serde_json::{Map, Value};

const SHAPE: &str = "send one data part {\"tool\": NAME, \"input\": {...}}, or the same JSON as one text part; the agent card lists the names";

/// The longest context id: each task that is remembered keeps its own.
const MAX_CONTEXT: usize = 256;

/// One call of one command.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) input: Map<String, Value>,
}

/// Reads a request.
pub(super) fn asked(request: SendMessageRequest) -> Result<Asked, A2AError> {
    let wants_push = request
        .configuration
        .is_some_and(|configuration| configuration.task_push_notification_config.is_some());
    if wants_push {
        return Err(A2AError::push_notification_not_supported());
    }
    let Message {
        task_id,
        context_id,
        parts,
        ..
    } = request.message;
    if task_id.is_some() {
        return Err(A2AError::unsupported_operation(
            "a task is one call and takes no further message; leave taskId out",
        ));
    }
    if context_id.is_some_and(|id| id.is_empty() || id.len() > MAX_CONTEXT) {
        return Err(A2AError::invalid_params(format!(
            "contextId: 1 to {MAX_CONTEXT} bytes are allowed"
        )));
    }
    let value = match <[Part; 1]>::try_from(parts).map(|[part]| part.content) {
        Ok(PartContent::Data(value)) => value,
        Ok(PartContent::Text(text)) => serde_json::from_str(&text)
            .map_err(|_| wrong("the text is no JSON (there is no model here to read it)"))?,
        Ok(PartContent::Raw(_) | PartContent::Url(_)) => {
            return Err(wrong("files are not taken"));
        }
        Err(parts) => return Err(wrong(&format!("the message has {} parts", parts.len()))),
    };
    let Value::Object(mut value) = value else {
        return Err(wrong("the part is no JSON object"));
    };
    let tool = match value.remove("tool") {
        Some(Value::String(tool)) => tool,
        Some(_) => return Err(wrong("\"tool\" is no text")),
        None => return Err(wrong("\"tool\" is missing")),
    };
    let input = match value.remove("input") {
        Some(Value::Object(input)) => input,
        Some(_) => return Err(wrong("\"input\" is no JSON object")),
        None => Map::new(),
    };
    match value.keys().next() {
        Some(other) => Err(wrong(&format!("{other:?} is not known"))),
        None => Ok(Asked { tool, input }),
    }
}

fn wrong(what: &str) -> A2AError {
    A2AError::invalid_params(format!("{what}: {SHAPE}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(parts: Value) -> Result<Asked, String> {
        let request = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts}});
        asked(serde_json::from_value(request).unwrap()).map_err(|error| error.message)
    }

    // check: FISK-58
    #[test]
    fn a_call_is_data_or_the_same_json_as_text() {
        let call = json!({"tool": "echo", "input": {"text": "x"}});
        let as_data = read(json!([{"data": call}])).unwrap();
        let as_text = read(json!([{"text": call.to_string()}])).unwrap();
        assert_eq!(as_data, as_text);
        assert_eq!(as_data.tool, "echo");
        assert_eq!(as_data.input["text"], json!("x"));
        assert!(
            read(json!([{"data": {"tool": "echo"}}]))
                .unwrap()
                .input
                .is_empty()
        );
    }

    // check: FISK-58
    #[test]
    fn anything_else_is_refused_with_the_shape() {
        for parts in [
            json!([]),
            json!([{"text": "please restart it"}]),
            json!([{"text": "[]"}]),
            json!([{"data": {"tool": "a"}}, {"data": {"tool": "b"}}]),
            json!([{"data": "echo"}]),
            json!([{"data": {"input": {}}}]),
            json!([{"data": {"tool": 1}}]),
            json!([{"data": {"tool": "echo", "input": []}}]),
            json!([{"data": {"tool": "echo", "input": null}}]),
            json!([{"data": {"tool": "echo", "approve": true}}]),
            json!([{"url": "http://localhost/x"}]),
        ] {
            let error = read(parts.clone()).unwrap_err();
            assert!(error.ends_with(SHAPE), "{parts}: {error}");
        }
    }

    // check: FISK-60
    #[test]
    fn a_context_is_named_in_so_many_bytes() {
        let named = |context: String| {
            let message = json!({"messageId": "m", "role": "ROLE_USER", "contextId": context, "parts": [{"data": {"tool": "echo"}}]});
            asked(serde_json::from_value(json!({"message": message})).unwrap())
        };
        assert!(named("c".repeat(MAX_CONTEXT)).is_ok());
        for bad in [String::new(), "c".repeat(MAX_CONTEXT + 1)] {
            let error = named(bad).unwrap_err().message;
            assert!(
                error.starts_with("contextId") && error.contains("256"),
                "{error}"
            );
        }
    }
}
