//! From an application's description to the tools that a model may call.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{ApplicationModel, CommandModel, FlagModel},
    parameters::{Exposed, assemble, is_framework_global},
    plain,
    property::Patterns,
    select::{Matcher, Selection, ToolError, Warning, same_tag, unmatched},
    tool::{CommandTool, ToolName, Toolset},
};

/// Keeps a command from being a tool, whatever else is said.
pub const DENY_TAG: &str = "ai:deny";
/// Gates a command without any other setting.
pub const CONFIRM_TAG: &str = "ai:confirm";
/// The tools with which a model asks the operator; no command may have one of their names.
pub const BUILT_IN_TOOLS: [&str; 3] = ["ask_human_confirm", "ask_human_select", "ask_human_input"];

/// The most characters of a tool's name: what every provider takes.
const MAX_NAME: usize = 64;
/// Commands that fisk adds at the top of every application; it leaves them out of the description itself.
const FRAMEWORK_COMMANDS: [&str; 3] = ["help", "cheat", "help_long"];

/// A command that could be a tool: neither hidden nor denied, by itself or by a group above it.
struct Candidate<'a> {
    name: ToolName,
    path: Vec<String>,
    command: &'a CommandModel,
    /// The groups above it, from the top.
    groups: Vec<&'a CommandModel>,
    tags: BTreeSet<String>,
    /// A word of the path that is also the alias or the name of another command, and that command.
    usurped: Option<(String, String)>,
}

impl Toolset {
    /// The tools of the application whose `--fisk-introspect` printed `bytes`, with what the operator should know about them.
    /// There is no other source of tools.
    ///
    /// # Errors
    /// As [`ApplicationModel::parse`] and [`derive`](Self::derive).
    pub fn from_introspection(
        bytes: &[u8],
        selection: &Selection,
    ) -> Result<(Self, Vec<Warning>), ToolError> {
        let model = ApplicationModel::parse(bytes)?;
        Self::derive(&model, selection, &BUILT_IN_TOOLS)
    }

    /// The tools of an application, in its order, with what the operator should know about them.
    ///
    /// Groups and hidden commands are no tools, nor is anything beneath a hidden one. A tag of a group holds for all beneath it;
    /// `ai:deny` is dropped before anything is included. `reserved` are the names of tools that are not commands, usually
    /// [`BUILT_IN_TOOLS`].
    ///
    /// # Errors
    /// [`ToolError`]: an entry of the configuration that means nothing, or names that would make a call ambiguous.
    pub fn derive(
        model: &ApplicationModel,
        selection: &Selection,
        reserved: &[&str],
    ) -> Result<(Self, Vec<Warning>), ToolError> {
        let globals = globals(model, &selection.global_flags)?;
        let mut include = Matcher::compile(&selection.include, "include", false)?;
        let mut exclude = Matcher::compile(&selection.exclude, "exclude", true)?;

        let mut candidates = Vec::new();
        let top = model
            .commands
            .iter()
            .filter(|command| !FRAMEWORK_COMMANDS.contains(&command.name.as_str()));
        collect(top, &model.commands, &Above::default(), &mut candidates);
        let mut selected = Vec::new();
        for candidate in &candidates {
            let name = candidate.name.as_str();
            let tags = || candidate.tags.iter().map(String::as_str);
            let included = include.matches(name, tags());
            let excluded = exclude.matches(name, tags());
            if (included || include.is_empty()) && !excluded {
                selected.push(candidate);
            }
        }
        let names = candidates.iter().map(|candidate| candidate.name.as_str());
        let tags = candidates
            .iter()
            .flat_map(|candidate| candidate.tags.iter().map(String::as_str));
        let mut warnings = include.unmatched(names.clone(), tags.clone());
        warnings.extend(exclude.unmatched(names, tags));

        refuse_names(&selected, reserved)?;
        let mut patterns = Patterns::default();
        let mut tools = Vec::new();
        for candidate in selected {
            let exposed = Exposed {
                globals: &globals,
                groups: &candidate.groups,
                command: candidate.command,
            };
            match assemble(model, &exposed, &mut patterns) {
                Ok(assembled) => {
                    refuse_clashes(candidate, &globals)?;
                    warnings.extend(assembled.unreachable.into_iter().map(|flag| {
                        Warning::RequiredHidden {
                            tool: candidate.name.to_string(),
                            flag,
                        }
                    }));
                    tools.push(CommandTool {
                        name: candidate.name.clone(),
                        path: candidate.path.clone(),
                        description: describe(candidate),
                        gating: gating(&candidate.tags, &selection.confirm_tags),
                        tags: candidate.tags.clone(),
                        properties: assembled.properties,
                        schema: assembled.schema,
                    });
                }
                Err(why) => warnings.push(Warning::NotOffered {
                    tool: candidate.name.to_string(),
                    why,
                }),
            }
        }
        warnings.extend(idle_confirm_tags(&tools, &selection.confirm_tags));
        if tools.is_empty() {
            warnings.push(Warning::NoTools);
        }
        Ok((Self { tools }, warnings))
    }
}

/// What the groups above a command hand down.
#[derive(Clone, Default)]
struct Above<'a> {
    path: Vec<String>,
    groups: Vec<&'a CommandModel>,
    tags: BTreeSet<String>,
    usurped: Option<(String, String)>,
}

fn collect<'a>(
    commands: impl Iterator<Item = &'a CommandModel>,
    siblings: &'a [CommandModel],
    above: &Above<'a>,
    found: &mut Vec<Candidate<'a>>,
) {
    // The parser looks a word up among names and aliases alike, and an alias that is declared for another command wins.
    let mut claims: BTreeMap<&str, Vec<&CommandModel>> = BTreeMap::new();
    for other in siblings {
        for word in std::iter::once(&other.name).chain(&other.aliases) {
            claims.entry(word).or_default().push(other);
        }
    }
    for command in commands {
        let mut here = above.clone();
        here.tags.extend(command.tags.iter().cloned());
        if command.hidden || here.tags.iter().any(|tag| same_tag(tag, DENY_TAG)) {
            continue;
        }
        here.path.push(command.name.clone());
        let claimed = claims.get(command.name.as_str());
        let other =
            claimed.and_then(|all| all.iter().find(|other| !std::ptr::eq(**other, command)));
        if let Some(other) = other
            && here.usurped.is_none()
        {
            here.usurped = Some((command.name.clone(), other.name.clone()));
        }
        if command.commands.is_empty() {
            found.push(Candidate {
                name: ToolName::joined(&here.path),
                path: here.path,
                command,
                groups: here.groups,
                tags: here.tags,
                usurped: here.usurped,
            });
        } else {
            here.groups.push(command);
            collect(command.commands.iter(), &command.commands, &here, found);
        }
    }
}

/// The application's own flags that every tool has: those of the allowlist, and those without which nothing runs.
fn globals<'a>(
    model: &'a ApplicationModel,
    allowed: &[String],
) -> Result<Vec<&'a FlagModel>, ToolError> {
    let offered = || {
        model
            .flags
            .iter()
            .filter(|flag| !flag.hidden && !is_framework_global(&flag.name))
    };
    for (i, entry) in allowed.iter().enumerate() {
        if offered().any(|flag| flag.name == *entry) {
            continue;
        }
        let names = || offered().map(|flag| flag.name.as_str());
        let problem = if is_framework_global(entry) {
            "belongs to the framework and is never exposed".to_owned()
        } else if model.flags.iter().any(|flag| flag.name == *entry) {
            "is hidden and never exposed".to_owned()
        } else if let Some(close) = plain::suggestion(entry.trim_start_matches('-'), names()) {
            format!("is no global flag of the application, did you mean {close:?}?")
        } else {
            "is no global flag of the application".to_owned()
        };
        return Err(ToolError::GlobalFlag {
            path: format!("global_flags[{i}]"),
            entry: plain::line(entry, 100),
            problem: format!("{problem}; allowed: {}", plain::list(names(), 100)),
        });
    }
    Ok(offered()
        .filter(|flag| flag.required || allowed.contains(&flag.name))
        .collect())
}

fn refuse_names(selected: &[&Candidate<'_>], reserved: &[&str]) -> Result<(), ToolError> {
    let mut first: BTreeMap<&str, &Candidate<'_>> = BTreeMap::new();
    for candidate in selected {
        let tool = candidate.name.as_str();
        let command = plain::line(&candidate.path.join(" "), 200);
        if !is_tool_name(tool) || candidate.path.iter().any(|word| !is_word(word)) {
            return Err(ToolError::Name { command });
        }
        if reserved.contains(&tool) {
            return Err(ToolError::BuiltIn {
                tool: tool.to_owned(),
                command,
            });
        }
        if let Some(earlier) = first.insert(tool, candidate) {
            return Err(ToolError::SameName {
                tool: tool.to_owned(),
                first: earlier.path.join(" "),
                second: command,
            });
        }
    }
    // Two tools of one name are told as such first.
    for candidate in selected {
        if let Some((alias, other)) = &candidate.usurped {
            return Err(ToolError::Alias {
                alias: alias.clone(),
                other: plain::line(other, 100),
                command: plain::line(&candidate.path.join(" "), 200),
                tool: candidate.name.to_string(),
            });
        }
    }
    Ok(())
}

fn is_tool_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// A word that the application's parser cannot take for a flag.
fn is_word(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-')
}

fn refuse_clashes(candidate: &Candidate<'_>, globals: &[&FlagModel]) -> Result<(), ToolError> {
    let command = candidate.command;
    let flags = command.flags.iter().map(|flag| &flag.name);
    let args = command
        .args
        .iter()
        .filter(|arg| !arg.hidden)
        .map(|arg| &arg.name);
    let groups = candidate.groups.iter().flat_map(|group| &group.flags);
    for own in flags.chain(args).chain(groups.map(|flag| &flag.name)) {
        if globals.iter().any(|global| global.name == *own) {
            return Err(ToolError::GlobalClash {
                flag: plain::line(own, 100),
                command: plain::line(&candidate.path.join(" "), 200),
                tool: candidate.name.to_string(),
            });
        }
    }
    Ok(())
}

fn gating(tags: &BTreeSet<String>, confirm: &[String]) -> Vec<String> {
    tags.iter()
        .filter(|tag| {
            same_tag(tag, CONFIRM_TAG) || confirm.iter().any(|wanted| same_tag(tag, wanted))
        })
        .cloned()
        .collect()
}

/// A gate that was meant and holds nothing is worth a word.
fn idle_confirm_tags(tools: &[CommandTool], confirm: &[String]) -> Vec<Warning> {
    let tags = || {
        tools
            .iter()
            .flat_map(|tool| tool.tags.iter().map(String::as_str))
    };
    confirm
        .iter()
        .enumerate()
        .filter(|(_, wanted)| !tags().any(|tag| same_tag(tag, wanted)))
        .map(|(i, wanted)| unmatched(format!("harness.confirm_tags[{i}]"), wanted, tags()))
        .collect()
}

/// What the model reads about a command.
fn describe(candidate: &Candidate<'_>) -> String {
    let command = candidate.command;
    let parts = [
        plain::lines(&command.help, 1000),
        plain::lines(&command.help_long, 4000),
        plain::lines(&command.cheat, 4000),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        // Some providers take no tool without a description.
        return format!("Runs the command {:?}.", candidate.path.join(" "));
    }
    parts.join("\n\n")
}
