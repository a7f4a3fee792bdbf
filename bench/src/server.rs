//! `fuse serve` as it is deployed: the release binary on a port of this machine.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::http::Connection;
use crate::process::Service;

/// What contents are sealed with, in the server and in this program.
pub const KEY: &str = "b6d1a6a1c4f0b0f5a0d7e7c3b2a19f8e5d4c3b2a19080706f5e4d3c2b1a09f8e";
const TOKEN: &str = "a-master-token-for-figures";
const START: Duration = Duration::from_secs(30);

/// A running server.
pub struct Server {
    process: Service,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Server {
    /// Starts a server on a data folder and a database, and waits until it listens. It logs as it does by default, into a
    /// file.
    pub async fn start(fuse: &Path, data: &Path, database: &str) -> Result<Self> {
        let log = log_of(data);
        let file = fs::File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = Command::new(fuse);
        for (name, _) in std::env::vars_os() {
            let ours = [
                "FUSE_",
                "ORCH_",
                "RUST_LOG",
                "DATABASE_URL",
                "TOKEN_ENCRYPTION_KEY",
            ];
            if name
                .to_str()
                .is_some_and(|name| ours.iter().any(|our| name.starts_with(our)))
            {
                command.env_remove(name);
            }
        }
        command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--database-url",
                database,
                "--data-dir",
            ])
            .arg(data)
            .env("ORCH_AUTH_TOKEN", TOKEN)
            .env("TOKEN_ENCRYPTION_KEY", KEY)
            .stdout(Stdio::null())
            .stderr(file);
        let mut process = Service::start(&mut command, Signal::SIGTERM)?;
        let until = Instant::now() + START;
        loop {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let address = text
                .lines()
                .find_map(|line| line.strip_prefix("listening on http://"));
            if let Some(address) = address.and_then(|address| address.trim().parse().ok()) {
                return Ok(Self { process, address });
            }
            if process.has_ended() || Instant::now() > until {
                bail!("the server did not come up: {text}");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// A connection with the master token.
    pub async fn connect(&self) -> Result<Connection> {
        Connection::open(self.address, TOKEN).await
    }

    /// The credential.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// Creates an environment that may ask, and gives its id.
    pub async fn environment(&self, task: &str) -> Result<String> {
        let body = format!(
            r#"{{"task_id":"{task}","hitl":{{"timeout_seconds":3600,"requests":{{"ask":{{}}}}}}}}"#
        );
        let mut connection = self.connect().await?;
        connection
            .call("POST", "/v1/environments", &body)
            .await?
            .ok(201)?;
        Ok(format!("fuse-{task}"))
    }

    /// The memory that it holds, in KiB.
    pub fn resident_kib(&self) -> Result<f64> {
        let path = PathBuf::from(format!("/proc/{}/status", self.process.id()));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line
            .and_then(|line| line.split_whitespace().next())
            .context("VmRSS")?;
        number.parse().context("VmRSS")
    }

    /// One of its metrics.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let page = self
            .connect()
            .await?
            .call("GET", "/metrics", "")
            .await?
            .ok(200)?;
        let page = String::from_utf8_lossy(&page.body).into_owned();
        let value = page
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value
            .with_context(|| format!("no metric {name}"))?
            .trim()
            .parse()
            .context("a number")
    }
}

/// The log lies beside the data folder, which is the server's to make.
fn log_of(data: &Path) -> PathBuf {
    data.with_extension("log")
}
