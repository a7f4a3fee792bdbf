//! Which commands become tools, and what refuses the start.

mod common;

use common::derive;
use fisk_domain::{Patterns, Selection, ToolError, Toolset, Warning};
use proptest::prelude::*;
use serde_json::{Value, json};

fn patterns(tools: &[&str], tags: &[&str]) -> Patterns {
    Patterns {
        tools: tools.iter().map(|text| (*text).to_owned()).collect(),
        tags: tags.iter().map(|text| (*text).to_owned()).collect(),
    }
}

fn names(tools: &Toolset) -> Vec<&str> {
    tools
        .tools()
        .iter()
        .map(|tool| tool.name().as_str())
        .collect()
}

fn shop() -> Value {
    json!({"commands": [
        {"name": "ls", "tags": ["impact:ro"]},
        {"name": "rm", "tags": ["impact:rw"]},
        {"name": "drop", "tags": ["ai:deny", "impact:rw"]},
        {"name": "db", "tags": ["team:data"], "commands": [
            {"name": "dump", "tags": ["impact:ro"]},
            {"name": "load", "tags": ["impact:rw"]},
            {"name": "wipe", "tags": [" AI:Deny "]}]}]})
}

// check: FISK-26
#[test]
fn include_and_exclude_choose_by_searched_names_and_by_tags() {
    let chosen = |include: Patterns, exclude: Patterns| {
        let selection = Selection {
            include,
            exclude,
            ..Selection::default()
        };
        let (tools, warnings) = derive(shop(), &selection).unwrap();
        assert!(
            warnings.iter().all(|w| matches!(w, Warning::NoTools)),
            "{warnings:?}"
        );
        names(&tools).join(" ")
    };
    let none = Patterns::default;
    assert_eq!(chosen(none(), none()), "ls rm db_dump db_load");
    assert_eq!(chosen(patterns(&["d"], &[]), none()), "db_dump db_load");
    assert_eq!(
        chosen(patterns(&["^ls$"], &["team:data"]), none()),
        "ls db_dump db_load"
    );
    assert_eq!(chosen(none(), patterns(&["load"], &["impact:ro"])), "rm");
    assert_eq!(
        chosen(patterns(&[], &["impact:rw"]), patterns(&["^db_"], &[])),
        "rm"
    );
    assert_eq!(chosen(patterns(&["ls"], &[]), patterns(&[".*"], &[])), "");
}

// check: FISK-14
// check: FISK-21
// check: FISK-26
#[test]
fn what_is_denied_cannot_be_included() {
    let selection = Selection {
        include: patterns(&["^drop$", "wipe", "ls"], &["ai:deny"]),
        ..Selection::default()
    };
    let (tools, warnings) = derive(shop(), &selection).unwrap();
    assert_eq!(names(&tools), ["ls"]);
    let warned: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warned,
        [
            "include.tools[0]: \"^drop$\" matches no command",
            "include.tools[1]: \"wipe\" matches no command",
            "include.tags[0]: \"ai:deny\" matches no command",
        ]
    );
}

// check: FISK-28
#[test]
fn an_entry_that_matches_nothing_is_a_warning_with_the_likely_word() {
    let selection = Selection {
        exclude: patterns(&["^db_lod$"], &["impact:wr"]),
        confirm_tags: vec!["impact:rw".into(), "impact:row".into()],
        ..Selection::default()
    };
    let (tools, warnings) = derive(shop(), &selection).unwrap();
    let warned: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warned,
        [
            "exclude.tools[0]: \"^db_lod$\" matches no command, did you mean \"db_load\"?",
            "exclude.tags[0]: \"impact:wr\" matches no command, did you mean \"impact:rw\"?",
            "harness.confirm_tags[1]: \"impact:row\" matches no command, did you mean \"impact:rw\"?",
        ]
    );
    assert_eq!(tools.get("rm").unwrap().gating_tags(), ["impact:rw"]);
}

// check: FISK-6
#[test]
fn confirm_tags_gate_as_ai_confirm_does_in_any_case_and_from_groups() {
    let model = json!({"commands": [
        {"name": "a", "tags": ["ai:confirm"]},
        {"name": "b", "tags": ["AI:Confirm"]},
        {"name": "c", "tags": ["impact:rw"]},
        {"name": "d", "tags": ["impact:ro"]},
        {"name": "g", "tags": ["impact:rw"], "commands": [{"name": "e"}]},
        {"name": "h", "tags": ["ai:confirm"], "commands": [{"name": "i", "commands": [{"name": "f"}]}]}]});
    let gated = |tags: &[&str]| {
        let selection = Selection {
            confirm_tags: tags.iter().map(|t| (*t).to_owned()).collect(),
            ..Selection::default()
        };
        let (tools, _) = derive(model.clone(), &selection).unwrap();
        let gated = tools.tools().iter().filter(|tool| tool.is_gated());
        gated
            .map(|tool| tool.name().to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(gated(&[]), "a b h_i_f");
    assert_eq!(gated(&["Impact:RW"]), "a b c g_e h_i_f");
}

// check: FISK-20
#[test]
fn names_that_two_would_have_refuse_the_start_with_both() {
    let twice = json!({"commands": [
        {"name": "a", "commands": [{"name": "b"}]},
        {"name": "a_b"}]});
    let refused = derive(twice.clone(), &Selection::default()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the commands \"a b\" and \"a_b\" would both be the tool \"a_b\"; exclude ^a_b$"
    );
    let without = Selection {
        exclude: patterns(&["^a_b$"], &[]),
        ..Selection::default()
    };
    assert!(derive(twice, &without).is_ok());

    for taken in ["ask_human_confirm", "ask_human_select", "ask_human_input"] {
        let (first, rest) = taken.split_once('_').unwrap();
        let model = json!({"commands": [{"name": first, "commands": [{"name": rest}]}]});
        let refused = derive(model, &Selection::default()).unwrap_err();
        assert!(matches!(&refused, ToolError::BuiltIn { tool, .. } if tool == taken));
        assert!(refused.to_string().contains(&format!("{first} {rest}")));
    }
}

// check: FISK-20
#[test]
fn a_name_that_a_kept_back_command_has_too_refuses_the_start() {
    for other in [
        json!({"name": "a", "tags": ["ai:deny"]}),
        json!({"name": "a", "hidden": true}),
        json!({"name": "other", "tags": ["ai:deny"], "aliases": ["a"]}),
    ] {
        for order in [
            [other.clone(), json!({"name": "a"})],
            [json!({"name": "a"}), other],
        ] {
            let nested = json!({"commands": [{"name": "g", "commands": order}]});
            let refused = derive(nested, &Selection::default()).unwrap_err();
            assert!(matches!(refused, ToolError::Alias { .. }), "{refused}");
        }
    }
}

#[test]
fn a_name_that_no_model_can_call_refuses_the_start_and_can_be_excluded() {
    let long = "n".repeat(65);
    for bad in [
        "",
        "a b",
        "-x",
        "--",
        "@file",
        "a.b",
        "é",
        "a\u{0}",
        long.as_str(),
    ] {
        let model = json!({"commands": [{"name": "ok"}, {"name": bad}]});
        let refused = derive(model.clone(), &Selection::default()).unwrap_err();
        assert!(
            refused.to_string().contains("exclude"),
            "{bad:?}: {refused}"
        );
        let only = Selection {
            include: patterns(&["^ok$"], &[]),
            ..Selection::default()
        };
        assert_eq!(names(&derive(model, &only).unwrap().0), ["ok"]);
    }
    let inner = json!({"commands": [{"name": "ok", "commands": [{"name": "--force"}]}]});
    assert!(matches!(
        derive(inner, &Selection::default()),
        Err(ToolError::Name { .. })
    ));
}

// check: FISK-20
#[test]
fn global_flags_are_an_allowlist_whose_unknown_entry_refuses_the_start() {
    let model = json!({
        "flags": [{"name": "context"}, {"name": "trace", "boolean": true}, {"name": "hush", "hidden": true}, {"name": "help-me"}],
        "commands": [{"name": "run"}]});
    let start = |flag: &str| {
        let selection = Selection {
            global_flags: vec![flag.to_owned()],
            ..Selection::default()
        };
        derive(model.clone(), &selection)
    };
    let (tools, _) = start("context").unwrap();
    let properties = &tools.get("run").unwrap().input_schema()["properties"];
    assert_eq!(properties, &json!({"context": {"type": "string"}}));
    for (flag, why) in [
        ("contxt", "did you mean \"context\"?"),
        ("--trace", "did you mean \"trace\"?"),
        ("hush", "hidden"),
        ("help", "framework"),
        ("help-me", "framework"),
        ("version", "framework"),
        ("fisk-introspect", "framework"),
        (
            "zzz",
            "no global flag of the application; allowed: context, trace",
        ),
    ] {
        let refused = start(flag).unwrap_err().to_string();
        assert!(
            refused.contains("global_flags[0]") && refused.contains(why),
            "{refused}"
        );
    }
}

// check: FISK-20
#[test]
fn a_global_flag_with_the_name_of_a_parameter_refuses_the_start() {
    let model = json!({
        "flags": [{"name": "context"}],
        "commands": [{"name": "use", "args": [{"name": "context"}]}, {"name": "run"}]});
    assert!(derive(model.clone(), &Selection::default()).is_ok());
    let selection = Selection {
        global_flags: vec!["context".into()],
        ..Selection::default()
    };
    let refused = derive(model.clone(), &selection).unwrap_err().to_string();
    assert!(
        refused.contains("\"context\"") && refused.contains("\"use\""),
        "{refused}"
    );
    let without = Selection {
        exclude: patterns(&["^use$"], &[]),
        ..selection
    };
    assert_eq!(names(&derive(model, &without).unwrap().0), ["run"]);
}

#[test]
fn an_entry_that_is_no_regular_expression_refuses_the_start() {
    for bad in ["(", "[z-a]", "a{1000000}"] {
        let selection = Selection {
            include: patterns(&["ok", bad], &[]),
            ..Selection::default()
        };
        let refused = derive(shop(), &selection).unwrap_err().to_string();
        assert!(refused.starts_with("include.tools[1]: "), "{refused}");
    }
}

// check: FISK-29
#[test]
fn what_could_be_called_in_two_ways_is_not_offered() {
    for (command, why) in [
        (
            json!({"flags": [{"name": "a"}], "args": [{"name": "a"}]}),
            "both called a",
        ),
        (
            json!({"flags": [{"name": "a"}, {"name": "a"}]}),
            "declared twice",
        ),
        (
            json!({"args": [{"name": "a"}, {"name": "a"}]}),
            "both called a",
        ),
        (json!({"flags": [{"name": "a=b"}]}), "no model can give"),
        (json!({"flags": [{"name": "-a"}]}), "no model can give"),
        (json!({"flags": [{"name": ""}]}), "no model can give"),
        (
            json!({"args": [{"name": "all", "cumulative": true}, {"name": "b"}]}),
            "another one follows",
        ),
        (
            json!({"flags": [{"name": "a", "cumulative": true}], "schema": {"properties": {"a": {"type": "string"}}}}),
            "differ",
        ),
        (
            json!({"flags": [{"name": "a"}], "schema": {"properties": {"a": {"type": "array"}}}}),
            "differ",
        ),
        (
            json!({"flags": [{"name": "a"}], "schema": {"properties": {"a": {"type": ["string", "null"]}}}}),
            "type",
        ),
        (
            json!({"flags": [{"name": "a"}], "schema": {"properties": {"a": {"type": "string", "pattern": "(?=x)"}}}}),
            "pattern",
        ),
        (
            json!({"flags": [{"name": "a"}], "schema": {"properties": {"a": {"type": "string", "enum": [1]}}}}),
            "enum",
        ),
    ] {
        let mut command = command;
        command["name"] = json!("run");
        let (tools, warnings) =
            derive(json!({"commands": [command]}), &Selection::default()).unwrap();
        assert!(tools.tools().is_empty());
        assert!(warnings[0].to_string().contains(why), "{why}: {warnings:?}");
        assert_eq!(warnings[1], Warning::NoTools);
    }
    let above =
        json!({"commands": [{"name": "g", "args": [{"name": "x"}], "commands": [{"name": "c"}]}]});
    assert!(
        derive(above, &Selection::default())
            .unwrap()
            .0
            .tools()
            .is_empty()
    );
}

#[test]
fn the_effects_that_the_application_tags_are_hints_and_the_worst_counts() {
    let hints = |tags: &[&str]| {
        let model = json!({"commands": [{"name": "run", "tags": tags}]});
        let hints = derive(model, &Selection::default())
            .unwrap()
            .0
            .get("run")
            .unwrap()
            .hints();
        (hints.read_only, hints.destructive)
    };
    assert_eq!(hints(&[]), (None, None));
    assert_eq!(hints(&["impact:ro"]), (Some(true), Some(false)));
    for also in ["impact:rw", "Impact:RW "] {
        assert_eq!(hints(&["impact:ro", also]), (Some(false), None));
    }
    assert_eq!(hints(&["Impact:RO"]), (None, None));
    assert_eq!(
        hints(&["impact:rw", "impact:destructive"]),
        (Some(false), Some(true))
    );
}

#[test]
fn a_description_is_plain_text_of_help_and_examples() {
    let model = json!({"commands": [{"name": "run", "help": "Runs\u{1b}[31m it\u{202e}", "help_long": "At length", "cheat": "app run"}]});
    let (tools, _) = derive(model, &Selection::default()).unwrap();
    assert_eq!(
        tools.get("run").unwrap().description(),
        "Runs[31m it\n\nAt length\n\napp run"
    );
}

#[test]
fn a_command_without_help_has_a_description_all_the_same() {
    let model = json!({"commands": [{"name": "a", "commands": [{"name": "b"}]}]});
    let (tools, _) = derive(model, &Selection::default()).unwrap();
    let described = tools.get("a_b").unwrap().description();
    assert_eq!(described, "Runs the command \"a b\".");
}

#[test]
fn completions_are_hints_unless_the_schema_lists_them() {
    let model = json!({"commands": [{"name": "run",
        "flags": [{"name": "hint", "help": "H", "completions": ["a", "b"]}, {"name": "list", "help": "L", "completions": ["a", "b"]}],
        "schema": {"properties": {"hint": {"type": "string"}, "list": {"type": "string", "enum": ["a", "b"]}}}}]});
    let (tools, _) = derive(model, &Selection::default()).unwrap();
    let properties = &tools.get("run").unwrap().input_schema()["properties"];
    assert_eq!(
        properties["hint"],
        json!({"type": "string", "description": "H (for example: a, b)"})
    );
    assert_eq!(
        properties["list"],
        json!({"type": "string", "enum": ["a", "b"], "description": "L"})
    );
}

fn command(depth: u32) -> BoxedStrategy<Value> {
    let name = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "a_b",
        "ask",
        "human_input",
        "ask_human_input",
    ]);
    let tag = prop::sample::select(vec!["ai:deny", "ai:confirm", "impact:rw", "impact:ro", "x"]);
    let base = (
        name,
        prop::collection::vec(tag, 0..2),
        prop::bool::weighted(0.15),
        prop::option::weighted(0.1, Just("b")),
    );
    let leaf = base.prop_map(|(name, tags, hidden, alias)| {
        json!({"name": name, "tags": tags, "hidden": hidden, "aliases": alias.into_iter().collect::<Vec<_>>()})
    });
    if depth == 0 {
        return leaf.boxed();
    }
    (leaf, prop::collection::vec(command(depth - 1), 0..3))
        .prop_map(|(mut group, below)| {
            group["commands"] = Value::from(below);
            group
        })
        .boxed()
}

/// Whether a path of the model is denied or hidden, found out the slow way.
fn kept_back(commands: &Value, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return false;
    };
    commands
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["name"] == first.as_str())
        .all(|c| {
            c["hidden"] == true
                || c["tags"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|tag| tag == "ai:deny")
                || kept_back(&c["commands"], rest)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    // check: FISK-20
    // check: FISK-21
    #[test]
    fn whatever_the_tree_names_are_unique_and_nothing_kept_back_is_a_tool(commands in prop::collection::vec(command(2), 1..5)) {
        let commands = Value::from(commands);
        match derive(json!({"commands": commands}), &Selection::default()) {
            Ok((tools, _)) => {
                let mut seen = std::collections::BTreeSet::new();
                for tool in tools.tools() {
                    prop_assert!(seen.insert(tool.name().clone()), "{} twice", tool.name());
                    prop_assert!(!fisk_domain::BUILT_IN_TOOLS.contains(&tool.name().as_str()));
                    prop_assert!(!tool.tags().contains("ai:deny"));
                    prop_assert!(!kept_back(&commands, tool.path()), "{:?}", tool.path());
                    prop_assert_eq!(tool.path().join("_"), tool.name().as_str());
                    prop_assert_eq!(tool.is_gated(), tool.tags().contains("ai:confirm"));
                }
            }
            Err(ToolError::SameName { .. } | ToolError::BuiltIn { .. } | ToolError::Alias { .. }) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
