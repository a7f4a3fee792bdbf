//! What the environment is: its variables, how far its boot has come, its task, its commands.

use crate::{commands::Commands, reaper::Reaper, reaper::lock};
use fuse_guest_api::{Boot, EnvVars, Identity, Phase, Status, TaskState};
use std::{collections::BTreeMap, sync::Mutex, time::Instant};

/// Everything that the connections share.
#[derive(Debug)]
pub struct State {
    /// Who this guest is.
    pub identity: Identity,
    /// Starts and reaps processes.
    pub reaper: Reaper,
    /// Running and finished commands.
    pub commands: Commands,
    /// How far the boot has come.
    pub boot: crate::boot::Progress,
    started: Instant,
    settings: Mutex<Settings>,
    task: Mutex<TaskState>,
}

#[derive(Debug)]
struct Settings {
    env: BTreeMap<String, String>,
    granted: BTreeMap<String, String>,
    workspace: String,
}

impl State {
    /// A guest that waits for its boot.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            reaper: Reaper::default(),
            commands: Commands::default(),
            boot: crate::boot::Progress::default(),
            started: Instant::now(),
            settings: Mutex::new(Settings {
                env: default_env(),
                granted: BTreeMap::new(),
                workspace: "/".to_owned(),
            }),
            task: Mutex::new(TaskState::None),
        }
    }

    /// Takes over what a boot says about all commands.
    pub fn configure(&self, boot: &Boot) {
        let mut settings = lock(&self.settings);
        settings.env.extend(boot.env.0.clone());
        settings.workspace.clone_from(&boot.workspace);
    }

    /// Adds variables that a person gave.
    pub fn grant(&self, vars: EnvVars) {
        lock(&self.settings).granted.extend(vars.0);
    }

    /// The environment of a command, and where it starts by default.
    pub fn env(&self, overrides: &EnvVars) -> (BTreeMap<String, String>, String) {
        let settings = lock(&self.settings);
        let mut env = settings.env.clone();
        env.extend(settings.granted.clone());
        env.extend(overrides.0.clone());
        (env, settings.workspace.clone())
    }

    /// Notes what the task does.
    pub fn set_task(&self, task: TaskState) {
        *lock(&self.task) = task;
    }

    /// How it is.
    pub fn status(&self) -> Status {
        Status {
            phase: self.boot.phase(),
            task: lock(&self.task).clone(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            running_commands: self.commands.running(),
            processes: processes(),
        }
    }

    /// Whether commands may run.
    pub fn is_ready(&self) -> bool {
        matches!(self.boot.phase(), Phase::Ready)
    }
}

/// What a shell on a plain machine has.
fn default_env() -> BTreeMap<String, String> {
    [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        ("HOME", "/root"),
        ("USER", "root"),
        ("LOGNAME", "root"),
        ("SHELL", "/bin/sh"),
        ("LANG", "C.UTF-8"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn processes() -> u32 {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let count = entries
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}
