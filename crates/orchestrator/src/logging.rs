//! Log lines on standard error: for people on a terminal, one JSON object each otherwise.
//!
//! No line holds a header, a body, a question, a command, an answer or a secret.

use crate::config::{Config, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Whether a text is a set of log levels.
///
/// # Errors
/// What is wrong with it.
pub fn check_filter(text: &str) -> Result<(), String> {
    EnvFilter::try_new(text)
        .map(drop)
        .map_err(|_| "must be log levels, like info or info,fuse_store=debug".to_owned())
}

/// Starts logging for the whole process. A second call changes nothing.
pub fn init(config: &Config) {
    let terminal = std::io::stderr().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let format = config.log_format.unwrap_or(if terminal {
        LogFormat::Text
    } else {
        LogFormat::Json
    });
    // It was checked when the configuration was read.
    let filter = EnvFilter::try_new(&config.log_filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_span_events(FmtSpan::NONE);
    let started = match format {
        LogFormat::Text => builder.with_ansi(colour).with_target(false).try_init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .try_init(),
    };
    if started.is_ok() {
        std::panic::set_hook(Box::new(|info| {
            let at = info.location().map(ToString::to_string).unwrap_or_default();
            // The panic's own text may quote data, so only its place is told.
            tracing::error!(at, "panicked");
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: HTTP-16
    #[test]
    fn log_levels_are_checked_before_the_start() {
        for fine in ["info", "debug,fuse_store=trace", "off"] {
            assert_eq!(check_filter(fine), Ok(()), "{fine}");
        }
        assert!(check_filter("fuse=loud").is_err());
    }
}
