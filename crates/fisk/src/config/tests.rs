use std::{path::Path, time::Duration};

use super::*;

fn problems(text: &str) -> String {
    parse("agent.yaml", Path::new(""), text)
        .unwrap_err()
        .to_string()
}

fn good(text: &str) -> Config {
    let text = format!("application_path: ./app\n{text}");
    match parse("agent.yaml", Path::new("/etc/fisk"), &text) {
        Ok(config) => config,
        Err(problems) => panic!("{problems}"),
    }
}

// check: FISK-20
#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_word_that_was_meant() {
    assert_eq!(
        problems("application_path: x\nharnes:\n  no_tui: true\n"),
        "agent.yaml:2:1: unknown key \"harnes\", did you mean \"harness\"?"
    );
    assert_eq!(
        problems("application_path: x\nexpose:\n  agent:\n    mcp:\n      prot: 1\n"),
        "agent.yaml:5:7: unknown key \"prot\", did you mean \"port\"?"
    );
    assert_eq!(
        problems("application_path: x\nllm:\n  thinking:\n    budget: 3\n"),
        "agent.yaml:4:5: unknown key \"budget\"; allowed here: enabled"
    );
    assert_eq!(
        problems("application_path: x\nexpose:\n  harnes: {}\n  harness: {}\n"),
        "agent.yaml:3:3: unknown key \"harnes\", did you mean \"harness\"?\n\
         agent.yaml:4:3: unknown key \"harness\" here: it belongs to the top level of the file"
    );
    for section in [
        "include: {x: 1}",
        "exclude: {x: 1}",
        "llm: {x: 1}",
        "llm: {budget: {x: 1}}",
        "llm: {thinking: {x: 1}}",
        "harness: {x: 1}",
        "harness: {human_in_the_loop: {x: 1}}",
        "harness: {sessions: {x: 1}}",
        "harness: {fuse: {x: 1}}",
        "expose: {x: 1}",
        "expose: {agent: {x: 1}}",
        "expose: {agent: {mcp: {x: 1}}}",
        "expose: {agent: {a2a: {x: 1}}}",
    ] {
        let told = problems(&format!("application_path: x\n{section}\n"));
        assert!(told.contains("unknown key \"x\""), "{section}: {told}");
    }
}

// check: FISK-65
#[test]
fn everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file() {
    let text = "\
application_path: ''
identity: 7
global_flags: server
include:
  tools: ['str(eam', '', ok, ok]
llm:
  provider: claude
  budget:
    max_tokens: many
    max_iterations: 0
    call_timeout: 120
harness:
  no_tui: yes
  strip_env: ['A=B']
  no_tui: true
expose:
  agent:
    mcp:
      port: 70000
      address: localhost
      confirm_over_mcp: sometimes
      tool_timeout: 1d
      token_env: s3cr3t-token
";
    assert_eq!(
        problems(text),
        "\
agent.yaml:1:19: application_path: must not be empty, not \"\"
agent.yaml:2:11: identity: must be a text: put it in quotes, not 7
agent.yaml:3:15: global_flags: must be a list of texts, not \"server\"
agent.yaml:5:11: include.tools: \"str(eam\" is no regular expression: unclosed group
agent.yaml:5:22: include.tools[1]: must not be empty, not \"\"
agent.yaml:5:30: include.tools[3]: \"ok\" stands twice
agent.yaml:7:13: llm.provider: must be one of anthropic, openai, not \"claude\"
agent.yaml:9:17: llm.budget.max_tokens: must be a whole number from 1 to 1000000000, not \"many\"
agent.yaml:10:21: llm.budget.max_iterations: must be a whole number from 1 to 100000, not 0
agent.yaml:11:19: llm.budget.call_timeout: must be a duration like 30s, 2m or 1h30m, from 1s to 1h, not 120
agent.yaml:13:11: harness.no_tui: must be true or false, not \"yes\"
agent.yaml:14:15: harness.strip_env: must be names of variables, with * for anything, not \"A=B\"
agent.yaml:15:3: the key \"no_tui\" stands twice: first on line 13
agent.yaml:19:13: expose.agent.mcp.port: must be a whole number from 0 to 65535, not 70000
agent.yaml:20:16: expose.agent.mcp.address: must be an IP address like 127.0.0.1 or ::1, not \"localhost\"
agent.yaml:21:25: expose.agent.mcp.confirm_over_mcp: must be one of always, auto, never, not \"sometimes\"
agent.yaml:22:21: expose.agent.mcp.tool_timeout: must be a duration like 30s, 2m or 1h30m, from 100ms to 24h, not \"1d\"
agent.yaml:23:18: expose.agent.mcp.token_env: must be the name of a variable that holds the token: letters, digits and _"
    );
}

#[test]
fn what_is_no_configuration_at_all_is_told() {
    assert_eq!(
        problems("just words"),
        "agent.yaml:1:1: the file: must be a mapping of keys, not a text"
    );
    assert!(problems("").contains("the file: must be a mapping of keys, not nothing"));
    assert_eq!(
        problems("identity: x\n"),
        "agent.yaml:1:1: application_path: is missing: name the application's executable"
    );
    assert_eq!(
        problems("application_path: x\nharness:\n"),
        "agent.yaml:2:1: harness: has no value: give it one, or leave the key out"
    );
    assert!(problems("a: [").contains("is no valid YAML"));
    assert!(problems(&"[".repeat(50_000)).contains("agent.yaml:1:"));
}

#[test]
fn the_operator_fuse_needs_an_environment_to_ask_for() {
    assert_eq!(
        problems("application_path: x\nharness:\n  operator: fuse\n"),
        "agent.yaml:3:13: harness.fuse.environment: is missing: the operator fuse asks on behalf of an environment"
    );
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = good("expose: {agent: {mcp: {}, a2a: {}}}\n");
    assert_eq!(config.application, Path::new("/etc/fisk/./app"));
    assert_eq!(config.llm.limits.max_tokens, 200_000);
    assert_eq!(config.llm.limits.max_iterations, 50);
    assert_eq!(config.llm.call_timeout, Duration::from_secs(120));
    assert_eq!(config.llm.model(), Some(DEFAULT_MODEL));
    assert_eq!(good("llm: {provider: openai}\n").llm.model(), None);
    assert!(!config.llm.allow_plain_http);
    assert!(!config.harness.human_in_the_loop && !config.llm.thinking);
    let mcp = config.mcp.unwrap();
    assert_eq!(mcp.confirm, ConfirmOverMcp::Always);
    assert_eq!(mcp.surface.port, 8080);
    assert_eq!(mcp.surface.address.to_string(), "127.0.0.1");
    assert_eq!(mcp.surface.max_concurrent_tools, 2);
    assert_eq!(mcp.surface.tool_timeout, Duration::from_secs(30));
    assert!(good("").mcp.is_none());
}

#[test]
fn every_key_is_read() {
    let config = good(
        "\
identity: ops
system_prompt: |
  Be brief.
global_flags: [server]
include: {tools: ['^stream_'], tags: [ro]}
exclude: {tools: [rm], tags: [rw]}
llm:
  provider: openai
  model: qwen
  base_url: http://gpu:1/v1
  allow_plain_http: true
  budget: {max_tokens: 5, max_iterations: 6, call_timeout: 1m30s}
  thinking: {enabled: true}
harness:
  human_in_the_loop: {enabled: true}
  confirm_tags: ['impact:rw']
  no_tui: true
  no_bell: true
  sessions: {dir: state}
  strip_env: ['AWS_*']
  tool_timeout: 90m
  sandbox: true
  operator: fuse
  fuse: {url: 'https://fuse', environment: env_1, token_env: T, timeout: 10m}
expose:
  agent:
    mcp: {port: 0, address: '::1', confirm_over_mcp: auto, max_concurrent_tools: 4, tool_timeout: 5s, instructions: hi, token_env: TOKEN}
",
    );
    assert_eq!(config.llm.provider, ProviderKind::OpenAi);
    assert_eq!(config.llm.model(), Some("qwen"));
    assert!(config.llm.allow_plain_http);
    assert_eq!(config.llm.limits.max_iterations, 6);
    assert_eq!(config.llm.call_timeout, Duration::from_secs(90));
    assert_eq!(config.exclude.tags, ["rw"]);
    let harness = config.harness;
    assert_eq!(harness.sessions_dir.unwrap(), Path::new("/etc/fisk/state"));
    assert!(harness.sandbox && harness.no_bell && harness.no_tui && harness.human_in_the_loop);
    assert_eq!(harness.tool_timeout, Duration::from_secs(5400));
    assert_eq!(harness.operator, Operator::Fuse);
    assert_eq!(harness.fuse.token_env, "T");
    let mcp = config.mcp.unwrap();
    assert_eq!(mcp.confirm, ConfirmOverMcp::Auto);
    assert_eq!(mcp.surface.token_env.as_deref(), Some("TOKEN"));
}
