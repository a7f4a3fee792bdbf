//! What a model's input becomes: an argument vector, or a refusal.

use std::fmt;

use crate::tool::ToolName;

/// A command with its arguments, ready to run. Only a [`CommandTool`](crate::CommandTool) makes one, out of
/// input that it has checked; there is no other way to a child process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    tool: ToolName,
    argv: Vec<String>,
}

impl Call {
    pub(crate) fn new(tool: ToolName, argv: Vec<String>) -> Self {
        Self { tool, argv }
    }

    /// The tool that was called.
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// The arguments after the program: global flags, the command path, its flags, and behind `--` its positionals.
    pub fn argv(&self) -> &[String] {
        &self.argv
    }
}

/// Why an input never reached a child. It is told to the model as an error, so that it can mend its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The property at fault, as the model wrote it; `None` where the call as a whole is.
    pub property: Option<String>,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl Rejected {
    /// A refusal of one property.
    pub fn property(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            property: Some(name.into()),
            message: message.into(),
        }
    }

    /// A refusal of the call as a whole.
    pub fn call(message: impl Into<String>) -> Self {
        Self {
            property: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.property {
            Some(property) => write!(f, "property {property:?}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Rejected {}
