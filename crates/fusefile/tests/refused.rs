//! Files that are refused: where, and in which words.

use fuse_fusefile::{Files, Options, Secrets, ServerFacts, Verdicts, compile, parse, validate};

fn verdicts(text: &str) -> Verdicts {
    match parse("Fusefile", text) {
        Err(verdicts) => verdicts,
        Ok(parsed) => validate(
            &parsed,
            &Options::default(),
            &Files::inline(&parsed),
            &ServerFacts::offline(),
        ),
    }
}

/// The first lines of all errors, without the name of the file.
fn complaints(text: &str) -> Vec<String> {
    let all = verdicts(text);
    assert_eq!(all.errors().count(), all.all().len());
    let text = all.to_string();
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("Fusefile:"));
    lines.map(str::to_owned).collect()
}

// check: FILE-1
#[test]
fn each_fault_of_shape_has_its_place_and_its_words() {
    for (text, complaint) in [
        ("", "1:1: error: the file is empty: begin with `version: 1`"),
        (
            "# nothing\n",
            "2:1: error: the file is empty: begin with `version: 1`",
        ),
        ("- a\n", "1:1: error: must be a mapping, not a list"),
        (
            "name: a\n",
            "1:1: error: the key `version` is missing: write `version: 1`",
        ),
        ("version: 2\n", "1:10: error: version: must be 1, not 2"),
        (
            "version: \"1\"\n",
            "1:10: error: version: must be the number 1, not text",
        ),
        (
            "version: 1\nnmae: a\n",
            "2:1: error: unknown key \"nmae\", did you mean \"name\"?",
        ),
        (
            "version: 1\ndesktop: {width: 800, height: 600, depth: 24}\n",
            "2:36: error: desktop: unknown key \"depth\"; allowed here: height, width",
        ),
        (
            "version: 1\nhitl: {requests: {ask: {x: 1}}}\n",
            "2:25: error: hitl.requests.ask: unknown key \"x\": no key is allowed here",
        ),
        (
            "version: 1\nname: a\nname: b\n",
            "3:1: error: name: stands twice: the first is on line 2",
        ),
        (
            "version: 1\nrun: 123\n",
            "2:6: error: run: must be text or a list of texts, not a number: put it in quotes to make it text",
        ),
        (
            "version: 1\nrun: {a: b}\n",
            "2:1: error: run: must be text or a list of texts, not a mapping",
        ),
        (
            "version: 1\nrun:\n",
            "2:1: error: run: has no value: write text or a list of texts, or leave the key out",
        ),
        (
            "version: 1\nrun: [sh, 5]\n",
            "2:11: error: run[1]: must be text, not a number: put it in quotes to make it text",
        ),
        (
            "version: 1\nhitl:\n",
            "2:1: error: hitl: has no value: write a mapping, or leave the key out",
        ),
        (
            "version: 1\nname: true\n",
            "2:7: error: name: must be text, not a boolean: put it in quotes to make it text",
        ),
        (
            "version: 1\nbuild: make\n",
            "2:8: error: build: must be a list, not text",
        ),
        (
            "version: 1\nbuild:\n  - workdir: /a\n",
            "3:5: error: build[0]: the key `run` is missing: it takes text",
        ),
        (
            "version: 1\nresources: {cpus: many}\n",
            "2:19: error: resources.cpus: must be a number, not text",
        ),
        (
            "version: 1\nresources: {ram_mb: 512MB}\n",
            "2:21: error: resources.ram_mb: must be a number, not text",
        ),
        (
            "version: 1\nresources: {ram_mb: -1}\n",
            "2:21: error: resources.ram_mb: must be a whole number, 0 or more, not -1",
        ),
        (
            "version: 1\nresources: {ram_mb: 1.5}\n",
            "2:21: error: resources.ram_mb: must be a whole number, 0 or more, not 1.5",
        ),
        (
            "version: 1\nresources: {ram_mb: 99999999999999999999}\n",
            "2:21: error: resources.ram_mb: must be a whole number, 0 or more, not 99999999999999999999",
        ),
        (
            "version: 1\nresources: {network: hots}\n",
            "2:22: error: resources.network: must be `none` or `host`, not \"hots\", did you mean \"host\"?",
        ),
        (
            "version: 1\nresources: {max_runtime: 1500ms}\n",
            "2:26: error: resources.max_runtime: must be a duration in whole seconds, like 90s, 10m or 1h30m, not \"1500ms\"",
        ),
        (
            "version: 1\nresources: {max_runtime: 10}\n",
            "2:26: error: resources.max_runtime: must be a duration like 90s, 10m or 1h30m, not a number",
        ),
        (
            "version: 1\nhitl: {timeout: -5s}\n",
            "2:17: error: hitl.timeout: must be a duration in whole seconds, like 90s, 10m or 1h30m, not \"-5s\"",
        ),
        (
            "version: 1\nhitl: {on_timeout: rejected}\n",
            "2:20: error: hitl.on_timeout: must be `reject` or `allow`, not \"rejected\", did you mean \"reject\"?",
        ),
        (
            "version: 1\nhitl: {requests: {ask: yes}}\n",
            "2:24: error: hitl.requests.ask: must be `{}`, not text",
        ),
        (
            "version: 1\nhitl: {require_actor: yes}\n",
            "2:23: error: hitl.require_actor: must be `true` or `false`, not text",
        ),
        (
            "version: 1\nhitl:\n  gates:\n    - {name: g, on: exec, match: {shell: true}, grant: forever}\n",
            "4:56: error: hitl.gates[0].grant: is \"forever\": a grant is `once`, `env` or `ttl:` and a duration, like ttl:30m",
        ),
        (
            "version: 1\nhitl: {gates: [{name: g, on: exec}]}\n",
            "2:16: error: hitl.gates[0]: the key `match` is missing: it takes a mapping",
        ),
        (
            "version: 1\nhitl: {gates: [{name: g, on: exec, match: {quiet_seconds: 5}}]}\n",
            "2:44: error: hitl.gates[0].match: unknown key \"quiet_seconds\"; allowed here: action, args, before, failures, program, quiet, shell, text_contains",
        ),
        (
            "version: 1\nhitl: {<<: {timeout: 5m}}\n",
            "2:8: error: hitl: merge keys (`<<`) are not read: repeat the keys",
        ),
        (
            "version: 1\n---\nname: b\n",
            "3:1: error: a Fusefile holds one document: remove the second `---`",
        ),
        (
            "version: 1\nhitl:\n\ttimeout: 5m\n",
            "3:2: error: tabs disallowed within this context (block indentation)",
        ),
        ("version: 1\nname: [a\n", "2:7: error: unclosed bracket '['"),
        (
            "version: 1\nrun: a: b\n",
            "2:7: error: mapping values are not allowed in this context",
        ),
        (
            "version: 1\nrun: *nope\n",
            "2:6: error: no anchor of this name stands before the alias",
        ),
        (
            "version: 1\nrun: !include /etc/passwd\n",
            "2:15: error: unsupported tag `!include`",
        ),
        (
            "version: 1\nrun: a\0\n",
            "2:7: error: unexpected character: `\\u{0}'",
        ),
    ] {
        assert_eq!(complaints(text), [complaint], "{text}");
    }
}

// check: FILE-2
#[test]
fn each_broken_rule_is_told_at_the_place_of_the_files_own_field() {
    for (text, complaint) in [
        (
            "version: 1\nname: Agent_1\n",
            "2:7: error: name: is not a DNS label (1 to 63 of a-z 0-9 and -, not at either end)",
        ),
        (
            "version: 1\nimage: ../x\n",
            "2:8: error: image: must be `host` or the name of a root tree: 1 to 63 letters, digits, `.`, `_` or `-`, starting with a letter or a digit",
        ),
        (
            "version: 1\nresources: {cpus: 0}\n",
            "2:19: error: resources.cpus: must be 0.05 to 1024, not 0",
        ),
        (
            "version: 1\nresources:\n  idle_timeout: 30s\n",
            "3:17: error: resources.idle_timeout: must be 60 to 31536000 seconds, not 30",
        ),
        (
            "version: 1\nbuild: [make, {run: make, workdir: src}]\n",
            "2:36: error: build[1].workdir: must be an absolute path without `.`, `..`, doubled slashes or a slash at its end",
        ),
        (
            "version: 1\nbuild: [make, \"\"]\n",
            "2:15: error: build[1].run: must not be empty",
        ),
        (
            "version: 1\nrun: []\n",
            "2:1: error: run: needs a program as the first item of the list",
        ),
        (
            "version: 1\nworkspace: work\n",
            "2:12: error: workspace: must be an absolute path without `.`, `..`, doubled slashes or a slash at its end",
        ),
        (
            "version: 1\nstartup_timeout: 2h\n",
            "2:18: error: startup_timeout: must be 1 to 3600 seconds, not 7200",
        ),
        (
            "version: 1\ndesktop: {width: 100, height: 800}\n",
            "2:18: error: desktop.width: must be 320 to 3840 pixels, not 100",
        ),
        (
            "version: 1\nsecrets: [a, a]\n",
            "2:14: error: secrets[1]: is the same name as secrets[0]",
        ),
        (
            "version: 1\nsecrets: [a b]\n",
            "2:11: error: secrets[0]: is no name of a secret: use 1 to 128 of A-Z a-z 0-9 _ - and .",
        ),
        (
            "version: 1\nenv: {1A: x}\n",
            "2:7: error: env.1A: is no variable name: use 1 to 255 of A-Z a-z 0-9 and _, with no digit in front",
        ),
        (
            "version: 1\nenv: {A: {secret: s}}\n",
            "2:11: error: env.A.secret: names no entry of `secrets`, which is empty",
        ),
        (
            "version: 1\nfiles: {etc/x: a}\n",
            "2:9: error: files[\"etc/x\"]: the path must be an absolute path without `.`, `..`, doubled slashes or a slash at its end",
        ),
        (
            "version: 1\nfiles: {/fuse/x: a}\n",
            "2:9: error: files[\"/fuse/x\"]: the path must lie outside of /fuse, which is not the request's to fill",
        ),
        (
            "version: 1\nhitl: {timeout: 5s}\n",
            "2:17: error: hitl.timeout: is 5; 10 to 86400 seconds (24 hours) are allowed",
        ),
        (
            "version: 1\nhitl: {requests: {secret: {}}}\n",
            "2:19: error: hitl.requests.secret.targets: has 0 targets; 1 to 20 are allowed",
        ),
    ] {
        assert_eq!(complaints(text), [complaint], "{text}");
    }
}

// check: FILE-2
#[test]
fn every_broken_rule_of_the_block_is_told_at_once() {
    let found = complaints(
        "version: 1
hitl:
  requests:
    takeover: {via: [desktop]}
  gates:
    - name: G
      on: exec
      match: {program: git, shell: true}
    - name: g
      on: lifecycle
      match: {action: remove}
      grant: ttl:1s
      timeout: 25h
    - {name: s, on: stall, match: {quiet: 10s}, mode: deny}
    - {name: e, on: expiry, match: {before: 5m}}
    - {name: d, on: exec, match: {args: [x]}, decide: {url: 'ftp://x', secret: nope}}
  exec: {default: ask, allow: [a/b]}
",
    );
    let places: Vec<String> = found
        .iter()
        .map(|line| line.splitn(5, ": ").take(3).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        places,
        [
            "4:22 error hitl.requests.takeover.via[0]",
            "6:13 error hitl.gates[0].name",
            "8:36 error hitl.gates[0].match.shell",
            "11:23 error hitl.gates[1].match.action",
            "12:14 error hitl.gates[1].grant",
            "13:16 error hitl.gates[1].timeout",
            "14:43 error hitl.gates[2].match.quiet",
            "14:55 error hitl.gates[2].mode",
            "15:45 error hitl.gates[3].match.before",
            "16:61 error hitl.gates[4].decide.url",
            "16:80 error hitl.gates[4].decide.secret",
            "17:32 error hitl.exec.allow[0]",
        ]
    );
}

// check: FILE-1
#[test]
fn the_line_is_shown_with_a_caret_under_the_place() {
    assert_eq!(
        verdicts("version: 1\nresources:\n  cpus: viele\nhilt: {}\n").to_string(),
        "Fusefile:3:9: error: resources.cpus: must be a number, not text
 3 |   cpus: viele
   |         ^^^^^
Fusefile:4:1: error: unknown key \"hilt\", did you mean \"hitl\"?
 4 | hilt: {}
   | ^^^^
"
    );
}

#[test]
fn the_caret_stands_right_behind_wide_characters_and_in_a_line_too_long_to_show() {
    let wide = verdicts("version: 1\ndesktop: {'\u{6f22}\u{5b57}': 1, width: a, height: 600}\n")
        .to_string();
    let lines: Vec<&str> = wide.lines().collect();
    assert_eq!(
        lines[4].find("a, height"),
        Some(" 2 | desktop: {'\u{6f22}\u{5b57}': …, width: ".len())
    );
    assert_eq!(
        lines[5].trim_end_matches('^').len(),
        " 2 | desktop: {'1234': 1, width: ".len()
    );

    let long = format!(
        "version: 1\nrun: [{}5, {}]\n",
        "aa, ".repeat(500),
        "bb, ".repeat(500)
    );
    let shown = verdicts(&long).to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].len() < 140, "{shown}");
    assert_eq!(
        lines[1].as_bytes()[lines[2].find('^').unwrap()],
        b'5',
        "{shown}"
    );
}

#[test]
fn values_of_env_files_and_misplaced_secrets_are_never_shown() {
    for text in [
        "version: 1\nenv:\n  A: {secret: s3cr3t}\n",
        "version: 1\nenv: {A: s3cr3t, 1B: s3cr3t}\n",
        "version: 1\nenv: {A: [s3cr3t]}\n",
        "version: 1\nenv: s3cr3t\n",
        "version: 1\nenv:\n  A: s3cr3t\n  A: s3cr3t\n",
        "version: 1\nenv:\n  A: \"s3cr3t\n  B: x\n",
        "version: 1\nenv: {\nA: \"s3cr3t\n",
        "{version: 1, env: {A: s3cr3t, B: [}",
        "version: 1\nevn: {A: s3cr3t}\n",
        "version: 1\nenv: {A: x, B: {value: s3cr3t}}\n",
        "version: 1\nsecrets: {token: s3cr3t}\n",
        "version: 1\nsecrets: [\"token=s3cr3t\"]\n",
        "version: 1\nsecrets:\n  - {name: token, value: s3cr3t}\n",
        "version: 1\nsecrets:\n- token: s3cr3t: x\n",
        "version: 1\nfiles:\n  etc/x: s3cr3t\n",
        "version: 1\nfiles:\n  etc/x: |\n    s3cr3t\n",
        "s3cr3t",
        "- s3cr3t",
    ] {
        let found = verdicts(text);
        assert!(found.has_errors(), "{text}");
        assert!(!format!("{found} {found:?}").contains("s3cr3t"), "{found}");
    }
    let parsed = parse(
        "Fusefile",
        "version: 1\nenv: {A: s3cr3t}\nfiles: {/a: s3cr3t}\n",
    )
    .unwrap();
    assert!(!format!("{parsed:?}").contains("s3cr3t"));
}

#[test]
fn nothing_that_a_terminal_obeys_is_shown() {
    for text in [
        "version: 1\nna\u{202e}me: a\n",
        "version: 1\n\"na\\eme\": a\n",
        "version: 1\nrun: a\u{1b}[31m\n",
        "version: 1\nname: \"\\e]0;x\\a\"\n",
    ] {
        let shown = verdicts(text).to_string();
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!shown.is_empty() && !shown.contains(bad), "{shown:?}");
    }
}

// check: FILE-4
#[test]
fn every_declared_secret_has_to_be_given_and_no_other() {
    let parsed = parse("Fusefile", "version: 1\nsecrets:\n  - one\n  - two\n").unwrap();
    let text = |text: &str| fuse_api::environment::SecretText(text.to_owned());
    let given = |names: &[&str]| Options {
        secrets: Secrets::Given(
            names
                .iter()
                .map(|name| ((*name).to_owned(), text("s3cr3t")))
                .collect(),
        ),
        ..Options::default()
    };
    let refused = |names: &[&str]| {
        compile(&parsed, &given(names), &Files::default())
            .unwrap_err()
            .to_string()
    };
    assert!(compile(&parsed, &given(&["one", "two"]), &Files::default()).is_ok());
    assert!(refused(&["one"]).starts_with(
        "Fusefile:4:5: error: secrets[1]: has no value: give it with --secret two=VALUE\n"
    ));
    assert_eq!(
        refused(&["one", "two", "three"]),
        "Fusefile: error: --secret \"three\" is not declared under `secrets` of the file: it declares one, two\n"
    );
}

#[test]
fn a_verdict_is_an_object_for_programs() {
    assert_eq!(
        serde_json::to_value(verdicts("version: 1\nname: A\n")).unwrap(),
        serde_json::json!({"file": "Fusefile", "verdicts": [{"severity": "error", "path": "name",
            "message": "is not a DNS label (1 to 63 of a-z 0-9 and -, not at either end)",
            "line": 2, "column": 7, "width": 1}]})
    );
}

// check: FILE-9
#[test]
fn a_file_that_is_too_large_or_full_of_faults_is_answered_briefly_and_soon() {
    let started = std::time::Instant::now();
    let large = verdicts(&"#".repeat(1024 * 1024 + 1)).to_string();
    assert!(
        large.starts_with("Fusefile:1:1: error: the file must be at most 1048576 bytes long"),
        "{}",
        &large[..200]
    );
    let faults: Vec<String> = (0..3000).map(|n| format!("{n}: s3cr3t")).collect();
    for text in [
        format!("version: 1\nenv: {{{}}}\n", faults.join(", ")),
        format!("{{version: 1, {}}}", faults.join(", ")),
    ] {
        let found = verdicts(&text);
        assert!((1..=100).contains(&found.all().len()));
        assert!(!found.to_string().contains("s3cr3t"));
    }
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}
