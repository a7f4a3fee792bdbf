//! A file to look at.

use std::path::Path;

/// A text file of the tree: its path from the root, and what is in it.
pub struct File {
    pub path: String,
    pub text: String,
}

impl File {
    /// What its name ends in, without the dot; empty for none.
    pub fn extension(&self) -> &str {
        Path::new(&self.path)
            .extension()
            .and_then(|extension| extension.to_str())
            .unwrap_or_default()
    }
}
