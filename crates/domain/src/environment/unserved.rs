//! Members of the public API that this server does not serve yet.

use fuse_api::environment::CreateEnvironment;
use serde_json::Value;

/// The first member that is set although it is not served, by its path in the request; the answer to it is 501.
///
/// What is absent, `null` or empty (zero and `false` included) asks for nothing and is fine.
#[must_use]
pub fn unserved_member(request: &CreateEnvironment) -> Option<&'static str> {
    let spec = &request.spec;
    let text = |text: &Option<String>| text.as_deref().is_some_and(|t| !t.is_empty());
    let value = |value: &Option<Value>| value.as_ref().is_some_and(asks_for_something);
    let wm = request.desktop.as_ref().is_some_and(|d| text(&d.wm));
    [
        ("expose", value(&request.expose)),
        ("healthcheck", value(&request.healthcheck)),
        ("manifest_inline", value(&request.manifest_inline)),
        ("gateway_url", value(&request.gateway_url)),
        ("gateway_token", value(&request.gateway_token)),
        ("egress", value(&request.egress)),
        ("spec.gpus", spec.gpus.is_some_and(|n| n > 0)),
        ("spec.gpu_kind", text(&spec.gpu_kind)),
        ("spec.gpu_profile", text(&spec.gpu_profile)),
        ("spec.arch", text(&spec.arch)),
        ("spec.huge_pages", spec.huge_pages == Some(true)),
        ("desktop.wm", wm),
    ]
    .into_iter()
    .find_map(|(member, asked)| asked.then_some(member))
}

fn asks_for_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(mut request: Value) -> Option<&'static str> {
        request["task_id"] = json!("a");
        unserved_member(&serde_json::from_value(request).unwrap())
    }

    // check: ENV-10
    #[test]
    fn a_member_that_is_not_served_is_named() {
        for (request, member) in [
            (json!({"expose": {"port": 80}}), "expose"),
            (json!({"healthcheck": {"cmd": ["x"]}}), "healthcheck"),
            (json!({"manifest_inline": "a"}), "manifest_inline"),
            (json!({"gateway_url": "https://g"}), "gateway_url"),
            (json!({"gateway_token": "t"}), "gateway_token"),
            (json!({"egress": ["example.com"]}), "egress"),
            (json!({"egress": true}), "egress"),
            (json!({"spec": {"gpus": 1}}), "spec.gpus"),
            (json!({"spec": {"gpu_kind": "a"}}), "spec.gpu_kind"),
            (json!({"spec": {"gpu_profile": "a"}}), "spec.gpu_profile"),
            (json!({"spec": {"arch": "arm64"}}), "spec.arch"),
            (json!({"spec": {"huge_pages": true}}), "spec.huge_pages"),
            (
                json!({"desktop": {"width": 800, "height": 600, "wm": "i3"}}),
                "desktop.wm",
            ),
        ] {
            assert_eq!(asked(request.clone()), Some(member), "{request}");
        }
    }

    // check: ENV-10
    #[test]
    fn absent_null_and_empty_members_ask_for_nothing() {
        for empty in [
            json!(null),
            json!(""),
            json!([]),
            json!({}),
            json!(0),
            json!(false),
        ] {
            let request = json!({"expose": empty, "healthcheck": empty, "manifest_inline": empty,
                "gateway_url": empty, "gateway_token": empty, "egress": empty,
                "spec": {"gpus": 0, "gpu_kind": "", "gpu_profile": null, "arch": "", "huge_pages": false},
                "desktop": {"width": 800, "height": 600, "wm": ""}});
            assert_eq!(asked(request), None, "{empty}");
        }
        assert_eq!(asked(json!({})), None);
    }
}
