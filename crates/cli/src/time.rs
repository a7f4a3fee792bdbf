//! Times as people read them.

use std::time::{SystemTime, UNIX_EPOCH};

use fuse_api::time::Timestamp;

/// The time on this machine.
pub fn now() -> Timestamp {
    let micros = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros());
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// `3m ago` or `in 9m`.
pub fn relative(at: Timestamp) -> String {
    between(now(), at)
}

fn between(now: Timestamp, at: Timestamp) -> String {
    let micros = at.as_micros() - now.as_micros();
    let span = span(micros.unsigned_abs() / 1_000_000);
    if micros < 0 {
        format!("{span} ago")
    } else {
        format!("in {span}")
    }
}

/// The largest unit that fits, and the next one where the first is small.
pub fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..600 if !seconds.is_multiple_of(60) => format!("{minutes}m{}s", seconds % 60),
        60..3600 => format!("{minutes}m"),
        3600..36_000 if !minutes.is_multiple_of(60) => format!("{hours}h{}m", minutes % 60),
        3600..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short_and_lose_little() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (95, "1m35s"),
            (3599, "59m"),
            (5400, "1h30m"),
            (90_000, "25h"),
            (200_000, "2d"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn the_past_and_the_future_are_told_apart() {
        let now = Timestamp::from_micros(1_000_000_000);
        assert_eq!(between(now, now.plus_seconds(90)), "in 1m30s");
        assert_eq!(between(now, now.plus_seconds(-5)), "5s ago");
    }
}
