//! The harness' own secrets, out of reach of the commands it runs.

use std::{collections::BTreeMap, fmt, fs};

use nix::sys::{
    prctl::set_dumpable,
    resource::{Resource, setrlimit},
};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::{environment::Names, sys};

/// A text that no log shows, and that is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text over.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// The secrets that this process was started with, by the names of their variables.
#[derive(Debug, Default)]
pub struct HarnessSecrets {
    by_name: BTreeMap<String, Secret>,
}

impl HarnessSecrets {
    /// What the variable held, where it was set to a text.
    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.by_name.get(name)
    }

    /// Takes it out. What is not taken is overwritten when this value is dropped.
    pub fn take(&mut self, name: &str) -> Option<Secret> {
        self.by_name.remove(name)
    }
}

/// Why the secrets could not be hidden. Nothing should run then.
#[derive(Debug, Error)]
pub enum HardenError {
    /// Variables and memory are safe to change only while nobody else looks at them.
    #[error("secrets have to be hidden before the process has {0} threads")]
    Threads(usize),
    /// An entry of the names is none.
    #[error("{0}")]
    Names(String),
    /// The kernel refused.
    #[error("this process could not be closed to its children: {what}: {error}")]
    Refused {
        /// What it was asked for.
        what: &'static str,
        /// What it said.
        error: std::io::Error,
    },
}

/// Hides the harness' own secrets from whatever it starts. `main` calls it before it starts a thread or a runtime.
///
/// Every variable that [`HARNESS_SECRETS`](crate::HARNESS_SECRETS) or `more` (names and `*` patterns, in any case) means is read, removed from
/// the environment, and overwritten in the memory that the kernel shows as `/proc/PID/environ`. The process becomes undumpable, so that no
/// process of the same user can read its memory or its files under `/proc`, or trace it, and it leaves no core file; its children
/// leave none either. Commands also give up `CAP_SYS_PTRACE`, so that the memory stays closed where the harness runs as root. A command of root
/// can still read where memory lies and the overwritten variables, and has other ways to whatever root may read, such as the file that
/// a secret came from.
///
/// # Errors
/// [`HardenError`].
pub fn harden_process<S: AsRef<str>>(more: &[S]) -> Result<HarnessSecrets, HardenError> {
    let refused = |what| move |error| HardenError::Refused { what, error };
    let threads = fs::read_dir("/proc/self/task")
        .map_err(refused("/proc/self/task"))?
        .count();
    if threads != 1 {
        return Err(HardenError::Threads(threads));
    }
    let names = Names::secrets_and(more).map_err(HardenError::Names)?;
    // Closed first: there is no moment at which a secret is removed but the process is open.
    set_dumpable(false).map_err(|e| refused("PR_SET_DUMPABLE")(e.into()))?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|e| refused("RLIMIT_CORE")(e.into()))?;
    let mut secrets = HarnessSecrets::default();
    for (name, value) in sys::take_variables(&|name| names.matches(name)) {
        // A key that is no text is of no use to anybody.
        if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) {
            secrets.by_name.insert(name, Secret::new(value));
        }
    }
    Ok(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: FISK-22
    #[test]
    fn a_secret_is_shown_by_nothing() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(secret.expose(), "hunter2");
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
        let mut all = HarnessSecrets::default();
        all.by_name.insert("KEY".to_owned(), secret);
        assert!(!format!("{all:?}").contains("hunter2"));
        assert_eq!(all.take("KEY").unwrap().expose(), "hunter2");
        assert!(all.get("KEY").is_none());
    }

    // check: FISK-22
    #[test]
    fn it_is_too_late_once_there_are_threads() {
        // The test runner has some.
        let error = harden_process::<&str>(&[]).unwrap_err();
        assert!(matches!(error, HardenError::Threads(2..)), "{error}");
    }
}
