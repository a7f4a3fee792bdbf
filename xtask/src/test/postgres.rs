//! A PostgreSQL of one's own: a free port, a folder that goes with it, stopped when its handle goes.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::proc::{self, Service};

const OLDEST: u32 = 13;
const PREFERRED: u32 = 15;
const ATTEMPTS: u32 = 5;
const BEGIN: Duration = Duration::from_millis(100);

/// A running server.
pub struct Postgres {
    // The server stops before its folder goes: fields are dropped in this order.
    _server: Service,
    _folder: tempfile::TempDir,
    port: u16,
}

/// The account that the server runs as where this process is root, since it refuses root.
#[derive(Clone, Copy)]
struct Account {
    uid: u32,
    gid: u32,
}

/// The folder with the server's programs: version 15 where it is installed, else the newest.
pub fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .filter(|(version, folder)| *version >= OLDEST && folder.join("initdb").exists())
        .collect();
    found.sort_by_key(|(version, _)| (*version == PREFERRED, *version));
    found.pop().map(|(_, folder)| folder)
}

impl Postgres {
    /// Creates a cluster and waits until it answers.
    pub fn start() -> Result<Self> {
        let programs = programs().context("no PostgreSQL server is installed")?;
        let account = account()?;
        let folder = tempfile::Builder::new()
            .prefix("fuse-test-pg-")
            .tempdir()
            .context("a folder for PostgreSQL")?;
        if let Some(account) = account {
            chown(folder.path(), Some(account.uid), Some(account.gid))?;
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        let data = folder.path().join("data");
        let mut initdb = as_account(&programs.join("initdb"), folder.path(), account);
        initdb.args([
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "-D",
        ]);
        proc::capture(initdb.arg(&data)).context("creating a PostgreSQL cluster")?;
        for _ in 0..ATTEMPTS {
            let port = free_port()?;
            let mut server = as_account(&programs.join("postgres"), folder.path(), account);
            let log = fs::File::create(folder.path().join("log"))?;
            server
                .arg("-D")
                .arg(&data)
                .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k"])
                .arg(folder.path());
            // Throw-away data needs no durability, and many test databases need many connections.
            for setting in [
                "fsync=off",
                "full_page_writes=off",
                "max_connections=400",
                "log_min_messages=fatal",
            ] {
                server.args(["-c", setting]);
            }
            let mut server =
                Service::start(server.stdout(Stdio::null()).stderr(log), Signal::SIGINT)?;
            if ready(&programs, port, &mut server)? {
                return Ok(Self {
                    _server: server,
                    _folder: folder,
                    port,
                });
            }
        }
        let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        bail!("PostgreSQL did not start: {}", log.trim())
    }

    /// The URL of its maintenance database.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

/// False when the server ended first, as it does when somebody took its port.
fn ready(programs: &Path, port: u16, server: &mut Service) -> Result<bool> {
    for _ in 0..600 {
        let mut probe = Command::new(programs.join("pg_isready"));
        probe.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
        if proc::capture(&mut probe).is_ok() {
            return Ok(server.ended().is_none());
        }
        if server.ended().is_some() {
            return Ok(false);
        }
        proc::pause(BEGIN)?;
    }
    bail!("PostgreSQL did not answer within a minute")
}

fn as_account(program: &Path, folder: &Path, account: Option<Account>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .env_remove("PGDATA")
        .env("LC_ALL", "C");
    if let Some(Account { uid, gid }) = account {
        command.gid(gid).uid(uid);
    }
    command
}

fn account() -> Result<Option<Account>> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let Some(user) = nix::unistd::User::from_name(name)? {
            return Ok(Some(Account {
                uid: user.uid.as_raw(),
                gid: user.gid.as_raw(),
            }));
        }
    }
    bail!("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}
