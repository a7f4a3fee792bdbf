//! Who may do what (spec: "Access").

pub mod actor;
pub mod decide;
pub mod mint;

use crate::refusal::Refusal;
use actor::ActorHeader;
use fuse_api::error::Reason;
use fuse_api::ids::{EnvId, KeyId};
use fuse_api::intervention::{Actor, ActorSource};
use fuse_api::keys::{ActorLabel, Scope};
use fuse_api::routes::Access;

/// A credential that was proven valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// The operator's root credential.
    Master,
    /// An API key.
    Key(KeyFacts),
}

/// What is known of a valid key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFacts {
    /// Its id.
    pub id: KeyId,
    /// What people call it.
    pub label: String,
    /// What it allows; empty for a full-access key.
    pub scopes: Vec<Scope>,
    /// The environment it is limited to.
    pub env_id: Option<EnvId>,
    /// The person it is pinned to.
    pub actor: Option<ActorLabel>,
}

impl KeyFacts {
    /// Whether it was minted without scopes.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.scopes.is_empty()
    }

    /// Whether it holds a scope, by itself or by implication. A full-access key holds `hitl:read` and no other.
    #[must_use]
    pub fn holds(&self, scope: Scope) -> bool {
        match scope {
            Scope::Read => {
                self.is_full()
                    || self
                        .scopes
                        .iter()
                        .any(|s| matches!(s, Scope::Read | Scope::Decide | Scope::Secret))
            }
            Scope::Decide | Scope::Secret | Scope::Takeover | Scope::ActAs => {
                self.scopes.contains(&scope)
            }
        }
    }
}

/// A call's credential and what it claims about its actor, before anything is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presented {
    /// The credential.
    pub credential: Credential,
    /// The actor headers, where they were sent.
    pub actor: Option<ActorHeader>,
    /// The peer's address, for the audit log.
    pub remote_addr: String,
}

/// Who is acting, once that is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The credential.
    pub credential: Credential,
    /// Who the call is recorded as.
    pub actor: Actor,
    /// The peer's address, for the audit log.
    pub remote_addr: String,
}

impl Caller {
    /// Whether this is the master token speaking for nobody else.
    #[must_use]
    pub fn is_bare_master(&self) -> bool {
        match self.credential {
            Credential::Master => self.actor.source == ActorSource::Key,
            Credential::Key(_) => false,
        }
    }
}

impl Presented {
    /// Admits the call to a row of the route table, and settles who is acting.
    ///
    /// # Errors
    /// The credential does not reach the call, or may not name the actor that it names.
    pub fn admit(&self, access: Access) -> Result<Caller, Refusal> {
        match (&self.credential, access) {
            (_, Access::Public) | (Credential::Master, _) => {}
            (Credential::Key(key), Access::Full) => {
                if !key.is_full() {
                    return Err(env_scope());
                }
            }
            (Credential::Key(key), Access::Master) => {
                return Err(if key.is_full() {
                    Refusal::MasterOnly
                } else {
                    env_scope()
                });
            }
            (Credential::Key(key), Access::Scoped(scope)) => {
                if !key.holds(scope) {
                    return Err(Refusal::missing_scope(scope));
                }
            }
            (Credential::Key(key), Access::Mint) => {
                if key.is_full() {
                    return Err(Refusal::forbidden(
                        Reason::MintEscalation,
                        "a full-access key cannot mint keys; use the master token",
                    ));
                }
            }
        }
        Ok(Caller {
            credential: self.credential.clone(),
            actor: actor::resolve(&self.credential, self.actor.as_ref())?,
            remote_addr: self.remote_addr.clone(),
        })
    }
}

fn env_scope() -> Refusal {
    Refusal::forbidden(
        Reason::EnvScope,
        "a key with scopes reaches the hitl routes only",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(scopes: &[Scope]) -> Credential {
        Credential::Key(KeyFacts {
            id: KeyId::parse(&format!("ak_{}", "0".repeat(32))).expect("id"),
            label: "ci".into(),
            scopes: scopes.to_vec(),
            env_id: None,
            actor: None,
        })
    }

    fn admit(credential: Credential, access: Access) -> Result<Caller, Refusal> {
        Presented {
            credential,
            actor: None,
            remote_addr: String::new(),
        }
        .admit(access)
    }

    fn reason(result: Result<Caller, Refusal>) -> Option<Reason> {
        match result {
            Err(Refusal::Forbidden { reason, .. }) => Some(reason),
            _ => None,
        }
    }

    #[test]
    fn a_full_access_key_reads_and_never_decides() {
        assert!(admit(key(&[]), Access::Scoped(Scope::Read)).is_ok());
        for scope in [Scope::Decide, Scope::Secret, Scope::Takeover, Scope::ActAs] {
            let got = reason(admit(key(&[]), Access::Scoped(scope)));
            assert_eq!(got, Some(Reason::MissingScope), "{scope:?}");
        }
    }

    #[test]
    fn only_the_master_token_reaches_a_master_call() {
        assert!(admit(Credential::Master, Access::Master).is_ok());
        assert_eq!(admit(key(&[]), Access::Master), Err(Refusal::MasterOnly));
    }

    #[test]
    fn a_scoped_key_stays_on_the_hitl_routes() {
        let decide = key(&[Scope::Decide]);
        assert!(admit(decide.clone(), Access::Scoped(Scope::Read)).is_ok());
        assert_eq!(
            reason(admit(decide.clone(), Access::Full)),
            Some(Reason::EnvScope)
        );
        assert_eq!(
            reason(admit(decide, Access::Master)),
            Some(Reason::EnvScope)
        );
    }

    #[test]
    fn a_full_access_key_cannot_mint() {
        assert_eq!(
            reason(admit(key(&[]), Access::Mint)),
            Some(Reason::MintEscalation)
        );
    }
}
