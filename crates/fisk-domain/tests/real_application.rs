//! The trust boundary against the parser of a real application: whatever could be read as something else is a value, or refused.

mod common;

use common::{argv, call, real, refusal, run};
use fisk_domain::{Patterns, Selection, ToolError, Toolset};
use serde_json::{Value, json};

fn echo() -> fisk_domain::CommandTool {
    real("app", "", &Selection::default())
        .get("echo")
        .unwrap()
        .clone()
}

fn understood(input: Value) -> Value {
    run("app", "", &call(&echo(), input).unwrap())
}

// check: FISK-19
// check: FISK-5
#[test]
fn no_value_is_read_as_a_flag_a_file_or_a_command() {
    let file = concat!("@", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for hostile in [
        "--force",
        "-t",
        "-",
        "--internal=x",
        "--help",
        "--version",
        "--fisk-introspect",
        "--completion-bash",
        file,
        "@",
        "",
        " ",
        "help",
        "destroy",
        "--no-colour",
        "=",
        "a=b",
        "--name=--",
        "-1",
        "$(id)",
        "`id`",
        "; id",
        "a\nb",
        "\u{1b}[2J",
        "é",
    ] {
        let all = understood(json!({
            "text": hostile, "name": [hostile, hostile], "label": {"k": hostile}, "first": hostile, "second": 5, "third": hostile, "rest": [hostile, hostile],
        }));
        assert_eq!(all["text"], hostile);
        assert_eq!(all["name"], json!([hostile, hostile]));
        assert_eq!(all["label"], json!({"k": hostile}));
        assert_eq!(all["first"], hostile);
        assert_eq!(all["second"], 5);
        assert_eq!(all["third"], hostile);
        assert_eq!(all["rest"], json!([hostile, hostile]));
        assert_eq!(
            (&all["force"], &all["colour"], &all["internal"]),
            (&json!(false), &json!(true), &json!(""))
        );
    }
}

// check: FISK-29
#[test]
fn a_second_end_of_flags_would_vanish_and_is_refused() {
    let echo = echo();
    // The parser drops it, so that the value behind it takes its place.
    let dropped = common::command("app", "")
        .args(["echo", "--", "--", "7"])
        .output()
        .unwrap();
    let dropped: Value = serde_json::from_slice(&dropped.stdout).unwrap();
    assert_eq!(dropped["first"], "7");

    for input in [
        json!({"first": "--"}),
        json!({"first": "a", "second": 1, "third": "b", "rest": ["x", "--"]}),
    ] {
        assert!(refusal(&echo, input).contains("cannot be passed"));
    }
    // In a flag it is a value like any other.
    assert_eq!(
        understood(json!({"text": "--", "first": "a"}))["text"],
        "--"
    );
}

#[test]
fn numbers_and_lists_arrive_as_they_were_given() {
    let all = understood(json!({
        "count": -5, "small": -128, "port": 65535, "size": u64::MAX, "ratio": 0.1, "wait": "1h30m", "modes": ["a", "c"], "mode": "slow",
        "label": {"b": "2=3", "a": "x:y"}, "verbose": true, "colour": false, "force": true,
    }));
    assert_eq!(
        (&all["count"], &all["small"], &all["port"]),
        (&json!(-5), &json!(-128), &json!(65535))
    );
    assert_eq!(all["size"], json!(u64::MAX));
    assert_eq!(all["ratio"], json!(0.1));
    assert_eq!(all["wait"], json!(5_400_000_000_000_i64));
    assert_eq!(all["modes"], json!(["a", "c"]));
    assert_eq!(all["label"], json!({"a": "x:y", "b": "2=3"}));
    assert_eq!(
        (&all["verbose"], &all["colour"], &all["force"]),
        (&json!(1), &json!(false), &json!(true))
    );
}

// check: FISK-5
#[test]
fn what_the_carried_schema_excludes_is_refused_before_the_application_sees_it() {
    let echo = echo();
    for (input, allowed) in [
        (json!({"mode": "medium"}), "one of fast, slow"),
        (json!({"modes": ["a", "d"]}), "one of a, b, c"),
        (json!({"small": 128}), "at most 127"),
        (json!({"port": -1}), "at least 0"),
        (json!({"size": 1e20}), "an integer"),
        (json!({"wait": "soon"}), "that matches"),
        (json!({"internal": "x"}), "no such parameter"),
        (json!({"help": true}), "no such parameter"),
        (json!({"context": "x"}), "no such parameter"),
        (json!({"backdoor": "x"}), "no such parameter"),
        (json!({"label": {"a=b": "c"}}), "= or :"),
        (json!({"label": {"a:b": "c"}}), "= or :"),
        (json!({"label": {"a": 1}}), "a string"),
    ] {
        let refused = refusal(&echo, input.clone());
        assert!(refused.contains(allowed), "{input}: {refused}");
    }
    // A completion is a hint only.
    assert_eq!(understood(json!({"level": "other"}))["level"], "other");
}

// check: FISK-29
#[test]
fn a_flag_that_is_on_and_cannot_be_negated_is_never_quietly_left_on() {
    let echo = echo();
    assert!(refusal(&echo, json!({"sure": false})).contains("on by default"));
    assert!(refusal(&echo, json!({"quiet": false})).contains("environment"));
    assert_eq!(argv(&echo, json!({"force": false})), ["echo"]);
    assert_eq!(understood(json!({"sure": true}))["sure"], true);
}

// check: FISK-29
#[test]
fn a_negation_that_names_another_flag_is_refused() {
    let tools = real("app", "", &Selection::default());
    let trap = tools.get("trap").unwrap();
    // What would happen: the hidden flag swallows the argument.
    let swallowed = common::command("app", "")
        .args(["trap", "--no-y", "--", "w"])
        .output()
        .unwrap();
    let swallowed: Value = serde_json::from_slice(&swallowed.stdout).unwrap();
    assert_eq!(
        (&swallowed["no-y"], &swallowed["word"]),
        (&json!("w"), &json!(""))
    );

    for flag in ["x", "y"] {
        assert!(refusal(trap, json!({flag: false, "word": "w"})).contains("name of another flag"));
        let on = run(
            "app",
            "",
            &call(trap, json!({flag: true, "word": "w"})).unwrap(),
        );
        assert_eq!(
            (&on["x"], &on["y"], &on["word"]),
            (&json!(true), &json!(true), &json!("w"))
        );
    }
    let named = run("app", "", &call(trap, json!({"no-x": true})).unwrap());
    assert_eq!((&named["x"], &named["no-x"]), (&json!(true), &json!(true)));
}

// check: FISK-19
#[test]
fn an_omitted_positional_takes_its_default_or_is_refused() {
    let echo = echo();
    let all = understood(json!({"third": "c"}));
    assert_eq!(
        (&all["first"], &all["second"], &all["third"]),
        (&json!("one"), &json!(2), &json!("c"))
    );
    assert!(refusal(&echo, json!({"rest": ["x"]})).contains("\"third\""));
}

// check: FISK-20
// check: FISK-29
#[test]
fn an_alias_that_takes_another_commands_name_refuses_the_start() {
    // What would happen: asked for `list`, the application erases.
    let erased = common::command("app", "alias")
        .arg("list")
        .output()
        .unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&erased.stdout).unwrap()["ran"],
        "erase"
    );

    let bytes = common::introspect("app", "alias");
    let refused = Toolset::from_introspection(&bytes, &Selection::default()).unwrap_err();
    assert!(matches!(refused, ToolError::Alias { .. }));
    let text = refused.to_string();
    assert!(
        text.contains("erase") && text.contains("list") && text.contains("^list$"),
        "{text}"
    );
    let without = Selection {
        exclude: Patterns {
            tools: vec!["^list$".into()],
            tags: Vec::new(),
        },
        ..Selection::default()
    };
    let (tools, _) = Toolset::from_introspection(&bytes, &without).unwrap();
    assert!(tools.get("erase").is_some() && tools.get("list").is_none());
}

// check: FISK-21
#[test]
fn denied_hidden_and_grouping_commands_are_no_tools() {
    let tools = real("app", "", &Selection::default());
    for absent in [
        "destroy",
        "admin_wipe",
        "admin_user_add",
        "admin",
        "secret",
        "below_visible",
        "below",
        "change",
        "site",
        "help",
        "cheat",
    ] {
        assert!(tools.get(absent).is_none(), "{absent}");
    }
    for gated in ["change_plan", "change_apply", "restart", "purge"] {
        assert_eq!(
            tools.get(gated).unwrap().gating_tags(),
            ["ai:confirm"],
            "{gated}"
        );
    }
    assert!(!tools.get("status").unwrap().is_gated());
    for tool in tools.tools() {
        let properties = tool.input_schema()["properties"].as_object().unwrap();
        for hidden in [
            "help",
            "version",
            "fisk-introspect",
            "completion-bash",
            "backdoor",
            "internal",
            "no-y",
            "outfile",
        ] {
            assert!(
                !properties.contains_key(hidden),
                "{}: {hidden}",
                tool.name()
            );
        }
    }
}

#[test]
fn global_flags_reach_the_application_before_the_command() {
    let selection = Selection {
        global_flags: vec![
            "zone".into(),
            "context".into(),
            "trace".into(),
            "limit".into(),
        ],
        ..Selection::default()
    };
    let tools = real("app", "required", &selection);
    let echo = tools.get("echo").unwrap();
    assert!(refusal(echo, json!({})).contains("site"));
    let input = json!({"site": "--x", "zone": ["a", "--trace", "@b"], "context": "", "limit": "7", "trace": false, "text": "t", "first": "f"});
    let call = call(echo, input).unwrap();
    let path = call
        .argv()
        .iter()
        .position(|token| token == "echo")
        .unwrap();
    assert_eq!(path, 7, "{:?}", call.argv());
    let all = run("app", "required", &call);
    assert_eq!(
        all["globals"],
        json!({"site": "--x", "zone": ["a", "--trace", "@b"], "limit": 7})
    );
    assert_eq!((&all["text"], &all["first"]), (&json!("t"), &json!("f")));
}

#[test]
fn a_required_flag_of_a_group_is_a_parameter_of_what_is_beneath() {
    let tools = real("app", "", &Selection::default());
    let list = tools.get("site_list").unwrap();
    assert!(refusal(list, json!({})).contains("region"));
    let ran = run("app", "", &call(list, json!({"region": "--eu"})).unwrap());
    assert_eq!(
        (&ran["ran"], &ran["region"]),
        (&json!("site list"), &json!("--eu"))
    );
}

#[test]
fn the_default_of_a_group_and_its_neighbours_run_as_themselves() {
    let tools = real("app", "", &Selection::default());
    let one = run(
        "app",
        "",
        &call(tools.get("pick_one").unwrap(), json!({"thing": "two"})).unwrap(),
    );
    assert_eq!(
        (&one["ran"], &one["thing"]),
        (&json!("pick one"), &json!("two"))
    );
    let two = run(
        "app",
        "",
        &call(tools.get("pick_two").unwrap(), json!({})).unwrap(),
    );
    assert_eq!(two["ran"], "pick two");
}

#[test]
fn a_flag_and_an_argument_of_one_name_are_not_offered() {
    let bytes = common::introspect("app", "");
    let (tools, warnings) = Toolset::from_introspection(&bytes, &Selection::default()).unwrap();
    assert!(tools.get("same").is_none());
    assert!(
        warnings
            .iter()
            .any(|w| w.to_string().starts_with("same: not offered")),
        "{warnings:?}"
    );
}

// check: FISK-7
// check: FISK-30
#[test]
fn all_missing_parameters_are_reported_at_once() {
    let tools = real("app", "", &Selection::default());
    let need = tools.get("need").unwrap();
    let refused = refusal(need, json!({"beta": 1}));
    assert_eq!(
        refused,
        "need lacks required parameters: alpha, target, more; required: alpha, beta, target, more; optional: gamma"
    );
    let empty = json!({"alpha": "a", "beta": 1, "target": "t", "more": []});
    assert!(refusal(need, empty).contains("at least one"));
}

// check: FISK-27
#[test]
fn an_application_of_an_old_release_works() {
    let tools = real(
        "app-old",
        "",
        &Selection {
            global_flags: vec!["context".into()],
            ..Selection::default()
        },
    );
    let names: Vec<_> = tools
        .tools()
        .iter()
        .map(|tool| tool.name().as_str())
        .collect();
    assert_eq!(names, ["echo", "group_one"]);
    let echo = tools.get("echo").unwrap();
    let input = json!({"context": "@c", "text": "--x", "count": "12", "name": ["--", "@f"], "force": true, "colour": false, "first": "-1", "rest": ["--force", "@x"]});
    let all = run("app-old", "", &call(echo, input).unwrap());
    assert_eq!(
        (&all["context"], &all["text"], &all["count"]),
        (&json!("@c"), &json!("--x"), &json!(12))
    );
    assert_eq!(
        (&all["name"], &all["first"], &all["rest"]),
        (
            &json!(["--", "@f"]),
            &json!("-1"),
            &json!(["--force", "@x"])
        )
    );
    assert_eq!(
        (&all["force"], &all["colour"]),
        (&json!(true), &json!(false))
    );
    // Its types are not known, so a number is no text.
    assert!(refusal(echo, json!({"count": 12})).contains("a string"));
}

// check: FISK-29
#[test]
fn an_integer_that_the_application_would_round_is_refused() {
    let echo = echo();
    // What would happen: another number than the one given.
    let rounded = common::command("app", "")
        .args(["echo", "--count=9007199254740993"])
        .output()
        .unwrap();
    let rounded: Value = serde_json::from_slice(&rounded.stdout).unwrap();
    assert_eq!(rounded["count"], json!(9_007_199_254_740_992_i64));

    for count in [9_007_199_254_740_993_i64, -9_007_199_254_740_993, i64::MAX] {
        assert!(refusal(&echo, json!({"count": count})).contains("a double holds exactly"));
    }
    assert!(refusal(&echo, json!({"count": u64::MAX})).contains("a double holds exactly"));
    assert_eq!(
        understood(json!({"count": i64::MIN}))["count"],
        json!(i64::MIN)
    );
}

// check: FISK-29
#[test]
fn digits_of_another_script_that_the_application_would_skip_are_refused() {
    // What would happen: the parser looks for what it knows in the value, and takes five seconds.
    let skipped = common::command("app", "")
        .args(["echo", "--wait=\u{0663}5s"])
        .output()
        .unwrap();
    let skipped: Value = serde_json::from_slice(&skipped.stdout).unwrap();
    assert_eq!(skipped["wait"], json!(5_000_000_000_i64));

    assert!(refusal(&echo(), json!({"wait": "\u{0663}5s"})).contains("that matches"));
    assert_eq!(understood(json!({"wait": "35us"}))["wait"], json!(35_000));
}
