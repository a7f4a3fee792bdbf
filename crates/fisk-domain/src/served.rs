//! What others may call over MCP and A2A.

use crate::tool::{CommandTool, Toolset};

/// The commands that are served to other programs.
///
/// It holds commands of the application and nothing else: there is no way to put a question to the operator, or the gate's
/// prompt, into it, because neither is a [`CommandTool`]. It is made from a [`Toolset`], from which commands
/// tagged `ai:deny` are absent already.
///
/// ```
/// use fisk_domain::{Selection, ServedSet, Toolset};
///
/// let model = br#"{"commands": [{"name": "status"}, {"name": "wipe", "tags": ["ai:deny"]}]}"#;
/// let (tools, _) = Toolset::from_introspection(model, &Selection::default())?;
/// let served = ServedSet::new(tools);
/// assert!(served.get("status").is_some() && served.get("wipe").is_none());
/// assert!(served.get("ask_human_confirm").is_none());
/// # Ok::<(), fisk_domain::ToolError>(())
/// ```
///
/// A tool that asks the operator has no command behind it, and a [`CommandTool`] cannot be made by hand:
///
/// ```compile_fail,E0451
/// use fisk_domain::CommandTool;
///
/// fn ask(base: CommandTool) -> CommandTool {
///     CommandTool { description: "asks the operator".to_owned(), ..base }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct ServedSet {
    tools: Toolset,
}

impl ServedSet {
    /// Serves all commands of the set.
    pub fn new(tools: Toolset) -> Self {
        Self { tools }
    }

    /// The commands, in the application's order.
    pub fn tools(&self) -> &[CommandTool] {
        self.tools.tools()
    }

    /// The command of that name.
    pub fn get(&self, name: &str) -> Option<&CommandTool> {
        self.tools.get(name)
    }

    /// The commands that need somebody's agreement.
    pub fn gated(&self) -> impl Iterator<Item = &CommandTool> {
        self.tools().iter().filter(|tool| tool.is_gated())
    }
}
