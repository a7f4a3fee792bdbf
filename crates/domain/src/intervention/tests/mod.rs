//! The life of an intervention, rule by rule.

mod deciding;
mod ending;
mod unreadable;

use super::raise::{Draft, Home};
use super::{EnvUid, Record};
use crate::access::actor::ActorHeader;
use crate::access::{Caller, Credential, KeyFacts, Presented};
use crate::policy::{Policy, PolicyFacts};
use fuse_api::hitl::{HitlBlock, OnTimeout};
use fuse_api::ids::{EnvId, InterventionId, KeyId};
use fuse_api::intervention::{AskPayload, ExecPayload, Kind, Mode, Payload};
use fuse_api::keys::Scope;
use fuse_api::routes::Access;
use fuse_api::time::Timestamp;

const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

fn home() -> Home {
    Home {
        env_id: EnvId::parse("fuse-agent").expect("id"),
        env_uid: EnvUid("fuse-agent-1".into()),
        on_timeout: OnTimeout::Reject,
        require_actor: false,
    }
}

fn master(actor: Option<&str>) -> Caller {
    let actor = actor.map(|id| {
        ActorHeader::parse(Some(id.as_bytes()), None)
            .expect("well formed")
            .expect("given")
    });
    Presented {
        credential: Credential::Master,
        actor,
        remote_addr: "192.0.2.1".into(),
    }
    .admit(Access::Master)
    .expect("master")
}

fn key(digit: &str, scopes: &[Scope]) -> Caller {
    Presented {
        credential: Credential::Key(KeyFacts {
            id: KeyId::parse(&format!("ak_{}", digit.repeat(32))).expect("id"),
            label: "ci".into(),
            scopes: scopes.to_vec(),
            env_id: None,
            actor: None,
        }),
        actor: None,
        remote_addr: String::new(),
    }
    .admit(Access::Scoped(Scope::Read))
    .expect("reads")
}

fn draft(kind: Kind, gate: Option<&str>, by: &Caller, payload: Payload) -> Draft {
    Draft {
        id: InterventionId::parse(&format!("int_{}", "a".repeat(32))).expect("id"),
        kind,
        gate: gate.map(|name| (name.to_owned(), Mode::Ask)),
        triggered_by: by.actor.clone(),
        payload,
        now: NOW,
        timeout_seconds: 600,
    }
}

fn ask(choices: &[&str], by: &Caller) -> Record {
    let payload = Payload {
        ask: Some(AskPayload {
            question: "Deploy?".into(),
            choices: choices.iter().map(|c| (*c).to_owned()).collect(),
        }),
        ..Payload::default()
    };
    draft(Kind::Ask, None, by, payload).pending(&home())
}

fn held(argv: &[&str], gates: &[&str], by: &Caller) -> Record {
    let exec = ExecPayload {
        argv: Some(argv.iter().map(|a| (*a).to_owned()).collect()),
        shell: None,
        timeout_ms: Some(5_000),
    };
    let payload = Payload {
        exec: Some(exec),
        ..Payload::default()
    };
    let names = gates.iter().map(|g| (*g).to_owned()).collect();
    let payload = super::raise::with_gates(payload, names, "");
    draft(Kind::Exec, gates.first().copied(), by, payload).pending(&home())
}

fn policy(json: &str) -> Policy {
    let block: HitlBlock = serde_json::from_str(json).expect("block");
    Policy::compile(&block, &PolicyFacts::default()).expect("valid")
}

fn argv(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|w| (*w).to_owned()).collect())
}
