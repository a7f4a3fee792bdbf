use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::reference::model;
use super::*;

/// Words that wrappers, shells and gates care about, some of them broken.
fn word() -> impl Strategy<Value = String> {
    let known = vec![
        "env",
        "sudo",
        "nice",
        "timeout",
        "xargs",
        "nohup",
        "stdbuf",
        "/usr/bin/env",
        "./sudo",
        "busybox",
        "git",
        "push",
        "--force",
        "sh",
        "-c",
        "bash",
        "A=1",
        "PATH=/x",
        "=x",
        "-",
        "--",
        "-i",
        "-u",
        "-uX",
        "--unset=X",
        "--uns",
        "-S",
        "-Sgit push",
        "--split-string=A=1 nice",
        "-iS",
        "git ${X}",
        "'git' \"push\" \\_x",
        "-0",
        "-v",
        "-n",
        "-n5",
        "-n1",
        "-5",
        "--5",
        "-+5",
        "--adj",
        "--adjustment=5",
        "5",
        "10s",
        "-k",
        "-k5",
        "-s",
        "-sKILL",
        "--signal",
        "--foreground",
        "--fore",
        "--pre",
        "-o",
        "-oL",
        "-e0",
        "--output=L",
        "-I",
        "-I{}",
        "{}",
        "-r",
        "-P4",
        "--replace",
        "--max-args=1",
        "-rn1",
        "-E",
        "-EHn",
        "-h",
        "-hx",
        "-R",
        "-D",
        "--user",
        "--user=x",
        "-l",
        "-e",
        "-a",
        "--argv0=x",
        "-z",
        "--nothing",
        "--help",
        "$X",
        "\u{e9}",
        "-\u{e9}",
        "",
        "-ux",
        "-vS",
        "--s",
        "--null=x",
        "env -S 'git push'",
    ];
    prop_oneof![
        9 => select(known).prop_map(str::to_owned),
        1 => ".{0,6}",
        1 => "-[a-zA-Z0-9]{1,4}",
        1 => "--[a-z-]{1,8}(=[a-z]{0,2})?",
        1 => "[ a-z'\"\\\\#_$cn]{0,10}",
    ]
}

fn command() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![
        vec(word(), 1..14),
        (
            vec(
                select(vec![
                    "env", "sudo", "nice", "timeout", "xargs", "nohup", "stdbuf"
                ])
                .prop_map(str::to_owned),
                0..20
            ),
            vec(word(), 1..6)
        )
            .prop_map(|(mut wrappers, rest)| {
                wrappers.extend(rest);
                wrappers
            }),
    ]
}

fn gate_words() -> Policy {
    gates(json!([
        {"name":"git","on":"exec","match":{"program":"git"}},
        {"name":"push","on":"exec","match":{"program":"git","args":["push"]}},
        {"name":"force","on":"exec","match":{"args":["push","--force"]}},
        {"name":"env","on":"exec","match":{"program":["env","sudo"],"args":["A=1"]}},
        {"name":"shell","on":"exec","match":{"shell":true}},
    ]))
}

/// Every way to pick words out of a list, in order.
fn subsequences(list: &[String]) -> Vec<Vec<&str>> {
    list.iter().fold(vec![vec![]], |all, word| {
        let with = all.iter().map(|picked| {
            let mut more: Vec<&str> = picked.clone();
            more.push(word);
            more
        });
        all.iter().cloned().chain(with).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    // check: WRAP-9
    #[test]
    fn the_matcher_reads_as_the_model_does(argv in command()) {
        let read = read_command(&argv);
        let model = model(&argv);
        prop_assert_eq!(&read.readings, &model.readings);
        prop_assert_eq!((read.opaque, read.unknowable), (model.opaque, model.unknowable), "{:?}", argv);
    }

    // check: GATE-2
    #[test]
    fn args_match_where_they_can_be_picked_out_in_order(args in vec("[ab]", 0..8), wanted in vec("[ab]", 1..4)) {
        let policy = gates(json!([{"name":"g","on":"exec","match":{"program":"p","args":wanted}}]));
        let mut argv = words(&["p"]);
        argv.extend(args.clone());
        let picked = subsequences(&args).iter().any(|picked| *picked == wanted);
        prop_assert_eq!(policy.judge_exec(ExecAction::Argv(&argv)).severity() == Severity::Ask, picked);
    }

    // check: WRAP-5
    #[test]
    fn doubt_only_holds_more(argv in command(), odd in select(vec!["--nothing-known", "-\u{e9}"])) {
        // Right behind any wrapper of the chain an option that no table knows makes the rest unreadable.
        let policy = gate_words();
        let names = |argv: &[String]| -> Vec<String> {
            policy.judge_exec(ExecAction::Argv(argv)).asks.iter().map(|gate| gate.name.clone()).collect()
        };
        let before = read_command(&argv);
        if !before.opaque && before.readings.len() > 1 && !argv.iter().any(|word| word.contains("-S") || word.contains("--s")) {
            let mut doubtful = argv.clone();
            doubtful.insert(1, odd.to_owned());
            if read_command(&doubtful).opaque {
                let (plain, doubtful) = (names(&argv), names(&doubtful));
                prop_assert!(plain.iter().all(|name| doubtful.contains(name)), "{:?} {:?} {:?}", argv, plain, doubtful);
            }
        }
    }

    // check: WRAP-5
    #[test]
    fn what_is_opaque_is_held_by_shell_gates_and_by_every_allowlist(argv in command()) {
        let read = read_command(&argv);
        if read.opaque {
            prop_assert!(gate_words().judge_exec(ExecAction::Argv(&argv)).asks.iter().any(|gate| gate.name == "shell"));
            let allow: Vec<&str> = vec!["env", "sudo", "nice", "timeout", "xargs", "nohup", "stdbuf", "git", "sh", "bash", "busybox", "push"];
            let list = policy(json!({"exec":{"default":"deny","allow":allow}}));
            prop_assert_eq!(list.judge_exec(ExecAction::Argv(&argv)).severity(), Severity::Deny);
        }
    }

    // check: GATE-3
    #[test]
    fn no_gate_is_passed_over_that_concerns_the_command(argv in command()) {
        // Without a gate for any program, so that most commands take the short way.
        let policy = gates(json!([
            {"name":"git","on":"exec","match":{"program":"git","args":["push"]}},
            {"name":"sudo","on":"exec","match":{"program":["sudo","nice"]}},
            {"name":"shell","on":"exec","match":{"shell":true}},
        ]));
        let readings = matching::argv::Readings::of(&argv, &std::collections::HashSet::new());
        let each: Vec<&str> = policy.gates().iter().filter(|gate| gate.matcher.concerns_argv(&readings).is_some()).map(|gate| gate.name.as_str()).collect();
        let verdict = policy.judge_exec(ExecAction::Argv(&argv));
        let held: Vec<&str> = verdict.asks.iter().map(|gate| gate.name.as_str()).collect();
        prop_assert_eq!(held, each);
    }

    #[test]
    fn any_bytes_are_judged_without_a_panic(argv in vec(vec(any::<u8>(), 0..12).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()), 0..6), text in ".{0,20}") {
        let policy = gate_words();
        let _ = policy.judge_exec(ExecAction::Argv(&argv));
        let _ = policy.judge_exec(ExecAction::Shell(&text));
    }

    #[test]
    fn any_block_is_checked_without_a_panic(value in noise()) {
        if let Ok(block) = serde_json::from_value::<HitlBlock>(value) {
            match Policy::compile(&block, &facts()) {
                Ok(policy) => { let _ = policy.warnings(); }
                Err(violations) => {
                    prop_assert!(!violations.is_empty());
                    prop_assert!(violations.iter().all(|violation| violation.path.starts_with("hitl.") && !violation.message.is_empty()));
                }
            }
            let _ = Policy::reload(&block);
        }
    }
}

/// Blocks of the right shape with odd content.
fn noise() -> impl Strategy<Value = Value> {
    let text = || {
        prop_oneof![
            ".{0,8}",
            select(vec![
                "git",
                "type",
                "fork",
                "a*",
                "https://h",
                "s",
                "exec.default",
                "/fuse/x",
                "A"
            ])
            .prop_map(str::to_owned)
        ]
    };
    let number = || prop_oneof![any::<i64>(), 0..100_000i64];
    let list = move || vec(text(), 0..3);
    let matches = (
        proptest::option::of(list()),
        proptest::option::of(list()),
        proptest::option::of(any::<bool>()),
        proptest::option::of(list()),
        proptest::option::of(list()),
        proptest::option::of(number()),
    )
        .prop_map(|(program, args, shell, action, texts, n)| {
            json!({"program":program,"args":args,"shell":shell,"action":action,"text_contains":texts,"failures":n,"quiet_seconds":n,"before_seconds":n})
        });
    let gate = (
        text(),
        select(vec!["exec", "lifecycle", "computer", "stall", "expiry"]),
        matches,
        select(vec!["ask", "notify", "deny"]),
        select(vec![json!(null), json!("once"), json!("env"), json!("ttl:1h"), json!("ttl:-1h")]),
        proptest::option::of(number()),
        proptest::option::of((text(), text())),
    )
        .prop_map(|(name, on, matches, mode, grant, timeout, decide)| {
            let decide = decide.map(|(url, secret)| json!({"url":url,"secret":secret}));
            json!({"name":name,"on":on,"match":matches,"mode":mode,"grant":grant,"timeout_seconds":timeout,"decide":decide})
        });
    (number(), vec(gate, 0..4), list(), vec((proptest::option::of(text()), proptest::option::of(text()), text()), 0..3)).prop_map(|(timeout, gates, allow, targets)| {
        let targets: Vec<Value> = targets.into_iter().map(|(env, file, label)| json!({"env":env,"file":file,"label":label})).collect();
        json!({"timeout_seconds":timeout,"gates":gates,"exec":{"allow":allow},"requests":{"secret":{"targets":targets}},"notify":allow.iter().map(|w| json!({"webhook":w})).collect::<Vec<_>>()})
    })
}
