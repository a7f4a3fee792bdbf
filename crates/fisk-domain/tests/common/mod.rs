//! Real applications, and tools made of JSON.
#![allow(
    dead_code,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the rules touch no process; their tests hold them against real ones"
)]

use std::{path::PathBuf, process::Command};

use fisk_domain::{
    ApplicationModel, BUILT_IN_TOOLS, Call, CommandTool, Rejected, Selection, ToolError, Toolset,
    Warning,
};
use serde_json::{Map, Value, json};

/// An application that `cargo xtask fixtures` built.
pub fn fixture(name: &str) -> PathBuf {
    let folder = std::env::var_os("FISK_TEST_FIXTURES").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../target/go-fixtures"
            ))
        },
        PathBuf::from,
    );
    let path = folder.join(name);
    assert!(
        path.is_file(),
        "{} is missing: run `cargo xtask test`, or `cargo xtask fixtures` once",
        path.display()
    );
    path
}

/// A fixture's command, with nothing of this process' environment that could change what it does.
pub fn command(name: &str, variant: &str) -> Command {
    let mut command = Command::new(fixture(name));
    command.env_clear().env("FIXTURE_VARIANT", variant);
    command.env("HOME", "/nonexistent").env("LLMFORMAT", "1");
    command
}

pub fn introspect(name: &str, variant: &str) -> Vec<u8> {
    let output = command(name, variant)
        .arg("--fisk-introspect")
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}: {output:?}");
    output.stdout
}

pub fn real(name: &str, variant: &str, selection: &Selection) -> Toolset {
    Toolset::from_introspection(&introspect(name, variant), selection)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
        .0
}

/// What a real application says that it understood.
pub fn run(name: &str, variant: &str, call: &Call) -> Value {
    let output = command(name, variant).args(call.argv()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{:?}: {output:?}", call.argv()))
}

pub fn derive(model: Value, selection: &Selection) -> Result<(Toolset, Vec<Warning>), ToolError> {
    let model = ApplicationModel::parse(model.to_string().as_bytes()).unwrap();
    Toolset::derive(&model, selection, &BUILT_IN_TOOLS)
}

/// The one tool of an application with one command.
pub fn tool(mut command: Value) -> CommandTool {
    command["name"] = json!("run");
    let (tools, warnings) = derive(json!({"commands": [command]}), &Selection::default()).unwrap();
    assert_eq!(tools.tools().len(), 1, "{warnings:?}");
    tools.tools()[0].clone()
}

pub fn call(tool: &CommandTool, input: Value) -> Result<Call, Rejected> {
    let Value::Object(input) = input else {
        panic!("an input is an object: {input}");
    };
    tool.args_from_json(&input)
}

pub fn argv(tool: &CommandTool, input: Value) -> Vec<String> {
    call(tool, input).unwrap().argv().to_vec()
}

pub fn refusal(tool: &CommandTool, input: Value) -> String {
    match call(tool, input.clone()) {
        Ok(call) => panic!("{input} was taken: {:?}", call.argv()),
        Err(rejected) => rejected.to_string(),
    }
}

pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("no object: {other}"),
    }
}
