//! How a command looks to gates, for a person who wonders why one matched.

use std::collections::HashSet;

use super::Policy;
use super::matching::argv::{Doubt, Readings};

/// What gates see of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandReading {
    /// Each program with its arguments, the command as written first, then what is left each time a wrapper is taken off.
    pub readings: Vec<Vec<String>>,
    /// A part could not be read, so any word may be the program: every gate that names one of them matches, and every shell gate.
    pub opaque: bool,
    /// Not even the words say what runs: every exec gate matches. Implies `opaque`.
    pub unknowable: bool,
    /// A shell is handed text.
    pub shell_text: bool,
    /// The basename of the carrier that is the last program. Every suffix of what it carries is a reading, too.
    pub carrier: Option<String>,
}

/// Reads a command, which is not empty, as gates do.
#[must_use]
pub fn read_command(argv: &[String]) -> CommandReading {
    explain(argv, &HashSet::new())
}

impl Policy {
    /// Reads a command as the gates of this policy do, with the carriers that it names.
    #[must_use]
    pub fn read_command(&self, argv: &[String]) -> CommandReading {
        explain(argv, &self.carriers)
    }
}

fn explain(argv: &[String], named: &HashSet<String>) -> CommandReading {
    let readings = Readings::of(argv, named);
    CommandReading {
        readings: readings
            .iter()
            .map(|reading| reading.words.to_vec())
            .collect(),
        opaque: readings.sight.doubt > Doubt::None,
        unknowable: readings.sight.doubt == Doubt::Anything,
        shell_text: readings.sight.shell_text,
        carrier: readings.carrier().map(str::to_owned),
    }
}
