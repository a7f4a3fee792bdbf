//! What an application says about itself: the output of `--fisk-introspect`, of any release of fisk.
//!
//! It is bytes of a child process, so it is bounded, and nothing in it is believed to be well-formed. Fields that this
//! release does not know are ignored.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use thiserror::Error;

/// The most bytes of a model.
pub const MAX_MODEL: usize = 16 * 1024 * 1024;
/// The most commands, groups included.
pub const MAX_COMMANDS: usize = 4096;
/// The most words in a command path.
pub const MAX_DEPTH: usize = 16;
/// The most flags and arguments of one command, and of the application itself.
pub const MAX_PARAMETERS: usize = 1024;

/// Why bytes are no model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    /// Too many bytes.
    #[error("the application's description has {bytes} bytes; at most {MAX_MODEL} are read")]
    TooLarge {
        /// How many.
        bytes: usize,
    },
    /// Not the JSON of a model.
    #[error("the application's description cannot be read at {path}: {problem}")]
    Unreadable {
        /// The field at fault.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// One of the bounds is passed.
    #[error("the application's description has {what}; at most {limit} are taken")]
    TooMany {
        /// Too many of what, and where.
        what: String,
        /// The bound.
        limit: usize,
    },
}

/// An application.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ApplicationModel {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// What it is for.
    #[serde(default, deserialize_with = "or_default")]
    pub help: String,
    /// Its version.
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
    /// Flags that stand before any command.
    #[serde(default, deserialize_with = "or_default")]
    pub flags: Vec<FlagModel>,
    /// Arguments of an application without commands.
    #[serde(default, deserialize_with = "or_default")]
    pub args: Vec<ArgModel>,
    /// Its commands.
    #[serde(default, deserialize_with = "or_default")]
    pub commands: Vec<CommandModel>,
}

/// A command, or a group of them.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct CommandModel {
    /// One word of the command path.
    pub name: String,
    /// Other words for it.
    #[serde(default, deserialize_with = "or_default")]
    pub aliases: Vec<String>,
    /// What it does, in a line.
    #[serde(default, deserialize_with = "or_default")]
    pub help: String,
    /// What it does, at length.
    #[serde(default, deserialize_with = "or_default")]
    pub help_long: String,
    /// Examples.
    #[serde(default, deserialize_with = "or_default")]
    pub cheat: String,
    /// Not shown by the application.
    #[serde(default, deserialize_with = "or_default")]
    pub hidden: bool,
    /// Free words about it; since fisk 0.8.
    #[serde(default, deserialize_with = "or_default")]
    pub tags: Vec<String>,
    /// The JSON schema of its flags and arguments; since fisk 0.9.
    #[serde(default)]
    pub schema: Option<Map<String, Value>>,
    /// Its flags.
    #[serde(default, deserialize_with = "or_default")]
    pub flags: Vec<FlagModel>,
    /// Its positional arguments, in order.
    #[serde(default, deserialize_with = "or_default")]
    pub args: Vec<ArgModel>,
    /// The commands of a group.
    #[serde(default, deserialize_with = "or_default")]
    pub commands: Vec<CommandModel>,
}

/// A flag.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct FlagModel {
    /// Its long name, without dashes.
    pub name: String,
    /// What it does.
    #[serde(default, deserialize_with = "or_default")]
    pub help: String,
    /// What it is when it is left out.
    #[serde(default, deserialize_with = "or_default")]
    pub default: Vec<String>,
    /// The variable that it is taken from when it is left out.
    #[serde(default, deserialize_with = "or_default")]
    pub envar: String,
    /// It has to be given.
    #[serde(default, deserialize_with = "or_default")]
    pub required: bool,
    /// Not shown by the application.
    #[serde(default, deserialize_with = "or_default")]
    pub hidden: bool,
    /// It takes no value.
    #[serde(default, deserialize_with = "or_default")]
    pub boolean: bool,
    /// `--no-NAME` turns it off.
    #[serde(default, deserialize_with = "or_default")]
    pub negatable: bool,
    /// It may be repeated.
    #[serde(default, deserialize_with = "or_default")]
    pub cumulative: bool,
    /// Values that a shell offers; since fisk 0.8.
    #[serde(default, deserialize_with = "or_default")]
    pub completions: Vec<String>,
}

/// A positional argument.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ArgModel {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(default, deserialize_with = "or_default")]
    pub help: String,
    /// What it is when it is left out.
    #[serde(default, deserialize_with = "or_default")]
    pub default: Vec<String>,
    /// It has to be given.
    #[serde(default, deserialize_with = "or_default")]
    pub required: bool,
    /// Not shown by the application.
    #[serde(default, deserialize_with = "or_default")]
    pub hidden: bool,
    /// It takes all that is left.
    #[serde(default, deserialize_with = "or_default")]
    pub cumulative: bool,
}

/// Go writes `null` for what it has not.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl ApplicationModel {
    /// Reads what `--fisk-introspect` printed.
    ///
    /// # Errors
    /// [`ModelError`], where it is no model or passes a bound.
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        if bytes.len() > MAX_MODEL {
            return Err(ModelError::TooLarge { bytes: bytes.len() });
        }
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let model: Self = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            ModelError::Unreadable {
                path: shown(&error.path().to_string()),
                problem: shown(&error.inner().to_string()),
            }
        })?;
        deserializer.end().map_err(|error| ModelError::Unreadable {
            path: "its end".to_owned(),
            problem: error.to_string(),
        })?;
        model.bounded()
    }

    fn bounded(self) -> Result<Self, ModelError> {
        parameters("the application", &self.flags, &self.args)?;
        let mut seen = 0;
        let mut rest: Vec<(&CommandModel, usize)> =
            self.commands.iter().map(|command| (command, 1)).collect();
        while let Some((command, depth)) = rest.pop() {
            seen += 1;
            if seen > MAX_COMMANDS {
                return Err(ModelError::TooMany {
                    what: "more commands than that".to_owned(),
                    limit: MAX_COMMANDS,
                });
            }
            if depth > MAX_DEPTH {
                return Err(ModelError::TooMany {
                    what: format!(
                        "a command path of more words, at {:?}",
                        shown(&command.name)
                    ),
                    limit: MAX_DEPTH,
                });
            }
            parameters(&shown(&command.name), &command.flags, &command.args)?;
            rest.extend(command.commands.iter().map(|below| (below, depth + 1)));
        }
        Ok(self)
    }
}

fn parameters(of: &str, flags: &[FlagModel], args: &[ArgModel]) -> Result<(), ModelError> {
    let count = flags.len() + args.len();
    if count > MAX_PARAMETERS {
        return Err(ModelError::TooMany {
            what: format!("{count} flags and arguments for {of:?}"),
            limit: MAX_PARAMETERS,
        });
    }
    Ok(())
}

/// A text of the application in a message: short and without control characters.
fn shown(text: &str) -> String {
    crate::plain::line(text, 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_without_tags_and_schemas_is_read() {
        let model = ApplicationModel::parse(
            br#"{"name":"old","commands":[{"name":"one","flags":[{"name":"f","boolean":true,"cumulative":false}]}]}"#,
        )
        .unwrap();
        assert_eq!(model.commands[0].flags[0].name, "f");
        assert!(model.commands[0].schema.is_none());
    }

    #[test]
    fn fields_of_later_releases_and_nulls_are_fine() {
        let model = ApplicationModel::parse(
            br#"{"name":"new","later":{"x":[1]},"flags":null,"commands":[{"name":"one","tags":null,"later":1}]}"#,
        )
        .unwrap();
        assert!(model.flags.is_empty() && model.commands[0].tags.is_empty());
    }

    #[test]
    fn an_unreadable_model_is_refused_with_the_field() {
        let refused = |text: &str| {
            ApplicationModel::parse(text.as_bytes())
                .unwrap_err()
                .to_string()
        };
        let wrong = refused(r#"{"commands":[{"name":"one"},{"name":7}]}"#);
        assert!(wrong.contains("commands[1].name"), "{wrong}");
        assert!(refused("usage: app [<flags>]").contains("cannot be read"));
        assert!(refused("{} and more").contains("its end"));
        assert!(refused("").contains("cannot be read"));
    }

    // check: FISK-25
    #[test]
    fn every_bound_of_a_model_is_held() {
        let large = vec![b' '; MAX_MODEL + 1];
        assert_eq!(
            ApplicationModel::parse(&large).unwrap_err(),
            ModelError::TooLarge {
                bytes: MAX_MODEL + 1
            }
        );
        let many: Vec<_> = (0..=MAX_COMMANDS)
            .map(|i| serde_json::json!({"name": format!("c{i}")}))
            .collect();
        let many = serde_json::json!({"commands": many}).to_string();
        assert!(
            ApplicationModel::parse(many.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("more commands")
        );
        let nested = |depth: usize| {
            let mut command = serde_json::json!({"name": "leaf"});
            for _ in 1..depth {
                command = serde_json::json!({"name": "group", "commands": [command]});
            }
            serde_json::json!({"commands": [command]}).to_string()
        };
        assert!(ApplicationModel::parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(ApplicationModel::parse(nested(MAX_DEPTH + 1).as_bytes()).is_err());
        assert!(ApplicationModel::parse("[".repeat(100_000).as_bytes()).is_err());
        let flags: Vec<_> = (0..=MAX_PARAMETERS)
            .map(|i| serde_json::json!({"name": format!("f{i}")}))
            .collect();
        let flags = serde_json::json!({"commands": [{"name": "c", "flags": flags}]}).to_string();
        assert!(
            ApplicationModel::parse(flags.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("flags and arguments")
        );
    }
}
