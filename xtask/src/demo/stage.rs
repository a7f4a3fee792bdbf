//! The stage of the demo: a server of its own, its command line, and the agent's calls, which wait.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::proc::{self, Service};
use crate::workspace::{root, target_dir};

/// The environment of the story.
pub const ENVIRONMENT: &str = "fuse-demo";
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than any deadline of the story.
const END: Duration = Duration::from_secs(15 * 60);
/// Settings of the person who runs the demo, which must not reach it.
const FOREIGN: [&str; 8] = [
    "FUSE_URL",
    "FUSE_TOKEN",
    "DATABASE_URL",
    "ORCH_AUTH_TOKEN",
    "ORCH_PUBLIC_URL",
    "TOKEN_ENCRYPTION_KEY",
    "FUSE_RESTATE_MODE",
    "FUSE_OUTBOUND_ALLOW",
];

/// A running `fuse dev` and the folder that holds all it writes.
pub struct Stage {
    // Dropped in this order: first the server, then its folder.
    _server: Service,
    folder: tempfile::TempDir,
    url: String,
}

impl Stage {
    /// Starts it on a free port.
    pub fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("fuse-demo-").tempdir()?;
        let mut command = fuse(&folder);
        command
            .arg("dev")
            .env("ORCH_LISTEN", "127.0.0.1:0")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut server = Service::start(&mut command, Signal::SIGTERM)?;
        let lines = lines(
            server
                .child()
                .stderr
                .take()
                .context("its standard error is piped")?,
        );
        let mut said = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            proc::pause(Duration::from_millis(20))?;
            for line in lines.try_iter() {
                if let Some((_, address)) = line.split_once("listening on ") {
                    let url = address
                        .split_whitespace()
                        .next()
                        .unwrap_or_default()
                        .to_owned();
                    return Ok(Self {
                        _server: server,
                        folder,
                        url,
                    });
                }
                said.push(line);
            }
            if server.ended().is_some() {
                break;
            }
        }
        bail!("fuse dev did not start:\n{}", said.join("\n"))
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A call of the command line.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = fuse(&self.folder);
        command
            .args(arguments)
            .current_dir(root().join("examples/force-push"));
        command
    }

    /// Shows a call of the command line, and makes it.
    pub fn fuse(&self, arguments: &[&str]) -> Result<()> {
        println!(
            "$ fuse {}",
            arguments
                .iter()
                .map(|word| quoted(word))
                .collect::<Vec<_>>()
                .join(" ")
        );
        let status = proc::run(&mut self.command(arguments), END)?;
        if !status.success() {
            bail!("fuse {} failed ({status})", arguments.join(" "));
        }
        Ok(())
    }

    /// The agent's own program, built on the Rust client, that asks a person and prints what it got.
    pub fn asks(
        &self,
        question: &str,
        timeout_seconds: Option<u32>,
        choices: &[&str],
    ) -> Result<Command> {
        let token = fs::read_to_string(self.folder.path().join("data/master-token"))
            .context("the master token")?;
        let mut command = Command::new(target_dir().join("debug/examples/ask"));
        clean(&mut command, &self.folder);
        command
            .env("FUSE_URL", &self.url)
            .env("FUSE_TOKEN", token.trim());
        command.args([ENVIRONMENT, question]);
        command
            .arg(timeout_seconds.unwrap_or_default().to_string())
            .args(choices);
        Ok(command)
    }

    /// Starts something that the agent does, and shows each line it prints as the agent's.
    pub fn agent(&self, mut command: Command) -> Result<Agent> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut service = Service::start(&mut command, Signal::SIGTERM)?;
        let (sender, heard) = mpsc::channel();
        let (out, err) = (service.child().stdout.take(), service.child().stderr.take());
        forward(out.context("its standard output is piped")?, sender.clone());
        forward(err.context("its standard error is piped")?, sender);
        Ok(Agent { service, heard })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // After an early end it would go on without its orchestrator; after a good one it is gone already.
        let _ = self
            .command(&["environment", "destroy", ENVIRONMENT])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// A call of the agent's that is under way.
pub struct Agent {
    service: Service,
    heard: Receiver<String>,
}

impl Agent {
    /// Waits until its command is held, and returns the intervention's id.
    pub fn held(&mut self) -> Result<String> {
        self.id("held by hitl gate")
    }

    /// Waits until its question is raised, and returns the intervention's id.
    pub fn raised(&mut self) -> Result<String> {
        self.id("int_")
    }

    fn id(&mut self, mark: &str) -> Result<String> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            proc::pause(Duration::from_millis(20))?;
            for line in self.heard.try_iter() {
                let id = line
                    .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .find(|word| word.starts_with("int_"));
                if let Some(id) = id.filter(|_| line.contains(mark)) {
                    return Ok(id.to_owned());
                }
            }
        }
        bail!("the agent's call did not come to wait on a person")
    }

    /// Waits for its end.
    pub fn ends(&mut self) -> Result<ExitStatus> {
        let status = self.service.wait(END)?;
        // The pipes close with it: what it said last is shown before the story goes on.
        while self.heard.recv_timeout(Duration::from_secs(1)).is_ok() {}
        Ok(status)
    }
}

fn fuse(folder: &tempfile::TempDir) -> Command {
    let mut command = Command::new(target_dir().join("debug/fuse"));
    clean(&mut command, folder);
    command
}

fn clean(command: &mut Command, folder: &tempfile::TempDir) {
    for name in FOREIGN {
        command.env_remove(name);
    }
    command.env("FUSE_DATA_DIR", folder.path().join("data"));
    command.env("XDG_CONFIG_HOME", folder.path().join("config"));
    command.env("PAGER", "cat");
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            // Reading goes on when nobody listens, so that the writer never blocks.
            let _ = sender.send(line);
        }
    });
    lines
}

fn forward(from: impl Read + Send + 'static, to: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            println!("  agent │ {line}");
            let _ = to.send(line);
        }
    });
}

fn quoted(word: &str) -> String {
    if word.contains(' ') {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}
