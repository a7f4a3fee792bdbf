//! Which person a call is recorded as (spec: "Actors").

use super::Credential;
use crate::refusal::Refusal;
use crate::text::{is_blank, seen};
use fuse_api::error::Reason;
use fuse_api::intervention::{Actor, ActorSource};
use fuse_api::keys::ActorLabel;

/// The longest actor id or name, in bytes.
pub const MAX_ACTOR_BYTES: usize = 128;

/// A well-formed claim about the actor, from the two headers of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorHeader {
    id: String,
    name: Option<String>,
}

impl ActorHeader {
    /// Reads the two headers as they came off the wire.
    ///
    /// # Errors
    /// A blank, over-long or unreadable value, a name without an id, or an id that imitates one of ours.
    pub fn parse(id: Option<&[u8]>, name: Option<&[u8]>) -> Result<Option<Self>, Refusal> {
        match (id, name) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(Refusal::invalid(
                "Fuse-Actor-Name",
                "a name needs the header Fuse-Actor beside it",
            )),
            (Some(id), name) => {
                let id = header_text("Fuse-Actor", id)?;
                check_id("Fuse-Actor", id)?;
                let name = match name {
                    Some(name) => {
                        let name = header_text("Fuse-Actor-Name", name)?;
                        check_text("Fuse-Actor-Name", name)?;
                        Some(name.to_owned())
                    }
                    None => None,
                };
                Ok(Some(Self {
                    id: id.to_owned(),
                    name,
                }))
            }
        }
    }
}

fn header_text<'a>(header: &str, value: &'a [u8]) -> Result<&'a str, Refusal> {
    std::str::from_utf8(value)
        .map(|text| text.trim_matches([' ', '\t']))
        .map_err(|_| Refusal::invalid(header, "is not UTF-8"))
}

/// Checks an actor's id, in a header or at mint.
///
/// # Errors
/// It is blank, too long, holds control or bidirectional characters, or imitates an id of ours.
pub fn check_id(path: &str, id: &str) -> Result<(), Refusal> {
    check_text(path, id)?;
    // Compared as it is seen: what leaves no trace on the screen does not tell an imitation from the real one.
    let lower = seen(id).trim().to_ascii_lowercase();
    let imitates = matches!(lower.as_str(), "master" | "system")
        || ["key:", "gate:", "decider:"]
            .iter()
            .any(|p| lower.starts_with(p));
    if imitates {
        return Err(Refusal::invalid(
            path,
            "master, system, key:…, gate:… and decider:… name actors of Fuse itself",
        ));
    }
    Ok(())
}

/// Checks an actor's name, in a header or at mint.
///
/// # Errors
/// It is blank, too long, or holds control or bidirectional characters.
pub fn check_text(path: &str, text: &str) -> Result<(), Refusal> {
    if is_blank(text) {
        return Err(Refusal::invalid(path, "is blank"));
    }
    if text.len() > MAX_ACTOR_BYTES {
        return Err(Refusal::invalid(
            path,
            format!(
                "is {} bytes long; {MAX_ACTOR_BYTES} are allowed",
                text.len()
            ),
        ));
    }
    if text.chars().any(is_deceptive) {
        return Err(Refusal::invalid(
            path,
            "holds control or bidirectional characters",
        ));
    }
    Ok(())
}

fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Settles who a call is recorded as.
///
/// # Errors
/// The credential may not name an actor, or not this one.
pub fn resolve(credential: &Credential, header: Option<&ActorHeader>) -> Result<Actor, Refusal> {
    match credential {
        Credential::Master => Ok(match header {
            Some(claim) => asserted(claim, None),
            None => Actor {
                id: "master".to_owned(),
                name: String::new(),
                source: ActorSource::Key,
                key_id: None,
            },
        }),
        Credential::Key(key) => match (&key.actor, header) {
            (Some(pinned), None) => Ok(pinned_actor(pinned, key)),
            (Some(pinned), Some(claim)) if claim.id == pinned.id => Ok(pinned_actor(pinned, key)),
            (Some(_), Some(_)) => Err(Refusal::forbidden(
                Reason::ActorMismatch,
                "the key is pinned to another actor than Fuse-Actor names",
            )),
            (None, Some(claim)) if key.holds(fuse_api::keys::Scope::ActAs) => {
                Ok(asserted(claim, Some(key.id.clone())))
            }
            (None, Some(_)) => Err(Refusal::forbidden(
                Reason::ActorNotAllowed,
                "the key may not name an actor; that takes the scope hitl:act-as",
            )),
            (None, None) => Ok(Actor {
                id: format!("key:{}", key.id),
                name: key.label.clone(),
                source: ActorSource::Key,
                key_id: Some(key.id.clone()),
            }),
        },
    }
}

fn asserted(claim: &ActorHeader, key_id: Option<fuse_api::ids::KeyId>) -> Actor {
    Actor {
        id: claim.id.clone(),
        name: claim.name.clone().unwrap_or_default(),
        source: ActorSource::Asserted,
        key_id,
    }
}

fn pinned_actor(label: &ActorLabel, key: &super::KeyFacts) -> Actor {
    Actor {
        id: label.id.clone(),
        name: label.name.clone().unwrap_or_default(),
        source: ActorSource::Pinned,
        key_id: Some(key.id.clone()),
    }
}

/// Who decides for a deadline or a destroy.
#[must_use]
pub fn system() -> Actor {
    Actor {
        id: "system".to_owned(),
        name: String::new(),
        source: ActorSource::System,
        key_id: None,
    }
}

/// Who decides for a gate that needs nobody.
#[must_use]
pub fn gate(name: &str) -> Actor {
    Actor {
        id: format!("gate:{name}"),
        name: String::new(),
        source: ActorSource::Gate,
        key_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::KeyFacts;
    use fuse_api::ids::KeyId;

    fn header(id: &str) -> Option<ActorHeader> {
        ActorHeader::parse(Some(id.as_bytes()), None).expect("well formed")
    }

    fn full_key() -> Credential {
        Credential::Key(KeyFacts {
            id: KeyId::parse(&format!("ak_{}", "1".repeat(32))).expect("id"),
            label: "ci".into(),
            scopes: vec![],
            env_id: None,
            actor: None,
        })
    }

    #[test]
    fn the_master_token_is_recorded_as_master_or_as_whom_it_names() {
        let bare = resolve(&Credential::Master, None).expect("actor");
        assert_eq!(
            (bare.id.as_str(), bare.source),
            ("master", ActorSource::Key)
        );
        let named = resolve(&Credential::Master, header("alice").as_ref()).expect("actor");
        assert_eq!(
            (named.id.as_str(), named.source),
            ("alice", ActorSource::Asserted)
        );
    }

    #[test]
    fn an_ordinary_key_is_recorded_as_itself_and_may_name_nobody() {
        let own = resolve(&full_key(), None).expect("actor");
        assert_eq!(own.id, format!("key:ak_{}", "1".repeat(32)));
        assert_eq!(own.name, "ci");
        let refused = resolve(&full_key(), header("alice").as_ref());
        assert!(matches!(
            refused,
            Err(Refusal::Forbidden {
                reason: Reason::ActorNotAllowed,
                ..
            })
        ));
    }

    #[test]
    fn an_actor_id_is_readable_short_and_not_ours() {
        let long = "x".repeat(129);
        let bad = [
            "",
            "  ",
            "master",
            "System",
            "key:x",
            "gate:a",
            "decider:a",
            "ma\u{200b}ster",
            "\u{feff}key:x",
            "\u{200b}",
            "a\u{202e}b",
            "a\u{7}b",
            &long,
        ];
        for id in bad {
            assert!(
                ActorHeader::parse(Some(id.as_bytes()), None).is_err(),
                "{id:?} was taken"
            );
        }
        assert!(ActorHeader::parse(Some(&[0xff]), None).is_err());
        assert!(ActorHeader::parse(None, Some(b"Alice")).is_err());
        for id in ["alice@corp.com", "slack:U0123", "user_42", "M\u{fc}ller"] {
            assert!(
                ActorHeader::parse(Some(id.as_bytes()), None).is_ok(),
                "{id:?}"
            );
        }
    }
}
