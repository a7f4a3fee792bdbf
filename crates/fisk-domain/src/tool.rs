//! The commands of an application as tools.

use std::{collections::BTreeSet, fmt};

use serde_json::{Map, Value};

use crate::call::{Call, Rejected};

/// A command path joined with `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(String);

impl ToolName {
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

/// What a client may be told about a tool's effects (MCP annotations).
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
    name: ToolName,
    path: Vec<String>,
    description: String,
    tags: BTreeSet<String>,
    gating: Vec<String>,
    schema: Value,
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
        Hints::default()
    }

    /// The JSON schema of its input, an object.
    pub fn input_schema(&self) -> &Value {
        &self.schema
    }

    /// The trust boundary: the only way from input to a [`Call`].
    ///
    /// # Errors
    /// [`Rejected`], which names the property and what is allowed.
    pub fn args_from_json(&self, _input: &Map<String, Value>) -> Result<Call, Rejected> {
        Ok(Call::new(self.name.clone(), self.path.clone()))
    }
}

/// The commands that the model may call.
#[derive(Debug, Clone, Default)]
pub struct Toolset {
    tools: Vec<CommandTool>,
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
