//! What the figures were taken on.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::capture;
use crate::stores::Bed;

/// The load averages and the tasks of this moment: whatever else runs here is part of every figure.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.trim().to_owned()
}

/// The machine and its software, line by line; `load` is that of the start.
pub fn describe(bed: &Bed, load_before: String) -> Vec<(&'static str, String)> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        text.lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split_once(':'))
            .map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field(&read("/proc/cpuinfo"), "model name");
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let mut lines = vec![
        ("processor", format!("{cores} x {model}")),
        ("memory", memory),
        (
            "kernel",
            read("/proc/sys/kernel/osrelease").trim().to_owned(),
        ),
        ("load at the start", load_before),
        ("load at the end", load()),
    ];
    if let Ok(commit) = capture(
        Command::new("git")
            .args(["rev-parse", "--short", "HEAD"])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR"))),
    ) {
        lines.push(("commit", commit.trim().to_owned()));
    }
    if let Some(postgres) = bed.describe_postgres() {
        lines.push(("database", postgres));
    }
    lines
}
