//! What an environment keeps from its guest and what it survives.

use std::path::PathBuf;

use fuse_e2e::{Env, Server, Store, both, each_store, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

both!(
    a_guest_sees_nothing_of_the_server,
    limits_of_the_request_hold,
    a_destroyed_environment_leaves_neither_process_nor_folder,
    a_guest_that_died_makes_its_environment_fail,
);
each_store!(an_environment_goes_on_while_its_server_is_away);

/// The folder of an environment and the number of its first process.
fn place(server: &Server, env: &Env) -> (PathBuf, i32) {
    // Ids of lives begin like the environment's own, cut at 24 characters.
    let start: String = env.id.chars().take(24).collect();
    let mut folders = server.data().environment_folders().into_iter();
    let folder = folders
        .find(|f| {
            f.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with(start.trim_end_matches('-')))
        })
        .expect("the environment's folder");
    let meta = std::fs::read_to_string(folder.join("meta.json")).expect("meta.json");
    let meta: Value = serde_json::from_str(&meta).expect("JSON");
    let pid = meta["process"]["pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok());
    (folder, pid.expect("a process number"))
}

// check: BOX-1, BOX-3, BOX-4, BOX-7
async fn a_guest_sees_nothing_of_the_server(server: &Server) {
    let env = server.env(json!(null)).await;
    let seen = env.sh("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; env; cat /proc/mounts; ls / /root /home /var /run 2>/dev/null; true").await;
    assert!(
        !seen.contains(server.token()),
        "the master token is visible"
    );
    for word in [
        "ORCH_",
        "FUSE_TEST",
        "DATABASE_URL",
        "fuse.db",
        "master-token",
    ] {
        assert!(!seen.contains(word), "{word} is visible: {seen}");
    }
    let folder = server.data().folder().display().to_string();
    assert_ne!(env.run(&["ls", &folder]).await["exit_code"], 0);
    let open = env.sh("ls -l /proc/1/fd 2>/dev/null; true").await;
    assert!(!open.contains("fuse.db"), "{open}");
    let dial = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}",
        server.address().rsplit(':').next().expect("a port")
    );
    assert_ne!(
        env.run(&["bash", "-c", &dial]).await["exit_code"],
        0,
        "it has no network of the host"
    );
    let host = server.env_of(json!({"spec": {"network": "host"}})).await;
    assert_eq!(
        host.run(&["bash", "-c", &dial]).await["exit_code"],
        0,
        "it has asked for the host's network"
    );
}

// check: BOX-10
async fn limits_of_the_request_hold(server: &Server) {
    let env = server
        .env_of(json!({"spec": {"max_processes": 32, "ram_mb": 128}}))
        .await;
    let (_, pid) = place(server, &env);
    let space =
        std::fs::read_link(format!("/proc/{pid}/ns/pid")).expect("the guest's process space");
    let text = "n=0; while [ $n -lt 100 ]; do sleep 30 & n=$((n+1)); done; true";
    env.run(&["sh", "-c", text]).await;
    let inside = |entry: std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("ns/pid")).is_ok_and(|other| other == space)
    };
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let running = processes.map(inside).filter(|inside| *inside).count();
    assert!((8..=32).contains(&running), "{running} processes");
    // A full environment says so, and does not hang.
    let full = env.exec(&["true"]).await;
    assert!([200, 503].contains(&full.status), "{}", full.text);
    let roomy = server.env_of(json!({"spec": {"ram_mb": 64}})).await;
    let greedy = roomy
        .run(&[
            "sh",
            "-c",
            "x=$(head -c 400000000 /dev/zero | tr '\\0' x); echo ${#x}",
        ])
        .await;
    assert_ne!(greedy["stdout"], "400000000\n", "400 MB in 64 MB");
    assert_eq!(roomy.sh("echo still here").await, "still here\n");
}

// check: ENV-5, BOX-14
async fn a_destroyed_environment_leaves_neither_process_nor_folder(server: &Server) {
    let env = server
        .env_of(json!({"run": "sleep 1000 & exec sleep 1000"}))
        .await;
    let (folder, pid) = place(server, &env);
    let first = PathBuf::from(format!("/proc/{pid}/cmdline"));
    assert!(first.exists() && folder.is_dir());
    env.run(&[
        "sh",
        "-c",
        "mkdir -p d/e/f && chmod 000 d && setsid sleep 1000 >/dev/null 2>&1 &",
    ])
    .await;
    env.destroy().await.ok(204);
    assert!(!folder.exists());
    assert!(!std::fs::read(first).is_ok_and(|line| line.starts_with(b"fused")));
}

// check: ENV-16, INV-7
async fn a_guest_that_died_makes_its_environment_fail(server: &Server) {
    let env = server.env(json!({"requests": {"ask": {}}})).await;
    let asked = env.ask("Are you there?").await;
    let mut events = env.api.events(&env.id).await;
    events.next().await.expect("the state");
    let (_, pid) = place(server, &env);
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("the guest is this test's");
    let failed = until("it is shown as failed", async || {
        let read = env.get().await.ok(200);
        (read["state"] == "failed" && read["error"].is_string()).then_some(read)
    })
    .await;
    assert!(
        failed["error"]
            .as_str()
            .is_some_and(|e| e.contains("guest")),
        "{failed}"
    );
    assert_eq!(env.api.read(&asked).await["state"], "cancelled");
    let refused = env.exec(&["true"]).await.refused(409, "conflict");
    assert_eq!(refused["details"]["state"], "failed");
    let mut last = json!(null);
    while let Some(event) = events.next().await {
        last = event;
    }
    assert_eq!(last["state"], "failed", "{last}");
    env.destroy().await.ok(204);
    env.get().await.refused(404, "not_found");
}

// check: ENV-15, INV-11
async fn an_environment_goes_on_while_its_server_is_away(store: Store) {
    let server = Server::start(store);
    let env = server
        .env_of(
            json!({"hitl": {"requests": {"ask": {}}}, "env": {"KEPT": {"value": "kept"}},
            "run": "n=0; while true; do n=$((n+1)); echo $n > /tmp/m; mv /tmp/m /tmp/n; sleep 0.05; done"}),
        )
        .await;
    let asked = env.ask("Still there afterwards?").await;
    let before: u64 = env
        .sh("until [ -s /tmp/n ]; do sleep 0.05; done; cat /tmp/n")
        .await
        .trim()
        .parse()
        .expect("a number");
    let (_, pid) = place(&server, &env);
    for round in 0..2 {
        if round == 0 {
            server.kill9()
        } else {
            let _ = server.stop();
        }
        server.restart();
        let (_, now) = place(&server, &env);
        assert_eq!(now, pid, "it is the same guest");
        assert_eq!(env.sh("echo $KEPT").await, "kept\n");
    }
    let after: u64 = env.sh("cat /tmp/n").await.trim().parse().expect("a number");
    assert!(after > before, "its task went on: {before} {after}");
    assert_eq!(env.api.read(&asked).await["state"], "pending");
    env.api
        .approve(&asked, json!({"answer": "yes"}))
        .await
        .ok(200);
    env.destroy().await.ok(204);
    assert!(server.data().environment_folders().is_empty());
}
