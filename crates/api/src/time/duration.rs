//! Durations as people write them: Go's syntax, as in `90s`, `10m`, `1h30m`.

use super::TimeError;

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration in the grammar of Go's `time.ParseDuration` and returns nanoseconds.
///
/// A sign, then decimal numbers with optional fractions, each with a unit of `ns us ms s m h`; `0` alone needs no unit.
///
/// # Errors
/// [`TimeError::NotDuration`] for anything else, blanks and values beyond 64 bits of nanoseconds included.
pub fn parse_go_duration(text: &str) -> Result<i64, TimeError> {
    parse(text).ok_or(TimeError::NotDuration)
}

fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let limit = 1u64 << 63;
    let mut total = 0u64;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let scale = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        let whole = if whole.is_empty() {
            0
        } else {
            whole.parse::<u64>().ok()?
        };
        let part = whole
            .checked_mul(scale)?
            .checked_add(fraction_of(fraction, scale))?;
        total = total.checked_add(part).filter(|sum| *sum <= limit)?;
        rest = after;
    }
    match (negative, total == limit) {
        (true, true) => Some(i64::MIN),
        (true, false) => i64::try_from(total).ok().map(|v| -v),
        (false, _) => i64::try_from(total).ok(),
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// The value of `0.<digits>` in units of `scale` nanoseconds, cut to whole nanoseconds. Digits beyond the eighteenth cannot matter.
fn fraction_of(digits: &str, scale: u64) -> u64 {
    let kept = &digits[..digits.len().min(18)];
    let Ok(value) = kept.parse::<u128>() else {
        return 0;
    };
    let power = 10u128.pow(u32::try_from(kept.len()).unwrap_or(0));
    u64::try_from(value * u128::from(scale) / power).unwrap_or(0)
}

/// Writes nanoseconds in the shortest form that [`parse_go_duration`] reads back: `30m`, `1h30m`, `1m30s`, `1.5s`, `0s`.
#[must_use]
pub fn format_go_duration(nanos: i64) -> String {
    use std::fmt::Write as _;
    if nanos == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    if nanos < 0 {
        out.push('-');
    }
    let mut left = nanos.unsigned_abs();
    for (unit, size) in [("h", 3_600_000_000_000u64), ("m", 60_000_000_000)] {
        if left >= size {
            let _ = write!(out, "{}{unit}", left / size);
            left %= size;
        }
    }
    if left > 0 {
        let fraction = format!("{:09}", left % 1_000_000_000);
        let fraction = fraction.trim_end_matches('0');
        let dot = if fraction.is_empty() { "" } else { "." };
        let _ = write!(out, "{}{dot}{fraction}s", left / 1_000_000_000);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_follow_gos_grammar() {
        for (text, nanos) in [
            ("0", 0),
            ("-0", 0),
            ("+0", 0),
            ("5s", 5_000_000_000),
            ("+5s", 5_000_000_000),
            ("-5s", -5_000_000_000),
            (".5h", 1_800_000_000_000),
            ("5.h", 18_000_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1h1h", 7_200_000_000_000),
            ("1.5s", 1_500_000_000),
            ("1\u{b5}s", 1_000),
            ("1\u{3bc}s", 1_000),
            ("0.3333333333333333333h", 1_199_999_999_999),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(parse_go_duration(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "3",
            "-",
            "s",
            ".",
            "-.",
            ".s",
            "+.s",
            "1d",
            "10 m",
            " 1s",
            "1s ",
            "1e3s",
            "3000000h",
            "--1s",
            "1S",
            "9223372036854775808ns",
            "\u{661}s",
        ] {
            assert!(parse_go_duration(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_written_duration_reads_back(nanos in any::<i64>()) {
            prop_assert_eq!(parse_go_duration(&format_go_duration(nanos)), Ok(nanos));
        }

        #[test]
        fn parsing_never_panics(text in "[-+0-9.hmsnu\u{b5} ]{0,24}|.{0,16}") {
            let _ = parse_go_duration(&text);
        }
    }
}
