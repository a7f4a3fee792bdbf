//! A plain folder of the machine. Only a limit per process bounds each file in it.

use super::Disk;
use std::{fs::DirBuilder, io, os::unix::fs::DirBuilderExt, path::Path};

/// Keeps the layers in the environment's own directory.
pub struct Folder {
    /// The layers that an environment has.
    pub layers: Vec<&'static str>,
}

impl Disk for Folder {
    fn create(&self, directory: &Path, _gib: u64) -> io::Result<()> {
        make_layers(directory, &self.layers)
    }

    fn is_image(&self) -> bool {
        false
    }
}

/// Makes empty layers, each with the working directory that an overlay needs.
pub fn make_layers(base: &Path, layers: &[&str]) -> io::Result<()> {
    let private = |path: &Path| DirBuilder::new().mode(0o700).create(path);
    for parent in ["upper", "work"] {
        let parent = base.join(parent);
        private(&parent)?;
        for layer in layers {
            private(&parent.join(layer))?;
        }
    }
    Ok(())
}
