//! A record whose stored content cannot be read.

use super::{NOW, ask, key, master};
use crate::intervention::decide::{approve, reject};
use crate::refusal::Refusal;
use fuse_api::intervention::{ApproveRequest, Payload, RejectRequest, State};
use fuse_api::keys::Scope;

// check: SEAL-9
#[test]
fn what_cannot_be_read_is_rejected_and_never_approved() {
    let mut record = ask(&["yes"], &key("1", &[]));
    record.view.unreadable = true;
    record.view.payload = Payload::default();
    record.view.payload_hash = String::new();
    match approve(
        &record,
        &ApproveRequest::default(),
        &master(None),
        None,
        NOW,
    ) {
        Err(Refusal::Conflict { message, .. }) => assert!(message.contains("cannot be read")),
        other => panic!("{other:?}"),
    }
    let seen = RejectRequest {
        payload_hash: Some("what was seen before".into()),
        reason: Some("damaged".into()),
        ..RejectRequest::default()
    };
    let rejected = reject(&record, &seen, &master(None), NOW).expect("a no is always safe");
    let resolve = rejected.resolve.expect("resolves");
    assert_eq!(resolve.state, State::Rejected);
    let same = key("1", &[Scope::Decide]);
    assert!(matches!(
        reject(&record, &seen, &same, NOW),
        Err(Refusal::Forbidden { .. })
    ));
}
