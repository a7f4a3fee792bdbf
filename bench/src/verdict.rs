//! What a policy of 50 gates says about a command, in nanoseconds.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, bail};
use fuse_api::hitl::HitlBlock;
use fuse_domain::policy::{ExecAction, Policy, PolicyFacts, Severity};
use serde_json::json;

use crate::report::{Aim, Report};

const BATCHES: usize = 21;
const CALLS: u32 = 20_000;
const GATES: usize = 50;

/// Programs that a careful policy has a gate for, with arguments where the program alone is harmless.
const WATCHED: [(&str, &[&str]); GATES - 1] = [
    ("git", &["push", "--force"]),
    ("git", &["push", "-f"]),
    ("git", &["reset", "--hard"]),
    ("git", &["clean", "-fdx"]),
    ("git", &["branch", "-D"]),
    ("rm", &["-rf"]),
    ("rm", &["-fr"]),
    ("dd", &[]),
    ("mkfs", &[]),
    ("shred", &[]),
    ("curl", &[]),
    ("wget", &[]),
    ("ssh", &[]),
    ("scp", &[]),
    ("rsync", &["--delete"]),
    ("nc", &[]),
    ("kubectl", &["delete"]),
    ("kubectl", &["apply"]),
    ("kubectl", &["drain"]),
    ("helm", &["uninstall"]),
    ("helm", &["upgrade"]),
    ("terraform", &["apply"]),
    ("terraform", &["destroy"]),
    ("docker", &["push"]),
    ("docker", &["system", "prune"]),
    ("npm", &["publish"]),
    ("npm", &["unpublish"]),
    ("cargo", &["publish"]),
    ("cargo", &["yank"]),
    ("twine", &["upload"]),
    ("gh", &["release", "create"]),
    ("gh", &["repo", "delete"]),
    ("gh", &["pr", "merge"]),
    ("aws", &["s3", "rm"]),
    ("aws", &["ec2", "terminate-instances"]),
    ("gcloud", &["delete"]),
    ("az", &["delete"]),
    ("psql", &[]),
    ("mysql", &[]),
    ("redis-cli", &["FLUSHALL"]),
    ("mongosh", &[]),
    ("systemctl", &["stop"]),
    ("systemctl", &["disable"]),
    ("shutdown", &[]),
    ("reboot", &[]),
    ("chmod", &["777"]),
    ("chown", &["-R"]),
    ("iptables", &[]),
    ("crontab", &["-r"]),
];

enum Case {
    Argv(&'static str),
    Shell(&'static str),
}

/// Measures, and reports.
pub fn measure(report: &mut Report) -> Result<()> {
    let policy = policy()?;
    let cases = [
        (
            "no gate concerns it",
            Case::Argv("cargo build --release --locked"),
            Severity::Pass,
        ),
        (
            "a watched program, harmless",
            Case::Argv("git commit -a -m message"),
            Severity::Pass,
        ),
        (
            "held",
            Case::Argv("git push --force origin main"),
            Severity::Ask,
        ),
        (
            "wrapped, no gate concerns it",
            Case::Argv("timeout 60 nice -n 10 cargo test"),
            Severity::Pass,
        ),
        (
            "wrapped and held",
            Case::Argv("sudo -u deploy env A=b timeout 5 git push --force"),
            Severity::Ask,
        ),
        (
            "shell text",
            Case::Shell("cd src && cargo build 2>&1 | tail -n 20"),
            Severity::Ask,
        ),
    ];
    for (name, case, severity) in cases {
        let argv: Vec<String> = match case {
            Case::Argv(text) => text.split(' ').map(str::to_owned).collect(),
            Case::Shell(_) => Vec::new(),
        };
        let action = match case {
            Case::Argv(_) => ExecAction::Argv(&argv),
            Case::Shell(text) => ExecAction::Shell(text),
        };
        let said = policy.judge_exec(action).severity();
        if said != severity {
            bail!("{name}: the verdict is {said:?}");
        }
        let nanos: Vec<f64> = (0..BATCHES)
            .map(|_| {
                let begun = Instant::now();
                for _ in 0..CALLS {
                    black_box(policy.judge_exec(black_box(action)));
                }
                begun.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
            })
            .collect();
        report.repeated(
            format!("verdict of {GATES} gates: {name}"),
            "ns",
            &nanos,
            Some(Aim::AtMost(1_000.0)),
        );
    }
    Ok(())
}

fn policy() -> Result<Policy> {
    let mut gates: Vec<_> = WATCHED
        .iter()
        .enumerate()
        .map(|(n, (program, args))| {
            let matching = if args.is_empty() {
                json!({ "program": program })
            } else {
                json!({ "program": program, "args": args })
            };
            json!({ "name": format!("gate-{n}"), "on": "exec", "match": matching })
        })
        .collect();
    gates.push(json!({ "name": "shell", "on": "exec", "match": { "shell": true } }));
    let block: HitlBlock = serde_json::from_value(json!({ "gates": gates }))?;
    match Policy::compile(&block, &PolicyFacts::default()) {
        Ok(policy) => Ok(policy),
        Err(violations) => bail!("the policy is refused: {violations:?}"),
    }
}
