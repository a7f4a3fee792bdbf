//! The tools of real applications, as pictures to read in a review.

mod common;

use common::{fixture, introspect};
use fisk_domain::{Selection, Toolset};

/// The tools of a real application as they are committed; `FISK_GOLDEN=write` writes them anew.
#[allow(
    clippy::disallowed_methods,
    reason = "the picture is a file, and whether it is written is the person's choice"
)]
fn golden(name: &str, selection: &Selection) {
    let (tools, warnings) = Toolset::from_introspection(&introspect(name, ""), selection).unwrap();
    let mut picture = String::new();
    for tool in tools.tools() {
        let tags: Vec<&str> = tool.tags().iter().map(String::as_str).collect();
        let gate = if tool.is_gated() { " GATED" } else { "" };
        picture.push_str(&format!("{}{gate} [{}]\n", tool.name(), tags.join(" ")));
        for (label, names) in [
            ("required", tool.required().collect::<Vec<_>>()),
            ("optional", tool.optional().collect()),
        ] {
            if !names.is_empty() {
                picture.push_str(&format!("    {label}: {}\n", names.join(" ")));
            }
        }
    }
    for warning in warnings {
        picture.push_str(&format!("warning: {warning}\n"));
    }
    let path = format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("FISK_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, &picture).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == picture,
        "{path} differs from what {} offers; FISK_GOLDEN=write writes it anew",
        fixture(name).display()
    );
}

// check: FISK-21
// check: FISK-27
#[test]
fn the_tools_of_real_applications_are_the_committed_ones() {
    golden("app", &Selection::default());
    golden("app-old", &Selection::default());
    golden(
        "nats",
        &Selection {
            confirm_tags: vec!["impact:rw".into()],
            global_flags: vec!["context".into()],
            ..Selection::default()
        },
    );
}
