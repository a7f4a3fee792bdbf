//! Requests that are in order and still cannot be met, and requests that can never be.

use fuse_e2e::{Server, both, unique};
use futures_util::future::join_all;
use serde_json::json;

both!(
    a_command_too_many_is_told_to_come_back,
    what_no_environment_can_hold_is_the_requests_fault,
);

async fn a_command_too_many_is_told_to_come_back(server: &Server) {
    let env = server.env(json!(null)).await;
    let crowd = join_all((0..136).map(|_| env.exec(&["sleep", "3"]))).await;
    let ran = crowd.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(ran, 128);
    for late in crowd.iter().filter(|reply| reply.status != 200) {
        let told = late.refused(503, "unavailable");
        let message = told["message"].as_str().expect("a message");
        assert!(message.contains("nothing was run"), "{message}");
    }
    env.exec(&["true"]).await.ok(200);
}

async fn what_no_environment_can_hold_is_the_requests_fault(server: &Server) {
    for (member, field) in [
        (json!({"files": {"/usr/bin": ""}}), "files[\"/usr/bin\"]"),
        (json!({"files": {"/proc/x": ""}}), "files[\"/proc/x\"]"),
        (
            json!({"files": {"/etc/passwd/x": ""}}),
            "files[\"/etc/passwd/x\"]",
        ),
        (json!({"workspace": "/proc"}), "workspace"),
    ] {
        let mut request = member;
        request["task_id"] = json!(unique("full"));
        let told = server.api().post("/v1/environments", request).await;
        assert!(told.invalid().starts_with(field), "{}", told.text);
    }
}
