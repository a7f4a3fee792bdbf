//! Points in time and durations, as the wire writes them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

mod duration;
pub use duration::{format_go_duration, parse_go_duration};

/// A point in time, in microseconds since 1970 UTC. On the wire it is RFC 3339 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The time that many microseconds after 1970 UTC.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970 UTC.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This time and that many seconds; it stops at the end of the range rather than wrap.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1_000_000)))
    }

    /// Reads an RFC 3339 time.
    ///
    /// # Errors
    /// The text is not RFC 3339.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        text.parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_microsecond()))
            .map_err(|_| TimeError::NotRfc3339)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(t) => write!(f, "{t}"),
            Err(_) => write!(f, "out-of-range"),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Timestamp {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{KnownFormat, SchemaFormat, Type};
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}
#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Timestamp {}

/// Why a text is no time or duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Not an RFC 3339 time.
    #[error("not an RFC 3339 time (like 2026-01-31T12:00:00Z)")]
    NotRfc3339,
    /// Not a duration in Go's syntax.
    #[error("not a duration (like 90s, 10m or 1h30m)")]
    NotDuration,
}
