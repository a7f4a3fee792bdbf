//! Identifiers. A value of one of these types is well formed: it can only be made by parsing or from a UUID.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Why a text is no identifier of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not {expected}")]
pub struct IdError {
    expected: &'static str,
}

macro_rules! prefixed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// What every id of this kind starts with.
            pub const PREFIX: &'static str = $prefix;

            /// Makes the id that carries this UUID.
            #[must_use]
            pub fn from_uuid(uuid: uuid::Uuid) -> Self {
                Self(format!("{}{}", $prefix, uuid.simple()))
            }

            /// Reads an id.
            ///
            /// # Errors
            /// The text is not the prefix followed by 32 lower-case hex digits.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                match text.strip_prefix($prefix) {
                    Some(hex) if is_hex32(hex) => Ok(Self(text.to_owned())),
                    Some(_) | None => Err(IdError { expected: $expected }),
                }
            }

            /// The id as it stands on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        text_id!($name, $expected);
    };
}

macro_rules! text_id {
    ($name:ident, $expected:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .description(Some($expected))
                    .into()
            }
        }
        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "description": $expected})
            }
        }
    };
}

fn is_hex32(text: &str) -> bool {
    text.len() == 32
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

prefixed_id!(
    /// One request for a human.
    InterventionId, "int_", "an intervention id (int_ and 32 hex digits)"
);
prefixed_id!(
    /// One API key. The id is public, the secret is not.
    KeyId, "ak_", "an API key id (ak_ and 32 hex digits)"
);
prefixed_id!(
    /// One recorded takeover session.
    RecordingId, "rec_", "a recording id (rec_ and 32 hex digits)"
);
prefixed_id!(
    /// One snapshot.
    SnapshotId, "snap_", "a snapshot id (snap_ and 32 hex digits)"
);

/// The caller's name for an environment: a DNS label of 1 to 63 characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(String);

impl TaskId {
    /// The longest task id, in bytes.
    pub const MAX: usize = 63;

    /// Reads a task id.
    ///
    /// # Errors
    /// The text is not a DNS label.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        if is_dns_label(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdError {
                expected: "a DNS label (1 to 63 of a-z 0-9 and -, not at either end)",
            })
        }
    }

    /// The task id as it stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the environment of this task.
    #[must_use]
    pub fn env_id(&self) -> EnvId {
        EnvId(format!("{}{}", EnvId::PREFIX, self.0))
    }
}

text_id!(
    TaskId,
    "a DNS label (1 to 63 of a-z 0-9 and -, not at either end)"
);

/// One environment: `fuse-` and its task id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EnvId(String);

impl EnvId {
    /// What every environment id starts with.
    pub const PREFIX: &'static str = "fuse-";

    /// Reads an environment id.
    ///
    /// # Errors
    /// The text is not `fuse-` and a task id.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        match text.strip_prefix(Self::PREFIX) {
            Some(task) if is_dns_label(task) => Ok(Self(text.to_owned())),
            Some(_) | None => Err(IdError {
                expected: "an environment id (fuse- and a task id)",
            }),
        }
    }

    /// The id as it stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The task the environment is named after.
    #[must_use]
    pub fn task_id(&self) -> TaskId {
        TaskId(self.0[Self::PREFIX.len()..].to_owned())
    }
}

text_id!(EnvId, "an environment id (fuse- and a task id)");

fn is_dns_label(text: &str) -> bool {
    (1..=TaskId::MAX).contains(&text.len())
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intervention_id_is_its_prefix_and_32_hex_digits() {
        let id = InterventionId::from_uuid(uuid::Uuid::from_u128(0x0187_0000));
        assert_eq!(InterventionId::parse(id.as_str()), Ok(id));
        for bad in ["int_", "int_xyz", "ak_00000000000000000000000000000000", ""] {
            assert!(InterventionId::parse(bad).is_err(), "{bad}");
        }
        assert!(InterventionId::parse(&format!("int_{}", "A".repeat(32))).is_err());
    }

    #[test]
    fn a_task_id_is_a_dns_label() {
        for good in ["a", "agent-7", "0", &"a".repeat(63)] {
            assert!(TaskId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", "a.b", "ä", &"a".repeat(64)] {
            assert!(TaskId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_environment_id_carries_its_task() {
        let env = TaskId::parse("agent").expect("label").env_id();
        assert_eq!(env.as_str(), "fuse-agent");
        assert_eq!(env.task_id().as_str(), "agent");
        assert!(EnvId::parse("fuse-").is_err());
        assert!(EnvId::parse("agent").is_err());
    }
}
