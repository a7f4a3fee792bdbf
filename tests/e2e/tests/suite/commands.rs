//! Commands in an environment.

use std::time::{Duration, Instant};

use fuse_e2e::{Server, both};
use serde_json::json;

both!(
    what_a_command_writes_and_how_it_ends_is_told,
    a_command_at_its_timeout_is_killed_with_its_children,
    a_flood_of_output_is_cut_and_holds_nothing_up,
    a_command_that_makes_no_sense_is_refused,
    commands_run_side_by_side_and_an_impatient_caller_harms_nobody,
);

// check: EXEC-1, EXEC-5, EXEC-6, EXEC-7
async fn what_a_command_writes_and_how_it_ends_is_told(server: &Server) {
    let env = server.env(json!(null)).await;
    for (argv, told) in [
        (
            vec!["printf", "%s|", "a b", "", "$HOME", "*"],
            json!({"exit_code": 0, "stdout": "a b||$HOME|*|", "stderr": ""}),
        ),
        (
            vec!["cat"],
            json!({"exit_code": 0, "stdout": "", "stderr": ""}),
        ),
        (
            vec!["sh", "-c", "kill -9 $$"],
            json!({"exit_code": 137, "stdout": "", "stderr": ""}),
        ),
        (
            vec!["sh", "-c", "kill -TERM $$"],
            json!({"exit_code": 143, "stdout": "", "stderr": ""}),
        ),
        (
            vec!["printf", "\\377x"],
            json!({"exit_code": 0, "stdout": "\u{fffd}x", "stderr": ""}),
        ),
    ] {
        assert_eq!(env.run(&argv).await, told, "{argv:?}");
    }
    assert_eq!(env.run(&["no-such-program"]).await["exit_code"], 127);
    assert_eq!(env.run(&["/etc/passwd"]).await["exit_code"], 126);
    let shell = env
        .act(
            "exec",
            json!({"shell": "echo $((6*7)) && pwd; echo e >&2; exit 4"}),
        )
        .await
        .ok(200);
    assert_eq!(
        shell,
        json!({"exit_code": 4, "stdout": "42\n/workspace\n", "stderr": "e\n"})
    );
    env.act("exec", json!({"cmd": ["true"], "timeout_ms": 0}))
        .await
        .ok(200);
    env.act("exec", json!({"cmd": ["true"], "timeout_ms": 99_999_999}))
        .await
        .ok(200);
}

// check: EXEC-2
async fn a_command_at_its_timeout_is_killed_with_its_children(server: &Server) {
    let env = server.env(json!(null)).await;
    let text = "sleep 777 & echo begun; sleep 777; echo never";
    let begun = Instant::now();
    let body = json!({"cmd": ["sh", "-c", text], "timeout_ms": 500});
    let ran = env.act("exec", body).await.ok(200);
    assert_eq!(
        ran,
        json!({"exit_code": 124, "stdout": "begun\n", "stderr": "", "timed_out": true})
    );
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    let left = env
        .sh("grep -lz '77[7]' /proc/[0-9]*/cmdline || true")
        .await;
    assert!(!left.contains("/proc/"), "{left}");
}

// check: EXEC-4
async fn a_flood_of_output_is_cut_and_holds_nothing_up(server: &Server) {
    let env = server.env(json!(null)).await;
    let ran = env
        .run(&[
            "sh",
            "-c",
            "head -c 5000000 /dev/zero | tr '\\0' x; echo end > /tmp/end",
        ])
        .await;
    assert_eq!(
        (&ran["exit_code"], &ran["truncated"]),
        (&json!(0), &json!(true))
    );
    assert_eq!(ran["stdout"].as_str().map(str::len), Some(1024 * 1024));
    assert_eq!(env.sh("cat /tmp/end").await, "end\n");
    let exact = env
        .run(&["sh", "-c", "head -c 1048576 /dev/zero | tr '\\0' x"])
        .await;
    assert_eq!(exact["stdout"].as_str().map(str::len), Some(1024 * 1024));
    assert!(exact.get("truncated").is_none(), "nothing was dropped");
}

// check: GATE-22
async fn a_command_that_makes_no_sense_is_refused(server: &Server) {
    let env = server.env(json!(null)).await;
    for (body, path) in [
        (json!({}), "cmd"),
        (json!({"cmd": []}), "cmd"),
        (json!({"cmd": [""]}), "cmd[0]"),
        (json!({"cmd": ["ls", "a\u{0}b"]}), "cmd[1]"),
        (json!({"cmd": ["ls"], "shell": "ls"}), "cmd"),
        (json!({"shell": ""}), "shell"),
        (json!({"shell": " \n"}), "shell"),
        (json!({"shell": "a\u{0}"}), "shell"),
        (json!({"cmd": "ls"}), "cmd"),
        (json!({"cmd": ["ls"], "timeout_ms": -1}), "timeout_ms"),
        (json!({"cmd": ["ls"], "timeout_ms": "1s"}), "timeout_ms"),
        (json!({"cmd": ["ls"], "cwd": "/"}), "cwd"),
    ] {
        let message = env.act("exec", body.clone()).await.invalid();
        assert!(message.starts_with(path), "{body}: {message}");
    }
    // The kernel's own limit is a matter of the command, not a fault of the server.
    let long = "x".repeat(200_000);
    let answer = env.exec(&["true", &long]).await;
    assert!([200, 400].contains(&answer.status), "{}", answer.text);
}

// check: EXEC-8
async fn commands_run_side_by_side_and_an_impatient_caller_harms_nobody(server: &Server) {
    let env = server.env(json!(null)).await;
    let call = env.act(
        "exec",
        json!({"cmd": ["sh", "-c", "sleep 1; echo done > /tmp/impatient"]}),
    );
    let hung_up = tokio::time::timeout(Duration::from_millis(300), call).await;
    assert!(hung_up.is_err());
    let begun = Instant::now();
    let all = (0..8).map(|i| {
        let env = &env;
        async move { env.sh(&format!("sleep 1; echo {i}")).await }
    });
    let printed = futures_util::future::join_all(all).await;
    assert_eq!(printed.concat(), "0\n1\n2\n3\n4\n5\n6\n7\n");
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "they ran one after another"
    );
    assert_eq!(
        env.sh("cat /tmp/impatient").await,
        "done\n",
        "it ran to its end all the same"
    );
}
