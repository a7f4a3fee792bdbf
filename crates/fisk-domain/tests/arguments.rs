//! What input becomes an argument vector, and what is refused with the property and what is allowed.

mod common;

use common::{argv, call, derive, object, refusal, tool};
use fisk_domain::{Selection, Toolset};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

// check: FISK-5
// check: FISK-19
#[test]
fn nothing_is_coerced_and_null_is_no_value() {
    let tool = tool(json!({
        "flags": [{"name": "on", "boolean": true}, {"name": "text"}, {"name": "many", "cumulative": true}, {"name": "whole"}, {"name": "share"},
            {"name": "map", "cumulative": true}],
        "args": [{"name": "yes"}],
        "schema": {"properties": {
            "on": {"type": "boolean"}, "text": {"type": "string"}, "many": {"type": "array", "items": {"type": "string"}},
            "whole": {"type": "integer"}, "share": {"type": "number"}, "yes": {"type": "boolean"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}}}}}));
    let values = [
        json!(null),
        json!(true),
        json!("true"),
        json!(1),
        json!(1.5),
        json!(["a"]),
        json!([1]),
        json!([null]),
        json!([["a"]]),
        json!({"a": "b"}),
        json!({"a": null}),
        json!({"a": {"b": "c"}}),
    ];
    for (name, fits) in [
        ("on", vec![1]),
        ("text", vec![2]),
        ("many", vec![5]),
        ("whole", vec![3]),
        ("share", vec![3, 4]),
        ("map", vec![9]),
        ("yes", vec![1]),
    ] {
        for (i, value) in values.iter().enumerate() {
            let input = json!({name: value});
            if fits.contains(&i) {
                assert!(call(&tool, input.clone()).is_ok(), "{input}");
            } else {
                let refused = call(&tool, input.clone()).unwrap_err();
                assert_eq!(refused.property.as_deref(), Some(name), "{input}");
                assert!(refused.message.contains("allowed: "), "{input}: {refused}");
            }
        }
    }
    assert_eq!(argv(&tool, json!({"yes": false})), ["run", "--", "false"]);
}

#[test]
fn the_vector_is_global_flags_then_the_path_then_flags_then_positionals() {
    let selection = Selection {
        global_flags: vec!["deep".into()],
        ..Selection::default()
    };
    let model = json!({
        "flags": [{"name": "deep", "boolean": true, "negatable": true}],
        "commands": [{"name": "a", "commands": [{"name": "b",
            "flags": [{"name": "two"}, {"name": "one", "cumulative": true}],
            "args": [{"name": "x"}, {"name": "rest", "cumulative": true}]}]}]});
    let (tools, _) = derive(model, &selection).unwrap();
    let input = json!({"one": ["1", "2"], "rest": ["--two=9"], "x": "", "two": "=", "deep": false});
    assert_eq!(
        argv(tools.get("a_b").unwrap(), input),
        [
            "--no-deep",
            "a",
            "b",
            "--two==",
            "--one=1",
            "--one=2",
            "--",
            "",
            "--two=9"
        ]
    );
    assert_eq!(argv(tools.get("a_b").unwrap(), json!({})), ["a", "b"]);
}

// check: FISK-18
#[test]
fn an_unknown_property_is_refused_with_those_that_are_known() {
    let tool = tool(
        json!({"flags": [{"name": "context"}, {"name": "deep"}, {"name": "hush", "hidden": true}]}),
    );
    assert_eq!(
        refusal(&tool, json!({"contxt": "a"})),
        "property \"contxt\": run has no such parameter, did you mean \"context\"?; allowed: context, deep"
    );
    for stray in ["hush", "help", "--context", "context=x", "", "run"] {
        assert!(
            refusal(&tool, json!({stray: "a"})).contains("no such parameter"),
            "{stray}"
        );
    }
    let long = "x".repeat(1 << 20);
    assert!(refusal(&tool, json!({long: "a"})).len() < 1000);
}

#[test]
fn what_linux_cannot_hand_over_is_refused() {
    let tool = tool(json!({
        "flags": [{"name": "text"}, {"name": "many", "cumulative": true}],
        "args": [{"name": "rest", "cumulative": true}]}));
    for input in [
        json!({"text": "a\0b"}),
        json!({"many": ["a", "\0"]}),
        json!({"rest": ["\0"]}),
    ] {
        assert!(refusal(&tool, input).contains("NUL"));
    }
    // With `--text=` and the end it is 128 KiB exactly.
    let most = "x".repeat(128 * 1024 - 1 - "--text=".len());
    assert!(call(&tool, json!({"text": most})).is_ok());
    assert!(refusal(&tool, json!({"text": format!("{most}x")})).contains("131072"));
    let half = "x".repeat(64 * 1024);
    assert!(call(&tool, json!({"many": vec![half.as_str(); 15]})).is_ok());
    assert!(refusal(&tool, json!({"many": vec![half.as_str(); 16]})).contains("too long together"));
    // Empty ones cost a pointer each.
    assert!(refusal(&tool, json!({"rest": vec![""; 200_000]})).contains("too many"));
}

#[test]
fn a_required_switch_without_negation_can_only_be_on() {
    let tool = tool(json!({"flags": [{"name": "agree", "boolean": true, "required": true}]}));
    assert!(refusal(&tool, json!({"agree": false})).contains("required"));
    assert_eq!(argv(&tool, json!({"agree": true})), ["run", "--agree"]);
}

#[test]
fn a_negation_is_refused_where_any_flag_in_its_place_has_that_name() {
    let switch = json!({"name": "x", "boolean": true, "negatable": true});
    let other = json!({"name": "no-x", "hidden": true});
    for model in [
        json!({"flags": [other.clone()], "commands": [{"name": "g", "commands": [{"name": "run", "flags": [switch.clone()]}]}]}),
        json!({"commands": [{"name": "g", "flags": [other.clone()], "commands": [{"name": "run", "flags": [switch.clone()]}]}]}),
        json!({"commands": [{"name": "g", "commands": [{"name": "run", "flags": [switch, other]}]}]}),
    ] {
        let (tools, _) = derive(model, &Selection::default()).unwrap();
        let tool = tools.get("g_run").unwrap();
        assert!(refusal(tool, json!({"x": false})).contains("another flag"));
    }
}

#[test]
fn defaults_stand_for_omitted_positionals_only_where_there_is_exactly_one() {
    let with = |default: Value| {
        tool(
            json!({"args": [{"name": "a", "default": default}, {"name": "h", "hidden": true, "default": ["-h"]}, {"name": "b"}]}),
        )
    };
    assert_eq!(
        argv(&with(json!(["--d"])), json!({"b": "v"})),
        ["run", "--", "--d", "-h", "v"]
    );
    assert!(refusal(&with(json!([])), json!({"b": "v"})).contains("\"a\""));
    assert!(refusal(&with(json!(["1", "2"])), json!({"b": "v"})).contains("\"a\""));
    assert!(refusal(&with(json!(["--"])), json!({"b": "v"})).contains("cannot be passed"));
    // What is hidden cannot be given, and what follows nothing is left out.
    assert!(refusal(&with(json!(["d"])), json!({"h": "x"})).contains("no such parameter"));
    assert_eq!(
        argv(&with(json!(["d"])), json!({"a": "v"})),
        ["run", "--", "v"]
    );
}

#[test]
fn maps_go_by_sorted_keys_as_flags_and_as_arguments() {
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let tool = tool(json!({
        "flags": [{"name": "f", "cumulative": true}], "args": [{"name": "a", "cumulative": true}],
        "schema": {"properties": {"f": map, "a": map}}}));
    let input = json!({"f": {"z": "1=2", "b": "--x"}, "a": {"k": ":"}});
    assert_eq!(
        argv(&tool, input),
        ["run", "--f=b=--x", "--f=z=1=2", "--", "k=:"]
    );
    for key in ["a=b", "a:b", "="] {
        assert!(refusal(&tool, json!({"a": {key: "v"}})).contains("= or :"));
    }
}

#[test]
fn bounds_hold_at_their_edges_beyond_what_a_double_tells_apart() {
    let tool = tool(json!({
        "flags": [{"name": "u"}, {"name": "f"}],
        "schema": {"properties": {"u": {"type": "integer", "minimum": 0, "maximum": 18_446_744_073_709_551_614_u64},
            "f": {"type": "number", "maximum": 1.5}}}}));
    assert_eq!(
        argv(&tool, json!({"u": u64::MAX - 1})),
        ["run", "--u=18446744073709551614"]
    );
    assert!(refusal(&tool, json!({"u": u64::MAX})).contains("at most 18446744073709551614"));
    assert!(refusal(&tool, json!({"u": -1})).contains("at least 0"));
    assert!(call(&tool, json!({"f": 1.5})).is_ok());
    assert!(refusal(&tool, json!({"f": 2})).contains("at most 1.5"));
    let beyond: Value = serde_json::from_str("{\"u\": 18446744073709551616}").unwrap();
    assert!(refusal(&tool, beyond).contains("beyond 64 bits"));
}

#[test]
fn a_fraction_arrives_as_the_same_number() {
    let tool = tool(
        json!({"flags": [{"name": "f"}], "schema": {"properties": {"f": {"type": "number"}}}}),
    );
    for text in [
        "0.1",
        "1e-7",
        "123456789.12345679",
        "1.7976931348623157e308",
        "5e-324",
        "0.30000000000000004",
    ] {
        let input: Value = serde_json::from_str(&format!("{{\"f\": {text}}}")).unwrap();
        let token = argv(&tool, input).remove(1);
        let passed: f64 = token.trim_start_matches("--f=").parse().unwrap();
        assert_eq!(
            passed.to_bits(),
            text.parse::<f64>().unwrap().to_bits(),
            "{token}"
        );
    }
}

#[test]
fn the_schema_says_what_is_checked() {
    let tool = tool(json!({
        "flags": [{"name": "count", "help": "How many", "required": true}, {"name": "loud", "boolean": true, "cumulative": true, "help": "L"}],
        "schema": {"required": ["count"], "properties": {
            "count": {"type": "integer", "minimum": 0, "description": "How many", "$later": 1},
            "loud": {"type": "array", "items": {"type": "integer"}}}}}));
    // fisk calls a counter a list of integers, but takes a boolean.
    let loud = json!({"type": "boolean", "description": "L"});
    assert_eq!(
        tool.input_schema(),
        &json!({"type": "object", "additionalProperties": false, "required": ["count"], "properties": {
            "count": {"type": "integer", "minimum": 0, "description": "How many"}, "loud": loud}})
    );
    assert_eq!(
        argv(&tool, json!({"count": 0, "loud": true})),
        ["run", "--count=0", "--loud"]
    );
}

fn wild() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |f| f.is_finite())
            .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["--", "--free", "-f", "@x", "--=", "\0"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn everything() -> Toolset {
    let model = json!({"commands": [{"name": "run",
        "flags": [{"name": "switch", "boolean": true, "negatable": true}, {"name": "force", "boolean": true}, {"name": "text"},
            {"name": "list", "cumulative": true}, {"name": "map", "cumulative": true}, {"name": "whole"}],
        "args": [{"name": "first", "default": ["d"]}, {"name": "rest", "cumulative": true}],
        "schema": {"properties": {"map": {"type": "object", "additionalProperties": {"type": "string"}}, "whole": {"type": "integer"}}}}]});
    derive(model, &Selection::default()).unwrap().0
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    // check: FISK-5
    #[test]
    fn every_token_is_a_declared_flag_or_stands_behind_the_end_of_flags(
        values in prop::collection::vec(prop::option::weighted(0.3, wild()), 8), stray in prop::option::weighted(0.02, ".{0,6}")
    ) {
        let tools = everything();
        let tool = tools.get("run").unwrap();
        let names = ["switch", "force", "text", "list", "map", "whole", "first", "rest"];
        let mut input = Map::new();
        for (name, value) in names.iter().zip(values) {
            if let Some(value) = value {
                input.insert((*name).to_owned(), value);
            }
        }
        if let Some(stray) = stray {
            input.insert(stray, json!("x"));
        }
        match tool.args_from_json(&input) {
            Ok(call) => {
                let tokens = call.argv();
                prop_assert_eq!(&tokens[0], "run");
                let end = tokens.iter().position(|t| t == "--").unwrap_or(tokens.len());
                for token in &tokens[1..end] {
                    let declared = ["--switch", "--no-switch", "--force"].contains(&token.as_str())
                        || ["--text=", "--list=", "--map=", "--whole="].iter().any(|flag| token.starts_with(flag));
                    prop_assert!(declared, "{token}");
                }
                prop_assert!(tokens.iter().filter(|t| *t == "--").count() <= 1);
                prop_assert!(tokens.iter().all(|t| !t.contains('\0')));
            }
            Err(refused) => {
                prop_assert!(!refused.message.is_empty());
                prop_assert!(refused.to_string().len() < 2000);
            }
        }
    }
}

#[test]
fn the_same_input_makes_the_same_vector() {
    let tools = everything();
    let tool = tools.get("run").unwrap();
    let forwards = object(json!({"text": "a", "list": ["b"], "first": "c"}));
    let backwards = object(json!({"first": "c", "list": ["b"], "text": "a"}));
    assert_eq!(
        tool.args_from_json(&forwards),
        tool.args_from_json(&backwards)
    );
}
