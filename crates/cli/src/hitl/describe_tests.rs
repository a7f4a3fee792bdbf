//! What people get to see of hostile interventions.

use super::*;
use serde_json::json;

const PLAIN: View = View {
    colour: ColourChoice::Plain,
    columns: None,
    full: false,
};

fn intervention(kind: &str, payload: serde_json::Value) -> Intervention {
    serde_json::from_value(json!({
        "id": "int_018700000000700080000000000000aa",
        "env_id": "fuse-agent",
        "kind": kind,
        "state": "pending",
        "deadline": "2026-01-01T00:10:00Z",
        "created_at": "2026-01-01T00:00:00Z",
        "resolved_at": null,
        "triggered_by": {"id": "ci\u{1b}[2J", "name": "bad\u{202e}name", "source": "asserted"},
        "payload": payload,
        "payload_hash": "00",
    }))
    .unwrap()
}

pub fn ask(question: &str) -> Intervention {
    intervention("ask", json!({"ask": {"question": question}}))
}

fn exec(argv: &[&str]) -> Intervention {
    intervention(
        "exec",
        json!({"exec": {"argv": argv}, "gate_reason": "line\nstate approved\u{1b}[1A"}),
    )
}

// check: CLI-9
#[test]
fn a_held_lifecycle_action_is_shown_whole() {
    let bare = intervention("lifecycle", json!({"lifecycle": {"action": "destroy"}}));
    assert_eq!(summary(&bare), "destroy");
    assert!(
        details(&bare, PLAIN)
            .lines()
            .any(|line| line.starts_with("action") && line.ends_with("destroy")),
        "{}",
        details(&bare, PLAIN)
    );
    let with = json!({"lifecycle": {"action": "migrate", "params": {"target_host_id": "h-2"}}});
    assert!(details(&intervention("lifecycle", with), PLAIN).contains("h-2"));
}

// check: CLI-5
#[test]
fn nothing_an_agent_wrote_drives_the_terminal() {
    let evil = "\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\u{200b}\r\n\u{7f}end";
    let mut all = vec![
        ask(evil),
        exec(&["echo", evil]),
        intervention(
            "review",
            json!({"review": {"path": format!("/x{evil}"), "content": evil, "format": "diff", "message": evil}}),
        ),
    ];
    all[0].payload.ask.as_mut().unwrap().choices = vec![evil.to_owned()];
    for intervention in all {
        let mut text = details(&intervention, PLAIN) + &summary(&intervention);
        if let Some(review) = &intervention.payload.review {
            text += &review_content(review, ColourChoice::Plain);
        }
        assert!(
            text.chars()
                .all(|c| c == '\n' || !fuse_terminal::is_dangerous(c)),
            "{text:?}"
        );
        assert!(text.contains("end"), "{text}");
    }
}

// check: CLI-6
#[test]
fn what_will_run_is_quoted_and_made_visible() {
    let text = details(&exec(&["rm", "-rf", "a b", "x\u{202e}y"]), PLAIN);
    assert!(
        text.contains(r"will run     rm -rf 'a b' $'x\u{202e}y'"),
        "{text}"
    );
}

// check: CLI-21
#[test]
fn a_long_command_is_cut_with_a_mark_and_whole_on_demand() {
    let long = "x".repeat(3000);
    let held = exec(&["echo", &long]);
    let cut = details(&held, PLAIN);
    assert!(
        cut.contains("[cut: 1005 more characters; show the whole before approving]"),
        "{cut}"
    );
    assert!(
        details(
            &held,
            View {
                full: true,
                ..PLAIN
            }
        )
        .contains(&long)
    );
    let question = details(&ask(&long), PLAIN);
    assert!(
        question.contains(&format!("{}…\n", "x".repeat(499))) && question.contains("--full"),
        "{question}"
    );
}

#[test]
fn no_line_of_an_agent_passes_for_a_label() {
    let text = details(&exec(&["true"]), PLAIN);
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("state"))
            .count(),
        1,
        "{text}"
    );
}

// check: CLI-9
#[test]
fn a_diff_is_coloured_for_a_terminal_alone() {
    let review = intervention(
        "review",
        json!({"review": {"content": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", "format": "diff"}}),
    );
    let review = review.payload.review.unwrap();
    assert!(review_content(&review, ColourChoice::Plain).ends_with("@@ -1 +1 @@\n-x\n+y\n"));
    assert!(review_content(&review, ColourChoice::Colour).contains("\u{1b}[32m+y\u{1b}[0m"));
}
