//! What a source file takes from other files of its crate, as far as a reader of tokens can tell.
//!
//! It knows `mod`, `use` and paths that begin with `crate`, `super`, `self`, a child module or an imported name. It does not
//! expand macros and does not look up methods, so it may see too little, and never an import that is not there. What is
//! compiled for tests only is passed over.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::lexer::code_only;

/// A path from the root of the crate, such as `store::rows::Row`.
pub type Path = Vec<String>;

/// What one file says.
#[derive(Debug, Default)]
pub struct Source {
    /// Where its module stands below the root of the crate.
    pub module: Path,
    /// The modules that it declares and that have files of their own.
    pub children: BTreeSet<String>,
    /// What its imports call the names that they bring: a path in this crate, or none for what another crate has.
    pub names: BTreeMap<String, Option<Path>>,
    /// The modules whose every item it takes or hands on.
    pub globs: BTreeSet<Path>,
    /// Those whose items it takes for itself.
    pub taken_whole: BTreeSet<Path>,
    /// Everything in this crate that it imports or names. What it only hands on to others it does not need itself.
    pub uses: BTreeSet<Path>,
    /// The items that it defines itself, at any depth.
    pub items: BTreeSet<String>,
}

/// Reads the text of the file of `module`.
pub fn read(module: Path, text: &str) -> Source {
    let code = code_only(text);
    let tokens = tokens(&code);
    // What a file declares is known before its paths are read, since they may stand above it.
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        inline: Vec::new(),
        hands_on: false,
        source: Source {
            module,
            ..Source::default()
        },
    };
    reader.children();
    reader.again();
    reader.declarations();
    reader.again();
    reader.paths();
    reader.source
}

/// Words, `::`, and every other character that is no blank.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    tokens
}

struct Reader<'a> {
    tokens: &'a [&'a str],
    at: usize,
    /// The inline modules around this place, each with the depth of braces that it ends at.
    inline: Vec<(String, usize)>,
    /// Whether the import at hand is one for others, `pub use`.
    hands_on: bool,
    source: Source,
}

/// What introduces the name of an item.
const ITEMS: [&str; 9] = [
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "const",
    "static",
    "macro_rules",
];

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> &'a str {
        self.tokens
            .get(self.at + ahead)
            .copied()
            .unwrap_or_default()
    }

    fn again(&mut self) {
        self.at = 0;
        self.inline.clear();
    }

    /// The modules below it.
    fn children(&mut self) {
        while self.at < self.tokens.len() {
            if self.skipped_test() {
                continue;
            }
            if self.peek(0) == "mod" && self.peek(2) == ";" {
                self.source.children.insert(self.peek(1).to_owned());
            }
            self.at += 1;
        }
    }

    /// The imports and the items.
    fn declarations(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            if self.skipped_test() || self.moved_through(&mut depth) {
                continue;
            }
            match self.peek(0) {
                "use" if is_name(self.peek(1)) || self.peek(1) == "::" => {
                    self.hands_on = self.at > 0 && matches!(self.tokens[self.at - 1], "pub" | ")");
                    self.at += 1;
                    self.import(Vec::new());
                }
                word if ITEMS.contains(&word) => {
                    let name = if self.peek(1) == "!" { 2 } else { 1 };
                    self.source.items.insert(self.peek(name).to_owned());
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    /// What is named outside of imports.
    fn paths(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            if self.skipped_test() || self.moved_through(&mut depth) {
                continue;
            }
            let word = self.peek(0);
            let begins = self.at == 0 || !matches!(self.tokens[self.at - 1], "::" | "mod");
            if word == "use" && (is_name(self.peek(1)) || self.peek(1) == "::") {
                while self.at < self.tokens.len() && self.peek(0) != ";" {
                    self.at += 1;
                }
            } else if begins && is_name(word) {
                let mut path = vec![word.to_owned()];
                self.at += 1;
                while self.peek(0) == "::" && is_name(self.peek(1)) {
                    path.push(self.peek(1).to_owned());
                    self.at += 2;
                }
                self.named(path);
            } else {
                self.at += 1;
            }
        }
    }

    /// Goes into an inline module and out of it. True where it moved.
    fn moved_through(&mut self, depth: &mut usize) -> bool {
        match self.peek(0) {
            "mod" if self.peek(2) == "{" => {
                self.inline.push((self.peek(1).to_owned(), *depth));
                *depth += 1;
                self.at += 3;
            }
            "{" => {
                *depth += 1;
                self.at += 1;
            }
            "}" => {
                *depth = depth.saturating_sub(1);
                if self.inline.last().is_some_and(|(_, end)| end == depth) {
                    self.inline.pop();
                }
                self.at += 1;
            }
            _ => return false,
        }
        true
    }

    /// Goes past an item that is compiled for tests only. True where it went.
    fn skipped_test(&mut self) -> bool {
        if self.peek(0) != "#" || self.peek(1) != "[" || self.peek(2) != "cfg" {
            return false;
        }
        let end = self.closing(self.at + 1);
        let condition = &self.tokens[self.at..end];
        if !condition.contains(&"test") || condition.contains(&"not") {
            return false;
        }
        self.at = end;
        while self.peek(0) == "#" {
            self.at = self.closing(self.at + 1);
        }
        while self.at < self.tokens.len() && !matches!(self.peek(0), ";" | "{") {
            self.at += 1;
        }
        self.at = if self.peek(0) == "{" {
            self.closing(self.at)
        } else {
            self.at + 1
        };
        true
    }

    /// The place behind the bracket that closes the one at `open`.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match *token {
                "[" | "{" | "(" => depth += 1,
                "]" | "}" | ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return at + 1;
            }
        }
        self.tokens.len()
    }

    /// Reads the tree of a `use`, or a branch of it below `path`.
    fn import(&mut self, mut path: Vec<String>) {
        while self.at < self.tokens.len() {
            let token = self.peek(0);
            match token {
                "{" => {
                    self.at += 1;
                    while self.at < self.tokens.len() && self.peek(0) != "}" {
                        self.import(path.clone());
                        if self.peek(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    let whole = self.absolute(&path);
                    if !self.hands_on {
                        self.source.taken_whole.extend(whole.clone());
                    }
                    self.source.globs.extend(whole);
                    self.at += 1;
                    return;
                }
                "as" => {
                    let name = self.peek(1).to_owned();
                    self.imported(path, Some(name));
                    self.at += 2;
                    return;
                }
                "," | "}" | ";" => return self.imported(path, None),
                "::" => {}
                word => path.push(word.to_owned()),
            }
            self.at += 1;
        }
    }

    fn imported(&mut self, mut path: Vec<String>, name: Option<String>) {
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let Some(last) = path.last().cloned() else {
            return;
        };
        let whole = self.absolute(&path);
        if !self.hands_on {
            self.source.uses.extend(whole.clone());
        }
        self.source.names.insert(name.unwrap_or(last), whole);
    }

    /// A name outside of imports: a path from somewhere in this crate, or an imported name.
    fn named(&mut self, path: Vec<String>) {
        if matches!(path.as_slice(), [only] if matches!(only.as_str(), "crate" | "self" | "super"))
        {
            return;
        }
        if let Some(whole) = self.absolute(&path) {
            self.source.uses.insert(whole);
        } else if let Some(Some(target)) = self.source.names.get(&path[0]) {
            let whole = target.iter().chain(&path[1..]).cloned().collect();
            self.source.uses.insert(whole);
        }
    }

    /// The path from the root of the crate; none where it does not begin in this crate.
    fn absolute(&self, path: &[String]) -> Option<Path> {
        let mut base: Path = self.source.module.clone();
        base.extend(self.inline.iter().map(|(name, _)| name.clone()));
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|first| first == "super") {
                    base.pop()?;
                    rest = &rest[1..];
                }
            }
            child if self.inline.is_empty() && self.source.children.contains(child) => {}
            _ => return None,
        }
        base.extend_from_slice(rest);
        Some(base)
    }
}

fn is_name(token: &str) -> bool {
    token
        .chars()
        .next()
        .is_some_and(|first| first.is_alphabetic() || first == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Source {
        read(vec!["a".to_owned(), "b".to_owned()], text)
    }

    fn joined(paths: &BTreeSet<Path>) -> Vec<String> {
        paths.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn imports_are_paths_from_the_root() {
        let source = of(
            "use crate::{x::{self, Y as Z}, w}; use super::v::{U, T}; use std::fmt; pub(crate) use self::child::S; \
             mod child; use child::R; use crate::q::*;",
        );
        let told: Vec<(&str, Option<String>)> = source
            .names
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_ref().map(|path| path.join("::"))))
            .collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            told,
            [
                ("R", some("a::b::child::R")),
                ("S", some("a::b::child::S")),
                ("T", some("a::v::T")),
                ("U", some("a::v::U")),
                ("Z", some("x::Y")),
                ("fmt", None),
                ("w", some("w")),
                ("x", some("x")),
            ]
        );
        assert_eq!(joined(&source.globs), ["q"]);
        // All but what is handed on.
        assert_eq!(
            joined(&source.uses),
            ["a::b::child::R", "a::v::T", "a::v::U", "w", "x", "x::Y"]
        );
    }

    #[test]
    fn paths_in_code_count_and_those_of_tests_do_not() {
        let source = of(
            "use crate::x; fn f() -> crate::m::N { x::y(); super::g(); other::h(); }\n\
             #[cfg(test)]\n#[path = \"t.rs\"]\nmod t;\n#[cfg(test)]\nmod tests { use crate::z; fn t() { crate::zz::a() } }\n\
             #[cfg(not(test))]\nfn k() { crate::l() }",
        );
        assert_eq!(joined(&source.uses), ["a::g", "l", "m::N", "x", "x::y"]);
        assert!(source.children.is_empty());
    }

    #[test]
    fn a_path_in_an_inline_module_begins_there() {
        let source =
            of("mod sys { pub fn f() { super::g(); super::super::h(); } } fn i() { super::j() }");
        assert_eq!(joined(&source.uses), ["a::b::g", "a::h", "a::j"]);
    }

    #[test]
    fn the_name_of_a_type_that_was_imported_is_a_use_of_it() {
        let source = of("use crate::x::Y; impl Y { fn f(self) -> Y {} }");
        assert_eq!(joined(&source.uses), ["x::Y"]);
    }
}
