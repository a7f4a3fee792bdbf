//! The carriers: programs, beside the wrappers, that run the program among their operands.
//!
//! Their options are not parsed. Any of their words may be the program that they run, so every suffix of their arguments is a reading.

use super::wrappers::basename;

/// How a carrier is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) struct Carrier {
    /// When it hands text to a shell.
    pub(super) text: Text,
    /// It carries only behind one of these words, where there are any.
    pub(super) verbs: &'static [&'static str],
    /// Arguments may stand before the program, or come from input: a gate's `args` count as present.
    pub(super) open: bool,
    /// It puts names of files in place of `{}`.
    pub(super) fills: bool,
}

/// Which words of a carrier are text for a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// None.
    Never,
    /// Whatever it is given.
    Always,
    /// Values of these options, in a cluster, glued, apart, or abbreviated.
    Options(&'static [u8], &'static [&'static str]),
    /// Words that start so.
    Starts(&'static [&'static str]),
    /// Words that hold one of these, in any case.
    Holds(&'static [&'static str]),
    /// Nothing is known: a word with a blank, or an option that is called like one for commands.
    Unknown,
}

const PLAIN: Carrier = Carrier {
    text: Text::Never,
    verbs: &[],
    open: false,
    fills: false,
};
const ALWAYS: Carrier = text(Text::Always);
const COMMAND: Carrier = text(Text::Options(b"c", &["command", "session-command"]));
const TERMINAL: Carrier = text(Text::Options(b"ex", &["command", "execute"]));
const DEBUGGER: Carrier = text(Text::Starts(&["-e", "--e", "-i", "--i", "-x", "--x"]));
const EXEC: Carrier = verbs(&["exec"]);
const RUN: Carrier = verbs(&["run"]);
const CONTAINER: Carrier = verbs(&["exec", "run", "create", "debug", "shell"]);
const FILLING: Carrier = Carrier {
    fills: true,
    ..PLAIN
};
// Its options may stand behind the arguments of the program they name.
const SWITCH_USER: Carrier = Carrier {
    open: true,
    ..COMMAND
};

/// A carrier that the policy names itself.
pub(super) const UNKNOWN: Carrier = text(Text::Unknown);

const fn text(text: Text) -> Carrier {
    Carrier { text, ..PLAIN }
}

const fn verbs(verbs: &'static [&'static str]) -> Carrier {
    Carrier { verbs, ..PLAIN }
}

/// Every carrier, sorted by its basename.
pub(super) static CARRIERS: &[(&str, Carrier)] = &[
    (
        "adb",
        Carrier {
            text: Text::Always,
            ..verbs(&["shell"])
        },
    ),
    ("alacritty", TERMINAL),
    ("aoss", PLAIN),
    ("apptainer", CONTAINER),
    ("asdf", EXEC),
    ("autossh", ALWAYS),
    ("aws-vault", EXEC),
    ("builtin", PLAIN),
    ("bundle", EXEC),
    ("bwrap", PLAIN),
    ("capsh", COMMAND),
    ("catatonit", PLAIN),
    ("catchsegv", PLAIN),
    ("cgexec", PLAIN),
    ("choom", PLAIN),
    ("chpst", PLAIN),
    ("chronic", PLAIN),
    ("chroot", PLAIN),
    ("chrt", PLAIN),
    ("command", PLAIN),
    ("concurrently", ALWAYS),
    ("conda", RUN),
    ("coproc", PLAIN),
    ("cpulimit", PLAIN),
    ("crictl", EXEC),
    ("cross-env", PLAIN),
    ("cross-env-shell", ALWAYS),
    ("crun", CONTAINER),
    ("ctr", CONTAINER),
    ("dbus-launch", PLAIN),
    ("dbus-run-session", PLAIN),
    ("direnv", EXEC),
    (
        "distrobox",
        Carrier {
            text: Text::Always,
            ..verbs(&["enter"])
        },
    ),
    ("doas", PLAIN),
    ("docker", CONTAINER),
    ("docker-compose", CONTAINER),
    (
        "doppler",
        Carrier {
            text: Text::Options(b"", &["command"]),
            ..RUN
        },
    ),
    ("dumb-init", PLAIN),
    ("dzdo", PLAIN),
    ("entr", text(Text::Options(b"s", &[]))),
    ("envdir", PLAIN),
    ("envuidgid", PLAIN),
    ("eval", ALWAYS),
    ("exec", PLAIN),
    ("fakechroot", PLAIN),
    ("fakeroot", PLAIN),
    ("fakeroot-sysv", PLAIN),
    ("fakeroot-tcp", PLAIN),
    ("faketime", PLAIN),
    ("fd", FILLING),
    ("fdfind", FILLING),
    ("find", FILLING),
    ("firejail", PLAIN),
    (
        "flatpak",
        Carrier {
            text: Text::Options(b"", &["command"]),
            ..RUN
        },
    ),
    ("flock", COMMAND),
    ("foot", TERMINAL),
    ("gamemoderun", PLAIN),
    ("gdb", DEBUGGER),
    ("gdb-multiarch", DEBUGGER),
    ("gdbserver", PLAIN),
    ("gfind", FILLING),
    ("gksu", ALWAYS),
    ("gksudo", ALWAYS),
    ("gnome-terminal", TERMINAL),
    ("gosu", PLAIN),
    ("gtime", PLAIN),
    ("heaptrack", PLAIN),
    ("honcho", RUN),
    ("hyperfine", ALWAYS),
    ("i386", PLAIN),
    ("ifne", PLAIN),
    ("incus", EXEC),
    ("ionice", PLAIN),
    ("kdesu", ALWAYS),
    ("kdesudo", ALWAYS),
    ("kitty", TERMINAL),
    ("konsole", TERMINAL),
    ("kubectl", CONTAINER),
    ("lckdo", PLAIN),
    ("ld.so", PLAIN),
    ("linux32", PLAIN),
    ("linux64", PLAIN),
    (
        "lldb",
        text(Text::Options(
            b"oOkKsSQ",
            &[
                "one-line",
                "one-line-before-file",
                "one-line-on-crash",
                "source",
            ],
        )),
    ),
    ("logsave", PLAIN),
    ("ltrace", PLAIN),
    ("lxc", EXEC),
    ("lxc-attach", PLAIN),
    ("lxc-execute", PLAIN),
    ("lxterminal", TERMINAL),
    ("machinectl", verbs(&["shell"])),
    ("mise", verbs(&["exec", "x"])),
    ("mispipe", ALWAYS),
    ("mosh", ALWAYS),
    (
        "nc",
        text(Text::Options(b"ec", &["exec", "sh-exec", "lua-exec"])),
    ),
    ("nc.traditional", text(Text::Options(b"ec", &[]))),
    (
        "ncat",
        text(Text::Options(b"ec", &["exec", "sh-exec", "lua-exec"])),
    ),
    ("nerdctl", CONTAINER),
    ("netcat", text(Text::Options(b"ec", &[]))),
    ("newgrp", COMMAND),
    ("nix", verbs(&["run", "shell", "develop"])),
    ("nix-shell", text(Text::Options(b"", &["command", "run"]))),
    ("nodemon", ALWAYS),
    ("nsenter", PLAIN),
    ("numactl", PLAIN),
    ("oc", CONTAINER),
    ("optirun", PLAIN),
    ("padsp", PLAIN),
    (
        "parallel",
        Carrier {
            open: true,
            ..ALWAYS
        },
    ),
    ("pasuspender", PLAIN),
    ("pbrun", PLAIN),
    ("pdm", RUN),
    ("pee", ALWAYS),
    ("perf", PLAIN),
    ("pfexec", PLAIN),
    ("pipenv", RUN),
    ("pkexec", PLAIN),
    ("podman", CONTAINER),
    ("poetry", RUN),
    ("prime-run", PLAIN),
    ("primusrun", PLAIN),
    ("prlimit", PLAIN),
    ("proot", PLAIN),
    ("proxychains", PLAIN),
    ("proxychains4", PLAIN),
    ("pyenv", EXEC),
    ("rbenv", EXEC),
    ("rlwrap", text(Text::Options(b"z", &["filter"]))),
    ("rr", PLAIN),
    ("run0", PLAIN),
    ("runc", CONTAINER),
    ("runcon", PLAIN),
    ("runuser", SWITCH_USER),
    ("rxvt", TERMINAL),
    ("s6-setuidgid", PLAIN),
    ("schroot", PLAIN),
    ("screen", text(Text::Options(b"Xc", &[]))),
    ("script", COMMAND),
    ("scriptlive", COMMAND),
    (
        "sem",
        Carrier {
            open: true,
            ..ALWAYS
        },
    ),
    ("setarch", PLAIN),
    ("setlock", PLAIN),
    ("setpriv", PLAIN),
    ("setsid", PLAIN),
    ("setuidgid", PLAIN),
    ("sg", ALWAYS),
    ("singularity", CONTAINER),
    (
        "socat",
        text(Text::Holds(&[
            "exec:", "system:", "shell:", "exec-", "exec,",
        ])),
    ),
    ("softlimit", PLAIN),
    ("ssh", ALWAYS),
    ("ssh-agent", PLAIN),
    ("sshpass", PLAIN),
    (
        "start-stop-daemon",
        Carrier {
            open: true,
            ..PLAIN
        },
    ),
    ("startx", PLAIN),
    ("strace", text(Text::Holds(&["|", "!"]))),
    ("strace64", text(Text::Holds(&["|", "!"]))),
    ("su", SWITCH_USER),
    ("su-exec", PLAIN),
    ("sudo-rs", text(Text::Options(b"is", &["login", "shell"]))),
    ("switch_root", PLAIN),
    ("systemd-cat", PLAIN),
    ("systemd-inhibit", PLAIN),
    ("systemd-nspawn", PLAIN),
    (
        "systemd-run",
        text(Text::Holds(&["exec", "onfailure", "onsuccess"])),
    ),
    ("systemd-socket-activate", PLAIN),
    ("taskset", PLAIN),
    ("terminator", TERMINAL),
    ("time", PLAIN),
    ("timelimit", PLAIN),
    ("tini", PLAIN),
    ("tmux", ALWAYS),
    ("toolbox", CONTAINER),
    ("torify", PLAIN),
    ("torsocks", PLAIN),
    ("trickle", PLAIN),
    ("tsocks", PLAIN),
    ("uclampset", PLAIN),
    ("uftrace", PLAIN),
    ("uname26", PLAIN),
    ("unbuffer", PLAIN),
    ("unshare", PLAIN),
    ("urxvt", TERMINAL),
    ("uv", RUN),
    ("uxterm", TERMINAL),
    ("valgrind", text(Text::Starts(&["--db"]))),
    ("vglrun", PLAIN),
    ("watch", ALWAYS),
    ("watchexec", ALWAYS),
    ("x-terminal-emulator", TERMINAL),
    ("x86_64", PLAIN),
    ("xfce4-terminal", TERMINAL),
    ("xinit", PLAIN),
    ("xterm", TERMINAL),
    ("xvfb-run", PLAIN),
];

/// How the table reads the program, by its basename.
pub(in crate::policy) fn find(program: &str) -> Option<(usize, Carrier)> {
    let name = basename(program);
    let at = CARRIERS.partition_point(|(listed, _)| *listed < name);
    match CARRIERS.get(at) {
        Some((listed, carrier)) if *listed == name => Some((at, *carrier)),
        // The loader runs the program that it is given.
        _ if name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
            Some((CARRIERS.len(), PLAIN))
        }
        _ => None,
    }
}

impl Carrier {
    /// Whether it carries whatever its verb.
    pub(in crate::policy) fn always(&self) -> bool {
        self.verbs.is_empty()
    }

    /// Where in its arguments the words begin that it may run. `None` where it carries nothing.
    pub(super) fn carries(&self, args: &[String]) -> Option<usize> {
        if self.verbs.is_empty() {
            return Some(0);
        }
        args.iter()
            .position(|word| self.verbs.contains(&word.as_str()))
            .map(|verb| verb + 1)
    }

    /// Whether its arguments hold text for a shell.
    pub(super) fn hands_text(&self, args: &[String]) -> bool {
        match self.text {
            Text::Never => false,
            Text::Always => !args.is_empty(),
            Text::Options(shorts, longs) => args.iter().any(|word| is_option(word, shorts, longs)),
            Text::Starts(starts) => args
                .iter()
                .any(|word| starts.iter().any(|start| word.starts_with(start))),
            Text::Holds(parts) => args
                .iter()
                .any(|word| parts.iter().any(|part| holds(word, part))),
            Text::Unknown => args.iter().any(|word| {
                word.contains(char::is_whitespace)
                    || is_option(word, b"c", &["command", "cmd", "exec", "execute", "shell"])
            }),
        }
    }
}

/// Whether the word is one of the options, with its value glued or not. A cluster may hold the letter anywhere.
fn is_option(word: &str, shorts: &[u8], longs: &[&str]) -> bool {
    match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(long), _) => {
            let name = long.split('=').next().unwrap_or(long);
            !name.is_empty() && longs.iter().any(|full| full.starts_with(name))
        }
        (None, Some(cluster)) => cluster.bytes().any(|letter| shorts.contains(&letter)),
        (None, None) => false,
    }
}

fn holds(word: &str, part: &str) -> bool {
    word.as_bytes()
        .windows(part.len())
        .any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

/// The names under which a carrier may find a program in one of its words: the word, or what is glued to an option in it.
pub(in crate::policy) fn names(word: &str) -> impl Iterator<Item = &str> {
    let option = word.starts_with('-');
    let value = word.split_once('=').map(|(_, value)| value);
    let glued = word.get(2..).filter(|rest| !rest.is_empty());
    std::iter::once(word)
        .chain(value.into_iter().chain(glued).filter(move |_| option))
        .map(basename)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(CARRIERS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(CARRIERS.len() < 256);
    }

    #[test]
    fn names_are_found_behind_an_option() {
        let all = |word| names(word).collect::<Vec<_>>();
        assert_eq!(all("/usr/bin/git"), ["git"]);
        assert_eq!(all("-x/usr/bin/git"), ["git", "git"]);
        assert_eq!(all("--exec=git"), ["--exec=git", "git", "exec=git"]);
        assert_eq!(all("-xgit"), ["-xgit", "git"]);
        assert_eq!(all("-\u{e9}x"), ["-\u{e9}x"]);
        assert_eq!(all("A=git"), ["A=git"]);
    }
}
