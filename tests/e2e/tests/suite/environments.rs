//! Environments: made, used, watched, removed.

use fuse_e2e::{Server, both};
use serde_json::json;

both!(an_environment_lives_from_its_create_to_its_destroy);

// check: ENV-1, ENV-5, EXEC-1
async fn an_environment_lives_from_its_create_to_its_destroy(server: &Server) {
    let env = server.env(json!(null)).await;
    let seen = env.get().await.ok(200);
    assert_eq!(seen["state"], "running");
    let ran = env
        .run(&["sh", "-c", "echo out; echo err >&2; exit 3"])
        .await;
    assert_eq!(
        ran,
        json!({"exit_code": 3, "stdout": "out\n", "stderr": "err\n"})
    );
    env.destroy().await.ok(204);
    env.destroy().await.refused(404, "not_found");
}
