//! The secrets of this process, read once and then out of reach of the commands it runs.

use std::{collections::BTreeMap, sync::Arc};

use fisk_exec::{HARNESS_SECRETS, HarnessSecrets, Secret, harden_process};

use crate::{
    config::{Config, Operator},
    failure::Failure,
};

/// What was hidden.
#[derive(Debug)]
pub struct Secrets {
    own: HarnessSecrets,
    named: BTreeMap<String, Secret>,
}

impl Secrets {
    /// Hides what is secret in any case, and the variables that the configuration names. To be called before there are threads.
    ///
    /// # Errors
    /// Where they cannot be hidden; nothing must run then.
    pub fn hide(config: Option<&Config>) -> Result<Self, Failure> {
        let named: Vec<String> = config.map(named).unwrap_or_default();
        let mut own = harden_process(&named).map_err(|error| Failure::said(error.to_string()))?;
        let named = named
            .into_iter()
            .filter_map(|name| {
                let secret = own.take(&name)?;
                Some((name, secret))
            })
            .collect();
        Ok(Self { own, named })
    }

    /// What a variable held; nothing where it was not set or was set to nothing.
    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.named
            .get(name)
            .or_else(|| self.own.get(name))
            .filter(|secret| !secret.expose().trim().is_empty())
    }

    /// The same for a model's provider.
    pub fn key(&self, name: &str) -> Option<fisk_llm::Secret> {
        let secret = self.get(name)?;
        Some(fisk_llm::Secret::new(secret.expose().to_owned()))
    }

    /// The bearer token of a served surface.
    ///
    /// # Errors
    /// Where it is wanted and not there: nothing is served in the open by mistake.
    pub fn token(&self, path: &str, name: Option<&str>) -> Result<Option<Arc<str>>, Failure> {
        let Some(name) = name else {
            return Ok(None);
        };
        match self.get(name) {
            Some(secret) => Ok(Some(secret.expose().trim().into())),
            None => Err(Failure::Usage(format!(
                "{path}.token_env: the variable {name} is not set"
            ))),
        }
    }
}

/// The variables that the configuration names as secrets.
fn named(config: &Config) -> Vec<String> {
    let surfaces = [
        config.mcp.as_ref().map(|mcp| &mcp.surface),
        config.a2a.as_ref().map(|a2a| &a2a.surface),
    ];
    let mut names: Vec<String> = surfaces
        .into_iter()
        .flatten()
        .filter_map(|surface| surface.token_env.clone())
        .collect();
    if config.harness.operator == Operator::Fuse {
        names.push(config.harness.fuse.token_env.clone());
    }
    names.retain(|name| !HARNESS_SECRETS.contains(&name.as_str()));
    names
}
