//! What an environment writes to, and what bounds it.

pub mod folder;
pub mod image;
mod sys;

use folder::Folder;
use image::Image;
use std::{io, path::Path};

/// A way to keep what environments write.
pub trait Disk {
    /// Makes the disk of one environment in that environment's empty directory. It goes when the directory is removed.
    ///
    /// # Errors
    /// It cannot be made; what was begun lies in the directory.
    fn create(&self, directory: &Path, gib: u64) -> io::Result<()>;

    /// Whether the stage must mount it.
    fn is_image(&self) -> bool;
}

/// The best that this machine offers: an image bounds the sum of all files, a folder only each of them.
///
/// `layers` are the directories that a folder needs, `templates` is where formatted images are kept.
pub fn choose(templates: &Path, layers: Vec<&'static str>, own_ids: bool) -> Box<dyn Disk> {
    if !own_ids && let Some(image) = Image::offered(templates) {
        return Box::new(image);
    }
    Box::new(Folder { layers })
}
