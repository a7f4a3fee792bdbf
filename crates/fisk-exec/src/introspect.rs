//! Asking the application what it offers.

use std::{process::Command, time::Duration};

use fuse_backend::HeadTail;
use serde::de::IgnoredAny;
use tokio_util::sync::CancellationToken;

use crate::{
    error::ExecError,
    supervise::{self, Allowed, Cause, Output, Sink},
};

/// The flag that every application built on fisk has.
pub const FLAG: &str = "--fisk-introspect";
/// The most that it may print, in bytes.
pub const MOST: usize = 16 << 20;
/// The longest that it may take.
pub const LONGEST: Duration = Duration::from_secs(30);

/// Half of what is kept of standard error, in bytes.
const ERRORS: usize = 2 << 10;
/// The most characters of it that an error quotes.
const QUOTED: usize = 400;

/// How much of an application is waited for; the constants above but in tests.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub most: usize,
    pub longest: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            most: MOST,
            longest: LONGEST,
        }
    }
}

/// Runs `command`, which ends with [`FLAG`], and gives what it printed: a JSON object.
pub async fn introspect(
    command: Command,
    application: &str,
    bounds: Bounds,
) -> Result<Vec<u8>, ExecError> {
    let failed = |what: String| ExecError::Introspection(format!("{application}: {FLAG} {what}"));
    let printed = Sink::Whole(Vec::new(), bounds.most);
    let errors = Sink::Halves(HeadTail::new(ERRORS));
    let running = supervise::start(command, printed, Some(errors))
        .await
        .map_err(|e| failed(format!("could not be started: {e}")))?;
    let allowed = Allowed {
        time: Some(bounds.longest),
        grace: Duration::ZERO,
        linger: supervise::GRACE,
        overall: true,
    };
    let (status, cause, outputs) = running
        .finish(allowed, &CancellationToken::new())
        .await
        .map_err(|e| failed(format!("ended in an unknown way: {e}")))?;
    let (mut printed, mut errors) = (Vec::new(), String::new());
    for sink in outputs.into_iter().map(Output::into_sink) {
        match sink {
            Sink::Whole(bytes, _) => printed = bytes,
            Sink::Halves(keep) => errors = keep.finish().0,
        }
    }
    match cause {
        Cause::Itself | Cause::Cancelled => {}
        Cause::TimedOut => {
            return Err(failed(format!("did not end within {:?}", bounds.longest)));
        }
        Cause::TooMuch => {
            return Err(failed(format!("printed more than {} bytes", bounds.most)));
        }
    }
    if !status.success() {
        let code = supervise::exit_code(status);
        return Err(failed(format!(
            "ended with exit code {code}{}; it must be an application built on fisk",
            quote(&errors)
        )));
    }
    let is_object = std::str::from_utf8(&printed).is_ok_and(|text| {
        text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
    });
    if !is_object {
        return Err(failed(format!(
            "did not print one JSON object on standard output{}; it must be an application built on fisk",
            quote(&errors)
        )));
    }
    Ok(printed)
}

/// What the application wrote to standard error, on one line and harmless to a terminal.
fn quote(errors: &str) -> String {
    let text = errors.trim();
    if text.is_empty() {
        return String::new();
    }
    let mut shown: String = text.chars().take(QUOTED).collect();
    if text.chars().nth(QUOTED).is_some() {
        shown.push('…');
    }
    format!(" and wrote {shown:?}")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    async fn asked(script: &str, bounds: Bounds) -> Result<Vec<u8>, String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        introspect(command, "/opt/app", bounds)
            .await
            .map_err(|e| e.to_string())
    }

    const SMALL: Bounds = Bounds {
        most: 4096,
        longest: Duration::from_secs(20),
    };

    // check: FISK-25
    #[tokio::test]
    async fn standard_output_is_the_answer_and_standard_error_is_not() {
        let answer = asked("echo noise >&2; echo '{\"name\":\"app\"}'", SMALL).await;
        assert_eq!(answer.unwrap(), b"{\"name\":\"app\"}\n");
    }

    // check: FISK-25
    #[tokio::test]
    async fn the_bounds_are_the_contracts() {
        let bounds = Bounds::default();
        assert_eq!(bounds.most, 16 * 1024 * 1024);
        assert_eq!(bounds.longest, Duration::from_secs(30));
    }

    // check: FISK-25
    #[tokio::test]
    async fn who_prints_too_much_is_killed() {
        let error = asked("yes", SMALL).await.unwrap_err();
        assert_eq!(
            error,
            "/opt/app: --fisk-introspect printed more than 4096 bytes"
        );
    }

    // check: FISK-25
    #[tokio::test]
    async fn who_takes_too_long_is_killed_with_its_group() {
        let bounds = Bounds {
            longest: Duration::from_millis(300),
            ..SMALL
        };
        let began = Instant::now();
        let error = asked("trap '' TERM; sleep 60; echo '{}'", bounds)
            .await
            .unwrap_err();
        assert!(error.contains("did not end within 300ms"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(5));
        // A helper that keeps the output open does not buy more time either.
        let answer = asked("sleep 60 & echo '{}'", bounds).await;
        assert_eq!(answer.unwrap(), b"{}\n");
        assert!(began.elapsed() < Duration::from_secs(9));
    }

    // check: FISK-25
    #[tokio::test]
    async fn a_failure_is_told_in_one_harmless_line() {
        let script = "printf 'unknown flag\\n\\033[2J' >&2; exit 3";
        let error = asked(script, SMALL).await.unwrap_err();
        assert!(error.starts_with("/opt/app: --fisk-introspect ended with exit code 3"));
        assert!(error.contains("unknown flag\\n\\u{1b}[2J"), "{error}");
        assert!(!error.contains(['\n', '\x1b']), "{error:?}");
    }

    // check: FISK-25
    #[tokio::test]
    async fn what_is_no_json_object_is_refused() {
        for printed in ["", "usage: app", "[1]", "{", "{} {}", "\\377{}"] {
            let error = asked(&format!("printf '{printed}'"), SMALL)
                .await
                .unwrap_err();
            assert!(error.contains("did not print one JSON object"), "{error}");
        }
    }
}
