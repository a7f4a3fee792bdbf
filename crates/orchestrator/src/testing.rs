//! Records for unit tests.

use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::{Kind, Payload, State};
use fuse_api::time::Timestamp;
use fuse_domain::access::actor;
use fuse_domain::intervention::{EnvUid, Record, raise};

/// An ask in this state.
pub fn record(state: State) -> Record {
    let home = raise::Home {
        env_id: EnvId::parse("fuse-test").expect("id"),
        env_uid: EnvUid("fuse-test-1".into()),
        on_timeout: fuse_api::hitl::OnTimeout::Reject,
        require_actor: false,
    };
    let mut record = raise::Draft {
        id: InterventionId::from_uuid(uuid::Uuid::now_v7()),
        kind: Kind::Ask,
        gate: None,
        triggered_by: actor::system(),
        payload: Payload::default(),
        now: Timestamp::from_micros(0),
        timeout_seconds: 600,
    }
    .pending(&home);
    record.view.state = state;
    record
}
