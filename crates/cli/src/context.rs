//! Saved contexts: where servers are, and what opens them.
//!
//! They are in `$XDG_CONFIG_HOME/fuse/config.yaml`, for its owner alone.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use fuse_api::environment::SecretText;
use fuse_client::Client;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::output::note;

/// All saved contexts.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Context>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Where it is.
    pub url: String,
    /// The master token or an API key's secret.
    pub token: SecretText,
}

/// The client that `--context`, the environment or the active context describe, in this order.
pub fn resolve(name: Option<&str>) -> Result<Client, Failure> {
    let set = |variable: &str| match std::env::var(variable) {
        Ok(value) if value.trim().is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::Usage(format!("{variable} is not UTF-8")))
        }
    };
    let context = match name {
        Some(name) => saved(Some(name))?,
        None => chosen(set("FUSE_URL")?, set("FUSE_TOKEN")?, || saved(None))?,
    };
    client(&context)
}

/// A client for this context.
pub fn client(context: &Context) -> Result<Client, Failure> {
    Client::builder(&context.url)
        .token(&context.token.0)
        .build()
        .map_err(|error| Failure::Usage(error.to_string()))
}

fn chosen(
    url: Option<String>,
    token: Option<String>,
    saved: impl FnOnce() -> Result<Context, Failure>,
) -> Result<Context, Failure> {
    match (url, token) {
        (Some(url), Some(token)) => Ok(Context {
            url,
            token: SecretText(token),
        }),
        (None, Some(token)) => Ok(Context {
            token: SecretText(token),
            ..saved()?
        }),
        (None, None) => saved(),
        (Some(url), None) => match saved() {
            Ok(context) if context.url.trim_end_matches('/') == url.trim_end_matches('/') => {
                Ok(context)
            }
            // A saved token goes to the server it was saved for and to no other.
            Ok(_) | Err(_) => Err(Failure::Usage(
                "FUSE_URL is set, so FUSE_TOKEN has to be set too".to_owned(),
            )),
        },
    }
}

fn saved(name: Option<&str>) -> Result<Context, Failure> {
    let path = path()?;
    let config = read(&path)?;
    let Some(name) = name.map(str::to_owned).or(config.current) else {
        return Err(Failure::Usage(
            "no server is known: set FUSE_URL and FUSE_TOKEN, run `fuse connect URL`, or start one with `fuse dev`".to_owned(),
        ));
    };
    config.contexts.get(&name).cloned().ok_or_else(|| {
        let known: Vec<&str> = config.contexts.keys().map(String::as_str).collect();
        let known = if known.is_empty() {
            "there is none".to_owned()
        } else {
            format!("there are {}", known.join(", "))
        };
        Failure::Usage(format!("{}: no context {name:?}, {known}", path.display()))
    })
}

/// Saves a context under a name, in place of one of that name, and makes it the active one. Returns the file.
pub fn save(name: &str, context: Context) -> Result<PathBuf, Failure> {
    check_name(name).map_err(Failure::Usage)?;
    let path = path()?;
    let failed = |error: io::Error| Failure::said(format!("{}: {error}", path.display()));
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(failed)?;
    // Of two commands that save at once, the second reads what the first wrote.
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join("config.lock"))
        .map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut config = read(&path)?;
    config.contexts.insert(name.to_owned(), context);
    config.current = Some(name.to_owned());
    let text = serde_saphyr::to_string(&config)
        .map_err(|_| Failure::said("the contexts cannot be written as YAML"))?;
    // Where the file is a link, what it leads to is replaced and not the link.
    let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    write(&target, &text).map_err(failed)?;
    Ok(path)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    // Made with mode 0600.
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    Ok(())
}

/// Whether a context may have this name.
pub fn check_name(name: &str) -> Result<(), String> {
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if (1..=64).contains(&name.len()) && name.bytes().all(fine) {
        Ok(())
    } else {
        Err(format!(
            "{name:?} is no name for a context: 1 to 64 of a-z A-Z 0-9 - _ . are allowed"
        ))
    }
}

fn path() -> Result<PathBuf, Failure> {
    let folder = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    folder("XDG_CONFIG_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".config")))
        .map(|config| config.join("fuse/config.yaml"))
        .ok_or_else(|| {
            Failure::Usage(
                "neither XDG_CONFIG_HOME nor HOME is set, so no context can be read".to_owned(),
            )
        })
}

fn read(path: &Path) -> Result<Config, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => return Err(Failure::Usage(format!("{}: {error}", path.display()))),
    };
    let open = fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
    if open {
        note(&format!(
            "warning: {} holds tokens and is open to others: chmod 600 it",
            path.display()
        ));
    }
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Config, Failure> {
    if text.trim().is_empty() {
        return Ok(Config::default());
    }
    // The parser's own words quote the file, and the file holds tokens.
    serde_saphyr::from_str(text).map_err(|error| {
        let place = error
            .location()
            .map(|at| format!(":{}:{}", at.line(), at.column()))
            .unwrap_or_default();
        Failure::Usage(format!(
            "{}{place}: is no list of contexts (current, contexts: NAME: url, token)",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(url: &str) -> Context {
        Context {
            url: url.to_owned(),
            token: SecretText("saved".to_owned()),
        }
    }

    #[test]
    fn the_environment_wins_over_the_saved_context() {
        let both = chosen(Some("http://a".into()), Some("t".into()), || {
            panic!("is not asked")
        })
        .unwrap();
        assert_eq!(
            (both.url.as_str(), both.token.0.as_str()),
            ("http://a", "t")
        );
        let token = chosen(None, Some("t".into()), || Ok(context("http://b"))).unwrap();
        assert_eq!(
            (token.url.as_str(), token.token.0.as_str()),
            ("http://b", "t")
        );
    }

    #[test]
    fn a_saved_token_goes_to_no_other_server() {
        assert!(chosen(Some("http://evil".into()), None, || Ok(context("http://b"))).is_err());
        assert!(chosen(Some("http://b/".into()), None, || Ok(context("http://b"))).is_ok());
    }

    #[test]
    fn a_broken_file_is_refused_without_quoting_it() {
        let error = parse(
            Path::new("c.yaml"),
            "contexts:\n  a:\n    url: u\n    tokn: s3cret\n",
        )
        .unwrap_err();
        let Failure::Usage(text) = error else {
            panic!("wrong kind")
        };
        assert!(
            text.starts_with("c.yaml:") && !text.contains("s3cret"),
            "{text}"
        );
    }

    #[test]
    fn contexts_survive_writing_and_reading() {
        let mut config = Config::default();
        config.contexts.insert(
            "a.b-1".into(),
            Context {
                url: "http://[::1]:1".into(),
                token: SecretText("- x: #y".into()),
            },
        );
        config.current = Some("a.b-1".into());
        let text = serde_saphyr::to_string(&config).unwrap();
        assert_eq!(parse(Path::new("c"), &text).unwrap(), config);
    }
}
