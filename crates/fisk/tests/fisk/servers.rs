//! `fisk mcp` and `fisk a2a`.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Stdio},
};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::*;

// check: FISK-17
#[test]
fn nothing_is_served_without_its_block() {
    let world = World::new("expose: {agent: {}}\n", vec![]);
    for (command, block) in [("mcp", "expose.agent.mcp"), ("a2a", "expose.agent.a2a")] {
        let ran = world.run(&[command]);
        assert_eq!(ran.code, Some(2));
        assert!(
            ran.stderr
                .starts_with(&format!("agent.yaml: {block}: is missing")),
            "{ran:?}"
        );
    }
    assert_eq!(world.run(&["mcp", "--stdio"]).code, Some(2));
}

/// Starts a server without a key and gives its address.
fn serving(world: &World, command: &[&str], token: Option<&str>) -> (Child, String) {
    let mut command = world.fisk(command);
    command.env_remove("ANTHROPIC_API_KEY");
    if let Some(token) = token {
        command.env("TOKEN", token);
    }
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines
        .find_map(|line| {
            Some(
                line.unwrap()
                    .strip_prefix("listening on http://")?
                    .split('/')
                    .next()?
                    .to_owned(),
            )
        })
        .unwrap();
    // Whatever else it says is read, so that it never waits for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    (child, address)
}

fn status(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_served_surface_needs_no_key_takes_its_token_from_a_variable_and_ends_on_a_signal() {
    let block = "expose: {agent: {mcp: {port: 0, token_env: TOKEN}}}\n";
    let world = World::new(block, vec![]);
    let ran = world.run(&["mcp"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            Some(2),
            "error: expose.agent.mcp.token_env: the variable TOKEN is not set\n"
        )
    );
    let (mut child, address) = serving(&world, &["mcp"], Some("t0ken-0123456789"));
    let post = |token: &str| {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        status(
            &address,
            &format!(
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
                 Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ),
        )
    };
    assert!(post("wrong").contains(" 401"), "{}", post("wrong"));
    assert!(!post("t0ken-0123456789").contains(" 401"));
    signal(&child, Signal::SIGTERM);
    assert_eq!(end(&mut child).code(), Some(0));
}

#[test]
fn a2a_shows_its_card() {
    let world = World::new("identity: ops\nexpose: {agent: {a2a: {port: 0}}}\n", vec![]);
    let (mut child, address) = serving(&world, &["a2a"], None);
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(
        stream,
        "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("\"ops\""),
        "{answer}"
    );
    signal(&child, Signal::SIGINT);
    assert_eq!(end(&mut child).code(), Some(0));
}

// check: FISK-14
#[test]
fn over_standard_input_the_same_commands_are_served_and_no_question_to_the_operator() {
    let more = "harness: {human_in_the_loop: {enabled: true}}\nexpose: {agent: {mcp: {}}}\n";
    let world = World::new(more, vec![]);
    let mut command = world.fisk(&["mcp", "--stdio"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |request: Value, answered: bool| -> Value {
        writeln!(input, "{request}").unwrap();
        let mut line = String::new();
        if answered {
            output.read_line(&mut line).unwrap();
        }
        serde_json::from_str(&line).unwrap_or_default()
    };
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    ask(
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}),
        true,
    );
    ask(
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        false,
    );
    let listed = ask(
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        true,
    );
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert!(names.contains(&"status"), "{names:?}");
    assert!(
        !names
            .iter()
            .any(|name| name.starts_with("ask_human") || *name == "destroy"),
        "{names:?}"
    );
    let call = json!({"name": "restart", "arguments": {}});
    let refused = ask(
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}),
        true,
    );
    assert!(refused.to_string().contains("do not retry"), "{refused}");
    drop(input);
    assert_eq!(end(&mut child).code(), Some(0));
}
