use std::time::Duration;

use fuse_client::{Client, Error};

/// A program, and a command line.
pub async fn exec(client: &Client, env: &str) -> Result<String, Error> {
    let environments = client.environments();
    let hello = environments.exec(env, ["echo", "hello"]).await?;

    // A command that fails is a result like any other.
    let failed = environments
        .exec_shell(env, "echo oops >&2; exit 3")
        .timeout(Duration::from_secs(5))
        .await?;
    assert_eq!((failed.exit_code, failed.stderr.as_str()), (3, "oops\n"));
    Ok(hello.stdout)
}
