//! Imports between the files of a crate run one way: no file needs, over however many others, one that needs it.

mod reader;

use std::collections::{BTreeMap, BTreeSet};

use self::reader::{Path, Source};
use super::file::File;

/// The files of one program or library, by the paths of their modules.
type Tree = BTreeMap<Path, (String, Source)>;

/// From each file to those that it needs, with the names that it takes from them.
type Needs = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// How often a name is followed from one re-export to the next.
const FOLLOWED: usize = 8;

/// Folders whose circles are not turned yet. One without a circle has to leave this list.
const NOT_YET: [&str; 13] = [
    "crates/backend/",
    "crates/domain/",
    "crates/fisk-domain/",
    "crates/fisk-llm/",
    "crates/fisk-operator/",
    "crates/fisk-serve/",
    "crates/fisk-tui/",
    "crates/fisk/",
    "crates/guest/",
    "crates/orchestrator/",
    "crates/store/",
    "crates/terminal/",
    "tests/e2e/",
];

/// A finding for each circle, at one of its files.
pub fn findings(files: &[File]) -> Vec<String> {
    let (waiting, mut found): (Vec<String>, Vec<String>) = all(files)
        .into_iter()
        .partition(|circle| NOT_YET.iter().any(|folder| circle.starts_with(folder)));
    for folder in NOT_YET {
        if !waiting.iter().any(|circle| circle.starts_with(folder)) {
            found.push(format!(
                "xtask/src/tidy/circles/mod.rs:1: {folder} has no circle any more and needs no exemption"
            ));
        }
    }
    found
}

fn all(files: &[File]) -> Vec<String> {
    let texts: BTreeMap<&str, &str> = files
        .iter()
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut needs = Needs::new();
    for root in texts.keys().filter(|path| is_root(path)) {
        let mut tree = Tree::new();
        grow(&mut tree, &texts, Path::new(), root);
        collect(&tree, &mut needs);
    }
    circles(&needs)
        .iter()
        .map(|circle| told(circle, &needs))
        .collect()
}

fn is_root(path: &str) -> bool {
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs")
}

/// Adds the file at `path` as `module`, and all below it.
fn grow(tree: &mut Tree, texts: &BTreeMap<&str, &str>, module: Path, path: &str) {
    let Some(text) = texts.get(path) else {
        return;
    };
    let source = reader::read(module.clone(), text);
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        other => format!("{folder}/{}", other.trim_end_matches(".rs")),
    };
    for child in &source.children {
        let below = module.iter().cloned().chain([child.clone()]).collect();
        let name = child.trim_start_matches("r#");
        let places = [
            format!("{folder}/{name}.rs"),
            format!("{folder}/{name}/mod.rs"),
        ];
        if let Some(place) = places
            .iter()
            .find(|place| texts.contains_key(place.as_str()))
        {
            grow(tree, texts, below, place);
        }
    }
    tree.insert(module, (path.to_owned(), source));
}

fn collect(tree: &Tree, needs: &mut Needs) {
    for (path, source) in tree.values() {
        let from = needs.entry(path.clone()).or_default();
        for whole in &source.uses {
            if let Some((to, name)) = resolve(tree, whole, FOLLOWED)
                && to != path
            {
                from.entry(to.to_owned())
                    .or_default()
                    .insert(name.to_owned());
            }
        }
        for whole in &source.taken_whole {
            if let Some((to, _)) = tree.get(whole)
                && to != path
            {
                from.entry(to.clone()).or_default().insert("*".to_owned());
            }
        }
    }
}

/// The file in which `whole` is defined, through whatever hands it on, and its name there. A module alone is no need: what
/// is taken from it is.
fn resolve<'a>(tree: &'a Tree, whole: &'a [String], left: usize) -> Option<(&'a str, &'a str)> {
    let length = (0..=whole.len())
        .rev()
        .find(|length| tree.contains_key(&whole[..*length]))?;
    let (path, source) = tree.get(&whole[..length])?;
    let name = whole.get(length)?;
    let left = left.checked_sub(1)?;
    match source.names.get(name) {
        // Of another crate.
        Some(None) => None,
        Some(Some(target)) if target != whole => {
            let further: Path = target.iter().chain(&whole[length + 1..]).cloned().collect();
            // Its own text outlives the path that was put together.
            let (to, _) =
                resolve(tree, &further, left).map(|(to, name)| (to.to_owned(), name.to_owned()))?;
            tree.values()
                .find(|(path, _)| *path == to)
                .map(|(path, _)| (path.as_str(), name.as_str()))
        }
        Some(Some(_)) => None,
        None if source.items.contains(name) => Some((path, name)),
        None => {
            let through = source.globs.iter().find_map(|glob| {
                let (path, source) = tree.get(glob)?;
                source
                    .items
                    .contains(name)
                    .then_some((path.as_str(), name.as_str()))
            });
            through.or(Some((path, name)))
        }
    }
}

/// The sets of two or more files each of which needs, over some way, every other.
fn circles(needs: &Needs) -> Vec<Vec<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = needs
        .keys()
        .map(|from| (from.as_str(), reachable(needs, from)))
        .collect();
    let mut found: Vec<Vec<&str>> = Vec::new();
    let mut seen = BTreeSet::new();
    for (from, reached) in &reach {
        if !reached.contains(from) || !seen.insert(*from) {
            continue;
        }
        let circle: Vec<&str> = reached
            .iter()
            .copied()
            .filter(|to| reach.get(to).is_some_and(|back| back.contains(from)))
            .collect();
        seen.extend(&circle);
        found.push(circle);
    }
    found
}

fn reachable<'a>(needs: &'a Needs, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(at) = next.pop() {
        for to in needs.get(at).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.as_str()) {
                next.push(to);
            }
        }
    }
    reached
}

fn told(circle: &[&str], needs: &Needs) -> String {
    let mut text = format!(
        "{}:1: {} files import each other in a circle",
        circle[0],
        circle.len()
    );
    for from in circle {
        for (to, names) in &needs[*from] {
            if circle.contains(&to.as_str()) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                text += &format!("\n  {from} takes {} from {to}", names.join(", "));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File {
                path: format!("crates/c/src/{path}"),
                text: (*text).to_owned(),
            })
            .collect();
        all(&files)
    }

    #[test]
    fn two_files_that_import_each_other_are_told_with_what_ties_them() {
        let found = found(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B; fn f() -> super::a::A {}"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("crates/c/src/a.rs:1: 2 files"),
            "{found:?}"
        );
        assert!(found[0].contains("crates/c/src/b.rs takes A from crates/c/src/a.rs"));
    }

    #[test]
    fn a_circle_over_three_files_and_folders_is_one() {
        let found = found(&[
            ("main.rs", "mod a; mod b; mod d;"),
            ("a/mod.rs", "mod deep; pub use deep::A;"),
            ("a/deep.rs", "pub struct A(crate::b::B);"),
            ("b.rs", "use crate::d::D; pub struct B;"),
            ("d.rs", "use crate::a::A; pub struct D;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("3 files"), "{found:?}");
    }

    #[test]
    fn a_child_that_takes_what_its_parent_defines_is_a_circle() {
        let found = found(&[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod child; pub struct P; fn f() { child::g() }"),
            ("a/child.rs", "use super::P; pub fn g() {}"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_name_that_is_only_handed_on_counts_where_it_is_defined() {
        let found = found(&[
            (
                "lib.rs",
                "mod a; mod b; pub use a::A; pub use b::*; pub use std::fmt;",
            ),
            ("a.rs", "use crate::B; pub struct A;"),
            ("b.rs", "use crate::fmt; pub struct B;"),
        ]);
        assert_eq!(found, [""; 0]);
        // The one that hands it on uses it too.
        let used = self::found(&[
            (
                "lib.rs",
                "mod a; pub use a::A; pub struct R; fn f() -> A {}",
            ),
            ("a.rs", "use crate::R; pub struct A;"),
        ]);
        assert_eq!(used.len(), 1, "{used:?}");
    }

    #[test]
    fn tests_may_look_at_whatever_they_like() {
        let found = found(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            (
                "b.rs",
                "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
            ),
        ]);
        assert_eq!(found, [""; 0]);
    }
}
