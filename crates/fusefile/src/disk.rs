//! What lies beside a Fusefile. The only part of the crate that touches a disk.

use std::fs;
use std::io::Read as _;
use std::path::{Component, Path as FilePath, PathBuf};

use fuse_domain::environment::MAX_FILES_BYTES;

use crate::compile::Files;
use crate::model::FileSource;
use crate::parse::Parsed;
use crate::path::Path;
use crate::verdict::{Severity, Verdict, Verdicts};

const MAX_FILES: usize = 1000;
const MAX_DEPTH: usize = 32;

/// Reads everything that the file names under `files` and `copy`. `folder` is where the Fusefile lies.
///
/// A link is followed where it ends in a regular file inside of the folder. A link to a folder, and anything that is neither file
/// nor folder, is refused.
///
/// # Errors
/// A path is not there, cannot be read or leaves the folder, two sources claim one guest path, or all of it together is more than
/// 512 KiB.
pub fn load(parsed: &Parsed, folder: &FilePath) -> Result<Files, Verdicts> {
    let mut files = Files::inline(parsed);
    let mut broken: Vec<Verdict> = Vec::new();
    let mut complain =
        |path: &Path, message: String| broken.push(parsed.verdict(Severity::Error, path, message));
    let mut reader = match Reader::new(folder) {
        Ok(reader) => reader,
        Err(message) => {
            return Err(parsed.verdicts(vec![parsed.verdict(
                Severity::Error,
                &Path::root(),
                message,
            )]));
        }
    };
    for (to, source) in &parsed.fusefile.files {
        let FileSource::Beside(beside) = source else {
            continue;
        };
        let at = Path::root().key("files").key(to);
        match reader
            .resolve(&beside.from)
            .and_then(|path| reader.file(&path, &beside.from))
        {
            Ok(content) => {
                files.add(to.clone(), content, None);
            }
            Err(message) => complain(&at.key("from"), message),
        }
    }
    for (index, copy) in parsed.fusefile.copy.iter().enumerate() {
        let at = Path::root().key("copy").item(index);
        match reader.copied(&copy.from, &copy.to) {
            Ok(found) => {
                for (to, content) in found {
                    if !files.add(to.clone(), content, Some(index)) {
                        complain(
                            &at,
                            format!("writes {to:?}, which another entry writes too"),
                        );
                    }
                }
            }
            Err(message) => complain(&at.key("from"), message),
        }
    }
    if broken.is_empty() {
        Ok(files)
    } else {
        Err(parsed.verdicts(broken))
    }
}

/// The task id for a Fusefile that has no `name`: the name of its folder as far as a task id can say it, else `agent`.
#[must_use]
pub fn task_id_of(folder: &FilePath) -> String {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let mut id = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | '0'..='9' => id.push(c),
            _ if !id.is_empty() && !id.ends_with('-') => id.push('-'),
            _ => (),
        }
    }
    id.truncate(58);
    let id = id.trim_end_matches('-');
    if id.is_empty() {
        "agent".to_owned()
    } else {
        id.to_owned()
    }
}

struct Reader {
    folder: PathBuf,
    bytes: usize,
    files: usize,
}

impl Reader {
    fn new(folder: &FilePath) -> Result<Self, String> {
        let folder = fs::canonicalize(folder)
            .map_err(|error| format!("the folder of the file cannot be read: {error}"))?;
        Ok(Self {
            folder,
            bytes: 0,
            files: 0,
        })
    }

    /// The real path of something beside the Fusefile.
    fn resolve(&self, from: &str) -> Result<PathBuf, String> {
        let relative = FilePath::new(from);
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if from.is_empty() || from.contains('\0') || !relative.components().all(inside) {
            return Err(
                "must be a path relative to the Fusefile's folder, without `..`".to_owned(),
            );
        }
        self.real(&self.folder.join(relative), from)
    }

    fn real(&self, path: &FilePath, from: &str) -> Result<PathBuf, String> {
        let real =
            fs::canonicalize(path).map_err(|error| format!("{from:?} cannot be read: {error}"))?;
        if real.starts_with(&self.folder) {
            Ok(real)
        } else {
            Err(format!(
                "{from:?} is a link that leaves the Fusefile's folder"
            ))
        }
    }

    /// The content of a regular file; `path` is free of links.
    fn file(&mut self, path: &FilePath, from: &str) -> Result<Vec<u8>, String> {
        let failed = |error: std::io::Error| format!("{from:?} cannot be read: {error}");
        // Looked at before it is opened: opening a pipe would wait for its other end.
        if !fs::symlink_metadata(path).map_err(failed)?.is_file() {
            return Err(format!("{from:?} is no regular file"));
        }
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(format!("more than {MAX_FILES} files would be copied"));
        }
        let room = MAX_FILES_BYTES.saturating_sub(self.bytes);
        let mut content = Vec::new();
        let most = u64::try_from(room).unwrap_or(0) + 1;
        fs::File::open(path)
            .map_err(failed)?
            .take(most)
            .read_to_end(&mut content)
            .map_err(failed)?;
        if content.len() > room {
            return Err(format!(
                "with {from:?} the files are more than 512 KiB in all"
            ));
        }
        self.bytes += content.len();
        Ok(content)
    }

    fn copied(&mut self, from: &str, to: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
        let path = self.resolve(from)?;
        let is_folder = path.is_dir();
        let to = match (to.strip_suffix('/'), is_folder) {
            (Some(folder), false) => {
                let name = FilePath::new(from)
                    .file_name()
                    .and_then(|name| name.to_str());
                format!("{folder}/{}", name.unwrap_or_default())
            }
            (Some(folder), true) => folder.to_owned(),
            (None, _) => to.to_owned(),
        };
        let mut found = Vec::new();
        if is_folder {
            self.folder(&path, from, &to, 0, &mut found)?;
        } else {
            found.push((to, self.file(&path, from)?));
        }
        Ok(found)
    }

    fn folder(
        &mut self,
        path: &FilePath,
        from: &str,
        to: &str,
        depth: usize,
        found: &mut Vec<(String, Vec<u8>)>,
    ) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("{from:?} is more than {MAX_DEPTH} folders deep"));
        }
        let failed = |error: std::io::Error| format!("{from:?} cannot be read: {error}");
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name());
            if names.len() > MAX_FILES {
                return Err(format!("{from:?} holds more than {MAX_FILES} entries"));
            }
        }
        names.sort();
        for name in names {
            let Some(text) = name.to_str() else {
                return Err(format!("{from:?} holds {name:?}, which is not UTF-8"));
            };
            let (from, to) = (
                format!("{}/{text}", from.trim_end_matches('/')),
                format!("{to}/{text}"),
            );
            let entry = path.join(text);
            let kind = fs::symlink_metadata(&entry)
                .map_err(|error| format!("{from:?} cannot be read: {error}"))?;
            if kind.is_dir() {
                self.folder(&entry, &from, &to, depth + 1, found)?;
                continue;
            }
            let real = self.real(&entry, &from)?;
            if kind.is_symlink() && real.is_dir() {
                return Err(format!(
                    "{from:?} is a link to a folder: copy that folder by an entry of its own"
                ));
            }
            found.push((to, self.file(&real, &from)?));
        }
        Ok(())
    }
}
