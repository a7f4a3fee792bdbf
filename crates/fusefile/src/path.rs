//! Paths of fields, in the Fusefile's names and in the create request's.

use std::fmt;

use crate::place::Place;
use crate::tree::{Kind, Node};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Item(usize),
}

/// Where a field stands, like `hitl.gates[2].match.shell`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Path(Vec<Step>);

impl Path {
    pub(crate) const fn root() -> Self {
        Self(Vec::new())
    }

    pub(crate) const fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    pub(crate) fn item(&self, index: usize) -> Self {
        self.with(Step::Item(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    fn first(&self) -> &str {
        match self.0.first() {
            Some(Step::Key(key)) => key,
            Some(Step::Item(_)) | None => "",
        }
    }

    /// Whether values here are nobody's business.
    pub(crate) fn holds_values(&self) -> bool {
        matches!(self.first(), "env" | "files")
    }

    /// Reads `a.b[0]["key of any kind"]`. What does not parse is one key, so that nothing is lost.
    pub(crate) fn parse(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (step, after) = match rest.strip_prefix('[') {
                Some(inside) => match bracket(inside) {
                    Some(found) => found,
                    None => return Self(vec![Step::Key(text.to_owned())]),
                },
                None => {
                    let end = rest.find(['.', '[']).unwrap_or(rest.len());
                    (Step::Key(rest[..end].to_owned()), &rest[end..])
                }
            };
            steps.push(step);
            rest = after.strip_prefix('.').unwrap_or(after);
        }
        Self(steps)
    }

    /// The place of the field in a file, or of the nearest thing around it that is there.
    pub(crate) fn locate(&self, root: &Node) -> Option<Place> {
        let mut node = root;
        let mut place = None;
        for step in &self.0 {
            let (next, at) = match step {
                Step::Key(key) => match node.entry(key) {
                    Some(entry) => (&entry.value, entry.key_place),
                    None => return place,
                },
                Step::Item(index) => match node.item(*index) {
                    Some(item) => (item, item.place),
                    None => return place,
                },
            };
            (node, place) = (next, Some(at));
        }
        match node.kind {
            Kind::Bool { .. } | Kind::Number(_) | Kind::Text(_) if !self.holds_values() => {
                Some(node.place)
            }
            Kind::Bool { .. }
            | Kind::Number(_)
            | Kind::Text(_)
            | Kind::Null
            | Kind::List(_)
            | Kind::Map(_) => place,
        }
    }

    /// The Fusefile's path of a field that the create request calls by `self`.
    ///
    /// `secrets` are the declared names, and `copied` says which entry of `copy` a file came from.
    pub(crate) fn in_fusefile(
        &self,
        secrets: &[String],
        copied: impl Fn(&str) -> Option<usize>,
    ) -> Self {
        use Step::{Item, Key};
        let key = |name: &str| Key(name.to_owned());
        let mut steps: Vec<Step> = match self.0.as_slice() {
            [Key(task), rest @ ..] if task == "task_id" => [&[key("name")], rest].concat(),
            [Key(spec), Key(image), rest @ ..] if spec == "spec" && image == "image" => {
                [&[key("image")], rest].concat()
            }
            [Key(spec), rest @ ..] if spec == "spec" => [&[key("resources")], rest].concat(),
            [Key(startup), rest @ ..] if startup == "startup_script_timeout_seconds" => {
                [&[key("startup_timeout")], rest].concat()
            }
            [Key(list), Key(name), rest @ ..] if list == "secrets" => {
                match secrets.iter().position(|declared| declared == name) {
                    Some(index) => [&[key("secrets"), Item(index)], rest].concat(),
                    None => self.0.clone(),
                }
            }
            [Key(files), Key(path), rest @ ..] if files == "files" => match copied(path) {
                Some(index) => [&[key("copy"), Item(index)], rest].concat(),
                None => self.0.clone(),
            },
            other => other.to_vec(),
        };
        if let Some(Key(last)) = steps.last_mut()
            && !self.holds_values()
            && let Some(short) = last.strip_suffix("_seconds")
        {
            *last = short.to_owned();
        }
        Self(steps)
    }
}

fn bracket(inside: &str) -> Option<(Step, &str)> {
    if inside.starts_with('"') {
        let mut read = serde_json::Deserializer::from_str(inside).into_iter::<String>();
        let key = read.next()?.ok()?;
        let after = inside.get(read.byte_offset()..)?.strip_prefix(']')?;
        return Some((Step::Key(key), after));
    }
    let (digits, after) = inside.split_once(']')?;
    Some((Step::Item(digits.parse().ok()?), after))
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            match step {
                Step::Item(index) => write!(f, "[{index}]")?,
                Step::Key(key) if is_plain(key) => write!(f, "{dot}{key}")?,
                Step::Key(key) => write!(f, "[{}]", serde_json::Value::from(key.as_str()))?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_back() {
        for text in [
            "name",
            "hitl.gates[2].match.shell",
            r#"files["/etc/x y"]"#,
            r#"env["a\"b"].secret"#,
            "run[0]",
        ] {
            assert_eq!(Path::parse(text).to_string(), text);
        }
        assert_eq!(Path::parse("a[x").to_string(), r#"["a[x"]"#);
    }

    #[test]
    fn the_requests_names_become_the_files() {
        let declared = ["token".to_owned()];
        for (request, file) in [
            ("task_id", "name"),
            ("spec.image", "image"),
            ("spec.idle_timeout_seconds", "resources.idle_timeout"),
            ("spec.ram_mb", "resources.ram_mb"),
            ("startup_script_timeout_seconds", "startup_timeout"),
            ("hitl.timeout_seconds", "hitl.timeout"),
            (
                "hitl.gates[0].match.quiet_seconds",
                "hitl.gates[0].match.quiet",
            ),
            ("secrets.token", "secrets[0]"),
            ("env.WAIT_seconds", "env.WAIT_seconds"),
            (r#"files["/a"]"#, "copy[3]"),
            (r#"files["/b"]"#, r#"files["/b"]"#),
        ] {
            let copied = |path: &str| (path == "/a").then_some(3);
            assert_eq!(
                Path::parse(request)
                    .in_fusefile(&declared, copied)
                    .to_string(),
                file
            );
        }
    }
}
