//! Any command with any input: no panic, and every token is the command, a declared flag in its one form, or behind `--`.
#![no_main]

use std::collections::BTreeSet;

use fisk_domain::{Selection, Toolset};
use libfuzzer_sys::{
    arbitrary::{Result, Unstructured},
    fuzz_target,
};
use serde_json::{Map, Value, json};

const NAMES: [&str; 10] = [
    "a", "no-a", "b", "no-b", "c.d", "force", "help", "version", "x", "no-no-a",
];
const TEXTS: [&str; 12] = [
    "", "--", "-", "--a", "--no-a", "-x", "@f", "a=b", "a:b", "true", "\0", "5m",
];

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(if u.ratio(2, 3)? {
        (*u.choose(&TEXTS)?).to_owned()
    } else {
        u.arbitrary::<String>()?
    })
}

fn value(u: &mut Unstructured<'_>, depth: u8) -> Result<Value> {
    Ok(match u.int_in_range(0..=if depth == 0 { 6 } else { 8 })? {
        0 => Value::Null,
        1 => json!(u.arbitrary::<bool>()?),
        2 => json!(u.arbitrary::<i64>()?),
        3 => json!(u.arbitrary::<u64>()?),
        4 => json!(u.arbitrary::<f64>()?),
        5 | 6 => json!(text(u)?),
        7 => {
            let length = u.int_in_range(0..=3)?;
            let items: Result<Vec<Value>> = (0..length).map(|_| value(u, depth - 1)).collect();
            Value::Array(items?)
        }
        _ => {
            let mut entries = Map::new();
            for _ in 0..u.int_in_range(0..=3)? {
                let key = text(u)?;
                entries.insert(key, value(u, depth - 1)?);
            }
            Value::Object(entries)
        }
    })
}

fn schema(u: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match u.int_in_range(0..=8)? {
        0 => json!({"type": "string"}),
        1 => json!({"type": "string", "enum": ["a", "--", "--a"]}),
        2 => json!({"type": "string", "pattern": "^[-a-z]*$"}),
        3 => json!({"type": "integer"}),
        4 => json!({"type": "integer", "minimum": -5, "maximum": u.arbitrary::<u64>()?}),
        5 => json!({"type": "number"}),
        6 => json!({"type": "array", "items": {"type": "string"}}),
        7 => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        _ => value(u, 2)?,
    })
}

fn parameters(u: &mut Unstructured<'_>, properties: &mut Map<String, Value>) -> Result<Vec<Value>> {
    let mut made = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        let name = *u.choose(&NAMES)?;
        let schema = schema(u)?;
        let many = matches!(schema["type"].as_str(), Some("array" | "object"));
        if u.ratio(3, 4)? {
            properties.insert(name.to_owned(), schema);
        }
        let default = if u.ratio(1, 3)? {
            vec![text(u)?]
        } else {
            Vec::new()
        };
        made.push(json!({
            "name": name, "hidden": u.ratio(1, 8)?, "required": u.ratio(1, 8)?, "cumulative": many != u.ratio(1, 20)?,
            "boolean": u.ratio(1, 3)?, "negatable": u.arbitrary::<bool>()?, "default": default,
        }));
    }
    Ok(made)
}

fn question(u: &mut Unstructured<'_>) -> Result<(Value, Map<String, Value>)> {
    let mut properties = Map::new();
    let globals = parameters(u, &mut Map::new())?;
    let flags = parameters(u, &mut properties)?;
    let args = parameters(u, &mut properties)?;
    let mut command = json!({"name": "run", "flags": flags, "args": args});
    if u.ratio(3, 4)? {
        command["schema"] = json!({"properties": properties});
    }
    let mut input = Map::new();
    for _ in 0..u.int_in_range(0..=6)? {
        let key = if u.ratio(9, 10)? {
            (*u.choose(&NAMES)?).to_owned()
        } else {
            text(u)?
        };
        input.insert(key, value(u, 2)?);
    }
    Ok((json!({"flags": globals, "commands": [command]}), input))
}

fuzz_target!(|bytes: &[u8]| {
    let Ok((model, input)) = question(&mut Unstructured::new(bytes)) else {
        return;
    };
    let Ok((tools, _)) =
        Toolset::from_introspection(model.to_string().as_bytes(), &Selection::default())
    else {
        return;
    };
    let Some(tool) = tools.get("run") else {
        return;
    };
    let call = match tool.args_from_json(&input) {
        Ok(call) => call,
        Err(refused) => {
            assert!(!refused.message.is_empty());
            return;
        }
    };
    let every = model["flags"]
        .as_array()
        .into_iter()
        .chain(model["commands"][0]["flags"].as_array())
        .flatten();
    let every: Vec<&Value> = every.collect();
    let known: BTreeSet<&str> = every
        .iter()
        .filter_map(|flag| flag["name"].as_str())
        .collect();
    // What fisk's parser makes of each token in front of the end of flags.
    let mut words = 0;
    let mut tokens = call.argv().iter();
    for token in tokens.by_ref().take_while(|token| *token != "--") {
        let Some(flag) = token.strip_prefix("--") else {
            assert_eq!(token, "run");
            words += 1;
            continue;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let (name, off) = match name.strip_prefix("no-") {
            Some(positive) if !known.contains(name) => (positive, true),
            _ => (name, false),
        };
        let declared = every
            .iter()
            .find(|flag| flag["name"] == name)
            .expect("a declared flag");
        assert_ne!(declared["hidden"], true);
        assert_eq!(declared["boolean"] == true, value.is_none(), "{token}");
        if declared["boolean"] == true {
            assert_eq!(input[name], json!(!off), "{token}");
        } else {
            assert!(!off);
        }
    }
    assert_eq!(words, 1);
    assert!(tokens.all(|token| token != "--"));
    assert!(call.argv().iter().all(|token| !token.contains('\0')));
});
