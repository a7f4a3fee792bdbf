//! The options that many commands share, and how their values are read.

use std::time::Duration;

use clap::{Args, ValueEnum};
use fuse_api::time::parse_go_duration;
use fuse_client::{ActorLabel, Client};

use crate::context;
use crate::failure::Failure;

/// What every command knows about its caller.
#[derive(Args, Clone)]
pub struct Face {
    /// A table for people, or the API's JSON for programs.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table, help_heading = "Global options")]
    pub output: Format,
    /// The saved context to use; wins over FUSE_URL and FUSE_TOKEN.
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help_heading = "Global options"
    )]
    pub context: Option<String>,
}

impl Face {
    /// A client for the server that the caller means.
    pub fn client(&self) -> Result<Client, Failure> {
        context::resolve(self.context.as_deref())
    }

    /// Whether programs read the output.
    pub fn is_json(&self) -> bool {
        self.output == Format::Json
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

/// Who a decision is recorded for.
#[derive(Args)]
pub struct ActorArgs {
    /// The person who decides, as an id; needs the master token or a key with act-as.
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// What people call that person.
    #[arg(long, value_name = "NAME", requires = "actor")]
    actor_name: Option<String>,
}

impl ActorArgs {
    /// The client, speaking for that person if there is one.
    pub fn client(self, face: &Face) -> Result<Client, Failure> {
        let client = face.client()?;
        Ok(match self.actor {
            None => client,
            Some(id) => client.with_actor(ActorLabel {
                id,
                name: self.actor_name,
            }),
        })
    }
}

/// A duration in Go's syntax, not negative.
pub fn duration(text: &str) -> Result<Duration, String> {
    let nanos = parse_go_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(nanos)
        .map(Duration::from_nanos)
        .map_err(|_| "must not be negative".to_owned())
}

/// A duration of whole seconds.
pub fn seconds(text: &str) -> Result<u64, String> {
    let duration = duration(text)?;
    if duration.subsec_nanos() != 0 {
        return Err("must be whole seconds, like 90s or 1h30m".to_owned());
    }
    Ok(duration.as_secs())
}

/// `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_whole_and_not_negative() {
        assert_eq!(seconds("1h30m"), Ok(5400));
        assert!(seconds("1500ms").is_err());
        assert!(seconds("-1s").is_err());
        assert!(seconds("5").is_err());
    }

    #[test]
    fn a_pair_needs_a_name_and_keeps_later_equal_signs() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(pair("=x").is_err() && pair("x").is_err());
    }
}
