//! A typed reading's complaint in the words of whoever wrote the JSON.

/// The path and the message for an error that arose at `path` (`.` is the body itself).
///
/// A value is never part of the message: it may be a secret. Numbers, names of fields and names of choices are not values.
pub fn explain(path: &str, error: &serde_json::Error) -> (String, String) {
    let path = if path == "." { "" } else { path };
    let whole = error.to_string();
    let text = match whole.rfind(" at line ") {
        Some(end) => &whole[..end],
        None => &whole,
    };
    let (path, message) = if let Some(field) = quoted(text, "missing field `") {
        (join(path, field), "is required".to_owned())
    } else if let Some(rest) = text.strip_prefix("unknown field `") {
        let allowed = rest.split_once("`, ").map_or(rest, |(_, allowed)| allowed);
        (path.to_owned(), format!("unknown field, {allowed}"))
    } else if let Some(rest) = text.strip_prefix("unknown variant `") {
        let allowed = rest.split_once("`, ").map_or(rest, |(_, allowed)| allowed);
        (path.to_owned(), format!("unknown value, {allowed}"))
    } else if let Some(rest) = text.strip_prefix("invalid type: ") {
        (path.to_owned(), mismatch(rest, ""))
    } else if let Some(rest) = text.strip_prefix("invalid value: ") {
        (path.to_owned(), mismatch(rest, " that is out of range"))
    } else if text.starts_with("data did not match any variant of untagged enum Run") {
        let forms =
            "expected a command line (a string) or program and arguments (a list of strings)";
        (path.to_owned(), forms.to_owned())
    } else if text.starts_with("data did not match any variant") {
        (
            path.to_owned(),
            "has none of the forms that are allowed here".to_owned(),
        )
    } else {
        (path.to_owned(), text.to_owned())
    };
    if path.is_empty() {
        ("body".to_owned(), message)
    } else {
        (path, message)
    }
}

fn quoted<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.split('`').next()
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}

/// `FOUND, expected EXPECTED`, where FOUND may quote the value.
fn mismatch(rest: &str, note: &str) -> String {
    // The value may hold the separator itself; what is expected never does.
    let (found, expected) = rest
        .rsplit_once(", expected ")
        .unwrap_or((rest, "something else"));
    let found = found.split(['`', '"']).next().unwrap_or_default().trim();
    let found = match found {
        "string" => "a string",
        "integer" => "an integer",
        "floating point" => "a decimal number",
        "boolean" => "a boolean",
        "sequence" => "a list",
        "map" => "an object",
        "null" | "unit value" | "Option value" => "null",
        other => other,
    };
    format!("expected {}, found {found}{note}", wanted(expected))
}

fn wanted(expected: &str) -> String {
    match expected {
        "u64" | "u32" | "u16" | "u8" | "usize" => "a whole number of 0 or more".to_owned(),
        "i64" | "i32" => "a whole number".to_owned(),
        "f64" | "f32" => "a number".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "string or map" => "a string".to_owned(),
        _ if expected.starts_with("struct ") => "an object".to_owned(),
        _ if expected.starts_with("variant ") || expected.starts_with("enum ") => {
            "a name".to_owned()
        }
        other => other.to_owned(),
    }
}
