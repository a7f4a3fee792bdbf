//! The rules of a create request.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fuse_api::environment::{CreateEnvironment, Desktop, EnvVar, Run, SecretText, Spec};
use fuse_api::ids::TaskId;

use super::text::{
    command_fault, entry, image_fault, path_fault, reserved, secret_name_fault, value_fault,
    variable_fault,
};
use super::valid::{
    BuildStep, InitialFile, Limits, Network, ServerFacts, StartupScript, Task, ValidEnvironment,
    Variable,
};
use super::{DEFAULT_STARTUP_SECONDS, DEFAULT_WORKSPACE, MAX_FILES_BYTES, MAX_TEXT_BYTES};
use crate::policy::{Policy, PolicyFacts, Violation};

const YEAR_SECONDS: u64 = 365 * 24 * 3600;
const MAX_ITEMS: usize = 1000;
/// All variables of a command share the kernel's room for arguments with the command itself.
const MAX_ENV_BYTES: usize = 512 * 1024;

/// Holds a create request against every rule and returns what it means.
///
/// Members that are not served are [`super::unserved_member`]'s business.
///
/// # Errors
/// Every broken rule, with the path of the field in the request.
pub fn validate(
    request: &CreateEnvironment,
    server: &ServerFacts,
) -> Result<ValidEnvironment, Vec<Violation>> {
    let mut rules = Rules::default();
    let task_id = rules.task_id(&request.task_id);
    let (spec, limits, network) = rules.spec(&request.spec, server);
    rules.secrets(&request.secrets);
    let env = rules.env(&request.env, &request.secrets);
    let files = rules.files(&request.files);
    let workspace = rules.workspace(request.workspace.as_deref());
    let build = rules.build(request, &workspace);
    let run = rules.run(request.run.as_ref());
    let (build_timeout_seconds, startup) = rules.startup(request);
    rules.desktop(request.desktop.as_ref());
    let policy = rules.policy(request, server);
    match (task_id, rules.broken.is_empty()) {
        (Some(task_id), true) => Ok(ValidEnvironment {
            task_id,
            image: spec.image.clone().unwrap_or_default(),
            limits,
            network,
            idle_timeout_seconds: spec.idle_timeout_seconds,
            max_runtime_seconds: spec.max_runtime_seconds,
            spec,
            secrets: request.secrets.clone(),
            env,
            files,
            build,
            build_timeout_seconds,
            startup,
            run,
            workspace,
            desktop: request.desktop.clone(),
            hitl: request.hitl.clone(),
            policy,
        }),
        (_, _) => Err(rules.broken),
    }
}

/// What has been found broken so far.
#[derive(Default)]
struct Rules {
    broken: Vec<Violation>,
}

impl Rules {
    fn broken(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.broken.push(Violation {
            path: path.into(),
            message: message.into(),
        });
    }

    fn fault(&mut self, path: impl Into<String>, fault: Option<&str>) {
        if let Some(fault) = fault {
            self.broken(path, fault);
        }
    }

    fn range(&mut self, path: &str, value: Option<u64>, range: RangeInclusive<u64>, unit: &str) {
        if let Some(value) = value.filter(|value| !range.contains(value)) {
            let (least, most) = (range.start(), range.end());
            self.broken(
                path,
                format!("must be {least} to {most}{unit}, not {value}"),
            );
        }
    }

    fn task_id(&mut self, text: &str) -> Option<TaskId> {
        if text.is_empty() {
            self.broken(
                "task_id",
                "is missing: a DNS label (1 to 63 of a-z 0-9 and -, not at either end)",
            );
            return None;
        }
        TaskId::parse(text)
            .map_err(|error| self.broken("task_id", format!("is {error}")))
            .ok()
    }

    fn spec(&mut self, asked: &Spec, server: &ServerFacts) -> (Spec, Limits, Network) {
        let usual = Limits::default();
        let limits = Limits {
            cpus: asked.cpus.unwrap_or(usual.cpus),
            ram_mb: asked.ram_mb.unwrap_or(usual.ram_mb),
            storage_gb: asked.storage_gb.unwrap_or(usual.storage_gb),
            max_processes: asked.max_processes.unwrap_or(usual.max_processes),
        };
        if !(0.05..=1024.0).contains(&limits.cpus) {
            let cpus = limits.cpus;
            self.broken("spec.cpus", format!("must be 0.05 to 1024, not {cpus}"));
        }
        self.range("spec.ram_mb", asked.ram_mb, 32..=16_777_216, " MiB");
        self.range("spec.storage_gb", asked.storage_gb, 1..=65_536, " GiB");
        self.range(
            "spec.max_processes",
            asked.max_processes,
            32..=4_194_304,
            " processes",
        );
        self.range(
            "spec.idle_timeout_seconds",
            asked.idle_timeout_seconds,
            60..=YEAR_SECONDS,
            " seconds",
        );
        self.range(
            "spec.max_runtime_seconds",
            asked.max_runtime_seconds,
            1..=YEAR_SECONDS,
            " seconds",
        );
        let image = asked.image.as_deref().unwrap_or("host");
        self.fault("spec.image", image_fault(image));
        let network = match asked.network.as_deref() {
            None | Some("none") => Network::None,
            Some("host") => Network::Host,
            Some(other) => {
                self.broken(
                    "spec.network",
                    format!("must be `none` or `host`, not {other:?}"),
                );
                Network::None
            }
        };
        if let (Some(asked), Some(own)) = (&asked.host_id, &server.host_id)
            && asked != own
        {
            self.broken(
                "spec.host_id",
                format!("names no host of this server: the only one is {own:?}"),
            );
        }
        if asked
            .region
            .as_ref()
            .is_some_and(|region| region.len() > 128)
        {
            self.broken("spec.region", "must be at most 128 bytes long");
        }
        self.labels(&asked.labels);
        let spec = Spec {
            cpus: Some(limits.cpus),
            ram_mb: Some(limits.ram_mb),
            storage_gb: Some(limits.storage_gb),
            max_processes: Some(limits.max_processes),
            image: Some(image.to_owned()),
            network: Some(network.as_str().to_owned()),
            ..asked.clone()
        };
        (spec, limits, network)
    }

    fn labels(&mut self, labels: &BTreeMap<String, String>) {
        if labels.len() > 64 {
            self.broken(
                "spec.labels",
                format!("must be at most 64 labels, not {}", labels.len()),
            );
        }
        for (name, value) in labels {
            let at = entry("spec.labels", name);
            if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
                self.broken(
                    &at,
                    "needs a name of 1 to 128 bytes without control characters",
                );
            }
            if value.len() > 1024 || value.contains('\0') {
                self.broken(&at, "must be at most 1024 bytes long, without NUL bytes");
            }
        }
    }

    fn secrets(&mut self, secrets: &BTreeMap<String, SecretText>) {
        self.count("secrets", secrets.len());
        for (name, SecretText(value)) in secrets {
            let at = entry("secrets", name);
            self.fault(&at, secret_name_fault(name));
            if value.is_empty() || value.contains('\0') || value.len() > MAX_TEXT_BYTES {
                self.broken(&at, "must be 1 byte to 64 KiB long, without NUL bytes");
            }
        }
    }

    fn env(
        &mut self,
        env: &BTreeMap<String, EnvVar>,
        secrets: &BTreeMap<String, SecretText>,
    ) -> Vec<Variable> {
        self.count("env", env.len());
        let mut variables = Vec::with_capacity(env.len());
        let mut bytes = 0;
        for (name, source) in env {
            let at = entry("env", name);
            self.fault(&at, variable_fault(name));
            let value = match (&source.value, &source.secret) {
                (Some(value), None) => {
                    self.fault(&at, value_fault(value));
                    SecretText(value.clone())
                }
                (None, Some(secret)) => match secrets.get(secret) {
                    Some(value) => value.clone(),
                    None => {
                        self.broken(format!("{at}.secret"), unknown_secret(secrets.keys()));
                        continue;
                    }
                },
                (Some(_), Some(_)) | (None, None) => {
                    self.broken(&at, "needs exactly one of `value` and `secret`");
                    continue;
                }
            };
            bytes += name.len() + value.0.len() + 2;
            variables.push(Variable {
                name: name.clone(),
                value,
            });
        }
        if bytes > MAX_ENV_BYTES {
            self.broken(
                "env",
                format!("must hold at most 512 KiB in all, not {bytes} bytes"),
            );
        }
        variables
    }

    fn files(&mut self, files: &BTreeMap<String, String>) -> Vec<InitialFile> {
        let mut decoded = Vec::with_capacity(files.len());
        let mut bytes = 0usize;
        for (path, content) in files {
            let at = entry("files", path);
            if let Some(fault) = path_fault(path) {
                self.broken(&at, format!("the path {fault}"));
            } else if path == "/" {
                self.broken(&at, "the path must name a file");
            } else if let Some(folder) = reserved(path) {
                self.broken(
                    &at,
                    format!(
                        "the path must lie outside of {folder}, which is not the request's to fill"
                    ),
                );
            }
            if let Some(folder) = parents(path).find(|parent| files.contains_key(*parent)) {
                self.broken(
                    &at,
                    format!("cannot lie in {folder:?}, which is a file of this request too"),
                );
            }
            match STANDARD.decode(content) {
                Ok(content) => {
                    bytes = bytes.saturating_add(content.len());
                    decoded.push(InitialFile {
                        path: path.clone(),
                        content,
                    });
                }
                Err(_) => self.broken(
                    &at,
                    "the content must be base64 (the standard alphabet, padded)",
                ),
            }
        }
        if bytes > MAX_FILES_BYTES {
            self.broken(
                "files",
                format!("must hold at most 524288 bytes (512 KiB) in all, not {bytes}"),
            );
        }
        decoded
    }

    fn workspace(&mut self, asked: Option<&str>) -> String {
        let workspace = asked.unwrap_or(DEFAULT_WORKSPACE);
        self.folder("workspace", workspace);
        workspace.to_owned()
    }

    fn folder(&mut self, at: &str, path: &str) {
        self.fault(at, path_fault(path));
        if let Some(folder) = reserved(path) {
            self.broken(
                at,
                format!("must lie outside of {folder}, which is not the request's to fill"),
            );
        }
    }

    fn build(&mut self, request: &CreateEnvironment, workspace: &str) -> Vec<BuildStep> {
        self.count("build", request.build.len());
        let mut steps = Vec::with_capacity(request.build.len());
        for (index, step) in request.build.iter().enumerate() {
            self.fault(format!("build[{index}].run"), command_fault(&step.run));
            if let Some(workdir) = &step.workdir {
                self.folder(&format!("build[{index}].workdir"), workdir);
            }
            steps.push(BuildStep {
                run: step.run.clone(),
                workdir: step.workdir.clone().unwrap_or_else(|| workspace.to_owned()),
            });
        }
        steps
    }

    fn run(&mut self, run: Option<&Run>) -> Option<Task> {
        match run? {
            Run::Shell(line) => {
                self.fault("run", command_fault(line));
                Some(Task::Shell(line.clone()))
            }
            Run::Argv(argv) => {
                self.count("run", argv.len());
                if argv.first().is_none_or(String::is_empty) {
                    self.broken("run", "needs a program as the first item of the list");
                }
                for (index, argument) in argv.iter().enumerate() {
                    self.fault(format!("run[{index}]"), value_fault(argument));
                }
                Some(Task::Argv(argv.clone()))
            }
        }
    }

    fn startup(&mut self, request: &CreateEnvironment) -> (u64, Option<StartupScript>) {
        let timeout = request.startup_script_timeout_seconds;
        self.range(
            "startup_script_timeout_seconds",
            timeout,
            1..=3600,
            " seconds",
        );
        let timeout_seconds = timeout.unwrap_or(DEFAULT_STARTUP_SECONDS);
        let script = request.startup_script.clone();
        if let Some(script) = &script {
            self.fault("startup_script", command_fault(script));
        }
        (
            timeout_seconds,
            script.map(|script| StartupScript {
                script,
                timeout_seconds,
            }),
        )
    }

    fn desktop(&mut self, desktop: Option<&Desktop>) {
        if let Some(desktop) = desktop {
            self.range(
                "desktop.width",
                Some(desktop.width.into()),
                320..=3840,
                " pixels",
            );
            self.range(
                "desktop.height",
                Some(desktop.height.into()),
                320..=3840,
                " pixels",
            );
        }
    }

    fn policy(&mut self, request: &CreateEnvironment, server: &ServerFacts) -> Option<Policy> {
        let block = request.hitl.as_ref()?;
        let seconds = |limit: Option<u64>| limit.and_then(|limit| i64::try_from(limit).ok());
        let facts = PolicyFacts {
            secret_names: request.secrets.keys().cloned().collect(),
            has_desktop: request.desktop.is_some(),
            sealing_available: server.sealed,
            idle_timeout_seconds: seconds(request.spec.idle_timeout_seconds),
            max_runtime_seconds: seconds(request.spec.max_runtime_seconds),
            has_task: request.run.is_some(),
        };
        Policy::compile(block, &facts)
            .map_err(|broken| self.broken.extend(broken))
            .ok()
    }

    fn count(&mut self, at: &str, count: usize) {
        if count > MAX_ITEMS {
            self.broken(
                at,
                format!("must hold at most {MAX_ITEMS} entries, not {count}"),
            );
        }
    }
}

/// The name is not repeated: whoever mistakes the field may have written the value there.
fn unknown_secret<'a>(declared: impl Iterator<Item = &'a String>) -> String {
    let declared: Vec<&str> = declared.map(String::as_str).collect();
    if declared.is_empty() {
        "names no entry of `secrets`, which is empty".to_owned()
    } else {
        format!(
            "names no entry of `secrets`, which has {}",
            declared.join(", ")
        )
    }
}

/// The folders that a clean path lies in, without the root.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').skip(1).map(|(at, _)| &path[..at])
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
