//! Every built rule of SPECIFICATION.md has a test that names it, and no test names a rule that is not there.

use std::collections::BTreeMap;

use super::file::File;

const SPECIFICATION: &str = "SPECIFICATION.md";
// Put together, so that this file is no check itself.
const MARK: &str = concat!("check", ":");
const PLANNED: &str = "*(planned)*";

#[derive(Debug, PartialEq, Eq)]
struct Rule {
    line: usize,
    planned: bool,
}

/// What is wrong with the specification and with the checks in `files`.
pub fn findings(specification: &str, files: &[File]) -> Vec<String> {
    let (rules, mut findings) = parse(specification);
    let mut checked = std::collections::BTreeSet::new();
    for file in files
        .iter()
        .filter(|file| matches!(file.extension(), "rs" | "py" | "sh" | "yml" | "yaml"))
    {
        let mut in_test = file.extension() != "rs" || is_of_tests(&file.path);
        for (number, line) in (1..).zip(file.text.lines()) {
            // Unit tests stand at the foot of their file.
            in_test |= line.trim_start().starts_with("#[cfg(test)]");
            for id in checks(line) {
                if !in_test {
                    findings.push(format!(
                        "{}:{number}: {MARK} stands outside of a test",
                        file.path
                    ));
                } else if rules.contains_key(id) {
                    checked.insert(id.to_owned());
                } else {
                    findings.push(format!(
                        "{}:{number}: {MARK} names the unknown rule {id:?}",
                        file.path
                    ));
                }
            }
        }
    }
    for (id, rule) in &rules {
        if !rule.planned && !checked.contains(id) {
            findings.push(format!(
                "{SPECIFICATION}:{}: {id} has no test that names it with `{MARK}`",
                rule.line
            ));
        }
    }
    findings
}

/// Whether the whole file is one of tests.
pub fn is_of_tests(path: &str) -> bool {
    path.split(['/', '.']).any(|part| {
        matches!(part, "tests" | "fuzz" | "conformance" | "suite")
            || part.ends_with("_tests")
            || part.ends_with("_test")
    })
}

fn parse(specification: &str) -> (BTreeMap<String, Rule>, Vec<String>) {
    let mut rules = BTreeMap::new();
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(specification.lines()) {
        let Some(rest) = line.strip_prefix("- ") else {
            continue;
        };
        let rule = rest
            .strip_prefix("**")
            .and_then(|rest| rest.split_once("** "));
        let Some((id, text)) = rule.filter(|(id, text)| is_id(id) && !text.trim().is_empty())
        else {
            findings.push(format!(
                "{SPECIFICATION}:{number}: a rule is `- **ID-1** text` on one line"
            ));
            continue;
        };
        let rule = Rule {
            line: number,
            planned: text.ends_with(PLANNED),
        };
        if rules.insert(id.to_owned(), rule).is_some() {
            findings.push(format!(
                "{SPECIFICATION}:{number}: {id} stands here a second time"
            ));
        }
    }
    (rules, findings)
}

fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(area, number)| {
        !area.is_empty()
            && area.bytes().all(|byte| byte.is_ascii_uppercase())
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && number.parse::<u32>().is_ok_and(|number| number > 0)
    })
}

/// The ids in a line's comment, however they are parted.
fn checks(line: &str) -> impl Iterator<Item = &str> {
    let comment = line
        .find("//")
        .or_else(|| line.find('#'))
        .map_or("", |at| &line[at..]);
    let named = comment.split_once(MARK).map_or("", |(before, named)| {
        // Prose such as `re-check: …` is no mark.
        if before.trim_start_matches(['/', '#', '!']).trim().is_empty() {
            named
        } else {
            ""
        }
    });
    named.split([',', ' ']).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> File {
        File {
            path: "tests/a.rs".to_owned(),
            text: text.replace('@', MARK),
        }
    }

    #[test]
    fn a_built_rule_without_a_check_is_named_with_its_line() {
        let found = findings("# x\n\n- **ASK-1** one\n- **ASK-2** two *(planned)*\n", &[]);
        assert_eq!(found.len(), 1);
        assert!(
            found
                .iter()
                .all(|line| line.starts_with("SPECIFICATION.md:3: ASK-1 "))
        );
    }

    #[test]
    fn checks_of_one_line_count_all() {
        let files = [file("    // @ ASK-1, ASK-2\nfn f() {}")];
        assert_eq!(
            findings("- **ASK-1** one\n- **ASK-2** two\n", &files),
            Vec::<String>::new()
        );
    }

    #[test]
    fn an_unknown_id_is_named_with_its_file_and_line() {
        let found = findings("- **ASK-1** one *(planned)*\n", &[file("\n// @ ASK-9")]);
        assert_eq!(found.len(), 1);
        assert!(
            found
                .iter()
                .all(|line| line.starts_with("tests/a.rs:2: ") && line.contains("ASK-9"))
        );
    }

    #[test]
    fn a_check_outside_of_a_test_proves_nothing() {
        let mut file = file("// @ ASK-1\n#[cfg(test)]\n// @ ASK-2");
        file.path = "src/a.rs".to_owned();
        let found = findings("- **ASK-1** one\n- **ASK-2** two\n", &[file]);
        assert_eq!(found.len(), 2);
        assert!(
            found
                .iter()
                .all(|line| line.starts_with("src/a.rs:1: ") || line.contains("ASK-1"))
        );
    }

    #[test]
    fn a_rule_that_stands_twice_or_is_malformed_is_told() {
        assert_eq!(
            parse("- **ASK-1** a\n- **ASK-1** b\n- ASK-3 c\n- **ask-4** d\n")
                .1
                .len(),
            3
        );
    }
}
