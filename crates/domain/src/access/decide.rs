//! Who may decide an intervention (spec: "No self-approval", "Requiring an actor").

use super::{Caller, Credential};
use crate::intervention::Record;
use crate::refusal::Refusal;
use fuse_api::error::Reason;
use fuse_api::intervention::ActorSource;

/// Checks that the caller is no party to the intervention, and names a person where that is required.
///
/// # Errors
/// `self_approval` before `actor_required`.
pub fn may_decide(caller: &Caller, record: &Record) -> Result<(), Refusal> {
    if !caller.is_bare_master() && is_party(caller, record) {
        return Err(Refusal::forbidden(
            Reason::SelfApproval,
            "who raised an intervention cannot decide it",
        ));
    }
    if record.require_actor {
        match caller.actor.source {
            ActorSource::Pinned | ActorSource::Asserted => {}
            ActorSource::Key | ActorSource::Gate | ActorSource::Decider | ActorSource::System => {
                return Err(Refusal::forbidden(
                    Reason::ActorRequired,
                    "decisions in this environment have to name a person: use a key pinned to an actor, or send Fuse-Actor",
                ));
            }
        }
    }
    Ok(())
}

fn is_party(caller: &Caller, record: &Record) -> bool {
    let raiser = &record.view.triggered_by;
    let same_key = match &caller.credential {
        Credential::Master => false,
        Credential::Key(key) => raiser.key_id.as_ref() == Some(&key.id),
    };
    same_key || raiser.id == caller.actor.id
}
