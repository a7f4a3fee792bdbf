//! What the backend tells a stage, and what a stage tells the backend.

use crate::spec::Limits;
use fuse_guest_api::Identity;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Top-level names that the image `host` takes from the machine.
pub const HOST_TREES: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/// First host id that the ids of an environment are mapped to, when root runs the backend.
pub const BASE_ID: u32 = 100_000;
/// How many ids are mapped then.
pub const ID_COUNT: u32 = 65_536;
/// Name under which the embedding program is started as a stage.
pub const STAGE: &str = "fuse-sandbox-stage";
/// What `fused` writes once it listens.
pub const READY: &[u8] = b"ready\n";

/// Everything that a stage needs; sent over its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub struct StageConfig {
    /// The environment's own directory.
    pub directory: PathBuf,
    /// Root tree of a named image; the machine's own programs when absent.
    pub image: Option<PathBuf>,
    /// Whether the layers lie in a disk image that is to be mounted.
    pub disk_image: bool,
    /// The layers to make in that image.
    pub layers: Vec<String>,
    /// Whether the machine's network is shared.
    pub host_network: bool,
    /// Host name inside.
    pub hostname: String,
    /// Handed on to `fused`.
    pub identity: Identity,
    /// Whether the only user inside is the one who runs the backend.
    pub own_ids: bool,
    /// What of the machine shows inside.
    pub binds: Vec<StageBind>,
    /// `cgroup.procs` files to enter.
    pub cgroups: Vec<PathBuf>,
    /// Limits that no cgroup enforces.
    pub rlimits: Rlimits,
}

/// A bind whose paths have been checked.
#[derive(Debug, Serialize, Deserialize)]
pub struct StageBind {
    /// On the machine, without links.
    pub host: PathBuf,
    /// The parts of the path inside.
    pub inside: Vec<String>,
    /// Whether it may only be read.
    pub read_only: bool,
    /// Directories in it, by their parts, that show empty: those where environments are kept.
    pub hidden: Vec<String>,
}

/// Limits per process (and, for processes, per user in the namespace).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimits {
    /// Bytes of data of one process.
    pub data: Option<u64>,
    /// Processes and threads of one user of the environment.
    pub processes: Option<u64>,
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of `/dev/shm`.
    pub shm: u64,
}

impl Rlimits {
    /// What remains to be limited where cgroups enforce neither memory nor processes.
    pub fn new(limits: &Limits, memory_enforced: bool, pids_enforced: bool) -> Self {
        let ram = limits.ram_mb.saturating_mul(1 << 20);
        Self {
            data: (!memory_enforced).then_some(ram),
            processes: (!pids_enforced).then_some(limits.pids),
            file: limits.storage_gb.saturating_mul(1 << 30),
            shm: ram / 2,
        }
    }
}

/// Why a stage could not do its work; sent over its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub struct StageError {
    /// What is missing.
    pub facility: String,
    /// What was seen.
    pub detail: String,
}
