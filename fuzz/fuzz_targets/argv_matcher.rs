//! Commands full of wrappers are read without a panic, and doubt only holds more. Words end at a NUL; a
//! word of one control character stands for a word that matters to wrappers.
#![no_main]

use std::sync::LazyLock;

use fuse_domain::policy::{ExecAction, Policy, PolicyFacts, Severity, read_command};
use libfuzzer_sys::fuzz_target;

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let block = serde_json::from_str(
        r#"{"gates":[
            {"name":"git","on":"exec","match":{"program":"git"}},
            {"name":"push","on":"exec","match":{"program":"git","args":["push"]}},
            {"name":"shell","on":"exec","match":{"shell":true}}],
          "exec":{"allow":["git","env","sudo","nice","timeout","xargs","nohup","stdbuf","busybox"]}}"#,
    );
    Policy::compile(&block.expect("a block"), &PolicyFacts::default()).expect("a policy")
});

/// What the control characters from 1 on stand for.
const WORDS: [&str; 31] = [
    "env",
    "sudo",
    "nice",
    "timeout",
    "xargs",
    "nohup",
    "stdbuf",
    "busybox",
    "git",
    "push",
    "sh",
    "-c",
    "A=1",
    "-",
    "--",
    "-i",
    "-u",
    "-S",
    "-Sgit push",
    "-n",
    "5",
    "-5",
    "-oL",
    "-I{}",
    "{}",
    "-s",
    "--user=x",
    "--sig",
    "-a",
    "git ${X}",
    "-C",
];

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let argv: Vec<String> = text.split('\0').map(word).collect();
    let read = read_command(&argv);
    assert_eq!(read.readings[0], argv);
    assert!(read.readings.len() <= 33);
    assert!(read.opaque || !read.unknowable);

    let verdict = POLICY.judge_exec(ExecAction::Argv(&argv));
    let held = |name: &str| verdict.asks.iter().any(|gate| gate.name == name);
    assert!(
        !held("push") || held("git"),
        "a gate that asks for more matched alone"
    );
    if read.opaque {
        assert!(held("shell") && held("exec.default"));
        let named = argv
            .iter()
            .any(|word| word.rsplit('/').next() == Some("git"));
        assert_eq!(held("git"), held("push"));
        assert!(held("git") || !named);
    }
    if read.unknowable {
        assert!(held("git"));
    }
    assert!(verdict.severity() >= POLICY.judge_edit(&argv).severity());
    assert!(verdict.severity() <= Severity::Ask);
});

fn word(text: &str) -> String {
    match text.as_bytes() {
        [b @ 1..=31] => WORDS[usize::from(*b) - 1].to_owned(),
        _ => text.to_owned(),
    }
}
