//! `fisk init`.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::{self, Write as _},
    path::Path,
};

use fisk_domain::{CONFIRM_TAG, DESTROYS_TAG, Toolset, WRITES_TAG};
use fuse_terminal::{strip, strip_and_cut};

use crate::{
    cli::InitArgs,
    config::{self, Config},
    failure::{Done, Failure, warning},
    output,
    setup::Application,
};

/// Tags by which applications say that a command changes something.
const CHANGES: [&str; 2] = [WRITES_TAG, DESTROYS_TAG];

/// There is no file yet whose place could be told.
fn of_argument(failure: Failure, file: &str) -> Failure {
    match failure {
        Failure::Config(text) => {
            let place = format!("{file}: application_path: ");
            Failure::Usage(text.strip_prefix(&place).unwrap_or(&text).to_owned())
        }
        failure @ (Failure::Usage(_) | Failure::Said(_) | Failure::Closed) => failure,
    }
}

/// Writes a first configuration, and never over another one.
///
/// # Errors
/// There is one, or the application cannot be asked.
pub async fn run(args: &InitArgs) -> Done {
    let file = args.config.display().to_string();
    if args.config.exists() {
        return Err(exists(&file));
    }
    let path = application_path(&args.application)?;
    let bare = format!("application_path: {}\n", quoted(&path));
    let config = parsed(&file, &bare)?;
    let application = Application::find(&config, &file)
        .await
        .map_err(|failure| of_argument(failure, &file))?;
    let text = template(&path, &application);
    // What it writes is what it reads: a mistake here would be the first thing that a newcomer meets.
    let config = parsed(&file, &text)?;
    drop(config);
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&args.config)
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&file),
            _ => Failure::said(format!("{file}: {error}")),
        })?;
    target
        .write_all(text.as_bytes())
        .map_err(|error| Failure::said(format!("{file}: {error}")))?;
    for told in &application.warnings {
        warning(&told.to_string());
    }
    let count = application.tools.tools().len();
    let gated = application
        .tools
        .tools()
        .iter()
        .filter(|tool| {
            tool.is_gated()
                || suggested(&application.tools)
                    .iter()
                    .any(|tag| tool.tags().contains(*tag))
        })
        .count();
    output::note(&format!(
        "wrote {file}: {count} tools, {gated} of them gated; look at them with `fisk info`"
    ));
    Ok(0)
}

fn exists(file: &str) -> Failure {
    Failure::said(format!(
        "{file} exists, and is not overwritten: remove it, or write another with --config"
    ))
}

fn parsed(file: &str, text: &str) -> Result<Config, Failure> {
    config::parse(file, Path::new(""), text).map_err(|error| Failure::said(error.to_string()))
}

/// A bare name is found in `PATH` each time; a path is written whole, so that it holds wherever the file is moved.
fn application_path(given: &Path) -> Result<String, Failure> {
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or_else(|| Failure::Usage("the application's path is no UTF-8 text".to_owned()))
    };
    let given_text = text(given)?;
    match given_text.contains('/') {
        true => text(&std::path::absolute(given)?),
        false => Ok(given_text),
    }
}

/// The tags of the application that should probably gate.
fn suggested(tools: &Toolset) -> Vec<&'static str> {
    CHANGES
        .into_iter()
        .filter(|tag| tools.tools().iter().any(|tool| tool.tags().contains(*tag)))
        .collect()
}

/// A double-quoted YAML text; JSON's is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn template(path: &str, application: &Application) -> String {
    let tools = application.tools.tools();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in tools {
        for tag in tool.tags() {
            *counts.entry(tag).or_default() += 1;
        }
    }
    let tags = match counts.is_empty() {
        true => "#   none\n".to_owned(),
        false => counts
            .iter()
            .map(|(tag, count)| format!("#   {} on {count}\n", strip_and_cut(tag, 80)))
            .collect(),
    };
    let confirmed = tools
        .iter()
        .filter(|tool| tool.tags().contains(CONFIRM_TAG))
        .count();
    let gates = match suggested(&application.tools).as_slice() {
        [] => "  # confirm_tags: [\"impact:rw\"]\n".to_owned(),
        some => {
            let list: Vec<String> = some.iter().map(|tag| quoted(tag)).collect();
            format!("  confirm_tags: [{}]\n", list.join(", "))
        }
    };
    let about = format!("{} {}", application.model.name, application.model.version);
    let (about, count) = (strip(&about), tools.len());
    format!(
        "\
# {about}: {count} commands are tools; `fisk info` lists them.
# Tags:
{tags}# {confirmed} are gated by the application itself (ai:confirm).
application_path: {path}

# Who the model is, and what it should know about your work.
# identity: the night watch of the orders cluster
# system_prompt: |
#   Look before you change anything.

# Fewer tools make a better agent. Patterns are searched for in tool names; exclude wins.
# include: {{tools: [\"^stream_\"]}}
# exclude: {{tags: [\"impact:destructive\"]}}

# The application's own flags that the model may set with every command.
# global_flags: []

llm:
  provider: anthropic # or openai, for any compatible server
  # model: claude-sonnet-4-5
  # base_url: http://127.0.0.1:11434/v1
  budget:
    max_tokens: 200000
    max_iterations: 50
    call_timeout: 120s

harness:
  # Commands with one of these tags wait for you, besides those that the application tags ai:confirm.
{gates}  # Lets the model ask you questions of its own.
  human_in_the_loop:
    enabled: true
  # Runs each command in a sandbox, with this folder bound in.
  # sandbox: true
  # More variables that no command gets.
  # strip_env: [\"AWS_*\"]

# Serves the same commands to other programs: `fisk mcp`.
# expose:
#   agent:
#     mcp: {{port: 8080}}
",
        path = quoted(path),
    )
}
