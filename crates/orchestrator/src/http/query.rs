//! Strict query strings: every parameter is known, stands there once and is well formed.

use super::error::Failure;
use fuse_api::ids::EnvId;
use fuse_api::intervention::{Kind, State};
use fuse_api::time::{Timestamp, parse_go_duration};
use std::time::Duration;

/// The longest that a call waits.
pub const MAX_WAIT: Duration = Duration::from_secs(50);
/// How many entries a page has where the caller does not say.
pub const DEFAULT_LIMIT: u32 = 50;
/// The most entries of a page.
pub const MAX_LIMIT: u32 = 200;

/// A query string's parameters, all of them known to the call.
#[derive(Debug)]
pub struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Reads a query string that may hold these parameters.
    ///
    /// # Errors
    /// 400: an unknown parameter, one that stands there twice, or broken percent-encoding.
    pub fn parse(raw: &str, allowed: &[&'static str]) -> Result<Self, Failure> {
        let mut found: Vec<(&'static str, String)> = Vec::new();
        for part in raw.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = decoded(name)
                .map_err(|what| Failure::invalid("query", &format!("a parameter's name {what}")))?;
            let Some(known) = allowed.iter().find(|known| **known == name) else {
                return Err(unknown(&name, allowed));
            };
            let value = decoded(value).map_err(|what| Failure::invalid(known, what))?;
            if found.iter().any(|(name, _)| name == known) {
                return Err(Failure::invalid(known, "the parameter stands there twice"));
            }
            found.push((known, value));
        }
        Ok(Self(found))
    }

    /// The value of a parameter, where it is there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A free text, where an empty one counts as left out.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).filter(|v| !v.is_empty()).map(str::to_owned)
    }

    /// A free text that may not be empty.
    ///
    /// # Errors
    /// 400: it is.
    pub fn full_text(&self, name: &'static str) -> Result<Option<String>, Failure> {
        match self.get(name) {
            Some("") => Err(Failure::invalid(name, "is empty")),
            other => Ok(other.map(str::to_owned)),
        }
    }

    /// `limit`: 1 to 200, 50 where it is left out.
    ///
    /// # Errors
    /// 400: it is no such number.
    pub fn limit(&self) -> Result<u32, Failure> {
        let Some(text) = self.get("limit") else {
            return Ok(DEFAULT_LIMIT);
        };
        // Digits alone: a sign or a blank is no number here.
        let number = text
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| text.parse::<u32>().ok())
            .flatten()
            .filter(|n| (1..=MAX_LIMIT).contains(n));
        number.ok_or_else(|| {
            Failure::invalid(
                "limit",
                &format!("must be a whole number from 1 to {MAX_LIMIT}"),
            )
        })
    }

    /// `cursor`: what the page before gave.
    ///
    /// # Errors
    /// 400: it is empty.
    pub fn cursor(&self) -> Result<Option<String>, Failure> {
        self.full_text("cursor")
    }

    /// `wait`: a duration in Go's syntax, at most 50 s (spec: "Asking").
    ///
    /// # Errors
    /// 400: it is negative, has no unit, or is no duration.
    pub fn wait(&self) -> Result<Option<Duration>, Failure> {
        let Some(text) = self.get("wait") else {
            return Ok(None);
        };
        let nanos = duration(text).ok_or_else(|| {
            Failure::invalid("wait", "must be a duration like 30s or 1m, not negative")
        })?;
        Ok(Some(Duration::from_nanos(nanos).min(MAX_WAIT)))
    }

    /// `env`: an environment's id.
    ///
    /// # Errors
    /// 400: it is none.
    pub fn env(&self) -> Result<Option<EnvId>, Failure> {
        self.get("env")
            .map(|text| EnvId::parse(text).map_err(|e| Failure::invalid("env", &format!("is {e}"))))
            .transpose()
    }

    /// `state` of interventions: `pending` where it is left out, none for `all`.
    ///
    /// # Errors
    /// 400: there is no such state.
    pub fn intervention_state(&self) -> Result<Option<State>, Failure> {
        match self.get("state") {
            None => Ok(Some(State::Pending)),
            Some("all") => Ok(None),
            Some(text) => State::parse(text).map(Some).ok_or_else(|| {
                let names = State::ALL.iter().map(|s| s.as_str());
                one_of("state", names.chain(["all"]))
            }),
        }
    }

    /// `kind` of interventions.
    ///
    /// # Errors
    /// 400: there is no such kind.
    pub fn kind(&self) -> Result<Option<Kind>, Failure> {
        self.get("kind")
            .map(|text| {
                Kind::parse(text)
                    .ok_or_else(|| one_of("kind", Kind::ALL.iter().map(|k| k.as_str())))
            })
            .transpose()
    }

    /// `since`: a time, or how long ago.
    ///
    /// # Errors
    /// 400: it is neither.
    pub fn since(&self, now: Timestamp) -> Result<Option<Timestamp>, Failure> {
        let Some(text) = self.get("since") else {
            return Ok(None);
        };
        if let Ok(at) = Timestamp::parse(text) {
            return Ok(Some(at));
        }
        let ago = duration(text).and_then(|nanos| i64::try_from(nanos / 1_000).ok());
        let at = ago.map(|micros| Timestamp::from_micros(now.as_micros().saturating_sub(micros)));
        at.map(Some).ok_or_else(|| {
            Failure::invalid(
                "since",
                "must be a duration like 24h or an RFC 3339 time like 2026-01-31T12:00:00Z",
            )
        })
    }
}

/// Nanoseconds of a duration that is not negative and has a unit; the bare `0` of Go's syntax has none.
fn duration(text: &str) -> Option<u64> {
    let nanos = parse_go_duration(text).ok()?;
    let has_unit = text.ends_with(|c: char| !c.is_ascii_digit());
    u64::try_from(nanos).ok().filter(|_| has_unit)
}

/// The complaint about a parameter that takes one of a few names.
#[must_use]
pub fn one_of<'a>(name: &str, allowed: impl Iterator<Item = &'a str>) -> Failure {
    let allowed: Vec<_> = allowed.collect();
    Failure::invalid(name, &format!("must be one of {}", allowed.join(", ")))
}

fn unknown(name: &str, allowed: &[&'static str]) -> Failure {
    let name: String = name.chars().take(64).collect();
    let allowed = match allowed {
        [] => "this call takes none".to_owned(),
        some => format!("this call takes {}", some.join(", ")),
    };
    Failure::invalid(
        if name.is_empty() { "query" } else { &name },
        &format!("unknown query parameter; {allowed}"),
    )
}

/// Decodes `%XX` and `+`.
fn decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
                match (digit(), digit()) {
                    (Some(high), Some(low)) => u8::try_from(high * 16 + low).unwrap_or_default(),
                    _ => return Err("has broken percent-encoding"),
                }
            }
            other => other,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
    if text.contains('\0') {
        return Err("holds a NUL character");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> Query {
        let all = &[
            "limit", "cursor", "wait", "env", "state", "kind", "since", "actor",
        ];
        Query::parse(raw, all).expect("a query")
    }

    // check: HTTP-6
    #[test]
    fn an_unknown_or_doubled_parameter_and_broken_encoding_are_refused() {
        for raw in [
            "x=1",
            "limit=1&limit=2",
            "limit=%zz",
            "limit=%4",
            "limit=%ff",
            "%ff=1",
            "limit=%00",
            "=1",
        ] {
            assert!(Query::parse(raw, &["limit"]).is_err(), "{raw}");
        }
        let query = Query::parse("a%63tor=al%C3%A9+b&&", &["actor"]).expect("fine");
        assert_eq!(query.get("actor"), Some("al\u{e9} b"));
    }

    // check: HTTP-6
    #[test]
    fn a_limit_is_1_to_200_and_50_where_it_is_left_out() {
        assert_eq!(query("").limit().expect("default"), 50);
        assert_eq!(query("limit=200").limit().expect("most"), 200);
        for raw in [
            "0",
            "201",
            "",
            "-1",
            "+1",
            "1.0",
            "%201",
            "99999999999",
            "ten",
        ] {
            assert!(query(&format!("limit={raw}")).limit().is_err(), "{raw}");
        }
    }

    // check: WAIT-2
    // check: HTTP-14
    #[test]
    fn a_wait_is_a_duration_of_at_most_50_seconds() {
        assert_eq!(query("").wait().expect("none"), None);
        for (raw, seconds) in [
            ("30s", 30),
            ("50s", 50),
            ("51s", 50),
            ("24h", 50),
            ("0s", 0),
        ] {
            let wait = query(&format!("wait={raw}")).wait().expect(raw);
            assert_eq!(wait, Some(Duration::from_secs(seconds)), "{raw}");
        }
        for raw in ["30", "0", "", "-1s", "1d", "soon", "1%20s"] {
            assert!(query(&format!("wait={raw}")).wait().is_err(), "{raw}");
        }
    }

    // check: ASK-14
    #[test]
    fn a_list_shows_pending_ones_unless_it_is_told_otherwise() {
        assert_eq!(
            query("").intervention_state().expect("default"),
            Some(State::Pending)
        );
        assert_eq!(query("state=all").intervention_state().expect("all"), None);
        let expired = query("state=expired").intervention_state().expect("one");
        assert_eq!(expired, Some(State::Expired));
        for raw in ["state=", "state=done", "state=Pending"] {
            assert!(query(raw).intervention_state().is_err(), "{raw}");
        }
        assert_eq!(query("kind=exec").kind().expect("kind"), Some(Kind::Exec));
        assert!(query("kind=what").kind().is_err());
        assert!(query("env=agent").env().is_err());
    }

    #[test]
    fn since_takes_a_time_or_a_duration() {
        let now = Timestamp::parse("2026-01-02T00:00:00Z").expect("time");
        let day = Timestamp::parse("2026-01-01T00:00:00Z").expect("time");
        assert_eq!(query("since=24h").since(now).expect("ago"), Some(day));
        assert_eq!(
            query("since=2026-01-01T00:00:00Z").since(now).expect("at"),
            Some(day)
        );
        for raw in ["yesterday", "-1h", "5", "0", ""] {
            assert!(query(&format!("since={raw}")).since(now).is_err(), "{raw}");
        }
    }
}
