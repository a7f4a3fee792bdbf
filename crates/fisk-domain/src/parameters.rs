//! The parameters of one tool: which flags and arguments a model gets to see, and what each may be.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    model::{ApplicationModel, ArgModel, CommandModel, FlagModel},
    plain,
    property::{Kind, Off, Patterns, Place, Property, description},
};

/// Flags that fisk gives to every application. A command cannot declare one of them again.
const FRAMEWORK_FLAGS: [&str; 10] = [
    "help",
    "help-long",
    "help-compact",
    "help-man",
    "help-llm",
    "completion-bash",
    "completion-script-bash",
    "completion-script-zsh",
    "completion-zsh-menu",
    "fisk-introspect",
];
/// The most characters of a parameter's name: what every provider takes.
const MAX_NAME: usize = 64;

/// Whether an application-level flag belongs to fisk. The prefixes are the ones by which fisk itself tells them apart.
pub(crate) fn is_framework_global(name: &str) -> bool {
    name == "help"
        || name == "version"
        || ["help-", "completion-", "fisk-"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// What a tool is made of.
pub(crate) struct Exposed<'a> {
    /// Application-level flags that every tool has.
    pub globals: &'a [&'a FlagModel],
    /// The groups above the command, from the top.
    pub groups: &'a [&'a CommandModel],
    /// The command.
    pub command: &'a CommandModel,
}

/// The parameters of a tool.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub properties: Vec<Property>,
    pub schema: Value,
    /// Flags that are required and hidden.
    pub unreachable: Vec<String>,
}

/// Puts the parameters of a command together. Fails with the reason where a call of it could be read in two ways.
pub(crate) fn assemble(
    model: &ApplicationModel,
    exposed: &Exposed<'_>,
    patterns: &mut Patterns,
) -> Result<Assembled, String> {
    let command = exposed.command;
    if !model.args.is_empty() || exposed.groups.iter().any(|group| !group.args.is_empty()) {
        return Err(
            "what stands above it takes arguments of its own, which would take its own".to_owned(),
        );
    }
    let inherited = exposed.groups.iter().flat_map(|group| &group.flags);
    let in_scope: Vec<&FlagModel> = model
        .flags
        .iter()
        .chain(inherited)
        .chain(&command.flags)
        .collect();
    let mut names = BTreeSet::new();
    for flag in &in_scope {
        if !names.insert(flag.name.as_str()) {
            return Err(format!(
                "its flag --{} is declared twice",
                plain::line(&flag.name, 100)
            ));
        }
    }

    let mut maker = Maker {
        names: &names,
        patterns,
        properties: Vec::new(),
    };
    for flag in exposed.globals {
        maker.flag(flag, Place::Global, None)?;
    }
    for group in exposed.groups {
        for flag in group.flags.iter().filter(|flag| flag.required) {
            maker.flag(flag, Place::Flag, Some(group))?;
        }
    }
    for flag in &command.flags {
        maker.flag(flag, Place::Flag, Some(command))?;
    }
    for (i, arg) in command.args.iter().enumerate() {
        if arg.cumulative && i + 1 != command.args.len() {
            return Err(format!(
                "its argument {} takes all that is left, but another one follows",
                plain::line(&arg.name, 100)
            ));
        }
        maker.argument(arg, command)?;
    }
    let properties = maker.properties;
    let unreachable = in_scope
        .iter()
        .filter(|flag| flag.required && flag.hidden)
        .map(|flag| plain::line(&flag.name, 100))
        .collect();
    Ok(Assembled {
        schema: object(&properties),
        properties,
        unreachable,
    })
}

struct Maker<'a> {
    /// Every flag that the parser knows in this place, hidden ones too.
    names: &'a BTreeSet<&'a str>,
    patterns: &'a mut Patterns,
    properties: Vec<Property>,
}

impl Maker<'_> {
    fn flag(
        &mut self,
        flag: &FlagModel,
        place: Place,
        declared_by: Option<&CommandModel>,
    ) -> Result<(), String> {
        if flag.hidden || FRAMEWORK_FLAGS.contains(&flag.name.as_str()) {
            return Ok(());
        }
        let carried = Carried::of(declared_by, &flag.name);
        let kind = if flag.boolean {
            Kind::Switch(self.off(flag, carried.required))
        } else {
            carried.kind(&flag.name, flag.cumulative, self.patterns)?
        };
        let on = [String::from("true")];
        let default: &[String] = if flag.boolean && is_on(&flag.default) {
            &on
        } else {
            // Others may come from the application's environment, and a model need not know them.
            &[]
        };
        let hints: &[String] = if kind.has_options() {
            &[]
        } else {
            &flag.completions
        };
        let text = description(&flag.help, default, hints);
        self.add(Property {
            schema: described(kind.fragment(carried.full), &text),
            name: flag.name.clone(),
            place,
            required: flag.required || carried.required,
            default: Vec::new(),
            kind,
        })
    }

    fn argument(&mut self, arg: &ArgModel, command: &CommandModel) -> Result<(), String> {
        let carried = Carried::of(Some(command), &arg.name);
        let kind = carried.kind(&arg.name, arg.cumulative, self.patterns)?;
        let text = description(&arg.help, &arg.default, &[]);
        self.add(Property {
            schema: described(kind.fragment(carried.full), &text),
            name: arg.name.clone(),
            place: if arg.hidden {
                Place::HiddenArgument
            } else {
                Place::Argument
            },
            required: !arg.hidden && (arg.required || carried.required),
            default: arg.default.clone(),
            kind,
        })
    }

    fn off(&self, flag: &FlagModel, required: bool) -> Off {
        if flag.negatable {
            // The parser looks for a flag of that name first, hidden ones too, and one that takes a value would even take the next
            // argument.
            if self.names.contains(format!("no-{}", flag.name).as_str()) {
                return Off::Refused("its negation is the name of another flag");
            }
            return Off::Negated;
        }
        if is_on(&flag.default) {
            Off::Refused("it has no negation, and is on by default")
        } else if !flag.envar.is_empty() {
            Off::Refused("it has no negation, and the environment may turn it on")
        } else if flag.required || required {
            Off::Refused("it has no negation, and is required")
        } else {
            Off::Omitted
        }
    }

    fn add(&mut self, property: Property) -> Result<(), String> {
        let name = &property.name;
        if property.is_offered() {
            if !is_parameter_name(name) {
                return Err(format!(
                    "its parameter {:?} has a name that no model can give: 1 to {MAX_NAME} letters, digits, _ . and -, not - first",
                    plain::line(name, 100)
                ));
            }
            if self
                .properties
                .iter()
                .any(|other| other.is_offered() && other.name == *name)
            {
                // A global of that name is refused with words of its own, by whoever knows them.
                if self
                    .properties
                    .iter()
                    .any(|other| other.place == Place::Global && other.name == *name)
                {
                    return Ok(());
                }
                return Err(format!(
                    "a flag and an argument of it are both called {name}"
                ));
            }
        }
        self.properties.push(property);
        Ok(())
    }
}

/// What the application carries about a parameter, where its release of fisk does that.
struct Carried<'a> {
    full: Option<&'a Map<String, Value>>,
    required: bool,
}

impl<'a> Carried<'a> {
    fn of(command: Option<&'a CommandModel>, name: &str) -> Self {
        let full = command.and_then(|command| command.schema.as_ref());
        let required = full
            .and_then(|schema| schema.get("required"))
            .and_then(Value::as_array)
            .is_some_and(|required| required.iter().any(|entry| entry == name));
        let full = full.and_then(|schema| fragment(schema, name));
        Self { full, required }
    }

    fn kind(&self, name: &str, cumulative: bool, patterns: &mut Patterns) -> Result<Kind, String> {
        match self.full {
            Some(fragment) => Kind::read(fragment, cumulative, patterns)
                .map_err(|problem| format!("its parameter {}: {problem}", plain::line(name, 100))),
            None => Ok(Kind::derived(cumulative)),
        }
    }
}

fn fragment<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    schema
        .get("properties")?
        .as_object()?
        .get(name)?
        .as_object()
}

fn described(mut fragment: Map<String, Value>, text: &str) -> Value {
    if !text.is_empty() {
        fragment.insert("description".to_owned(), json!(text));
    }
    Value::Object(fragment)
}

fn object(properties: &[Property]) -> Value {
    let offered = || properties.iter().filter(|property| property.is_offered());
    let fragments: Map<String, Value> = offered()
        .map(|property| (property.name.clone(), property.schema.clone()))
        .collect();
    let required: Vec<&str> = offered()
        .filter(|property| property.required)
        .map(|property| property.name.as_str())
        .collect();
    let mut schema =
        json!({"type": "object", "additionalProperties": false, "properties": fragments});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn is_parameter_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && !name.starts_with('-')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

/// Whether Go reads one of the defaults as true.
fn is_on(default: &[String]) -> bool {
    default
        .iter()
        .any(|text| matches!(text.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True"))
}
