//! The option tables of the wrappers.
//!
//! A table holds the options of every release that is known, newer ones included: a release that lacks an option stops with an error and
//! runs nothing, so reading on past it can only hold more.

/// How an option takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Not at all.
    Nothing,
    /// Glued or as the next word.
    Value,
    /// Only glued; it may be left out.
    Glued,
}

/// What an option means for the command that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Plain,
    /// Its value is split into words that take its place.
    Split,
    /// Its value is replaced by input wherever it stands in the command.
    Replace,
    /// The command may run as something else than what is written.
    Doubt,
    /// The command is handed to a shell.
    Shell,
}

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opt {
    pub takes: Takes,
    pub effect: Effect,
}

const fn opt(takes: Takes, effect: Effect) -> Opt {
    Opt { takes, effect }
}

const FLAG: Opt = opt(Takes::Nothing, Effect::Plain);
const VALUE: Opt = opt(Takes::Value, Effect::Plain);
const GLUED: Opt = opt(Takes::Glued, Effect::Plain);

/// What stands between a wrapper's options and the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Nothing.
    None,
    /// One duration.
    Duration,
    /// A lone `-`, then assignments: any word with `=`.
    Assignments,
    /// Assignments among the options too, as `sudo` takes them.
    SudoAssignments,
}

/// A program that runs the program among its own arguments.
#[derive(Debug)]
pub(in crate::policy) struct Wrapper {
    pub(in crate::policy) name: &'static str,
    pub(super) shorts: &'static [(u8, Opt)],
    pub(super) longs: &'static [(&'static str, Opt)],
    pub(super) operands: Operands,
    /// `nice` also takes `-5`, `--5` and `-+5`.
    pub(super) numbers: bool,
    /// More arguments come from input.
    pub(super) adds_input: bool,
    /// An allowlist needs no entry for it.
    pub(super) free: bool,
}

const fn plain(
    name: &'static str,
    shorts: &'static [(u8, Opt)],
    longs: &'static [(&'static str, Opt)],
) -> Wrapper {
    Wrapper {
        name,
        shorts,
        longs,
        operands: Operands::None,
        numbers: false,
        adds_input: false,
        free: true,
    }
}

/// Every wrapper, by its basename.
pub(super) static WRAPPERS: [Wrapper; 7] = [
    Wrapper {
        operands: Operands::Assignments,
        ..plain(
            "env",
            &[
                (b'i', FLAG),
                (b'0', FLAG),
                (b'v', FLAG),
                (b'u', VALUE),
                (b'C', VALUE),
                (b'S', opt(Takes::Value, Effect::Split)),
                (b'a', opt(Takes::Value, Effect::Doubt)),
            ],
            &[
                ("ignore-environment", FLAG),
                ("null", FLAG),
                ("debug", FLAG),
                ("unset", VALUE),
                ("chdir", VALUE),
                ("split-string", opt(Takes::Value, Effect::Split)),
                ("argv0", opt(Takes::Value, Effect::Doubt)),
                ("block-signal", GLUED),
                ("default-signal", GLUED),
                ("ignore-signal", GLUED),
                ("list-signal-handling", FLAG),
                ("help", FLAG),
                ("version", FLAG),
            ],
        )
    },
    Wrapper {
        operands: Operands::SudoAssignments,
        free: false,
        ..plain(
            "sudo",
            &[
                (b'A', FLAG),
                (b'B', FLAG),
                (b'b', FLAG),
                (b'E', FLAG),
                (b'e', opt(Takes::Nothing, Effect::Doubt)),
                (b'H', FLAG),
                (b'i', opt(Takes::Nothing, Effect::Shell)),
                (b'K', FLAG),
                (b'k', FLAG),
                (b'l', FLAG),
                (b'N', FLAG),
                (b'n', FLAG),
                (b'P', FLAG),
                (b'S', FLAG),
                (b's', opt(Takes::Nothing, Effect::Shell)),
                (b'V', FLAG),
                (b'v', FLAG),
                (b'a', VALUE),
                (b'C', VALUE),
                (b'c', VALUE),
                (b'D', VALUE),
                (b'g', VALUE),
                // Glued it is a host. Alone it is help, or a host in the next word, depending on the release.
                (b'h', opt(Takes::Glued, Effect::Doubt)),
                (b'p', VALUE),
                (b'R', opt(Takes::Value, Effect::Doubt)),
                (b'r', VALUE),
                (b'T', VALUE),
                (b't', VALUE),
                (b'U', VALUE),
                (b'u', VALUE),
            ],
            &[
                ("askpass", FLAG),
                ("bell", FLAG),
                ("background", FLAG),
                ("preserve-env", GLUED),
                ("edit", opt(Takes::Nothing, Effect::Doubt)),
                ("set-home", FLAG),
                ("login", opt(Takes::Nothing, Effect::Shell)),
                ("remove-timestamp", FLAG),
                ("reset-timestamp", FLAG),
                ("list", FLAG),
                ("no-update", FLAG),
                ("non-interactive", FLAG),
                ("preserve-groups", FLAG),
                ("stdin", FLAG),
                ("shell", opt(Takes::Nothing, Effect::Shell)),
                ("version", FLAG),
                ("validate", FLAG),
                ("help", FLAG),
                ("auth-type", VALUE),
                ("close-from", VALUE),
                ("login-class", VALUE),
                ("chdir", VALUE),
                ("group", VALUE),
                ("host", VALUE),
                ("prompt", VALUE),
                ("chroot", opt(Takes::Value, Effect::Doubt)),
                ("role", VALUE),
                ("command-timeout", VALUE),
                ("type", VALUE),
                ("other-user", VALUE),
                ("user", VALUE),
            ],
        )
    },
    Wrapper {
        numbers: true,
        ..plain(
            "nice",
            &[(b'n', VALUE)],
            &[("adjustment", VALUE), ("help", FLAG), ("version", FLAG)],
        )
    },
    Wrapper {
        operands: Operands::Duration,
        ..plain(
            "timeout",
            &[
                (b'f', FLAG),
                (b'p', FLAG),
                (b'v', FLAG),
                (b'k', VALUE),
                (b's', VALUE),
            ],
            &[
                ("foreground", FLAG),
                ("preserve-status", FLAG),
                ("verbose", FLAG),
                ("kill-after", VALUE),
                ("signal", VALUE),
                ("help", FLAG),
                ("version", FLAG),
            ],
        )
    },
    Wrapper {
        adds_input: true,
        free: false,
        ..plain(
            "xargs",
            &[
                (b'0', FLAG),
                (b'o', FLAG),
                (b'p', FLAG),
                (b'r', FLAG),
                (b't', FLAG),
                (b'x', FLAG),
                (b'a', VALUE),
                (b'd', VALUE),
                (b'E', VALUE),
                (b'I', opt(Takes::Value, Effect::Replace)),
                (b'L', VALUE),
                (b'n', VALUE),
                (b'P', VALUE),
                (b's', VALUE),
                (b'e', GLUED),
                (b'i', opt(Takes::Glued, Effect::Replace)),
                (b'l', GLUED),
            ],
            &[
                ("null", FLAG),
                ("open-tty", FLAG),
                ("interactive", FLAG),
                ("no-run-if-empty", FLAG),
                ("verbose", FLAG),
                ("exit", FLAG),
                ("show-limits", FLAG),
                ("arg-file", VALUE),
                ("delimiter", VALUE),
                ("max-args", VALUE),
                ("max-chars", VALUE),
                ("max-procs", VALUE),
                ("process-slot-var", VALUE),
                ("eof", GLUED),
                ("replace", opt(Takes::Glued, Effect::Replace)),
                ("max-lines", GLUED),
                ("help", FLAG),
                ("version", FLAG),
            ],
        )
    },
    plain("nohup", &[], &[("help", FLAG), ("version", FLAG)]),
    plain(
        "stdbuf",
        &[(b'i', VALUE), (b'o', VALUE), (b'e', VALUE)],
        &[
            ("input", VALUE),
            ("output", VALUE),
            ("error", VALUE),
            ("help", FLAG),
            ("version", FLAG),
        ],
    ),
];

impl Wrapper {
    /// The short option of that letter.
    pub(super) fn short(&self, letter: u8) -> Option<Opt> {
        self.shorts
            .iter()
            .find(|(name, _)| *name == letter)
            .map(|(_, opt)| *opt)
    }

    /// The long option of that name, which may be cut as long as it names one option only.
    pub(super) fn long(&self, name: &str) -> Option<Opt> {
        if let Some((_, opt)) = self.longs.iter().find(|(full, _)| *full == name) {
            return Some(*opt);
        }
        let mut found = self.longs.iter().filter(|(full, _)| full.starts_with(name));
        match (found.next(), found.next()) {
            (Some((_, opt)), None) => Some(*opt),
            _ => None,
        }
    }
}
