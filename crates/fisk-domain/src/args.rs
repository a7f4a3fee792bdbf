//! From a model's input to an argument vector (Safety, "A command is sandboxed by construction").

use serde_json::{Map, Value};

use crate::{
    call::Rejected,
    plain,
    property::{Kind, Off, Place, Property, Scalar},
    tool::CommandTool,
};

/// The most bytes of one argument, its end included: what Linux hands to a program.
const MAX_ARGUMENT: usize = 128 * 1024;
/// The most bytes of all arguments, with a pointer to each.
const MAX_ARGUMENTS: usize = 1024 * 1024;
/// What ends the flags.
const END: &str = "--";

/// Builds the arguments after the program.
pub(crate) fn build(
    tool: &CommandTool,
    input: &Map<String, Value>,
) -> Result<Vec<String>, Rejected> {
    refuse_unknown(tool, input)?;
    refuse_missing(tool, input)?;

    let mut argv = Argv::default();
    flags(tool, Place::Global, input, &mut argv)?;
    for word in &tool.path {
        argv.push(None, word.clone())?;
    }
    flags(tool, Place::Flag, input, &mut argv)?;
    let positionals = positionals(tool, input)?;
    if !positionals.is_empty() {
        argv.push(None, END.to_owned())?;
        for (name, token) in positionals {
            argv.push(Some(name), token)?;
        }
    }
    Ok(argv.tokens)
}

fn refuse_unknown(tool: &CommandTool, input: &Map<String, Value>) -> Result<(), Rejected> {
    let offered = || {
        tool.properties
            .iter()
            .filter(|property| property.is_offered())
            .map(|property| property.name.as_str())
    };
    for key in input.keys() {
        if offered().any(|name| name == key) {
            continue;
        }
        let hint = plain::suggestion(key, offered())
            .map_or_else(String::new, |name| format!(", did you mean {name:?}?"));
        return Err(Rejected::property(
            plain::line(key, 100),
            format!(
                "{} has no such parameter{hint}; allowed: {}",
                tool.name,
                plain::list(offered(), 200)
            ),
        ));
    }
    Ok(())
}

/// One report names all that is missing, so that the model mends its call at once.
fn refuse_missing(tool: &CommandTool, input: &Map<String, Value>) -> Result<(), Rejected> {
    let missing: Vec<&str> = tool
        .required()
        .filter(|name| !input.contains_key(*name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Rejected::call(format!(
        "{} lacks required parameters: {}; required: {}; optional: {}",
        tool.name,
        plain::list(missing, 200),
        plain::list(tool.required(), 200),
        plain::list(tool.optional(), 200)
    )))
}

fn flags(
    tool: &CommandTool,
    place: Place,
    input: &Map<String, Value>,
    argv: &mut Argv,
) -> Result<(), Rejected> {
    for property in tool.properties.iter().filter(|p| p.place == place) {
        let Some(value) = input.get(&property.name) else {
            continue;
        };
        let name = &property.name;
        match (&property.kind, value) {
            (Kind::Switch(_), Value::Bool(true)) => {
                argv.push(Some(property), format!("--{name}"))?;
            }
            (Kind::Switch(off), Value::Bool(false)) => match off {
                Off::Negated => argv.push(Some(property), format!("--no-{name}"))?,
                Off::Omitted => {}
                Off::Refused(why) => {
                    return Err(Rejected::property(
                        name,
                        format!("cannot be set to false: {why}; allowed: true, or leaving it out"),
                    ));
                }
            },
            (Kind::Switch(_), other) => return Err(mistyped(property, other)),
            (Kind::One(_) | Kind::List(_) | Kind::Map(_), value) => {
                for text in texts(property, value)? {
                    argv.push(Some(property), format!("--{name}={text}"))?;
                }
            }
        }
    }
    Ok(())
}

/// The positionals in declared order. A command line cannot skip one, so an omitted one before a given one takes its default.
fn positionals<'a>(
    tool: &'a CommandTool,
    input: &Map<String, Value>,
) -> Result<Vec<(&'a Property, String)>, Rejected> {
    let declared: Vec<&Property> = tool
        .properties
        .iter()
        .filter(|p| matches!(p.place, Place::Argument | Place::HiddenArgument))
        .collect();
    let value = |property: &Property| {
        property
            .is_offered()
            .then(|| input.get(&property.name))
            .flatten()
    };
    let Some(last) = declared.iter().rposition(|p| value(p).is_some()) else {
        return Ok(Vec::new());
    };
    let later = declared.get(last).map_or("", |p| p.name.as_str());
    let mut tokens = Vec::new();
    for property in declared.iter().take(last + 1) {
        let given = match (value(property), property.default.as_slice()) {
            (Some(value), _) => texts(property, value)?,
            (None, [default]) => vec![default.clone()],
            (None, _) => {
                return Err(Rejected::property(
                    &property.name,
                    format!(
                        "has to be given because {later:?} is, and it has no default to stand before it"
                    ),
                ));
            }
        };
        for text in given {
            if text == END {
                return Err(Rejected::property(
                    &property.name,
                    "the value -- cannot be passed: the application's parser drops it; allowed: any other value",
                ));
            }
            tokens.push((*property, text));
        }
    }
    Ok(tokens)
}

/// The values of a parameter as the application parses them, each checked.
fn texts(property: &Property, value: &Value) -> Result<Vec<String>, Rejected> {
    let each = |scalar: &Scalar, value: &Value| {
        scalar
            .text_of(value)
            .ok_or_else(|| mistyped(property, value))
    };
    let texts = match (&property.kind, value) {
        (Kind::One(scalar), value) => vec![each(scalar, value)?],
        (Kind::List(scalar), Value::Array(items)) => items
            .iter()
            .map(|item| each(scalar, item))
            .collect::<Result<_, _>>()?,
        (Kind::Map(scalar), Value::Object(entries)) => {
            let mut sorted: Vec<(&String, &Value)> = entries.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            let mut texts = Vec::with_capacity(sorted.len());
            for (key, value) in sorted {
                // fisk splits at the first of the two.
                if key.contains(['=', ':']) {
                    return Err(Rejected::property(
                        &property.name,
                        format!(
                            "the key {:?} holds = or :, at which the application would split it; allowed: keys without them",
                            plain::line(key, 100)
                        ),
                    ));
                }
                texts.push(format!("{key}={}", each(scalar, value)?));
            }
            texts
        }
        (Kind::Switch(_) | Kind::List(_) | Kind::Map(_), other) => {
            return Err(mistyped(property, other));
        }
    };
    if property.required && texts.is_empty() {
        return Err(Rejected::property(
            &property.name,
            "is required and needs at least one value",
        ));
    }
    Ok(texts)
}

fn mistyped(property: &Property, value: &Value) -> Rejected {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction or beyond 64 bits",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Rejected::property(
        &property.name,
        format!(
            "{found} that is not allowed; allowed: {}",
            property.kind.allowed()
        ),
    )
}

/// The tokens so far, within what a process can be given.
#[derive(Default)]
struct Argv {
    tokens: Vec<String>,
    bytes: usize,
}

impl Argv {
    fn push(&mut self, of: Option<&Property>, token: String) -> Result<(), Rejected> {
        let refused = |message: String| match of {
            Some(property) => Rejected::property(&property.name, message),
            None => Rejected::call(message),
        };
        if token.contains('\0') {
            return Err(refused(
                "holds a NUL character, which no argument can; allowed: values without it"
                    .to_owned(),
            ));
        }
        if token.len() >= MAX_ARGUMENT {
            return Err(refused(format!(
                "is longer than an argument can be; allowed: less than {MAX_ARGUMENT} bytes with its name"
            )));
        }
        self.bytes += token.len() + 1 + size_of::<usize>();
        if self.bytes > MAX_ARGUMENTS {
            return Err(Rejected::call(format!(
                "the arguments are too many or too long together; allowed: {MAX_ARGUMENTS} bytes"
            )));
        }
        self.tokens.push(token);
        Ok(())
    }
}
