//! Which commands the operator wants as tools.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{model::ModelError, plain};

/// The most bytes that a compiled pattern of the configuration may take.
const MAX_PATTERN: usize = 1024 * 1024;

/// What the operator's configuration says about tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// `include`: where it has entries, only what one of them names is a tool.
    pub include: Patterns,
    /// `exclude`: what one of its entries names is no tool, whatever is included.
    pub exclude: Patterns,
    /// `harness.confirm_tags`: tags that gate a command as `ai:confirm` does.
    pub confirm_tags: Vec<String>,
    /// `global_flags`: the application's own flags that every tool has.
    pub global_flags: Vec<String>,
}

/// Names commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Patterns {
    /// Regular expressions that are searched for in tool names.
    pub tools: Vec<String>,
    /// Tags, in full.
    pub tags: Vec<String>,
}

impl Patterns {
    /// Why `entry` can be none of [`tools`](Self::tools); `None` where it can.
    pub fn problem(entry: &str) -> Option<String> {
        compiled(entry).err()
    }
}

fn compiled(entry: &str) -> Result<Regex, String> {
    RegexBuilder::new(entry)
        .size_limit(MAX_PATTERN)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            other => {
                let text = other.to_string();
                let said = text.lines().last().unwrap_or_default();
                plain::line(said.trim_start_matches("error: "), 200)
            }
        })
}

/// Why an application's commands cannot be tools, so that nothing starts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ToolError {
    /// The application's description cannot be read.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An entry of the configuration is no regular expression.
    #[error("{path}: {entry:?} is no regular expression: {problem}")]
    Pattern {
        /// The entry's place in the configuration.
        path: String,
        /// The entry.
        entry: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An entry of `global_flags` is no flag that can be exposed.
    #[error("{path}: {entry:?} {problem}")]
    GlobalFlag {
        /// The entry's place in the configuration.
        path: String,
        /// The entry.
        entry: String,
        /// What is wrong with it, and what is allowed.
        problem: String,
    },
    /// A global flag that is exposed has the name of a command's own parameter.
    #[error(
        "the global flag {flag:?} and a parameter of the command {command:?} have one name; take it out of global_flags or exclude ^{tool}$"
    )]
    GlobalClash {
        /// The flag.
        flag: String,
        /// The command.
        command: String,
        /// Its tool name.
        tool: String,
    },
    /// Two commands have one tool name.
    #[error(
        "the commands {first:?} and {second:?} would both be the tool {tool:?}; exclude ^{tool}$"
    )]
    SameName {
        /// The name.
        tool: String,
        /// The command that comes first.
        first: String,
        /// The other one.
        second: String,
    },
    /// A command has the name of a built-in tool.
    #[error(
        "the command {command:?} would have the name of the built-in tool {tool:?}; exclude ^{tool}$"
    )]
    BuiltIn {
        /// The name.
        tool: String,
        /// The command.
        command: String,
    },
    /// What runs under a command's name may be another command, which has that name too, mostly as an alias.
    #[error(
        "the command {other:?} goes by {alias:?} too, so it could run in place of the command {command:?}; exclude ^{tool}$"
    )]
    Alias {
        /// The word that both have.
        alias: String,
        /// The command whose alias it is.
        other: String,
        /// The command whose name it is, or one beneath it.
        command: String,
        /// Its tool name.
        tool: String,
    },
    /// A model cannot call a tool of that name.
    #[error(
        "the command {command:?} cannot be a tool: a name has 1 to 64 letters, digits, _ and -, and no word of it begins with -; exclude it in exclude.tools"
    )]
    Name {
        /// The command.
        command: String,
    },
}

/// What the operator should know about the tools; nothing is refused for it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Warning {
    /// An entry of the configuration names no command.
    #[error("{path}: {entry:?} matches no command{}", suggested(.suggestion))]
    Unmatched {
        /// The entry's place in the configuration.
        path: String,
        /// The entry.
        entry: String,
        /// What may have been meant.
        suggestion: Option<String>,
    },
    /// A command is no tool although nothing excludes it, because a call of it could mean something else.
    #[error("{tool}: not offered as a tool: {why}")]
    NotOffered {
        /// The name that it would have.
        tool: String,
        /// What is the matter with it.
        why: String,
    },
    /// A command needs a flag that cannot be given.
    #[error("{tool}: its flag --{flag} is required but hidden, so calls may fail")]
    RequiredHidden {
        /// The tool.
        tool: String,
        /// The flag.
        flag: String,
    },
    /// No command is a tool.
    #[error("no command of the application is a tool")]
    NoTools,
}

fn suggested(suggestion: &Option<String>) -> String {
    suggestion
        .as_ref()
        .map_or_else(String::new, |name| format!(", did you mean {name:?}?"))
}

/// Whether two tags are the same. A tag that keeps a command back does so in any case and with blanks around it: doubt can only
/// hold more.
pub(crate) fn same_tag(a: &str, b: &str) -> bool {
    a.trim().eq_ignore_ascii_case(b.trim())
}

/// Compiled [`Patterns`] that remember which entries matched.
pub(crate) struct Matcher {
    path: &'static str,
    /// Whether tags match in any case.
    lenient: bool,
    tools: Vec<(Regex, bool)>,
    tags: Vec<(String, bool)>,
}

impl Matcher {
    pub fn compile(
        patterns: &Patterns,
        path: &'static str,
        lenient: bool,
    ) -> Result<Self, ToolError> {
        let mut tools = Vec::with_capacity(patterns.tools.len());
        for (i, entry) in patterns.tools.iter().enumerate() {
            let compiled = compiled(entry).map_err(|problem| ToolError::Pattern {
                path: format!("{path}.tools[{i}]"),
                entry: plain::line(entry, 200),
                problem,
            })?;
            tools.push((compiled, false));
        }
        let tags = patterns
            .tags
            .iter()
            .map(|tag| (tag.clone(), false))
            .collect();
        Ok(Self {
            path,
            lenient,
            tools,
            tags,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.tags.is_empty()
    }

    /// Whether an entry names the command. All entries are tried, so that each is known to be of use.
    pub fn matches<'a>(&mut self, tool: &str, tags: impl Iterator<Item = &'a str> + Clone) -> bool {
        let mut any = false;
        for (pattern, used) in &mut self.tools {
            if pattern.is_match(tool) {
                *used = true;
                any = true;
            }
        }
        for (wanted, used) in &mut self.tags {
            let lenient = self.lenient;
            let hit = tags
                .clone()
                .any(|tag| tag == wanted || lenient && same_tag(tag, wanted));
            if hit {
                *used = true;
                any = true;
            }
        }
        any
    }

    /// A warning for each entry that named nothing.
    pub fn unmatched<'a>(
        &self,
        tools: impl Iterator<Item = &'a str> + Clone,
        tags: impl Iterator<Item = &'a str> + Clone,
    ) -> Vec<Warning> {
        let path = self.path;
        let by_name = self.tools.iter().enumerate().filter(|(_, (_, used))| !used);
        let by_tag = self.tags.iter().enumerate().filter(|(_, (_, used))| !used);
        by_name
            .map(|(i, (pattern, _))| {
                unmatched(
                    format!("{path}.tools[{i}]"),
                    pattern.as_str(),
                    tools.clone(),
                )
            })
            .chain(
                by_tag
                    .map(|(i, (tag, _))| unmatched(format!("{path}.tags[{i}]"), tag, tags.clone())),
            )
            .collect()
    }
}

/// The warning about an entry, with the known word that is closest to it.
pub(crate) fn unmatched<'a>(
    path: String,
    entry: &str,
    known: impl Iterator<Item = &'a str>,
) -> Warning {
    Warning::Unmatched {
        path,
        entry: plain::line(entry, 200),
        suggestion: plain::suggestion(entry, known).map(|word| plain::line(word, 100)),
    }
}
