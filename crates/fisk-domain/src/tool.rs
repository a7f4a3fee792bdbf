//! The commands of an application as tools.

use std::{collections::BTreeSet, fmt};

use serde_json::{Map, Value};

use crate::{
    args,
    call::{Call, Rejected},
    property::Property,
    select::same_tag,
};

/// A command path joined with `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(String);

impl ToolName {
    pub(crate) fn joined(path: &[String]) -> Self {
        Self(path.join("_"))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// By this tag an application says that a command changes nothing.
const READS: &str = "impact:ro";
/// By this tag an application says that a command changes something.
pub const WRITES_TAG: &str = "impact:rw";
/// By this tag an application says that a command may destroy something.
pub const DESTROYS_TAG: &str = "impact:destructive";

/// What a client may be told about a tool's effects (MCP annotations). It is the application's word, from three tags:
/// `impact:ro`, [`WRITES_TAG`] and [`DESTROYS_TAG`]; where they contradict each other, the worst counts, however it is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// The application says that the command changes nothing.
    pub read_only: Option<bool>,
    /// The application says that the command may destroy something.
    pub destructive: Option<bool>,
}

/// One command of the application.
#[derive(Debug, Clone)]
pub struct CommandTool {
    pub(crate) name: ToolName,
    pub(crate) path: Vec<String>,
    pub(crate) description: String,
    pub(crate) tags: BTreeSet<String>,
    pub(crate) gating: Vec<String>,
    pub(crate) properties: Vec<Property>,
    pub(crate) schema: Value,
}

impl CommandTool {
    /// Its name.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// The command path, from the top.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// What the model reads about it.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its tags, with those it has from its groups.
    pub fn tags(&self) -> &BTreeSet<String> {
        &self.tags
    }

    /// The tags for which the operator has to agree to a call; empty where it is not gated.
    pub fn gating_tags(&self) -> &[String] {
        &self.gating
    }

    /// Whether the operator has to agree to a call.
    pub fn is_gated(&self) -> bool {
        !self.gating.is_empty()
    }

    /// What a client may be told about its effects.
    pub fn hints(&self) -> Hints {
        let has = |tag: &str| self.tags.iter().any(|own| same_tag(own, tag));
        if has(DESTROYS_TAG) {
            Hints {
                read_only: Some(false),
                destructive: Some(true),
            }
        } else if has(WRITES_TAG) {
            Hints {
                read_only: Some(false),
                destructive: None,
            }
        } else if self.tags.contains(READS) {
            Hints {
                read_only: Some(true),
                destructive: Some(false),
            }
        } else {
            Hints::default()
        }
    }

    /// The JSON schema of its input, an object with `additionalProperties: false`.
    pub fn input_schema(&self) -> &Value {
        &self.schema
    }

    /// The parameters that a call has to give.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.parameters(true)
    }

    /// The parameters that a call may leave out.
    pub fn optional(&self) -> impl Iterator<Item = &str> {
        self.parameters(false)
    }

    fn parameters(&self, required: bool) -> impl Iterator<Item = &str> {
        self.properties
            .iter()
            .filter(move |property| property.is_offered() && property.required == required)
            .map(|property| property.name.as_str())
    }

    /// The trust boundary: the only way from input to a [`Call`].
    ///
    /// Every value stays a value: a flag is one token `--name=value`, positionals stand behind `--`, and nothing is coerced, shortened
    /// or shifted. What the application's parser could read as something else is refused: a key with `=` or `:`, a positional
    /// `--` (fisk drops it), a `--no-name` that names another flag, a character that no argument can hold.
    ///
    /// # Errors
    /// [`Rejected`], which names the property and what is allowed. Missing parameters are reported all at once.
    pub fn args_from_json(&self, input: &Map<String, Value>) -> Result<Call, Rejected> {
        args::build(self, input).map(|argv| Call::new(self.name.clone(), argv))
    }
}

/// The commands that the model may call. Names are unique, and none is one of the application's `ai:deny`.
#[derive(Debug, Clone, Default)]
pub struct Toolset {
    pub(crate) tools: Vec<CommandTool>,
}

impl Toolset {
    /// The tools, in the application's order.
    pub fn tools(&self) -> &[CommandTool] {
        &self.tools
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&CommandTool> {
        self.tools.iter().find(|tool| tool.name.as_str() == name)
    }
}
