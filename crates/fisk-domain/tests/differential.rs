//! Random commands and inputs: where we make an argument vector, fisk itself makes the same one; where we refuse what fisk takes,
//! the reason is one of a known few.
#![allow(
    clippy::disallowed_types,
    reason = "the other side of the comparison is a process"
)]

mod common;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use common::{call, real, run};
use fisk_domain::{Selection, Toolset};
use proptest::{
    prelude::*,
    test_runner::{Config, TestError, TestRunner},
};
use serde_json::{Map, Value, json};

/// fisk's own `ArgsFromJSON`, one question at a time.
struct Oracle {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Self {
        let mut child = Command::new(common::fixture("oracle"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let questions = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            questions,
            answers,
        }
    }

    fn ask(&mut self, model: &Value, input: &Value) -> Result<Vec<String>, String> {
        writeln!(
            self.questions,
            "{}",
            json!({"model": model, "input": input})
        )
        .unwrap();
        self.questions.flush().unwrap();
        let mut line = String::new();
        assert!(
            self.answers.read_line(&mut line).unwrap() > 0,
            "the oracle ended"
        );
        let answer: Value = serde_json::from_str(&line).unwrap();
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(
                serde_json::from_value::<Option<Vec<String>>>(answer["args"].clone())
                    .unwrap()
                    .unwrap_or_default(),
            ),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a value may be, as fisk's schemas say it.
fn kinds() -> Vec<Value> {
    vec![
        json!({"type": "string"}),
        json!({"type": "string", "enum": ["a", "b", "--c"]}),
        json!({"type": "string", "pattern": "^(0|[-+]?(\\d+(\\.\\d+)?(ns|us|µs|ms|s|m|h))+)$"}),
        json!({"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]}),
        json!({"type": "integer"}),
        json!({"type": "integer", "minimum": -128, "maximum": 127}),
        json!({"type": "integer", "minimum": 0}),
        json!({"type": "number"}),
        json!({"type": "number", "maximum": 3.4028234663852886e38}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
        json!({"type": "array", "items": {"type": "integer"}}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(vec!["a", "b", "", "--", "-", "--x", "--no-x", "@/etc/passwd", "1h", "-5m", "0", "k=v", "--force=true", "\0", "é\n"])
            .prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(Value::from),
        2 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => (-200_i64..200).prop_map(Value::from),
        1 => any::<f64>().prop_filter("JSON has no others", |f| f.is_finite()).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("k".to_owned()),
        Just("k=v".to_owned()),
        Just("a:b".to_owned()),
        "[a-z]{0,3}"
    ];
    prop_oneof![
        4 => scalar(),
        1 => prop::collection::vec(scalar(), 0..3).prop_map(Value::from),
        1 => prop::collection::vec(text().prop_map(Value::from), 0..3).prop_map(Value::from),
        1 => prop::collection::btree_map(key, scalar(), 0..3).prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
    ]
}

/// A value that is of the kind more often than not.
fn fitting(schema: &Value) -> BoxedStrategy<Value> {
    let fits = match schema["type"].as_str().unwrap() {
        "integer" => prop_oneof![
            (-300_i64..300).prop_map(Value::from),
            any::<i64>().prop_map(Value::from)
        ]
        .boxed(),
        "number" => prop_oneof![
            (-1e6..1e6_f64).prop_map(Value::from),
            any::<i32>().prop_map(Value::from)
        ]
        .boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "array" if schema["items"]["type"] == "integer" => {
            prop::collection::vec(any::<i64>().prop_map(Value::from), 0..4)
                .prop_map(Value::from)
                .boxed()
        }
        "array" => prop::collection::vec(text().prop_map(Value::from), 0..4)
            .prop_map(Value::from)
            .boxed(),
        "object" => prop::collection::btree_map("[a-z-]{0,4}", text().prop_map(Value::from), 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
            .boxed(),
        _ => text().prop_map(Value::from).boxed(),
    };
    prop_oneof![5 => fits, 1 => value()].boxed()
}

const FLAGS: [&str; 8] = [
    "x", "no-x", "force", "name", "y.z", "no-y.z", "count", "label",
];
const ARGS: [&str; 4] = ["first", "second", "third", "rest"];

/// A command and an input for it.
fn question() -> impl Strategy<Value = (Value, Value)> {
    let flag = (
        any::<prop::sample::Index>(),
        prop::bool::weighted(0.35),
        any::<bool>(),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        prop::sample::select(vec!["", "", "true", "1", "false"]),
        prop::bool::weighted(0.15),
    );
    let arg = (
        any::<prop::sample::Index>(),
        0..3_usize,
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
    );
    let flags = (
        prop::sample::subsequence(FLAGS.to_vec(), 0..=6),
        prop::collection::vec(flag, 6),
    );
    let args = (
        prop::sample::subsequence(ARGS.to_vec(), 0..=4),
        prop::collection::vec(arg, 4),
    );
    (flags, args).prop_flat_map(|((names, flags), (arg_names, args))| {
        let kinds = kinds();
        let mut properties = Map::new();
        let mut flag_models = Vec::new();
        for (name, (kind, boolean, negatable, required, hidden, default, envar)) in names.iter().zip(flags) {
            let schema = if boolean { json!({"type": "boolean"}) } else { kind.get(&kinds).clone() };
            let many = matches!(schema["type"].as_str(), Some("array" | "object"));
            let mut model = json!({"name": name, "help": "h", "boolean": boolean, "negatable": boolean && negatable,
                "cumulative": many, "required": required, "hidden": hidden});
            if boolean && !default.is_empty() {
                model["default"] = json!([default]);
            }
            if envar {
                model["envar"] = json!("VARIABLE");
            }
            flag_models.push(model);
            properties.insert((*name).to_owned(), schema);
        }
        let mut arg_models = Vec::new();
        let last = arg_names.len().saturating_sub(1);
        for (i, (name, (kind, defaults, required, hidden))) in arg_names.iter().zip(args).enumerate() {
            let mut schema = kind.get(&kinds).clone();
            // fisk makes no arguments of a map, and only the last one takes all that is left.
            if schema["type"] == "object" || (i != last && schema["type"] == "array") {
                schema = json!({"type": "string"});
            }
            arg_models.push(json!({"name": name, "help": "h", "cumulative": schema["type"] == "array", "required": required,
                "hidden": hidden, "default": (["d", "e"][..defaults])}));
            properties.insert((*name).to_owned(), schema);
        }
        let names: Vec<String> = properties.keys().cloned().collect();
        let values: Vec<BoxedStrategy<Value>> = properties.values().map(fitting).collect();
        let model = json!({"name": "run", "help": "h", "flags": flag_models, "args": arg_models,
            "schema": {"type": "object", "properties": properties}});
        let given = prop::collection::vec(prop::bool::weighted(0.6), names.len());
        let stray = prop::option::weighted(0.05, value());
        (Just(model), values, given, stray).prop_map(move |(model, values, given, stray)| {
            let mut input: Map<String, Value> = names
                .iter()
                .cloned()
                .zip(values)
                .zip(given)
                .filter(|(_, given)| *given)
                .map(|(pair, _)| pair)
                .collect();
            if let Some(stray) = stray {
                input.insert("stray".to_owned(), stray);
            }
            (model, Value::Object(input))
        })
    })
}

/// Why we refuse what fisk takes.
const STRICTER: [&str; 9] = [
    // Types, null, enums, bounds, patterns; fisk leaves those to the application's parser.
    "that is not allowed; allowed: ",
    "lacks required parameters",
    "is required and needs at least one value",
    // Hidden ones; fisk takes them.
    "has no such parameter",
    // fisk itself looks at the default alone.
    "cannot be set to false",
    "= or :",
    "cannot be passed",
    "NUL",
    // More than one default would shift what follows.
    "no default to stand before it",
];

// check: FISK-31
#[test]
fn accepted_input_becomes_what_fisk_makes_of_it() {
    let mut oracle = Oracle::start();
    let (mut taken, mut stricter) = (0, 0);
    let mut runner = TestRunner::new(Config {
        cases: 4000,
        failure_persistence: None,
        ..Config::default()
    });
    let strategy = question();
    let outcome = {
        let oracle = std::cell::RefCell::new(&mut oracle);
        let counts = std::cell::RefCell::new((&mut taken, &mut stricter));
        runner.run(&strategy, |(model, input)| {
            let bytes = json!({"name": "app", "commands": [model.clone()]}).to_string();
            let (tools, warnings) =
                Toolset::from_introspection(bytes.as_bytes(), &Selection::default()).unwrap();
            let tool = tools.get("run").unwrap_or_else(|| panic!("{warnings:?}"));
            let theirs = oracle.borrow_mut().ask(&model, &input);
            match (call(tool, input.clone()), theirs) {
                (Ok(ours), theirs) => {
                    *counts.borrow_mut().0 += 1;
                    prop_assert_eq!(Ok(ours.argv()[1..].to_vec()), theirs, "{}", input);
                }
                (Err(_), Err(_)) => {}
                (Err(refused), Ok(args)) => {
                    *counts.borrow_mut().1 += 1;
                    let text = refused.to_string();
                    prop_assert!(
                        STRICTER.iter().any(|why| text.contains(why)),
                        "{text}: {input} {args:?}"
                    );
                }
            }
            Ok(())
        })
    };
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, (model, input))) => {
            panic!("{why}\nmodel: {model}\ninput: {input}")
        }
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
    // A generator that makes nothing acceptable would prove nothing.
    assert!(
        taken > 400 && stricter > 400,
        "{taken} taken, {stricter} refused by us alone"
    );
}

fn whole() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), any::<i32>().prop_map(i64::from)]
}

/// An input that the application's `echo` can take.
fn echoed() -> impl Strategy<Value = Value> {
    let flags = (
        prop::option::of(text()),
        prop::option::of(whole()),
        prop::option::of(any::<i8>()),
        prop::option::of(any::<u64>()),
        prop::option::of(any::<f64>().prop_filter("finite", |f| f.is_finite())),
        prop::option::of(prop::collection::vec(text(), 1..4)),
        prop::option::of(prop::collection::btree_map("[a-z-]{1,4}", text(), 1..4)),
        prop::option::of(any::<bool>()),
    );
    let args = (
        prop::option::of(text()),
        prop::option::of(whole()),
        prop::option::of(text()),
        prop::collection::vec(text(), 0..4),
    );
    (flags, args).prop_map(
        |((text, count, small, size, ratio, name, label, colour), (first, second, third, rest))| {
            let mut input = Map::new();
            let mut put = |key: &str, value: Value| {
                if !value.is_null() {
                    input.insert(key.to_owned(), value);
                }
            };
            put("text", json!(text));
            put("count", json!(count));
            put("small", json!(small));
            put("size", json!(size));
            put("ratio", json!(ratio));
            put("name", json!(name));
            put("label", json!(label));
            put("colour", json!(colour));
            put("first", json!(first));
            put("second", json!(second));
            if !rest.is_empty() {
                put("third", json!(third.clone().unwrap_or_default()));
                put("rest", json!(rest));
            } else {
                put("third", json!(third));
            }
            Value::Object(input)
        },
    )
}

// check: FISK-19
#[test]
fn what_the_application_understands_is_what_was_given() {
    let tools = real("app", "", &Selection::default());
    let echo = tools.get("echo").unwrap();
    let ran = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&echoed(), |input| {
        let Ok(call) = call(echo, input.clone()) else {
            let text = input.to_string();
            let rounded = |key: &str| {
                input[key]
                    .as_i64()
                    .is_some_and(|i| i as f64 as i128 != i128::from(i))
            };
            prop_assert!(
                text.contains("\\u0000")
                    || text.contains("\"--\"")
                    || rounded("count")
                    || rounded("second"),
                "{text}"
            );
            return Ok(());
        };
        ran.set(ran.get() + 1);
        let all = run("app", "", &call);
        for (key, value) in input.as_object().unwrap() {
            // Go writes 0 where we wrote 0.0.
            if value.is_f64() {
                prop_assert_eq!(all[key].as_f64(), value.as_f64(), "{} of {}", key, input);
            } else {
                prop_assert_eq!(&all[key], value, "{} of {}", key, input);
            }
        }
        prop_assert_eq!(&all["force"], &json!(false));
        prop_assert_eq!(&all["internal"], &json!(""));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(ran.get() > 50, "{}", ran.get());
}
