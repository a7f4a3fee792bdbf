//! What a single source file must not be or hold.

use super::file::File;
use super::lexer::code_only;
use super::rules::is_of_tests;

const MAX_LINES: usize = 500;

/// Words that stand nowhere. Put together, so that this file holds none of them.
const WORDS: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("/wo", "rk/"),
];

/// A package index of one's own belongs into a person's configuration, not into the tree.
const INDEXES: [&str; 4] = ["index-url", "replace-with", "[source.", "registry = "];

/// What the domain must not name in code.
const IMPURE: [&str; 14] = [
    "tokio::",
    "sqlx::",
    "reqwest::",
    "axum::",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "now_v7",
    "rand::",
];

/// Every finding in `file`.
pub fn findings(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    let lines = file.text.lines().count();
    if is_source(file) && lines > MAX_LINES {
        found.push(format!(
            "{}:{MAX_LINES}: {lines} lines; split it, {MAX_LINES} is the most",
            file.path
        ));
    }
    words(file, &mut found);
    indexes(file, &mut found);
    if file.extension() == "rs" {
        rust(file, &mut found);
    }
    found
}

fn is_source(file: &File) -> bool {
    matches!(
        file.extension(),
        "rs" | "py" | "sh" | "sql" | "toml" | "ts" | "go" | "js"
    ) || file.path == ".ci/run"
}

fn words(file: &File, found: &mut Vec<String>) {
    // The licence and a lock file's checksums are other people's text.
    if file.path == "LICENSE" || file.extension() == "lock" {
        return;
    }
    for (number, line) in (1..).zip(file.text.lines()) {
        for word in WORDS.into_iter().filter(|word| holds_word(line, word)) {
            found.push(format!(
                "{}:{number}: the word {word} has no place here",
                file.path
            ));
        }
    }
}

/// A word made of letters counts as a whole word only, a path as the beginning of one.
fn holds_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let edge = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let after = word.ends_with('/') || edge(line[at + word.len()..].chars().next());
        edge(line[..at].chars().next_back()) && after
    })
}

fn indexes(file: &File, found: &mut Vec<String>) {
    for (number, line) in (1..).zip(file.text.lines()) {
        let configured = matches!(file.extension(), "toml" | "txt" | "cfg" | "ini")
            && !file.path.starts_with("deny.")
            && INDEXES
                .iter()
                .any(|index| line.trim_start().trim_start_matches('-').starts_with(index));
        let locked = file.extension() == "lock"
            && line.starts_with("source = ")
            && !line.contains("registry+https://github.com/rust-lang/crates.io-index");
        if configured || locked {
            found.push(format!(
                "{}:{number}: a package index of one's own",
                file.path
            ));
        }
    }
}

fn rust(file: &File, found: &mut Vec<String>) {
    let code = code_only(&file.text);
    let in_sys = file
        .path
        .split('/')
        .any(|part| part == "sys" || part == "sys.rs");
    // The domain's tests may measure and read files; the domain may not.
    let mut in_domain = ["crates/domain/src/", "crates/fisk-domain/src/"]
        .iter()
        .any(|of| file.path.starts_with(of))
        && !is_of_tests(&file.path);
    for (number, line) in (1..).zip(code.lines()) {
        in_domain &= !line.trim_start().starts_with("#[cfg(test)]");
        if !in_sys && holds_word(line, "unsafe") {
            found.push(format!(
                "{}:{number}: unsafe code outside of a module named sys",
                file.path
            ));
        }
        if line.contains("dbg!") {
            found.push(format!("{}:{number}: a debugging macro", file.path));
        }
        for name in IMPURE
            .into_iter()
            .filter(|name| in_domain && line.contains(name))
        {
            found.push(format!(
                "{}:{number}: the domain is pure and must not name {name}",
                file.path
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        findings(&File {
            path: path.to_owned(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn a_long_source_is_told_and_long_data_is_not() {
        let text = "a\n".repeat(MAX_LINES + 1);
        assert_eq!(found("a.rs", &text).len(), 1);
        assert_eq!(found("openapi/a.json", &text).len(), 0);
        assert_eq!(found("a.rs", &"a\n".repeat(MAX_LINES)).len(), 0);
    }

    #[test]
    fn unsafe_is_code_and_only_sys_may_hold_it() {
        assert_eq!(
            found("a.rs", "unsafe { x() }"),
            ["a.rs:1: unsafe code outside of a module named sys"]
        );
        assert_eq!(found("a/sys/b.rs", "unsafe { x() }").len(), 0);
        assert_eq!(found("a.rs", "#![deny(unsafe_code)] // unsafe").len(), 0);
    }

    #[test]
    fn forbidden_words_are_told_as_whole_words() {
        let word = WORDS[0];
        assert_eq!(found("a.md", &format!("x\n{word}: y")).len(), 1);
        assert_eq!(found("a.md", &format!("{word}S")).len(), 0);
    }

    #[test]
    fn the_domain_reads_no_clock() {
        assert_eq!(
            found("crates/domain/src/a.rs", "let now = SystemTime::now();").len(),
            1
        );
        assert_eq!(
            found("crates/store/src/a.rs", "let now = SystemTime::now();").len(),
            0
        );
        assert_eq!(
            found("crates/domain/src/a.rs", "// std::env is banned").len(),
            0
        );
        let timed = "#[cfg(test)]\nmod tests { fn f() { Instant::now(); } }";
        assert_eq!(found("crates/domain/src/a.rs", timed).len(), 0);
    }

    #[test]
    fn another_package_index_is_told() {
        assert_eq!(
            found(
                "Cargo.lock",
                "source = \"registry+https://example.com/index\""
            )
            .len(),
            1
        );
        assert_eq!(
            found("requirements.txt", "--index-url https://example.com").len(),
            1
        );
        assert_eq!(
            found(
                "Cargo.lock",
                "source = \"registry+https://github.com/rust-lang/crates.io-index\""
            )
            .len(),
            0
        );
    }
}
