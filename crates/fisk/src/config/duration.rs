//! Durations as people write them: `90s`, `1h30m`, `1.5s`.

use std::time::Duration;

const UNITS: [(&str, f64); 6] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// Numbers with units, largest first or not, without blanks. `None` for anything else.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let (mut rest, mut seconds) = (text, 0.0);
    if text.is_empty() || text.len() > 40 {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(digits);
        let end = behind
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        if !number.starts_with(|c: char| c.is_ascii_digit()) || number.ends_with('.') {
            return None;
        }
        seconds += number.parse::<f64>().ok()? * size;
        rest = behind;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// The shortest usual form.
pub(crate) fn show(duration: Duration) -> String {
    let whole = duration.as_secs();
    if duration.subsec_nanos() > 0 {
        return format!("{}ms", duration.as_millis());
    }
    let mut text = String::new();
    for (unit, size) in [("h", 3600), ("m", 60), ("s", 1)] {
        let count = match unit {
            "h" => whole / size,
            _ => whole / size % 60,
        };
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_nothing_else() {
        for (text, millis) in [
            ("120s", 120_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            ("250ms", 250),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "", "5", "s", "1d", "-1s", "1 s", "1.s", ".5s", "1..5s", "1s2", "1e9s", "NaNs",
            "\u{661}s",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_duration_is_shown_as_it_is_written() {
        for text in ["30s", "2m", "1h30m", "250ms", "0s", "24h"] {
            assert_eq!(show(parse(text).unwrap()), text);
        }
    }
}
