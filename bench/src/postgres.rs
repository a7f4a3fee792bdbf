//! A PostgreSQL of one's own, as durable as it is out of the box.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::process::{Service, capture};

const ATTEMPTS: u32 = 5;
const PREFERRED: u32 = 15;

/// A running server.
pub struct Postgres {
    // The server stops before its folder goes: fields are dropped in this order.
    _server: Service,
    _folder: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
}

impl Postgres {
    /// Creates a cluster and waits until it answers.
    pub fn start() -> Result<Self> {
        let programs = programs().context(
            "no PostgreSQL server is installed: apt-get install postgresql-15, or run `cargo xtask test` once",
        )?;
        let account = account()?;
        let folder = tempfile::Builder::new()
            .prefix("fuse-bench-pg-")
            .tempdir()
            .context("a folder for PostgreSQL")?;
        if let Some((uid, gid)) = account {
            chown(folder.path(), Some(uid), Some(gid))?;
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        let as_account = |program: &str| {
            let mut command = Command::new(programs.join(program));
            command
                .current_dir(folder.path())
                .env_remove("PGDATA")
                .env("LC_ALL", "C");
            if let Some((uid, gid)) = account {
                command.gid(gid).uid(uid);
            }
            command
        };
        let data = folder.path().join("data");
        let mut initdb = as_account("initdb");
        initdb.args([
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C",
            "-D",
        ]);
        capture(initdb.arg(&data)).context("creating a PostgreSQL cluster")?;
        for _ in 0..ATTEMPTS {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
                .local_addr()?
                .port();
            let log = fs::File::create(folder.path().join("log"))?;
            let mut server = as_account("postgres");
            server.arg("-D").arg(&data);
            server
                .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k"])
                .arg(folder.path());
            let mut server =
                Service::start(server.stdout(Stdio::null()).stderr(log), Signal::SIGINT)?;
            if ready(&programs, port, &mut server) {
                return Ok(Self {
                    _server: server,
                    _folder: folder,
                    programs,
                    port,
                });
            }
        }
        let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        bail!("PostgreSQL did not start: {}", log.trim())
    }

    /// A new database's URL.
    pub fn database(&self, name: &str) -> Result<String> {
        capture(&mut self.client("createdb", name))?;
        Ok(format!(
            "postgres://postgres@127.0.0.1:{}/{name}",
            self.port
        ))
    }

    /// One of its client programs, at a database.
    pub fn client(&self, program: &str, database: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.args([
            "-h",
            "127.0.0.1",
            "-p",
            &self.port.to_string(),
            "-U",
            "postgres",
            database,
        ]);
        command
    }

    /// What it says it is, and whether it waits for the disk.
    pub fn describe(&self) -> Result<String> {
        let ask = |sql: &str| {
            let mut psql = self.client("psql", "postgres");
            capture(psql.args(["-At", "-c", sql])).map(|text| text.trim().to_owned())
        };
        Ok(format!(
            "PostgreSQL {}, fsync {}, synchronous_commit {}, shared_buffers {}",
            ask("SHOW server_version")?,
            ask("SHOW fsync")?,
            ask("SHOW synchronous_commit")?,
            ask("SHOW shared_buffers")?
        ))
    }
}

/// The folder with the server's programs: version 15 where it is installed, else the newest.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .filter(|(_, folder)| folder.join("initdb").exists() && folder.join("pgbench").exists())
        .collect();
    found.sort_by_key(|(version, _)| (*version == PREFERRED, *version));
    found.pop().map(|(_, folder)| folder)
}

/// False when the server ended first, as it does when somebody took its port.
fn ready(programs: &Path, port: u16, server: &mut Service) -> bool {
    for _ in 0..600 {
        let mut probe = Command::new(programs.join("pg_isready"));
        probe.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
        if capture(&mut probe).is_ok() {
            return !server.has_ended();
        }
        if server.has_ended() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

/// The account that the server runs as where this process is root, since it refuses root.
fn account() -> Result<Option<(u32, u32)>> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let Some(user) = nix::unistd::User::from_name(name)? {
            return Ok(Some((user.uid.as_raw(), user.gid.as_raw())));
        }
    }
    bail!("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
}
