//! Telling a shell that is handed its program as text from one that reads a script.

use super::wrappers::basename;

const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "ksh",
    "mksh",
    "zsh",
    "fish",
    "rbash",
    "busybox-sh",
];

/// Long options of shells that take no value. After any other one the next word may be its value.
const BARE_LONG: &[&str] = &[
    "norc",
    "noprofile",
    "posix",
    "login",
    "restricted",
    "verbose",
    "noediting",
    "debugger",
    "interactive",
    "private",
    "no-config",
    "no-execute",
    "version",
    "help",
    "dump-strings",
    "dump-po-strings",
    "protected",
    "wordexp",
    "noline-editing",
];

/// Whether the program is a shell, by its basename.
pub(in crate::policy) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&basename(program))
}

/// Whether a shell with these arguments runs text given among them. Options end at the script's name: a `-c` behind it is the script's.
/// Also how many of them it took to tell.
pub(super) fn runs_text(program: &str, args: &[String]) -> (bool, usize) {
    let fish = basename(program) == "fish";
    let mut skip = 0usize;
    for (at, word) in args.iter().map(String::as_str).enumerate() {
        let read = at + 1;
        if let Some(long) = word.strip_prefix("--") {
            if long.is_empty() {
                return (false, read);
            }
            let name = long.split('=').next().unwrap_or(long);
            if fish && ("command".starts_with(name) || "init-command".starts_with(name)) {
                return (true, read);
            }
            if !long.contains('=') && !BARE_LONG.contains(&name) {
                skip += 1;
            }
            continue;
        }
        let Some(cluster) = word
            .strip_prefix(['-', '+'])
            .filter(|rest| !rest.is_empty())
        else {
            // A lone dash ends the options. A plain word is the script, unless an option before it takes it as its value.
            if skip == 0 || word == "-" {
                return (false, read);
            }
            skip -= 1;
            continue;
        };
        if cluster.contains('c') || (fish && cluster.contains('C')) {
            return (true, read);
        }
        // Each of these takes the next word as its value, if that word is no option itself.
        skip += cluster.matches(['o', 'O']).count();
        if fish && cluster.len() == 1 && cluster.contains(['d', 'D', 'f', 'p']) {
            skip += 1;
        }
    }
    (false, args.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> bool {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        is_shell(&words[0]) && runs_text(&words[0], &words[1..]).0
    }

    #[test]
    // check: GATE-17
    fn text_given_to_a_shell_is_found_in_every_spelling() {
        for line in [
            "sh -c x",
            "/bin/bash -c x",
            "dash -ec x",
            "ash -c x",
            "ksh -c x",
            "mksh -c x",
            "zsh -fc x",
            "rbash -c x",
            "bash -lc x",
            "bash --norc -c x",
            "bash --rcfile f -c x",
            "bash --init-file=f -c x",
            "bash -o pipefail -c x",
            "bash -eo pipefail -c x",
            "bash -euxo pipefail -c x",
            "bash -O extglob -c x",
            "bash +O extglob -c x",
            "sh +e -c x",
            "sh -c",
            "fish -c x",
            "fish --command=x",
            "fish --com x",
            "fish -C x",
            "fish --init-command x",
            "bash +c x",
            "bash -oo a b -c x",
            "bash -o -c x",
        ] {
            assert!(text(line), "{line}");
        }
    }

    #[test]
    // check: GATE-18
    fn a_script_or_standard_input_is_no_text() {
        for line in [
            "sh",
            "sh script",
            "sh script -c x",
            "bash -x script -c x",
            "bash -- script",
            "bash -- -c",
            "bash - -c",
            "bash -s",
            "sh -e script",
            "bash --norc script -c",
            "bash -o pipefail script -c",
            "git -c x",
            "python -c x",
            "bashful -c x",
        ] {
            assert!(!text(line), "{line}");
        }
    }
}
