//! Whatever an application prints about itself: no panic, and the tools that come of it can be told apart and are allowed.
#![no_main]

use std::collections::BTreeSet;

use fisk_domain::{BUILT_IN_TOOLS, Patterns, Selection, Toolset};
use libfuzzer_sys::fuzz_target;

fn name_is_plain(name: &str, more: &[u8]) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('-')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || more.contains(&b))
}

fuzz_target!(|bytes: &[u8]| {
    let narrow = Selection {
        include: Patterns {
            tools: vec!["a".to_owned()],
            tags: vec!["t".to_owned()],
        },
        exclude: Patterns {
            tools: vec!["^b".to_owned()],
            tags: vec!["x".to_owned()],
        },
        confirm_tags: vec!["impact:rw".to_owned()],
        global_flags: vec!["context".to_owned()],
    };
    for selection in [Selection::default(), narrow] {
        let (tools, warnings) = match Toolset::from_introspection(bytes, &selection) {
            Ok(derived) => derived,
            Err(error) => {
                let text = error.to_string();
                assert!(!text.is_empty() && text.len() < 4000, "{text}");
                continue;
            }
        };
        for warning in warnings {
            assert!(!warning.to_string().is_empty());
        }
        let mut seen = BTreeSet::new();
        for tool in tools.tools() {
            let name = tool.name().as_str();
            assert!(seen.insert(name), "{name} twice");
            assert!(name_is_plain(name, b"_-") && !BUILT_IN_TOOLS.contains(&name));
            assert!(
                tool.path()
                    .iter()
                    .all(|word| !word.is_empty() && !word.starts_with('-'))
            );
            assert!(
                !tool
                    .tags()
                    .iter()
                    .any(|tag| tag.trim().eq_ignore_ascii_case("ai:deny"))
            );
            let confirm = tool
                .tags()
                .iter()
                .any(|tag| tag.trim().eq_ignore_ascii_case("ai:confirm"));
            assert!(tool.is_gated() || !confirm);
            let schema = tool.input_schema();
            assert_eq!(schema["additionalProperties"], false);
            let properties = schema["properties"].as_object().expect("an object");
            assert!(properties.keys().all(|key| name_is_plain(key, b"_-.")));
            assert!(tool.required().all(|key| properties.contains_key(key)));
            assert_eq!(
                properties.len(),
                tool.required().count() + tool.optional().count()
            );
            // An empty call is either whole or lacks what is required.
            let called = tool.args_from_json(&serde_json::Map::new());
            assert_eq!(called.is_err(), tool.required().next().is_some());
        }
    }
});
