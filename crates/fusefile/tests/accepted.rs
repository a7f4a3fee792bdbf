//! Files that are fine, and the requests they make.

use fuse_fusefile::{
    Files, Options, Secrets, ServerFacts, TEMPLATE, compile, json_schema, parse, shown, validate,
};
use serde_json::{Value, json};

fn request(text: &str) -> Value {
    let parsed = parse("Fusefile", text).unwrap_or_else(|verdicts| panic!("{verdicts}"));
    let (options, files) = (Options::default(), Files::inline(&parsed));
    let verdicts = validate(&parsed, &options, &files, &ServerFacts::offline());
    assert!(!verdicts.has_errors(), "{verdicts}");
    shown(&compile(&parsed, &options, &files).unwrap())
}

fn hitl(block: &str) -> Value {
    request(&format!("version: 1\nrun: ./agent.sh\n{block}"))["hitl"].clone()
}

// check: FILE-3
#[test]
fn the_smallest_file_asks_for_the_defaults() {
    assert_eq!(
        request("version: 1\n"),
        json!({"task_id": "agent", "spec": {}})
    );
}

// check: FILE-3, HTTP-14
#[test]
fn every_key_has_its_member_in_the_request() {
    let made = request(
        "
version: 1
name: builder
image: debian-12
files:
  /etc/motd: hello
resources: {cpus: 1.5, ram_mb: 1024, storage_gb: 2, max_processes: 64, network: host, idle_timeout: 1h30m, max_runtime: 8h}
env:
  PLAIN: text
  NUMBER: 1.10
  FLAG: true
  EMPTY: \"\"
  TOKEN: {secret: token}
build:
  - ./setup.sh
  - {run: make, workdir: /src}
run: [sh, -c, 'exec agent']
workspace: /work
startup_timeout: 5m
secrets: [token]
desktop: {width: 1280, height: 800}
",
    );
    assert_eq!(
        made,
        json!({
            "task_id": "builder",
            "spec": {"cpus": 1.5, "ram_mb": 1024, "storage_gb": 2, "max_processes": 64, "image": "debian-12",
                "network": "host", "max_runtime_seconds": 28800, "idle_timeout_seconds": 5400},
            "secrets": {"token": null},
            "env": {"PLAIN": {"value": "text"}, "NUMBER": {"value": "1.10"}, "FLAG": {"value": "true"},
                "EMPTY": {"value": ""}, "TOKEN": {"secret": "token"}},
            "files": {"/etc/motd": "aGVsbG8="},
            "build": [{"run": "./setup.sh"}, {"run": "make", "workdir": "/src"}],
            "run": ["sh", "-c", "exec agent"],
            "workspace": "/work",
            "startup_script_timeout_seconds": 300,
            "desktop": {"width": 1280, "height": 800},
        })
    );
}

// check: FILE-3
#[test]
fn requests_and_deadlines_compile() {
    assert_eq!(
        hitl(
            "hitl:\n  timeout: 30m # long\n  on_timeout: allow\n  requests:\n    ask: {}\n    review: {}\n"
        ),
        json!({"timeout_seconds": 1800, "on_timeout": "allow", "requests": {"ask": {}, "review": {}}})
    );
    assert_eq!(
        hitl("hitl: {require_actor: true, requests: {ask: {}}}\n")["require_actor"],
        true
    );
}

// check: CONF-14
#[test]
fn exec_and_lifecycle_gates_compile() {
    let made = hitl(
        "
hitl:
  gates:
    - name: pushes
      on: exec
      match: { program: git, args: [push, --force] }
      grant: ttl:45m
      timeout: 3m
    - name: shells
      on: exec
      match: { shell: true }
      mode: notify
    - name: stay
      on: lifecycle
      match: { action: [destroy, migrate] }
      mode: deny
      reason: not yours to remove
",
    );
    assert_eq!(
        made["gates"],
        json!([
            {"name": "pushes", "on": "exec", "match": {"program": ["git"], "args": ["push", "--force"]}, "mode": "ask",
                "grant": "ttl:45m", "timeout_seconds": 180},
            {"name": "shells", "on": "exec", "match": {"shell": true}, "mode": "notify"},
            {"name": "stay", "on": "lifecycle", "match": {"action": ["destroy", "migrate"]}, "mode": "deny",
                "reason": "not yours to remove"},
        ])
    );
}

#[test]
fn computer_gates_compile() {
    let made = hitl(
        "
hitl:
  gates:
    - { name: typing, on: computer, match: { action: type }, mode: notify }
    - { name: host, on: computer, match: { text_contains: [prod.example.org] }, timeout: 5m }
    - { name: drags, on: computer, match: { action: [left_click_drag, left_mouse_down] }, mode: deny, reason: no dragging }
",
    );
    assert_eq!(made["gates"][0]["match"], json!({"action": ["type"]}));
    assert_eq!(
        made["gates"][1]["match"],
        json!({"text_contains": ["prod.example.org"]})
    );
}

// check: CONF-21, CONF-22
#[test]
fn deciders_and_webhooks_name_a_declared_secret() {
    let made = request(
        "
version: 1
run: ./agent.sh
secrets: [decider_key, hook_key]
hitl:
  requests: { ask: {} }
  gates:
    - name: push
      on: exec
      match: { program: git, args: [push] }
      decide: { url: https://decide.example.org/fuse, secret: decider_key }
  notify:
    - webhook: https://hooks.example.org/fuse
      secret: hook_key
",
    );
    assert_eq!(made["hitl"]["gates"][0]["decide"]["secret"], "decider_key");
    assert_eq!(
        made["hitl"]["notify"],
        json!([{"webhook": "https://hooks.example.org/fuse", "secret": "hook_key"}])
    );
    assert_eq!(
        made["secrets"],
        json!({"decider_key": null, "hook_key": null})
    );
}

#[test]
fn an_allowlist_compiles() {
    assert_eq!(
        hitl("hitl:\n  exec:\n    default: deny\n    allow: [ls, cat, git]\n")["exec"],
        json!({"default": "deny", "allow": ["ls", "cat", "git"]})
    );
}

#[test]
fn secret_targets_compile() {
    let made = hitl(
        "
hitl:
  requests:
    secret:
      targets:
        - env: GH_TOKEN
          label: a token that may push
        - file: /root/.netrc
          label: the mirror's login
",
    );
    assert_eq!(
        made["requests"]["secret"]["targets"][1]["file"],
        "/root/.netrc"
    );
}

#[test]
fn takeovers_compile_with_a_desktop() {
    assert_eq!(
        hitl("hitl: {timeout: 1h, requests: {takeover: {via: [terminal]}}}\n")["timeout_seconds"],
        3600
    );
    let made = hitl(
        "desktop:\n  width: 1024\n  height: 768\nhitl:\n  requests:\n    takeover:\n      via: [terminal, desktop]\n",
    );
    assert_eq!(
        made["requests"]["takeover"]["via"],
        json!(["terminal", "desktop"])
    );
}

// check: CONF-25
#[test]
fn signals_compile_to_seconds() {
    let made = hitl(
        "
resources: {idle_timeout: 1h}
hitl:
  gates:
    - { name: failing, on: stall, match: { failures: 3 } }
    - { name: quiet, on: stall, match: { quiet: 15m }, mode: notify }
    - { name: reap, on: expiry, match: { before: 5m } }
",
    );
    let matches: Vec<&Value> = made["gates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gate| &gate["match"])
        .collect();
    assert_eq!(
        matches,
        [
            &json!({"failures": 3}),
            &json!({"quiet_seconds": 900}),
            &json!({"before_seconds": 300})
        ]
    );
}

// check: FILE-5
#[test]
fn a_bare_request_kind_is_declared_with_advice_to_say_so() {
    let text = "version: 1\nhitl:\n  requests:\n    ask:\n    takeover: ~\n";
    let parsed = parse("Fusefile", text).unwrap();
    let verdicts = validate(
        &parsed,
        &Options::default(),
        &Files::default(),
        &ServerFacts::offline(),
    );
    assert!(!verdicts.has_errors());
    assert_eq!(
        verdicts.to_string().lines().next(),
        Some(
            "Fusefile:4:5: warning: hitl.requests.ask: counts as declared; write `ask: {}` to say so"
        )
    );
    assert_eq!(verdicts.warnings().count(), 2);
    assert_eq!(
        request(text)["hitl"]["requests"],
        json!({"ask": {}, "takeover": {}})
    );
}

#[test]
fn an_interpreter_on_the_allowlist_is_a_warning_at_its_place() {
    let parsed = parse(
        "Fusefile",
        "version: 1\nhitl:\n  exec:\n    allow:\n      - ls\n      - python3\n",
    )
    .unwrap();
    let verdicts = validate(
        &parsed,
        &Options::default(),
        &Files::default(),
        &ServerFacts::offline(),
    );
    let first = &verdicts.all()[0];
    assert_eq!(
        (first.severity.as_str(), first.path.as_str()),
        ("warning", "hitl.exec.allow[1]")
    );
    assert_eq!(
        first.place.map(|place| (place.line, place.column)),
        Some((6, 9))
    );
}

// check: FILE-4
#[test]
fn given_secrets_are_put_in_and_never_shown() {
    let parsed = parse(
        "Fusefile",
        "version: 1\nsecrets: [token]\nenv: {T: {secret: token}}\n",
    )
    .unwrap();
    let value = fuse_api::environment::SecretText("s3cr3t-value".to_owned());
    let options = Options {
        secrets: Secrets::Given([("token".to_owned(), value)].into()),
        task_id: Some("other".to_owned()),
        ..Options::default()
    };
    let made = compile(&parsed, &options, &Files::default()).unwrap();
    assert_eq!(made.secrets["token"].0, "s3cr3t-value");
    assert_eq!(made.task_id, "other");
    assert!(!format!("{:?} {made:?} {options:?}", shown(&made)).contains("s3cr3t"));
}

// check: FILE-8
#[test]
fn the_template_is_valid_as_it_stands_and_with_every_example_switched_on() {
    assert_eq!(request(TEMPLATE)["task_id"], "agent");
    let mut on = String::new();
    for line in TEMPLATE.lines() {
        let bare = line.trim_start();
        let indent = &line[..line.len() - bare.len()];
        let example = bare.strip_prefix("# ").filter(|rest| {
            let key = rest.trim_start_matches("- ").trim_start();
            rest.starts_with("  ")
                || rest.starts_with("- ")
                || key.split_once(':').is_some_and(|(key, _)| {
                    !key.is_empty()
                        && key
                            .bytes()
                            .all(|b| b.is_ascii_uppercase() || b.is_ascii_lowercase() || b == b'_')
                        && !matches!(key, "Every key")
                })
        });
        match example {
            Some(example) => on.push_str(&format!("{indent}{example}\n")),
            None => on.push_str(&format!("{line}\n")),
        }
    }
    assert!(
        on.contains("\nsecrets:\n  - gh_token") && on.contains("\n  exec:\n    default: ask"),
        "{on}"
    );
    let parsed = parse("Fusefile", &on).unwrap_or_else(|verdicts| panic!("{verdicts}\n{on}"));
    let verdicts = validate(
        &parsed,
        &Options::default(),
        &Files::inline(&parsed),
        &ServerFacts::offline(),
    );
    assert!(!verdicts.has_errors(), "{verdicts}");
}

// check: FILE-7
#[test]
fn the_schema_describes_every_key_and_lets_no_other_in() {
    let schema = json_schema();
    let keys: Vec<&str> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    for key in [
        "version",
        "name",
        "image",
        "files",
        "copy",
        "resources",
        "env",
        "build",
        "run",
        "workspace",
        "startup_timeout",
        "secrets",
        "hitl",
        "desktop",
    ] {
        assert!(keys.contains(&key), "{key}");
        assert!(
            schema["properties"][key]["description"].is_string(),
            "{key}"
        );
    }
    assert_eq!(keys.len(), 14);
    assert_eq!(schema["required"], json!(["version"]));
    assert!(!schema.to_string().contains("\"null\""), "no type is null");
    let objects = schema["$defs"]
        .as_object()
        .unwrap()
        .values()
        .filter(|one| one["type"] == "object");
    for object in objects {
        assert_eq!(object["additionalProperties"], false, "{object}");
    }
}

#[test]
fn every_example_of_the_documentation_is_valid() {
    let text = include_str!("../../../docs/fusefile.md");
    let examples: Vec<&str> = text
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        request(example);
    }
}
