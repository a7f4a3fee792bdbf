use super::*;
use fuse_api::hitl::GrantReach;

fn several() -> Policy {
    policy(json!({"timeout_seconds": 900, "gates": [
        {"name":"n1","on":"exec","mode":"notify","match":{"program":"git"}},
        {"name":"a1","on":"exec","match":{"args":["push"]},"timeout_seconds":120,"grant":"env"},
        {"name":"d1","on":"exec","mode":"deny","match":{"args":["--force"]},"reason":"no force"},
        {"name":"a2","on":"exec","match":{"program":"git","args":["push"]},"grant":"ttl:30m"},
        {"name":"d2","on":"exec","mode":"deny","match":{"args":["--force"]}},
        {"name":"n2","on":"exec","mode":"notify","match":{"args":["push"]}},
    ]}))
}

fn names(gates: &[&PolicyGate]) -> Vec<String> {
    gates.iter().map(|gate| gate.name.clone()).collect()
}

#[test]
// check: GATE-4
// check: GATE-5
fn deny_beats_ask_beats_notify_and_nothing_is_forgotten() {
    let policy = several();
    let line = argv("git push --force");
    let verdict = policy.judge_exec(ExecAction::Argv(&line));
    assert_eq!(verdict.severity(), Severity::Deny);
    assert_eq!(verdict.deny.map(|gate| gate.name.as_str()), Some("d1"));
    assert_eq!(names(&verdict.asks), ["a1", "a2"]);
    assert_eq!(names(&verdict.notifies), ["n1", "n2"]);
    assert_eq!(severity(&policy, "git push"), Severity::Ask);
    assert_eq!(severity(&policy, "git log"), Severity::Notify);
    assert_eq!(severity(&policy, "ls"), Severity::Pass);
    assert!(
        Severity::Pass < Severity::Notify
            && Severity::Notify < Severity::Ask
            && Severity::Ask < Severity::Deny
    );
}

#[test]
// check: GATE-10
// check: GATE-20
fn the_deadline_is_the_shortest_of_the_set() {
    let policy = several();
    let line = argv("git push");
    let mut verdict = policy.judge_exec(ExecAction::Argv(&line));
    assert_eq!(verdict.timeout_seconds(), Some(120));
    verdict.drop_asks(|gate| gate.name == "a1");
    assert_eq!(
        (verdict.timeout_seconds(), names(&verdict.asks)),
        (Some(900), vec!["a2".to_owned()])
    );
    verdict.drop_asks(|_| true);
    assert_eq!(
        (verdict.timeout_seconds(), verdict.severity()),
        (None, Severity::Notify)
    );
}

#[test]
fn a_set_grants_no_further_than_its_most_careful_gate() {
    let policy = several();
    let line = argv("git push");
    assert_eq!(
        policy.judge_exec(ExecAction::Argv(&line)).default_grant(),
        GrantReach::Ttl(1_800_000_000_000)
    );
    assert_eq!(default_grant(&[&policy.gates()[1]]), GrantReach::Env);
    assert_eq!(
        default_grant(&[&policy.gates()[1], &policy.gates()[0]]),
        GrantReach::Once
    );
    assert_eq!(default_grant(&[]), GrantReach::Once);
}

#[test]
// check: GATE-7
fn a_denial_says_its_reason_or_names_its_gate() {
    let policy = several();
    assert_eq!(policy.gates()[2].denial(), "no force");
    assert_eq!(policy.gates()[4].denial(), "refused by hitl gate d2");
}

#[test]
// check: EDIT-2
// check: EDIT-3
fn an_edit_meets_refusals_and_records_but_is_not_held_again() {
    let policy = several();
    let refused = argv("git push --force");
    assert_eq!(policy.judge_edit(&refused).severity(), Severity::Deny);
    let fine = argv("git push");
    let verdict = policy.judge_edit(&fine);
    assert_eq!(
        (verdict.severity(), names(&verdict.notifies)),
        (Severity::Notify, vec!["n1".to_owned(), "n2".to_owned()])
    );
    let list = |default: &str| policy_of(default).judge_edit(&argv("rm x")).severity();
    assert_eq!(
        (list("ask"), list("deny")),
        (Severity::Pass, Severity::Deny)
    );
}

fn policy_of(default: &str) -> Policy {
    policy(json!({"exec":{"default":default,"allow":["ls"]}}))
}

#[test]
fn lifecycle_gates_match_by_name() {
    let policy = gates(
        json!([{"name":"g","on":"lifecycle","mode":"deny","match":{"action":["destroy","migrate"]}}]),
    );
    for action in LifecycleAction::ALL {
        let refused = matches!(action, LifecycleAction::Destroy | LifecycleAction::Migrate);
        assert_eq!(
            policy.judge_lifecycle(action).severity() == Severity::Deny,
            refused,
            "{action:?}"
        );
        assert_eq!(LifecycleAction::parse(action.as_str()), Some(action));
    }
    assert_eq!(severity(&policy, "destroy"), Severity::Pass);
}

#[test]
fn computer_gates_match_by_name_and_typed_text() {
    let policy = gates(json!([
        {"name":"drag","on":"computer","mode":"deny","match":{"action":["left_click_drag"]}},
        {"name":"prod","on":"computer","match":{"text_contains":["Prod.example.com", "rm -rf"]}},
        {"name":"typing","on":"computer","mode":"notify","match":{"action":"type"}},
    ]));
    let judge = |action, text| policy.judge_computer(action, text).severity();
    assert_eq!(judge(ComputerAction::LeftClickDrag, None), Severity::Deny);
    assert_eq!(
        judge(ComputerAction::Type, Some("ssh PROD.EXAMPLE.COM")),
        Severity::Ask
    );
    assert_eq!(
        judge(ComputerAction::Type, Some("ssh staging")),
        Severity::Notify
    );
    assert_eq!(
        judge(ComputerAction::Type, None),
        Severity::Ask,
        "a text that is not known may be anything"
    );
    assert_eq!(
        judge(ComputerAction::Key, Some("prod.example.com")),
        Severity::Pass
    );
    assert_eq!(policy.judge_retype("rm -rf /").severity(), Severity::Notify);
    for action in ComputerAction::ALL {
        assert_eq!(ComputerAction::parse(action.as_str()), Some(action));
    }
}

#[test]
// check: GRANT-1
// check: GRANT-5
fn a_grant_names_the_exact_command() {
    let line = |words: &[&str]| exec_digest(ExecAction::Argv(&super::words(words)));
    let push = line(&["git", "push"]);
    assert_eq!(push, line(&["git", "push"]));
    for other in [
        line(&["git push"]),
        line(&["git", "push", ""]),
        line(&["gitp", "ush"]),
        line(&["git"]),
        exec_digest(ExecAction::Shell("git push")),
    ] {
        assert_ne!(push, other);
    }
    assert!(
        push.len() == 64
            && push
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    );
}

#[test]
// check: GRANT-4
fn a_grant_is_recorded_for_every_gate_of_the_set() {
    let keys = GrantKey::for_set(["a1", "a2"], "digest");
    assert_eq!(
        keys,
        [GrantKey::new("a1", "digest"), GrantKey::new("a2", "digest")]
    );
}

#[test]
fn lifecycle_and_computer_grants_name_parameters_and_body() {
    let fork = |params| lifecycle_digest(LifecycleAction::Fork, &params);
    assert_eq!(fork(json!(null)), fork(json!({})));
    assert_ne!(fork(json!({"comment":"a"})), fork(json!({"comment":"b"})));
    assert_ne!(
        fork(json!({})),
        lifecycle_digest(LifecycleAction::Drain, &json!({}))
    );
    let body = |text: &str| computer_digest(&serde_json::from_str(text).expect("JSON"));
    assert_eq!(
        body(r#"{"action":"type","text":"a"}"#),
        body(r#"{"text":"a","action":"type"}"#)
    );
    for other in [
        r#"{"action":"type","text":"b"}"#,
        r#"{"action":"type"}"#,
        r#"{"action":"type","text":null}"#,
        r#"{"action":"type","text":["a"]}"#,
    ] {
        assert_ne!(body(r#"{"action":"type","text":"a"}"#), body(other));
    }
    assert_ne!(body("9007199254740993"), body("9007199254740992"));
}

#[test]
fn signals_and_targets_can_be_looked_up() {
    let policy = policy(json!({
        "requests": {"secret":{"targets":[{"env":"GH","label":"hub"},{"file":"/root/.netrc","label":"rc"}]},"takeover":{}},
        "gates": [{"name":"s","on":"stall","match":{"failures":3,"quiet_seconds":60}},{"name":"e","on":"expiry","match":{"before_seconds":300}}]
    }));
    assert_eq!(policy.gates()[0].stall(), Some((Some(3), Some(60))));
    assert_eq!(policy.gates()[1].expiry(), Some(300));
    assert_eq!(
        (policy.gates()[0].expiry(), policy.gates()[1].stall()),
        (None, None)
    );
    assert_eq!(
        (
            policy.secret_label("GH"),
            policy.secret_label("/root/.netrc"),
            policy.secret_label("X")
        ),
        (Some("hub"), Some("rc"), None)
    );
    assert_eq!(policy.takeover_via(), [Via::Terminal]);
    assert!(gates(json!([])).takeover_via().is_empty());
    assert_eq!(Policy::reload(policy.block()), Ok(policy));
}
