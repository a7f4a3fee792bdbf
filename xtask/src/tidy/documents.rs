//! Documents that must not fall behind: links that lead somewhere, every error and every variable explained.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::file::File;

const ERRORS: (&str, &str) = ("crates/api/src/error.rs", "docs/errors.md");
const VARIABLES: &str = "docs/configuration.md";
/// Variables of the product begin like this; these are for its own tests and builds.
const OWN: [&str; 2] = ["FUSE_", "ORCH_"];
const INNER: [&str; 4] = ["FUSE_TEST_", "FUSE_UPDATE_", "FUSE_BUILD_", "FUSE_BENCH_"];

/// Every finding.
pub fn findings(files: &[File]) -> Vec<String> {
    let mut found = links(files);
    found.extend(errors(files));
    found.extend(variables(files));
    found
}

fn links(files: &[File]) -> Vec<String> {
    let known: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let leads_somewhere = |path: &str| {
        let folder = format!("{}/", path.trim_end_matches('/'));
        known.contains(path) || known.iter().any(|file| file.starts_with(&folder))
    };
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "md") {
        for (number, line) in (1..).zip(file.text.lines()) {
            for target in line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split_once(')'))
                .map(|(to, _)| to)
            {
                let path = target.split('#').next().unwrap_or_default();
                if path.is_empty() || path.contains(':') {
                    continue;
                }
                if !leads_somewhere(&beside(&file.path, path)) {
                    found.push(format!(
                        "{}:{number}: the link {target} leads nowhere",
                        file.path
                    ));
                }
            }
        }
    }
    found
}

/// The path that `link` in the file at `from` names, from the root.
fn beside(from: &str, link: &str) -> String {
    let mut path = PathBuf::new();
    for part in Path::new(from)
        .parent()
        .unwrap_or_else(|| Path::new(""))
        .join(link)
        .components()
    {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path.to_string_lossy().into_owned()
}

/// Each code and reason of the error vocabulary has a row.
fn errors(files: &[File]) -> Vec<String> {
    let (vocabulary, page) = ERRORS;
    let text = |path: &str| {
        files
            .iter()
            .find(|file| file.path == path)
            .map_or("", |file| &file.text)
    };
    let explained = text(page);
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text(vocabulary).lines()) {
        let name = line
            .split_once("=> \"")
            .and_then(|(_, rest)| rest.split_once('"'))
            .map(|(name, _)| name);
        if let Some(name) = name.filter(|name| !explained.contains(&format!("`{name}`"))) {
            found.push(format!(
                "{vocabulary}:{number}: {name} is not explained in {page}"
            ));
        }
    }
    found
}

/// Each variable that the code reads is in the table.
fn variables(files: &[File]) -> Vec<String> {
    let explained = files
        .iter()
        .find(|file| file.path == VARIABLES)
        .map_or("", |file| &file.text);
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.extension() == "rs")
    {
        if !file.path.contains("/src/") || file.path.contains("conformance") {
            continue;
        }
        let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in (1..).zip(code.lines()) {
            for name in line
                .split('"')
                .skip(1)
                .step_by(2)
                .filter(|name| is_variable(name))
            {
                if !explained.contains(&format!("`{name}`")) && told.insert(name) {
                    found.push(format!(
                        "{}:{number}: {name} is not explained in {VARIABLES}",
                        file.path
                    ));
                }
            }
        }
    }
    found
}

fn is_variable(name: &str) -> bool {
    OWN.iter().any(|prefix| name.starts_with(prefix))
        && !INNER.iter().any(|prefix| name.starts_with(prefix))
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_dead_link_is_told_and_a_live_one_is_not() {
        let files = [
            file(
                "docs/a.md",
                "[x](../b.md#y) [z](c.md) [w](https://example.com)",
            ),
            file("b.md", ""),
        ];
        assert_eq!(
            findings(&files),
            ["docs/a.md:1: the link c.md leads nowhere"]
        );
    }

    #[test]
    fn an_error_without_a_row_is_told() {
        let files = [
            file(ERRORS.0, "Self::A => \"a_b\",\nSelf::C => \"c_d\","),
            file(ERRORS.1, "`a_b`"),
        ];
        assert_eq!(findings(&files).len(), 1);
    }

    #[test]
    fn a_variable_without_a_row_is_told_once() {
        let files = [file(
            "crates/x/src/a.rs",
            "get(\"FUSE_A\"); get(\"FUSE_A\"); get(\"FUSE_TEST_B\")",
        )];
        assert_eq!(findings(&files).len(), 1);
    }
}
