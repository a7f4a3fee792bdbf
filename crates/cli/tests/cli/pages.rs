//! Completions, manual pages, schemas.

use crate::support::Home;

// check: CLI-16
#[test]
fn completions_are_printed_for_every_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = home.run(&["completions", shell]).ok();
        assert!(
            text.contains("environment") && text.contains("hitl"),
            "{shell}"
        );
    }
    assert_eq!(home.run(&["completions", "dos"]).code, Some(2));
}

// check: CLI-16
#[test]
fn every_command_has_a_manual_page() {
    let home = Home::new();
    home.run(&["man", "pages"]).ok();
    for page in [
        "fuse.1",
        "fuse-dev.1",
        "fuse-up.1",
        "fuse-environment-exec.1",
        "fuse-hitl-approve.1",
        "fuse-apikeys-create.1",
    ] {
        let text = std::fs::read_to_string(home.path().join("pages").join(page)).unwrap();
        assert!(text.contains(".TH"), "{page}");
    }
    assert!(home.run(&["man"]).ok().contains(".TH"));
}

#[test]
fn the_schemas_are_json() {
    let home = Home::new();
    let openapi: serde_json::Value = serde_json::from_str(&home.run(&["openapi"]).ok()).unwrap();
    assert!(openapi["openapi"].as_str().unwrap().starts_with("3.1"));
    let schema: serde_json::Value = serde_json::from_str(&home.run(&["schema"]).ok()).unwrap();
    assert!(schema["properties"]["hitl"].is_object());
}
