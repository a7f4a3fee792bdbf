//! A slow and plain model of how wrappers are read, written from their manuals' option strings and sharing no code with the matcher.

/// What the model makes of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    pub readings: Vec<Vec<String>>,
    pub opaque: bool,
    pub unknowable: bool,
}

/// A wrapper: name, option string as for `getopt`, long options with `:` and `::` as there.
const MANUAL: [(&str, &str, &str); 7] = [
    (
        "env",
        "i0vu:C:S:a:",
        "ignore-environment null debug unset: chdir: split-string: argv0: block-signal:: default-signal:: ignore-signal:: list-signal-handling help version",
    ),
    (
        "sudo",
        "ABbEeHiKklNnPSsVva:C:c:D:g:h::p:R:r:T:t:U:u:",
        "askpass bell background preserve-env:: edit set-home login remove-timestamp reset-timestamp list no-update non-interactive preserve-groups stdin shell version validate help auth-type: close-from: login-class: chdir: group: host: prompt: chroot: role: command-timeout: type: other-user: user:",
    ),
    ("nice", "n:", "adjustment: help version"),
    (
        "timeout",
        "fpvk:s:",
        "foreground preserve-status verbose kill-after: signal: help version",
    ),
    (
        "xargs",
        "0oprtxa:d:E:I:L:n:P:s:e::i::l::",
        "null open-tty interactive no-run-if-empty verbose exit show-limits arg-file: delimiter: max-args: max-chars: max-procs: process-slot-var: eof:: replace:: max-lines:: help version",
    ),
    ("nohup", "", "help version"),
    ("stdbuf", "i:o:e:", "input: output: error: help version"),
];

pub(super) fn model(argv: &[String]) -> Model {
    let mut model = Model::default();
    let mut words = argv.to_vec();
    let (mut depth, mut splits, mut under_xargs) = (0, 0, false);
    let mut replaced: Option<String> = None;
    loop {
        model.readings.push(words.clone());
        let name = words[0]
            .split('/')
            .next_back()
            .unwrap_or_default()
            .to_owned();
        let manual = MANUAL.iter().find(|manual| manual.0 == name);
        let sensitive = if manual.is_some() || name == "busybox" {
            words.len()
        } else {
            1
        };
        if let Some(text) = &replaced {
            model.unknowable |= words[..sensitive].iter().any(|word| word.contains(text));
        }
        if manual.is_none() && name != "busybox" {
            break;
        }
        if depth == 16 {
            model.opaque = true;
            break;
        }
        let Some((_, shorts, longs)) = manual else {
            match words.get(1) {
                None => model.unknowable |= under_xargs,
                Some(applet) if applet.starts_with('-') => {}
                Some(_) => {
                    words.remove(0);
                    depth += 1;
                    continue;
                }
            }
            break;
        };
        let before = words.clone();
        match options(&name, shorts, longs, &mut words) {
            Err(()) => {
                model.opaque = true;
                model.unknowable |= under_xargs;
                flags(&before, &used(&name, shorts, longs, &before), &mut model);
                break;
            }
            Ok(seen) => {
                flags(&before, &seen, &mut model);
                if let Some((_, text)) = seen
                    .iter()
                    .find(|(option, _)| option == "S" && name == "env")
                {
                    let Some(mut parts) = split(text) else {
                        model.unknowable = true;
                        break;
                    };
                    splits += 1;
                    if splits > 16 {
                        model.unknowable = true;
                        break;
                    }
                    parts.insert(0, before[0].clone());
                    parts.append(&mut words);
                    words = parts;
                    continue;
                }
                if name == "xargs" && !words.is_empty() {
                    under_xargs = true;
                    let last = seen
                        .iter()
                        .rev()
                        .find(|(option, _)| option == "I" || option == "i");
                    if let Some((_, text)) = last {
                        replaced = Some(if text.is_empty() {
                            "{}".to_owned()
                        } else {
                            text.clone()
                        });
                    }
                }
            }
        }
        if words.is_empty() {
            model.unknowable |= under_xargs;
            break;
        }
        depth += 1;
    }
    model.opaque |= model.unknowable;
    model
}

/// What options of `sudo` and `env` do to the trust in what follows.
fn flags(before: &[String], seen: &[(String, String)], model: &mut Model) {
    let name = before[0].split('/').next_back().unwrap_or_default();
    for (option, _) in seen {
        match (name, option.as_str()) {
            ("env", "a") | ("sudo", "e" | "h" | "R") => model.opaque = true,
            ("sudo", "i" | "s") => {
                model.opaque = true;
                model.unknowable |= before.iter().any(|word| word.contains('$'));
            }
            _ => {}
        }
    }
}

/// The options that were understood before the first that was not.
fn used(name: &str, shorts: &str, longs: &str, words: &[String]) -> Vec<(String, String)> {
    let mut best = Vec::new();
    for cut in 1..=words.len() {
        let mut part = words[..cut].to_vec();
        if let Ok(seen) = options(name, shorts, longs, &mut part) {
            best = seen;
        }
    }
    // A cluster may break off in its middle.
    for word in words {
        for cut in 1..word.len() {
            if word.starts_with('-') && !word.starts_with("--") && word.is_char_boundary(cut) {
                let at = words
                    .iter()
                    .position(|other| other == word)
                    .unwrap_or_default();
                let mut part = words[..at].to_vec();
                part.push(word[..cut].to_owned());
                if let Ok(seen) = options(name, shorts, longs, &mut part)
                    && seen.len() > best.len()
                {
                    best = seen;
                }
            }
        }
    }
    best
}

/// Takes the wrapper and its own arguments off the front; what is left is the command. Returns the options seen, by their letter.
fn options(
    name: &str,
    shorts: &str,
    longs: &str,
    words: &mut Vec<String>,
) -> Result<Vec<(String, String)>, ()> {
    let mut seen = Vec::new();
    let mut previous = words.remove(0);
    while let Some(word) = words.first().cloned() {
        if word == "--" {
            words.remove(0);
            break;
        }
        let unsigned = word
            .strip_prefix("--")
            .or(word.strip_prefix("-+"))
            .or(word.strip_prefix('-'));
        if name == "nice"
            && unsigned
                .and_then(|rest| rest.chars().next())
                .is_some_and(|c| c.is_ascii_digit())
        {
            words.remove(0);
            continue;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (given, value) = match long.find('=') {
                Some(at) => (&long[..at], Some(long[at + 1..].to_owned())),
                None => (long, None),
            };
            let all: Vec<&str> = longs.split(' ').collect();
            let exact: Vec<&&str> = all
                .iter()
                .filter(|full| full.trim_end_matches(':') == given)
                .collect();
            let near: Vec<&&str> = all.iter().filter(|full| full.starts_with(given)).collect();
            let full = match (exact.as_slice(), near.as_slice()) {
                ([one], _) | ([], [one]) => **one,
                _ => return Err(()),
            };
            words.remove(0);
            let bare = full.trim_end_matches(':');
            let value = match (full.len() - bare.len(), value) {
                (0, Some(_)) => return Err(()),
                (1, None) if words.is_empty() => return Err(()),
                (1, None) => words.remove(0),
                (_, value) => value.unwrap_or_default(),
            };
            previous.clone_from(&value);
            if full.ends_with("::") || !full.ends_with(':') || word.contains('=') {
                previous.clone_from(&word);
            }
            let letter = match bare {
                "split-string" => "S",
                "argv0" => "a",
                "replace" => "i",
                "login" => "i",
                "shell" => "s",
                "edit" => "e",
                "chroot" => "R",
                other => other,
            };
            seen.push((letter.to_owned(), value));
            if letter == "S" {
                return Ok(seen);
            }
        } else if word.starts_with('-') && word.len() > 1 {
            words.remove(0);
            previous.clone_from(&word);
            let mut rest = word[1..].chars();
            while let Some(letter) = rest.next() {
                let at = shorts.find(letter).filter(|_| letter != ':').ok_or(())?;
                let takes = shorts[at + 1..].chars().take_while(|c| *c == ':').count();
                let glued: String = if takes > 0 {
                    rest.by_ref().collect()
                } else {
                    String::new()
                };
                let value = if takes == 1 && glued.is_empty() {
                    if words.is_empty() {
                        return Err(());
                    }
                    previous = words.remove(0);
                    previous.clone()
                } else {
                    glued
                };
                seen.push((letter.to_string(), value));
                if letter == 'S' && name == "env" {
                    return Ok(seen);
                }
            }
        } else if name == "sudo"
            && previous != "--"
            && word.contains('=')
            && !word.starts_with('/')
            && !word.starts_with('=')
        {
            previous = words.remove(0);
        } else {
            break;
        }
    }
    if name == "timeout" && !words.is_empty() {
        words.remove(0);
    }
    if name == "env" {
        if words.first().is_some_and(|word| word == "-") {
            words.remove(0);
        }
        while words.first().is_some_and(|word| word.contains('=')) {
            words.remove(0);
        }
    }
    Ok(seen)
}

/// `env -S`, read character by character with one state.
fn split(text: &str) -> Option<Vec<String>> {
    let letters: Vec<char> = text.chars().collect();
    let (mut words, mut word, mut quote, mut at) = (Vec::new(), None::<String>, ' ', 0);
    while at < letters.len() {
        let (c, next) = (letters[at], letters.get(at + 1).copied());
        at += 1;
        if (c == '\'' && quote != '"') || (c == '"' && quote != '\'') {
            word.get_or_insert_default();
            quote = if quote == ' ' { c } else { ' ' };
        } else if quote == ' ' && (c == ' ' || ('\t'..='\r').contains(&c)) {
            words.extend(word.take());
        } else if quote == ' ' && c == '#' && word.is_none() {
            return Some(words);
        } else if c == '$' && quote != '\'' {
            return None;
        } else if c == '\\' && (quote != '\'' || next == Some('\\') || next == Some('\'')) {
            let escaped = next?;
            at += 1;
            match (escaped, quote) {
                ('_', ' ') => words.extend(word.take()),
                ('c', ' ') => {
                    words.extend(word.take());
                    return Some(words);
                }
                _ => {
                    let from = "\"#$'\\_fnrtv";
                    let into = "\"#$'\\ \u{c}\n\r\t\u{b}";
                    let place = from.chars().position(|c| c == escaped)?;
                    word.get_or_insert_default().extend(into.chars().nth(place));
                }
            }
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    words.extend(word);
    (quote == ' ').then_some(words)
}
