//! From a file to a create request, and what the server would say to it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fuse_api::environment::{self as api, CreateEnvironment, EnvVar, SecretText, Spec};
use fuse_api::hitl::{DEFAULT_TIMEOUT_SECONDS, Gate, GrantReach, HitlBlock, Match};
use fuse_api::time::parse_go_duration;
use fuse_domain::environment::ServerFacts;
use fuse_domain::policy::Violation;
use serde_json::Value;

use crate::model::{self, BuildStep, EnvSource, FileSource, Hitl, Network, Run};
use crate::parse::{MOST, Parsed};
use crate::path::Path;
use crate::verdict::{Severity, Verdict, Verdicts};

/// What is not in the file.
#[derive(Debug, Clone)]
pub struct Options {
    /// Takes the place of the file's `name`.
    pub task_id: Option<String>,
    /// The task id of a file without a `name`; see [`crate::task_id_of`].
    pub default_task_id: String,
    /// The values of the file's secrets.
    pub secrets: Secrets,
}

impl Default for Options {
    /// Task id `agent` where the file has no name, and no secret's value known.
    fn default() -> Self {
        Self {
            task_id: None,
            default_task_id: "agent".to_owned(),
            secrets: Secrets::Unknown,
        }
    }
}

/// The values of secrets.
#[derive(Debug, Clone)]
pub enum Secrets {
    /// Nobody is asked for them: a verdict or a look at the request needs their names alone.
    Unknown,
    /// Every declared one has to be here, and no other.
    Given(BTreeMap<String, SecretText>),
}

/// What stands in for a value that is not known.
const UNKNOWN: &str = "unknown";

/// The content of the files that the environment begins with, by guest path. Its `Debug` shows no content.
#[derive(Clone, Default)]
pub struct Files {
    content: BTreeMap<String, (Vec<u8>, Option<usize>)>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.content.keys()).finish()
    }
}

impl Files {
    /// What the file itself holds, without anything that lies beside it.
    #[must_use]
    pub fn inline(parsed: &Parsed) -> Self {
        let inline = parsed
            .fusefile
            .files
            .iter()
            .filter_map(|(path, source)| match source {
                FileSource::Inline(content) => {
                    Some((path.clone(), (content.clone().into_bytes(), None)))
                }
                FileSource::Beside(_) => None,
            });
        Self {
            content: inline.collect(),
        }
    }

    /// Adds a file; `copied` is the entry of `copy` it came from. False where the path is taken.
    pub(crate) fn add(&mut self, path: String, content: Vec<u8>, copied: Option<usize>) -> bool {
        match self.content.entry(path) {
            std::collections::btree_map::Entry::Occupied(_) => false,
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert((content, copied));
                true
            }
        }
    }

    fn copied(&self, path: &str) -> Option<usize> {
        self.content.get(path).and_then(|(_, copied)| *copied)
    }
}

/// Makes the create request.
///
/// # Errors
/// A secret is named twice, declared and not given, or given and not declared.
pub fn compile(
    parsed: &Parsed,
    options: &Options,
    files: &Files,
) -> Result<CreateEnvironment, Verdicts> {
    let (secrets, broken) = secrets(parsed, &options.secrets);
    if broken.is_empty() {
        Ok(request(parsed, options, files, secrets))
    } else {
        Err(parsed.verdicts(broken))
    }
}

fn request(
    parsed: &Parsed,
    options: &Options,
    files: &Files,
    secrets: BTreeMap<String, SecretText>,
) -> CreateEnvironment {
    let file = &parsed.fusefile;
    let resources = &file.resources;
    let task_id = options.task_id.clone().or_else(|| file.name.clone());
    CreateEnvironment {
        task_id: task_id.unwrap_or_else(|| options.default_task_id.clone()),
        spec: Spec {
            cpus: resources.cpus,
            ram_mb: resources.ram_mb,
            storage_gb: resources.storage_gb,
            max_processes: resources.max_processes,
            image: file.image.clone(),
            network: resources.network.map(|network| match network {
                Network::None => "none".to_owned(),
                Network::Host => "host".to_owned(),
            }),
            max_runtime_seconds: resources.max_runtime.as_deref().map(unsigned),
            idle_timeout_seconds: resources.idle_timeout.as_deref().map(unsigned),
            ..Spec::default()
        },
        secrets,
        env: file
            .env
            .iter()
            .map(|(name, source)| (name.clone(), variable(source)))
            .collect(),
        files: files
            .content
            .iter()
            .map(|(path, (content, _))| (path.clone(), STANDARD.encode(content)))
            .collect(),
        build: file.build.iter().map(step).collect(),
        run: file.run.as_ref().map(|run| match run {
            Run::Line(line) => api::Run::Shell(line.clone()),
            Run::Argv(argv) => api::Run::Argv(argv.clone()),
        }),
        workspace: file.workspace.clone(),
        startup_script_timeout_seconds: file.startup_timeout.as_deref().map(unsigned),
        desktop: file.desktop.as_ref().map(|desktop| api::Desktop {
            width: desktop.width,
            height: desktop.height,
            wm: None,
        }),
        hitl: file.hitl.as_ref().map(block),
        ..CreateEnvironment::default()
    }
}

/// Everything that a server would say about the file, warnings included.
///
/// `files` may lack what lies beside the file; then nothing is said about that.
#[must_use]
pub fn validate(
    parsed: &Parsed,
    options: &Options,
    files: &Files,
    server: &ServerFacts,
) -> Verdicts {
    let (secrets, mut found) = secrets(parsed, &options.secrets);
    let request = request(parsed, options, files, secrets);
    let place = |severity, violation: Violation| {
        let path = Path::parse(&violation.path)
            .in_fusefile(&parsed.fusefile.secrets, |path| files.copied(path));
        parsed.verdict(severity, &path, violation.message)
    };
    match fuse_domain::environment::validate(&request, server) {
        Ok(valid) => {
            let warnings = valid
                .policy
                .map(|policy| policy.warnings())
                .unwrap_or_default();
            found.extend(
                warnings
                    .into_iter()
                    .map(|violation| place(Severity::Warning, violation)),
            );
        }
        Err(broken) => found.extend(
            broken
                .into_iter()
                .take(MOST)
                .map(|violation| place(Severity::Error, violation)),
        ),
    }
    parsed.verdicts(found).and(parsed.warnings())
}

/// A create request as it may be shown: secrets by name alone.
///
/// Each stands as `null`, which no server takes, so that what is shown cannot be sent by mistake.
#[must_use]
pub fn shown(request: &CreateEnvironment) -> Value {
    let mut value = serde_json::to_value(request).unwrap_or_default();
    if let Some(Value::Object(secrets)) = value.get_mut("secrets") {
        for secret in secrets.values_mut() {
            *secret = Value::Null;
        }
    }
    value
}

/// Values of all declared secrets, a stand-in where one is not known, and what is wrong with them.
fn secrets(parsed: &Parsed, given: &Secrets) -> (BTreeMap<String, SecretText>, Vec<Verdict>) {
    let declared = &parsed.fusefile.secrets;
    let mut broken = Vec::new();
    let mut complain =
        |path: &Path, message: String| broken.push(parsed.verdict(Severity::Error, path, message));
    let mut values = BTreeMap::new();
    for (index, name) in declared.iter().enumerate() {
        let at = Path::root().key("secrets").item(index);
        if let Some(first) = declared[..index].iter().position(|other| other == name) {
            complain(&at, format!("is the same name as secrets[{first}]"));
            continue;
        }
        let value = match given {
            Secrets::Unknown => None,
            Secrets::Given(given) => {
                if !given.contains_key(name) {
                    complain(
                        &at,
                        format!("has no value: give it with --secret {name}=VALUE"),
                    );
                }
                given.get(name).cloned()
            }
        };
        values.insert(
            name.clone(),
            value.unwrap_or_else(|| SecretText(UNKNOWN.to_owned())),
        );
    }
    if let Secrets::Given(given) = given {
        for name in given.keys().filter(|name| !declared.contains(name)) {
            let known = match declared.join(", ") {
                none if none.is_empty() => "it declares none".to_owned(),
                names => format!("it declares {names}"),
            };
            complain(
                &Path::root(),
                format!("--secret {name:?} is not declared under `secrets` of the file: {known}"),
            );
        }
    }
    (values, broken)
}

fn variable(source: &EnvSource) -> EnvVar {
    match source {
        EnvSource::Value(value) => EnvVar {
            value: Some(value.clone()),
            secret: None,
        },
        EnvSource::Secret(name) => EnvVar {
            value: None,
            secret: Some(name.secret.clone()),
        },
    }
}

fn step(step: &BuildStep) -> api::BuildStep {
    match step {
        BuildStep::Line(run) => api::BuildStep {
            run: run.clone(),
            workdir: None,
        },
        BuildStep::Full(full) => api::BuildStep {
            run: full.run.clone(),
            workdir: full.workdir.clone(),
        },
    }
}

fn block(hitl: &Hitl) -> HitlBlock {
    HitlBlock {
        timeout_seconds: hitl
            .timeout
            .as_deref()
            .map_or(DEFAULT_TIMEOUT_SECONDS, seconds),
        on_timeout: hitl.on_timeout,
        require_actor: hitl.require_actor,
        requests: hitl.requests.clone(),
        gates: hitl.gates.iter().map(gate).collect(),
        exec: hitl.exec.clone(),
        notify: hitl.notify.clone(),
    }
}

fn gate(gate: &model::Gate) -> Gate {
    let matches = &gate.matches;
    Gate {
        name: gate.name.clone(),
        on: gate.on,
        matches: Match {
            program: matches.program.clone(),
            args: matches.args.clone(),
            shell: matches.shell,
            action: matches.action.clone(),
            text_contains: matches.text_contains.clone(),
            failures: matches.failures,
            quiet_seconds: matches.quiet.as_deref().map(seconds),
            before_seconds: matches.before.as_deref().map(seconds),
        },
        mode: gate.mode,
        grant: gate
            .grant
            .as_deref()
            .and_then(|grant| GrantReach::from_str(grant).ok()),
        timeout_seconds: gate.timeout.as_deref().map(seconds),
        reason: gate.reason.clone(),
        decide: gate.decide.clone(),
    }
}

/// A duration whose form the shape check has accepted. A zero is in no range, so the rules refuse what it would have let through.
fn seconds(duration: &str) -> i64 {
    parse_go_duration(duration).map_or(0, |nanos| nanos / 1_000_000_000)
}

fn unsigned(duration: &str) -> u64 {
    u64::try_from(seconds(duration)).unwrap_or(0)
}
