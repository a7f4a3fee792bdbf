//! Rules that need more than the gate itself: ranges of signals, targets, webhooks, facts.

use super::validation::{NONE, gate, paths};
use super::*;

#[test]
// check: CONF-25
fn signals_have_ranges() {
    let stall = |wanted: Value| gate(json!({"name":"g","on":"stall","match":wanted}));
    for (value, fine) in [
        (1, true),
        (100, true),
        (0, false),
        (101, false),
        (-1, false),
    ] {
        assert_eq!(stall(json!({"failures":value})).is_empty(), fine, "{value}");
    }
    for (value, fine) in [(60, true), (86_400, true), (59, false), (86_401, false)] {
        assert_eq!(
            stall(json!({"failures":1,"quiet_seconds":value})).is_empty(),
            fine,
            "{value}"
        );
    }
    for (value, fine) in [(60, true), (59, false), (86_401, false)] {
        let found = gate(json!({"name":"g","on":"expiry","match":{"before_seconds":value}}));
        assert_eq!(found.is_empty(), fine, "{value}");
    }
}

#[test]
// check: CONF-26
fn an_expiry_needs_a_reaper_whose_window_is_longer() {
    let wanted =
        block(json!({"gates":[{"name":"g","on":"expiry","match":{"before_seconds":300}}]}));
    let fine = |idle: Option<i64>, runtime: Option<i64>, has_task: bool| {
        let facts = PolicyFacts {
            idle_timeout_seconds: idle,
            max_runtime_seconds: runtime,
            has_task,
            ..facts()
        };
        Policy::compile(&wanted, &facts).is_ok()
    };
    assert!(
        fine(Some(301), None, false)
            && fine(None, Some(301), true)
            && fine(Some(60), Some(301), true)
    );
    assert!(
        !fine(None, None, true)
            && !fine(Some(300), None, true)
            && !fine(None, Some(3000), false)
            && !fine(Some(0), None, false)
    );
    assert!(Policy::reload(&wanted).is_ok());
}

#[test]
// check: CONF-27
fn a_secret_target_is_one_labelled_place() {
    let targets = |targets: Value| -> Vec<String> {
        let found = paths(json!({"requests":{"secret":{"targets":targets}}}));
        found
            .into_iter()
            .map(|path| {
                path.trim_start_matches("hitl.requests.secret.targets")
                    .to_owned()
            })
            .collect()
    };
    for fine in [
        json!({"env":"_A9","label":"x"}),
        json!({"file":"/root/.netrc","label":"x"}),
        json!({"file":"/fused/x","label":"x"}),
        json!({"file":"/a b","label":"x"}),
    ] {
        assert_eq!(targets(json!([fine])), NONE);
    }
    for name in ["", "9A", "A-B", "A=B", "\u{c4}", "A B"] {
        assert_eq!(
            targets(json!([{"env":name,"label":"x"}])),
            ["[0].env"],
            "{name}"
        );
    }
    for file in [
        "",
        "root/x",
        "/",
        "/a/",
        "/a//b",
        "/a/../b",
        "/./a",
        "/fuse",
        "/fuse/token",
        "/a\0b",
        "//fuse/x",
    ] {
        assert_eq!(
            targets(json!([{"file":file,"label":"x"}])),
            ["[0].file"],
            "{file}"
        );
    }
    assert_eq!(
        targets(json!([{"env":"A","file":"/a","label":"x"}])),
        ["[0]"]
    );
    assert_eq!(targets(json!([{"label":"x"}])), ["[0]"]);
    assert_eq!(targets(json!([{"env":"A","label":" "}])), ["[0].label"]);
    assert_eq!(
        targets(json!([{"env":"A","label":"x"},{"env":"A","label":"y"}])),
        ["[1]"]
    );
    let many = |n: usize| {
        targets(
            (0..n)
                .map(|i| json!({"env":format!("A{i}"),"label":"x"}))
                .collect(),
        )
    };
    assert_eq!(
        (many(0), many(1), many(20), many(21)),
        (vec![String::new()], vec![], vec![], vec![String::new()])
    );
}

#[test]
// check: CONF-28
// check: CONF-29
fn secrets_need_sealing_and_a_desktop_takeover_a_desktop() {
    let bare = PolicyFacts::default();
    let found = |value: Value| -> Vec<String> {
        let result = Policy::compile(&block(value), &bare);
        result
            .err()
            .into_iter()
            .flatten()
            .map(|violation| violation.path)
            .collect()
    };
    assert_eq!(
        found(json!({"requests":{"secret":{"targets":[{"env":"A","label":"x"}]}}})),
        ["hitl.requests.secret"]
    );
    assert_eq!(
        found(json!({"requests":{"takeover":{"via":["terminal","desktop"]}}})),
        ["hitl.requests.takeover.via[1]"]
    );
    for fine in [
        json!({"requests":{"takeover":{}}}),
        json!({"requests":{"takeover":{"via":["terminal"]}}}),
        json!({"requests":{"ask":{},"review":{}}}),
    ] {
        assert_eq!(found(fine), NONE);
    }
}

#[test]
// check: CONF-30
fn at_most_five_webhooks_are_declared() {
    let hooks =
        |n: usize| paths(json!({"notify": vec![json!({"webhook":"https://h","secret":"s"}); n]}));
    assert_eq!(hooks(5), NONE);
    assert_eq!(hooks(6), ["hitl.notify"]);
    assert_eq!(
        paths(json!({"notify":[{}]})),
        ["hitl.notify[0].webhook", "hitl.notify[0].secret"]
    );
}

#[test]
// check: CONF-31
fn an_allow_entry_is_a_basename_or_an_absolute_path() {
    for fine in [
        "ls",
        "[",
        "/usr/bin/[",
        "/opt/tool-1.2/bin/x",
        "python3.12",
        "g++",
    ] {
        assert_eq!(paths(json!({"exec":{"allow":[fine]}})), NONE, "{fine}");
    }
    for bad in [
        "",
        "*",
        "git*",
        "a b",
        "./git",
        "bin/git",
        "/usr/bin/",
        "/usr/../x",
        "/usr/bin/*",
        "/opt/*/x",
        "A=1",
        "~/x",
        "/",
        "git push",
        "a\t",
    ] {
        assert_eq!(
            paths(json!({"exec":{"allow":["ls", bad]}})),
            ["hitl.exec.allow[1]"],
            "{bad}"
        );
    }
    assert_eq!(paths(json!({"exec":{}})), NONE);
}

#[test]
// check: CONF-6
fn a_message_says_what_is_allowed_and_repeats_no_more_than_it_must() {
    let long = "*".repeat(5000);
    let violations = Policy::compile(
        &block(json!({"gates":[{"name":long,"on":"exec","match":{"program":"a"}}]})),
        &facts(),
    )
    .unwrap_err();
    assert!(violations[0].message.len() < 200);
    assert!(
        violations[0]
            .message
            .contains("1 to 64 of a-z 0-9 - _ . are allowed")
    );
    assert!(
        violations[0]
            .to_string()
            .starts_with("hitl.gates[0].name: is ")
    );
}
