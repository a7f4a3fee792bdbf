use super::*;

/// The paths of a block's violations.
pub(super) fn paths(value: Value) -> Vec<String> {
    match Policy::compile(&block(value), &facts()) {
        Ok(_) => Vec::new(),
        Err(violations) => violations
            .into_iter()
            .map(|violation| violation.path)
            .collect(),
    }
}

/// The violations of one gate, without the gate's own path.
pub(super) fn gate(gate: Value) -> Vec<String> {
    paths(json!({ "gates": [gate] }))
        .into_iter()
        .map(|path| path.trim_start_matches("hitl.gates[0].").to_owned())
        .collect()
}

/// The violations of an exec gate's match.
fn exec(wanted: Value) -> Vec<String> {
    gate(json!({"name":"g","on":"exec","match":wanted}))
}

pub(super) const NONE: [&str; 0] = [];

#[test]
// check: CONF-6
fn every_violation_is_reported_in_the_order_of_declaration() {
    let found = paths(json!({
        "timeout_seconds": 5,
        "requests": {"secret": {"targets": [{"env":"A-B","label":"x"}, {"label":""}]}},
        "gates": [
            {"name":"Ok","on":"exec","match":{}},
            {"name":"b","on":"exec","match":{"program":["a/b","git"],"shell":true},"timeout_seconds":9},
            {"name":"b","on":"stall","match":{"failures":0},"mode":"deny","grant":"env"}
        ],
        "exec": {"allow": ["ls", "*"]},
        "notify": [{"webhook":"ftp://x","secret":"nope"}]
    }));
    assert_eq!(
        found,
        [
            "hitl.timeout_seconds",
            "hitl.requests.secret.targets[0].env",
            "hitl.requests.secret.targets[1]",
            "hitl.requests.secret.targets[1].label",
            "hitl.gates[0].name",
            "hitl.gates[0].match",
            "hitl.gates[1].match.program[0]",
            "hitl.gates[1].match.shell",
            "hitl.gates[1].timeout_seconds",
            "hitl.gates[2].name",
            "hitl.gates[2].match.failures",
            "hitl.gates[2].mode",
            "hitl.gates[2].grant",
            "hitl.exec.allow[1]",
            "hitl.notify[0].webhook",
            "hitl.notify[0].secret",
        ]
    );
}

#[test]
// check: CONF-3
fn deadlines_lie_between_ten_seconds_and_a_day() {
    for (seconds, fine) in [
        (10, true),
        (86_400, true),
        (9, false),
        (86_401, false),
        (0, false),
        (-10, false),
        (i64::MAX, false),
        (i64::MIN, false),
    ] {
        assert_eq!(
            paths(json!({"timeout_seconds": seconds})).is_empty(),
            fine,
            "{seconds}"
        );
        let own =
            gate(json!({"name":"g","on":"exec","match":{"program":"a"},"timeout_seconds":seconds}));
        assert_eq!(own.is_empty(), fine, "{seconds}");
    }
}

#[test]
// check: CONF-7
// check: CONF-8
fn gate_names_are_plain_unique_and_not_reserved() {
    let name = |name: &str| gate(json!({"name":name,"on":"exec","match":{"program":"a"}}));
    for fine in [
        "a",
        "force-push",
        "a_b.c-9",
        &"x".repeat(64),
        "exec",
        "Exec".to_lowercase().as_str(),
    ] {
        assert_eq!(name(fine), NONE, "{fine}");
    }
    for bad in [
        "",
        "A",
        "a b",
        "\u{e4}",
        "a/b",
        "a:b",
        &"x".repeat(65),
        "exec.default",
        "system",
        "a\n",
    ] {
        assert_eq!(name(bad), ["name"], "{bad}");
    }
    let two = json!({"gates":[{"name":"g","on":"exec","match":{"program":"a"}},{"name":"g","on":"expiry","match":{"before_seconds":60}}]});
    assert_eq!(paths(two), ["hitl.gates[1].name"]);
}

#[test]
// check: CONF-10
// check: CONF-11
// check: CONF-12
fn a_match_holds_fields_of_its_own_surface_only() {
    for (on, own) in [
        ("exec", json!({"program":"a"})),
        ("lifecycle", json!({"action":"fork"})),
        ("computer", json!({"action":"type"})),
        ("stall", json!({"failures":1})),
        ("expiry", json!({"before_seconds":60})),
    ] {
        assert_eq!(gate(json!({"name":"g","on":on,"match":own})), NONE, "{on}");
        assert_eq!(
            gate(json!({"name":"g","on":on,"match":{}})),
            ["match"],
            "{on}"
        );
        assert_eq!(gate(json!({"name":"g","on":on})), ["match"], "{on}");
        assert_eq!(
            gate(json!({"name":"g","on":on,"match":{"shell":false}})),
            ["match"],
            "{on}"
        );
        let all = [
            ("program", json!("a")),
            ("args", json!(["a"])),
            ("shell", json!(true)),
            ("action", json!("type")),
            ("text_contains", json!(["a"])),
            ("failures", json!(1)),
            ("quiet_seconds", json!(60)),
            ("before_seconds", json!(60)),
        ];
        for (field, value) in all {
            let foreign = match on {
                "exec" => !matches!(field, "program" | "args" | "shell"),
                "lifecycle" => field != "action",
                "computer" => !matches!(field, "action" | "text_contains"),
                "stall" => !matches!(field, "failures" | "quiet_seconds"),
                _ => field != "before_seconds",
            };
            if foreign {
                let mut wanted = own.clone();
                wanted[field] = value;
                assert_eq!(
                    gate(json!({"name":"g","on":on,"match":wanted})),
                    [format!("match.{field}")],
                    "{on}"
                );
            }
        }
    }
    assert_eq!(exec(json!({"shell":true,"program":"a"})), ["match.shell"]);
    assert_eq!(exec(json!({"shell":true,"args":["a"]})), ["match.shell"]);
}

#[test]
// check: CONF-13
// check: CONF-15
fn programs_are_basenames() {
    for fine in [
        "git",
        "g++",
        "[",
        "python3.12",
        "ld-linux-x86-64.so.2",
        "\u{e4}",
    ] {
        assert_eq!(exec(json!({"program":fine})), NONE, "{fine}");
    }
    for bad in [
        "",
        "a/b",
        "/bin/ls",
        "a*",
        "a?",
        "[ab]",
        "{a,b}",
        "a b",
        ".",
        "..",
        "a\0",
        "A=1",
        "a\\b",
        &"x".repeat(256),
    ] {
        assert_eq!(exec(json!({"program":bad})), ["match.program"], "{bad}");
        assert_eq!(
            exec(json!({"program":["ls", bad]})),
            ["match.program[1]"],
            "{bad}"
        );
    }
    assert_eq!(exec(json!({"program":[]})), ["match.program"]);
    assert_eq!(exec(json!({"args":[]})), ["match.args"]);
    assert_eq!(exec(json!({"args":["a","b\0"]})), ["match.args[1]"]);
    assert_eq!(exec(json!({"args":["--force"]})), NONE);
}

#[test]
// check: CONF-16
// check: CONF-17
// check: CONF-18
fn actions_are_the_ones_there_are() {
    let on = |on: &str, wanted: Value| gate(json!({"name":"g","on":on,"match":wanted}));
    for action in LifecycleAction::ALL {
        assert_eq!(on("lifecycle", json!({"action":action.as_str()})), NONE);
    }
    for action in ComputerAction::ALL {
        assert_eq!(
            on("computer", json!({"action":[action.as_str(), "type"]})),
            NONE
        );
    }
    assert_eq!(
        on("lifecycle", json!({"action":["fork","exec"]})),
        ["match.action[1]"]
    );
    assert_eq!(
        on("lifecycle", json!({"action":"Destroy"})),
        ["match.action"]
    );
    assert_eq!(on("lifecycle", json!({"action":[]})), ["match.action"]);
    assert_eq!(on("computer", json!({"action":"click"})), ["match.action"]);
    assert_eq!(on("computer", json!({"text_contains":["a"]})), NONE);
    assert_eq!(
        on("computer", json!({"text_contains":["a"],"action":"type"})),
        NONE
    );
    assert_eq!(
        on(
            "computer",
            json!({"text_contains":["a"],"action":["type","key"]})
        ),
        ["match.text_contains"]
    );
    assert_eq!(
        on("computer", json!({"text_contains":["a",""]})),
        ["match.text_contains[1]"]
    );
    assert_eq!(
        on("computer", json!({"text_contains":[]})),
        ["match.text_contains"]
    );
}

#[test]
// check: CONF-20
// check: CONF-24
fn grants_stand_on_ask_gates_only() {
    let grant = |mode: &str, grant: &str| {
        gate(json!({"name":"g","on":"exec","match":{"program":"a"},"mode":mode,"grant":grant}))
    };
    for fine in ["once", "env", "ttl:10s", "ttl:24h", "ttl:1h30m"] {
        assert_eq!(grant("ask", fine), NONE, "{fine}");
        assert_eq!(grant("notify", fine), ["grant"], "{fine}");
        assert_eq!(grant("deny", fine), ["grant"], "{fine}");
    }
    for bad in ["ttl:9.9s", "ttl:24h1ns", "ttl:0", "ttl:-1h"] {
        assert_eq!(grant("ask", bad), ["grant"], "{bad}");
    }
    for on in [
        json!({"on":"stall","match":{"failures":1}}),
        json!({"on":"expiry","match":{"before_seconds":60}}),
    ] {
        let with = |field: &str, value: Value| {
            let mut gate = on.clone();
            gate["name"] = json!("g");
            gate[field] = value;
            gate
        };
        assert_eq!(gate(with("mode", json!("ask"))), NONE);
        assert_eq!(gate(with("mode", json!("notify"))), NONE);
        assert_eq!(gate(with("mode", json!("deny"))), ["mode"]);
        assert_eq!(gate(with("grant", json!("once"))), ["grant"]);
        assert_eq!(
            gate(with("decide", json!({"url":"https://d","secret":"s"}))),
            ["decide"]
        );
    }
}

#[test]
// check: CONF-21
// check: CONF-22
fn a_decider_needs_an_ask_gate_an_address_and_a_secret() {
    let decide = |mode: &str, decide: Value| {
        gate(
            json!({"name":"g","on":"lifecycle","match":{"action":"fork"},"mode":mode,"decide":decide}),
        )
    };
    let fine = json!({"url":"https://d.example.com","secret":"s"});
    assert_eq!(decide("ask", fine.clone()), NONE);
    assert_eq!(decide("notify", fine.clone()), ["decide"]);
    assert_eq!(decide("deny", fine), ["decide"]);
    assert_eq!(decide("ask", json!({})), ["decide.url", "decide.secret"]);
    assert_eq!(
        decide("ask", json!({"url":"https://u:p@d/","secret":"t"})),
        ["decide.url", "decide.secret"]
    );
}
