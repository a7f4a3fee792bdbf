//! What is allowed in a block but gives away more than it seems to.

use fuse_api::hitl::HitlBlock;

use super::Violation;
use super::matching::carriers;
use super::matching::shells::is_shell;
use super::matching::wrappers::{basename, find};

const INTERPRETERS: &[&str] = &[
    "python",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "wish",
    "expect",
    "guile",
    "racket",
    "julia",
    "Rscript",
    "R",
    "java",
    "jshell",
    "groovy",
    "scala",
    "kotlin",
    "elixir",
    "erl",
    "iex",
    "ghci",
    "runghc",
    "ocaml",
    "swift",
    "pwsh",
    "csh",
    "tcsh",
    "elvish",
    "nu",
    "xonsh",
    "osascript",
    "gjs",
    "qjs",
    "ts-node",
    "tsx",
    "pypy",
    "ipython",
    "irb",
    "octave",
    "sqlite3",
    "psql",
    "mysql",
    "gdb",
    "lldb",
    "bpftrace",
    "jq-script",
    "m4",
    "dc",
];

/// Programs that run others because an argument, or a file of the project, tells them to.
const RUNNERS: &[&str] = &[
    "find",
    "fd",
    "rg",
    "ag",
    "make",
    "gmake",
    "ninja",
    "cmake",
    "meson",
    "bazel",
    "scons",
    "just",
    "task",
    "rake",
    "gradle",
    "mvn",
    "ant",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "vim",
    "vi",
    "nvim",
    "view",
    "emacs",
    "nano",
    "ed",
    "ex",
    "less",
    "more",
    "man",
    "tar",
    "bsdtar",
    "zip",
    "rsync",
    "scp",
    "sftp",
    "ssh",
    "git",
    "hg",
    "svn",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "pip",
    "pip3",
    "pipx",
    "uv",
    "uvx",
    "poetry",
    "cargo",
    "go",
    "rustc",
    "gcc",
    "g++",
    "clang",
    "cc",
    "c++",
    "ld",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "terraform",
    "ansible",
    "apt",
    "apt-get",
    "dpkg",
    "rpm",
    "dnf",
    "yum",
    "apk",
    "brew",
    "gem",
    "bundle",
    "composer",
    "systemctl",
    "systemd-run",
    "crontab",
    "at",
    "batch",
    "tmux",
    "screen",
    "script",
    "split",
    "sort",
    "wget",
    "curl",
    "socat",
    "nc",
    "ncat",
    "openssl",
    "tcpdump",
    "pytest",
    "tox",
    "nox",
    "jest",
    "mocha",
];

/// Programs that run the program among their arguments, without being wrappers that gates see through.
const LAUNCHERS: &[&str] = &[
    "time",
    "setsid",
    "chroot",
    "unshare",
    "nsenter",
    "flock",
    "parallel",
    "watch",
    "strace",
    "ltrace",
    "ionice",
    "chrt",
    "taskset",
    "setarch",
    "doas",
    "su",
    "runuser",
    "setpriv",
    "capsh",
    "prlimit",
    "numactl",
    "unbuffer",
    "dbus-run-session",
    "xvfb-run",
    "faketime",
    "fakeroot",
    "start-stop-daemon",
    "busybox",
    "toybox",
    "entr",
    "direnv",
    "nix-shell",
    "command",
    "exec",
    "eval",
    "ld.so",
    "catchsegv",
    "valgrind",
    "perf",
    "run-parts",
    "script",
    "gosu",
    "su-exec",
    "tini",
    "dumb-init",
    "env-update",
];

pub(super) fn warnings(block: &HitlBlock) -> Vec<Violation> {
    let entries = block
        .exec
        .iter()
        .flat_map(|exec| exec.allow.iter().flatten().enumerate());
    entries
        .filter_map(|(i, entry)| {
            let what = describe(basename(entry))?;
            Some(Violation {
                path: format!("hitl.exec.allow[{i}]"),
                message: format!("{entry} {what}"),
            })
        })
        .collect()
}

fn describe(name: &str) -> Option<&'static str> {
    // `python3.12` is python, `gcc-12` is gcc.
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let is = |list: &[&str]| list.contains(&name) || list.contains(&stem);
    if is_shell(name) {
        Some("is a shell: allowing it allows every command")
    } else if is(INTERPRETERS) {
        Some("is an interpreter: allowing it allows every program")
    } else if find(name).is_some_and(|wrapper| wrapper.name == "xargs") {
        Some("runs what its input names and passes no allowlist, listed or not")
    } else if find(name).is_some()
        || is(LAUNCHERS)
        || carriers::find(name).is_some_and(|(_, carrier)| carrier.always())
    {
        Some("runs the program that its arguments name")
    } else if is(RUNNERS) {
        Some(
            "can run other programs when an argument or a file tells it to; gate the arguments that do",
        )
    } else {
        None
    }
}
