//! Installs from Debian what the tests need and the machine lacks.

use std::io::IsTerminal;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::postgres;
use crate::proc;

const LIMIT: Duration = Duration::from_secs(10 * 60);
/// Keeps Debian's package from creating and starting a cluster of its own while it is installed.
const NO_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/fuse-tests.conf";

/// A need: whether it is met, and the packages that meet it.
struct Need {
    met: bool,
    packages: &'static [&'static str],
}

/// Installs what is missing; a machine that lacks nothing is left alone, and needs no privilege.
pub fn ensure() -> Result<()> {
    let missing: Vec<&str> = needs()
        .iter()
        .filter(|need| !need.met)
        .flat_map(|need| need.packages)
        .copied()
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install {}", missing.join(" "));
    if !succeeds("apt-get", &["--version"]) {
        bail!(
            "these are missing, and there is no apt-get to install them: {}",
            missing.join(" ")
        );
    }
    let prefix =
        privilege().with_context(|| format!("run this as root, then try again: {by_hand}"))?;
    println!("installing {}", missing.join(" "));
    let script = format!(
        "set -e; export DEBIAN_FRONTEND=noninteractive\n\
         mkdir -p {folder}; echo 'create_main_cluster = false' > {NO_CLUSTER}; trap 'rm -f {NO_CLUSTER}' EXIT\n\
         apt-get update -q; apt-get install -q -y --no-install-recommends {packages}",
        folder = Path::new(NO_CLUSTER)
            .parent()
            .unwrap_or_else(|| Path::new("/"))
            .display(),
        packages = missing.join(" "),
    );
    let (program, arguments) = prefix
        .split_first()
        .map_or(("sh", &[][..]), |(first, rest)| (*first, rest));
    let mut command = Command::new(program);
    command.args(arguments);
    if program != "sh" {
        command.arg("sh");
    }
    let status = proc::run(command.args(["-c", &script]), LIMIT)?;
    if !status.success() {
        bail!("the installation failed ({status}); run this as root, then try again: {by_hand}");
    }
    match needs().iter().find(|need| !need.met) {
        Some(need) => bail!(
            "still missing after the installation: {}",
            need.packages.join(" ")
        ),
        None => Ok(()),
    }
}

fn needs() -> Vec<Need> {
    let server = if succeeds("apt-cache", &["show", "postgresql-15"]) {
        &["postgresql-15"]
    } else {
        &["postgresql"]
    };
    let with_venv = succeeds("python3", &["-c", "import ensurepip, venv"]);
    vec![
        Need {
            met: postgres::programs().is_some(),
            packages: server,
        },
        Need {
            met: with_venv,
            packages: &["python3", "python3-venv"],
        },
        Need {
            met: succeeds("git", &["--version"]),
            packages: &["git"],
        },
        Need {
            met: succeeds("curl", &["--version"]),
            packages: &["curl", "ca-certificates"],
        },
        Need {
            met: succeeds("ps", &["--version"]),
            packages: &["procps"],
        },
        // An environment's disk is formatted with it.
        Need {
            met: ["/sbin/mke2fs", "/usr/sbin/mke2fs"]
                .iter()
                .any(|program| Path::new(program).is_file()),
            packages: &["e2fsprogs"],
        },
        // The SQLite and ring sources are C.
        Need {
            met: succeeds("cc", &["--version"]),
            packages: &["gcc", "libc6-dev"],
        },
    ]
}

/// What stands before a command that root must run.
fn privilege() -> Result<Vec<&'static str>> {
    if nix::unistd::geteuid().is_root() {
        return Ok(Vec::new());
    }
    if succeeds("sudo", &["-n", "true"]) {
        return Ok(vec!["sudo", "-n"]);
    }
    if succeeds("sudo", &["--version"]) && std::io::stdin().is_terminal() {
        // Asks for the password here, on this terminal; the installation itself then needs none.
        if proc::run_interactive(Command::new("sudo").arg("-v"))?.success() {
            return Ok(vec!["sudo", "-n"]);
        }
    }
    bail!("neither root nor sudo is at hand")
}

pub fn succeeds(program: &str, arguments: &[&str]) -> bool {
    proc::capture(Command::new(program).args(arguments)).is_ok()
}
