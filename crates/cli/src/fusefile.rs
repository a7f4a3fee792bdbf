//! Commands about Fusefiles: `init`, `validate`, `compile`, `up`.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use fuse_api::environment::SecretText;
use fuse_fusefile::{
    Files, Options, Parsed, Secrets, ServerFacts, TEMPLATE, Verdicts, load, parse, task_id_of,
};
use fuse_terminal::prompt;
use serde_json::json;

use crate::args::{Face, pair};
use crate::failure::{Done, Failure};
use crate::input::text;
use crate::output::{self, note};

/// Where a Fusefile is looked for, in this order.
const NAMES: [&str; 2] = ["Fusefile", "Fusefile.yaml"];

#[derive(Args)]
pub struct InitArgs {
    /// The file to write.
    #[arg(default_value = NAMES[0])]
    file: PathBuf,
    /// Write it even if there is one.
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub struct FileArgs {
    /// The Fusefile; `Fusefile`, else `Fusefile.yaml` of this folder unless given, `-` for standard input.
    file: Option<PathBuf>,
}

#[derive(Args)]
pub struct UpArgs {
    #[command(flatten)]
    file: FileArgs,
    /// A secret's value; `NAME=@PATH` reads it from a file, `NAME=-` from standard input. A value written here can be seen by
    /// other users of this machine while the command runs.
    #[arg(long = "secret", value_name = "NAME=VALUE", value_parser = pair)]
    secrets: Vec<(String, String)>,
    /// The environment's name, in place of the file's: it becomes fuse-NAME.
    #[arg(long)]
    name: Option<String>,
}

pub fn init(args: &InitArgs) -> Done {
    let path = args.file.as_path();
    let failed = |error: io::Error| Failure::said(format!("{}: {error}", path.display()));
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let mut file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Failure::said(format!(
                "{} is there already; --force overwrites it",
                path.display()
            )));
        }
        opened => opened.map_err(failed)?,
    };
    file.write_all(TEMPLATE.as_bytes()).map_err(failed)?;
    note(&format!(
        "wrote {}; fuse validate checks it, fuse up brings it up",
        path.display()
    ));
    Ok(0)
}

pub fn validate(args: &FileArgs, face: &Face) -> Done {
    let verdicts = match read(args) {
        Ok(source) => source.judge(&source.options()),
        Err(Broken::File(verdicts)) => verdicts,
        Err(Broken::Other(failure)) => return Err(failure),
    };
    if face.is_json() {
        let all: Vec<_> = verdicts
            .all()
            .iter()
            .map(|verdict| {
                json!({
                    "severity": verdict.severity.as_str(),
                    "path": verdict.path,
                    "message": verdict.message,
                    "line": verdict.place.map(|place| place.line),
                    "column": verdict.place.map(|place| place.column),
                })
            })
            .collect();
        output::json(&json!({ "verdicts": all }))?;
    } else {
        say(&verdicts);
    }
    if verdicts.has_errors() {
        return Err(Failure::Silent);
    }
    if !face.is_json() {
        note("valid");
    }
    Ok(0)
}

pub fn compile(args: &FileArgs) -> Done {
    let source = read(args).map_err(Broken::said)?;
    let options = source.options();
    source.accept(&options)?;
    let request =
        fuse_fusefile::compile(&source.parsed, &options, &source.files).map_err(refused)?;
    output::json(&fuse_fusefile::shown(&request))?;
    Ok(0)
}

pub async fn up(args: UpArgs, face: &Face) -> Done {
    let source = read(&args.file).map_err(Broken::said)?;
    let secrets = secrets(args.secrets)?;
    let options = Options {
        task_id: args.name,
        secrets: Secrets::Given(secrets),
        ..source.options()
    };
    source.accept(&options)?;
    let request =
        fuse_fusefile::compile(&source.parsed, &options, &source.files).map_err(refused)?;
    let client = face.client()?;
    crate::environment::make(&client, &request, face).await
}

/// A Fusefile and what lies beside it.
struct Source {
    parsed: Parsed,
    files: Files,
    folder: PathBuf,
}

/// Why there is none.
enum Broken {
    File(Verdicts),
    Other(Failure),
}

impl Broken {
    fn said(self) -> Failure {
        match self {
            Self::File(verdicts) => refused(verdicts),
            Self::Other(failure) => failure,
        }
    }
}

impl Source {
    fn options(&self) -> Options {
        Options {
            default_task_id: task_id_of(&self.folder),
            ..Options::default()
        }
    }

    fn judge(&self, options: &Options) -> Verdicts {
        fuse_fusefile::validate(&self.parsed, options, &self.files, &ServerFacts::offline())
    }

    /// Says everything, and goes on where nothing forbids it.
    fn accept(&self, options: &Options) -> Result<(), Failure> {
        let verdicts = self.judge(options);
        say(&verdicts);
        if verdicts.has_errors() {
            Err(Failure::Silent)
        } else {
            Ok(())
        }
    }
}

fn read(args: &FileArgs) -> Result<Source, Broken> {
    let path = match &args.file {
        Some(path) => path.clone(),
        None => found().map_err(Broken::Other)?,
    };
    let text = text(&path).map_err(Broken::Other)?;
    let parsed =
        parse(&fuse_terminal::strip(&path.display().to_string()), &text).map_err(Broken::File)?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) | None => PathBuf::from("."),
    };
    let files = load(&parsed, &folder).map_err(Broken::File)?;
    Ok(Source {
        parsed,
        files,
        folder,
    })
}

fn found() -> Result<PathBuf, Failure> {
    NAMES
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
        .ok_or_else(|| {
            Failure::said(format!(
                "there is no {} here; fuse init writes one",
                NAMES.join(" and no ")
            ))
        })
}

fn secrets(given: Vec<(String, String)>) -> Result<BTreeMap<String, SecretText>, Failure> {
    let mut values = BTreeMap::new();
    if given.iter().filter(|(_, value)| value == "-").count() > 1 {
        return Err(Failure::Usage(
            "--secret: standard input holds one secret only".to_owned(),
        ));
    }
    for (name, value) in given {
        let unusable =
            |error: prompt::PromptError| Failure::Usage(format!("--secret {name}: {error}"));
        let value = match (value.as_str(), value.strip_prefix('@')) {
            ("-", _) => prompt::secret_from(io::stdin().lock())
                .map_err(unusable)?
                .to_string(),
            (_, Some(path)) => {
                let unreadable = |error: &dyn std::fmt::Display| {
                    Failure::Usage(format!("--secret {name}: {path}: {error}"))
                };
                let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
                let read = prompt::secret_from(file).map_err(|error| match error {
                    prompt::PromptError::Io(error) => unreadable(&error),
                    other => unreadable(&other),
                })?;
                read.to_string()
            }
            (_, None) => value,
        };
        if values.insert(name.clone(), SecretText(value)).is_some() {
            return Err(Failure::Usage(format!("--secret {name} is given twice")));
        }
    }
    Ok(values)
}

fn refused(verdicts: Verdicts) -> Failure {
    say(&verdicts);
    Failure::Silent
}

fn say(verdicts: &Verdicts) {
    let text = verdicts.to_string();
    if !text.is_empty() {
        note(text.trim_end_matches('\n'));
    }
}
