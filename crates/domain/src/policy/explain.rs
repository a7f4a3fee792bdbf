//! How a command looks to gates, for a person who wonders why one matched.

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
}

/// Reads a command, which is not empty, as gates do.
#[must_use]
pub fn read_command(argv: &[String]) -> CommandReading {
    let readings = Readings::of(argv);
    CommandReading {
        readings: readings
            .iter()
            .map(|reading| reading.words.to_vec())
            .collect(),
        opaque: readings.doubt > Doubt::None,
        unknowable: readings.doubt == Doubt::Anything,
        shell_text: readings.shell_text,
    }
}
