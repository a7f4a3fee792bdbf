//! Which crate may know which: the table of ARCHITECTURE.md.

use serde_json::Value;

use super::file::File;

/// A crate, and the workspace crates that it may depend on, in tests too.
const ALLOWED: [(&str, &[&str]); 21] = [
    ("fuse-api", &[]),
    ("fuse-guest-api", &[]),
    ("fuse-terminal", &[]),
    ("fuse-domain", &["fuse-api"]),
    ("fuse-guest", &["fuse-guest-api"]),
    ("fuse-backend", &["fuse-guest-api"]),
    ("fuse-store", &["fuse-api", "fuse-domain"]),
    ("fuse-client", &["fuse-api"]),
    ("fuse-fusefile", &["fuse-api", "fuse-domain"]),
    (
        "fuse-orchestrator",
        &[
            "fuse-api",
            "fuse-domain",
            "fuse-store",
            "fuse-backend",
            "fuse-guest-api",
        ],
    ),
    (
        "fuse-cli",
        &[
            "fuse-api",
            "fuse-domain",
            "fuse-client",
            "fuse-terminal",
            "fuse-fusefile",
            "fuse-orchestrator",
            "fuse-backend",
        ],
    ),
    ("fisk-domain", &[]),
    ("fisk-llm", &[]),
    ("fisk-exec", &["fisk-domain", "fuse-backend"]),
    (
        "fisk-operator",
        &["fisk-domain", "fuse-terminal", "fuse-client"],
    ),
    ("fisk-serve", &["fisk-domain", "fisk-exec", "fisk-operator"]),
    (
        "fisk-tui",
        &["fisk-domain", "fisk-operator", "fuse-terminal"],
    ),
    (
        "fisk",
        &[
            "fisk-domain",
            "fisk-exec",
            "fisk-operator",
            "fisk-llm",
            "fisk-serve",
            "fisk-tui",
            "fuse-backend",
            "fuse-terminal",
        ],
    ),
    ("fuse-e2e", ANY),
    ("fuse-bench", ANY),
    ("xtask", &[]),
];

/// They measure and drive the others, and nothing depends on them.
const ANY: &[&str] = &[
    "fuse-api",
    "fuse-domain",
    "fuse-store",
    "fuse-client",
    "fuse-guest-api",
    "fuse-backend",
    "fuse-orchestrator",
    "fuse-terminal",
    "fuse-fusefile",
    "fisk-domain",
    "fisk-exec",
    "fisk-operator",
    "fisk-llm",
    "fisk-serve",
    "fisk",
];

/// The crates that hold the rules.
const PURE: [&str; 2] = ["fuse-domain", "fisk-domain"];

/// What a crate of rules must not even link.
const IMPURE: [&str; 10] = [
    "tokio",
    "sqlx",
    "reqwest",
    "axum",
    "hyper",
    "rand",
    "nix",
    "libc",
    "tempfile",
    "prometheus-client",
];

/// Every dependency that the table forbids.
pub fn findings(metadata: &Value, files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    let packages = metadata["packages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let own: Vec<&str> = packages
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = files
            .iter()
            .find(|file| manifest.ends_with(&format!("/{}", file.path)) && file.path.len() > 10);
        let place = |dependency: &str| match manifest {
            Some(file) => {
                let at = file
                    .text
                    .lines()
                    .position(|line| line.starts_with(dependency))
                    .map_or(1, |at| at + 1);
                format!("{}:{at}", file.path)
            }
            None => format!("{name}:1"),
        };
        let Some((_, allowed)) = ALLOWED.iter().find(|(of, _)| *of == name) else {
            found.push(format!(
                "{}: the crate {name} is not in the table of layers",
                place("name")
            ));
            continue;
        };
        let dependencies = package["dependencies"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for dependency in dependencies {
            let to = dependency["name"].as_str().unwrap_or_default();
            if own.contains(&to) && to != name && !allowed.contains(&to) {
                found.push(format!("{}: {name} must not depend on {to}", place(to)));
            }
            if PURE.contains(&name) && dependency["kind"].is_null() && IMPURE.contains(&to) {
                found.push(format!(
                    "{}: the domain is pure and must not depend on {to}",
                    place(to)
                ));
            }
        }
    }
    found
}

/// Where the table of ARCHITECTURE.md says something else than this one.
pub fn documented(architecture: &str) -> Vec<String> {
    const PAGE: &str = "ARCHITECTURE.md";
    let mut found = Vec::new();
    for (name, allowed) in ALLOWED {
        let short = |of: &str| of.trim_start_matches("fuse-").to_owned();
        let row = (1..)
            .zip(architecture.lines())
            .find(|(_, line)| line.starts_with(&format!("| `{}` |", short(name))));
        let Some((number, line)) = row else {
            found.push(format!(
                "{PAGE}:1: the crate {name} has no row in the table of layers"
            ));
            continue;
        };
        let cell = line.split('|').nth(2).unwrap_or_default();
        let mut told: Vec<String> = cell
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        let mut held: Vec<String> = allowed.iter().map(|of| short(of)).collect();
        told.sort();
        held.sort();
        if told != held {
            found.push(format!(
                "{PAGE}:{number}: {name} may depend on {}",
                held.join(", ")
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workspace(name: &str, dependency: &str) -> Value {
        json!({"packages": [
            {"name": name, "manifest_path": "/w/crates/x/Cargo.toml",
             "dependencies": [{"name": dependency, "kind": null}]},
            {"name": "fuse-store", "manifest_path": "/w/crates/store/Cargo.toml", "dependencies": []},
        ]})
    }

    #[test]
    fn a_dependency_against_the_direction_is_told_at_its_line() {
        let manifest = File {
            path: "crates/x/Cargo.toml".into(),
            text: "[dependencies]\nfuse-store = 1\n".into(),
        };
        let found = findings(&workspace("fuse-client", "fuse-store"), &[manifest]);
        assert_eq!(
            found,
            ["crates/x/Cargo.toml:2: fuse-client must not depend on fuse-store"]
        );
    }

    #[test]
    fn an_allowed_dependency_is_silent() {
        assert!(findings(&workspace("fuse-orchestrator", "fuse-store"), &[]).is_empty());
    }

    #[test]
    fn the_domain_links_no_runtime() {
        assert_eq!(findings(&workspace("fuse-domain", "tokio"), &[]).len(), 1);
    }

    #[test]
    fn a_row_that_differs_from_the_table_is_told() {
        let page = "| `store` | `api` | x |";
        let found = documented(page);
        assert_eq!(found.len(), ALLOWED.len());
        assert!(
            found.contains(&"ARCHITECTURE.md:1: fuse-store may depend on api, domain".to_owned())
        );
    }

    #[test]
    fn a_crate_outside_the_table_is_told() {
        assert_eq!(findings(&workspace("fuse-new", "serde"), &[]).len(), 1);
    }
}
