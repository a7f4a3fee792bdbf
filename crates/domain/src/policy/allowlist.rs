//! Allowlist mode: what may run without anybody being asked.

use super::matching::argv::{Doubt, Reading, Readings, Role};
use super::matching::wrappers::basename;

/// Folders in which a bare entry's program may lie.
const FOLDERS: [&str; 5] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Allowlist {
    entries: Vec<String>,
}

impl Allowlist {
    pub(super) fn new(entries: &[String]) -> Self {
        Self {
            entries: entries.to_vec(),
        }
    }

    /// Whether a command passes: it can be read to its end, and every program in it is listed or a wrapper that needs no entry.
    pub(super) fn passes_argv(&self, readings: &Readings<'_>) -> bool {
        if readings.plain.doubt > Doubt::None || readings.unlistable {
            return false;
        }
        for reading in readings.iter() {
            let listed = self.lists(reading.program());
            match reading.role {
                Role::Wrapper { free } if listed || (free && is_standard(&reading)) => {}
                Role::Program | Role::Multiplexer => return listed,
                Role::Wrapper { .. } => return false,
            }
        }
        false
    }

    /// Whether a shell string passes: its program is `sh`.
    pub(super) fn passes_shell(&self) -> bool {
        self.lists("sh") || self.lists("/bin/sh")
    }

    fn lists(&self, program: &str) -> bool {
        let bare = bare_name(program);
        self.entries
            .iter()
            .any(|entry| entry == program || Some(entry.as_str()) == bare)
    }
}

/// The name under which a bare entry lists the program: it is bare itself, or lies in a standard folder.
fn bare_name(program: &str) -> Option<&str> {
    let name = basename(program);
    match program.strip_suffix(name)?.strip_suffix('/') {
        None => Some(name),
        Some(folder) => FOLDERS.contains(&folder).then_some(name),
    }
}

fn is_standard(reading: &Reading<'_>) -> bool {
    bare_name(reading.program()).is_some()
}
