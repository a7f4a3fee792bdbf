//! Reading what a person hands over.

use std::io::{self, Read as _};
use std::path::Path;

use crate::failure::Failure;

/// No Fusefile and no create request is longer.
const MOST: u64 = 2 * 1024 * 1024;

/// A text from a file, or from standard input for `-`.
pub fn text(path: &Path) -> Result<String, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::said(format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| failed(&error))?;
    if bytes.len() as u64 > MOST {
        return Err(failed(&"is longer than 2 MiB"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        failed(&format!("line {line} is not UTF-8"))
    })
}
