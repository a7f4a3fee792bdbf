//! Reviews: what is shown is what was read.

use fuse_e2e::{Env, Server, both};
use serde_json::{Value, json};

const MIB: usize = 1024 * 1024;

both!(
    a_file_is_read_when_the_review_is_raised,
    comments_come_back_on_both_outcomes,
    links_are_followed_inside_and_told,
    what_is_no_regular_file_of_the_guest_is_refused,
    long_and_broken_text_is_cut_and_marked,
    a_format_is_taken_or_guessed,
    inline_content_has_its_bounds,
);

async fn env(server: &Server) -> Env {
    server.env(json!({"requests": {"review": {}}})).await
}

async fn review(env: &Env, body: Value) -> Value {
    let mut body = body;
    body["kind"] = json!("review");
    env.request(body).await.ok(201)["payload"]["review"].clone()
}

// check: REVIEW-1, REVIEW-3, REVIEW-13
async fn a_file_is_read_when_the_review_is_raised(server: &Server) {
    let env = env(server).await;
    env.sh("mkdir -p /srv && echo 'CREATE INDEX a;' > /srv/0042.sql")
        .await;
    let body = json!({"kind": "review", "path": "/srv/0042.sql", "message": "safe to run online?"});
    let raised = env.request(body).await.ok(201);
    let shown = json!({"path": "/srv/0042.sql", "content": "CREATE INDEX a;\n", "format": "text", "message": "safe to run online?"});
    assert_eq!(raised["payload"], json!({"review": shown}));
    env.sh("echo 'DROP TABLE a;' > /srv/0042.sql").await;
    let read = env.api.read(raised["id"].as_str().expect("an id")).await;
    assert_eq!(
        read["payload"], raised["payload"],
        "a later change changes nothing"
    );
    for bad in [json!({}), json!({"path": "/srv/0042.sql", "content": "x"})] {
        let mut body = bad;
        body["kind"] = json!("review");
        env.request(body).await.invalid();
    }
    let long = json!({"kind": "review", "content": "x", "message": "x".repeat(64 * 1024 + 1)});
    assert!(env.request(long).await.invalid().starts_with("message"));
}

// check: REVIEW-8, REVIEW-9, ASK-10
async fn comments_come_back_on_both_outcomes(server: &Server) {
    let env = env(server).await;
    let raise = async || {
        let raised = env
            .request(json!({"kind": "review", "content": "a"}))
            .await
            .ok(201);
        raised["id"].as_str().expect("an id").to_owned()
    };
    let id = raise().await;
    for field in [
        "answer",
        "edited_argv",
        "edited_text",
        "grant",
        "extend_seconds",
    ] {
        let value = match field {
            "edited_argv" => json!(["ls"]),
            "extend_seconds" => json!(60),
            "grant" => json!("once"),
            _ => json!("x"),
        };
        let message = env
            .api
            .approve(&id, json!({ field: value }))
            .await
            .invalid();
        assert!(message.starts_with(field), "{message}");
    }
    let approved = env
        .api
        .approve(&id, json!({"reason": "outside business hours"}))
        .await
        .ok(200);
    assert_eq!(approved["decision"]["reason"], "outside business hours");
    let id = raise().await;
    let rejected = env.api.reject(&id, "split it out").await.ok(200);
    assert_eq!(
        (&rejected["state"], &rejected["decision"]["reason"]),
        (&json!("rejected"), &json!("split it out"))
    );
}

// check: REVIEW-10, REVIEW-11
async fn links_are_followed_inside_and_told(server: &Server) {
    let env = env(server).await;
    env.sh("mkdir -p /srv/real && echo here > /srv/real/a && ln -s real /srv/dir && ln -s ../srv/dir/a /srv/link").await;
    let shown = review(&env, json!({"path": "/srv/link"})).await;
    assert_eq!(shown["content"], "here\n");
    assert_eq!(
        (&shown["path"], &shown["resolved_path"]),
        (&json!("/srv/link"), &json!("/srv/real/a"))
    );
    // A link's absolute target is one of the guest, never of the host.
    env.sh("ln -s /etc/hostname /srv/host && ln -s /proc/self/root/etc/shadow /srv/proc && ln -s /srv/loop /srv/loop").await;
    let hostname = env.sh("cat /etc/hostname 2>/dev/null || true").await;
    let body = json!({"kind": "review", "path": "/srv/host"});
    let reply = env.request(body).await;
    if reply.status == 201 {
        assert_eq!(reply.json()["payload"]["review"]["content"], hostname);
    }
    for bad in ["/srv/proc", "/srv/loop"] {
        let message = env
            .request(json!({"kind": "review", "path": bad}))
            .await
            .invalid();
        assert!(message.starts_with("path"), "{message}");
    }
}

// check: REVIEW-2, REVIEW-5, REVIEW-10
async fn what_is_no_regular_file_of_the_guest_is_refused(server: &Server) {
    let env = env(server).await;
    env.sh("mkdir -p /srv; mkfifo /srv/fifo; ln -s /dev/zero /srv/zero; ln -s fifo /srv/to-fifo; touch /srv/closed; chmod 000 /srv/closed").await;
    for path in [
        "/srv/none",
        "/srv",
        "/srv/fifo",
        "/srv/zero",
        "/srv/to-fifo",
        "/proc/1/environ",
        "/proc/self/status",
        "/sys/kernel/notes",
        "/dev/null",
        "/dev/zero",
        "/fuse",
        "/fuse/token",
        "/srv/none/deeper",
    ] {
        let begun = std::time::Instant::now();
        let message = env
            .request(json!({"kind": "review", "path": path}))
            .await
            .invalid();
        assert!(message.starts_with("path"), "{path}: {message}");
        assert!(begun.elapsed().as_secs() < 5, "{path} held it up");
    }
    for path in [
        "",
        "/",
        "work/a",
        "./a",
        "/srv/",
        "/srv//a",
        "/srv/./a",
        "/srv/../etc/passwd",
        "/srv/a\u{0}b",
    ] {
        let message = env
            .request(json!({"kind": "review", "path": path}))
            .await
            .invalid();
        assert!(message.starts_with("path"), "{path:?}: {message}");
    }
    assert!(env.interventions().await.is_empty());
}

// check: REVIEW-4, REVIEW-6, REVIEW-12
async fn long_and_broken_text_is_cut_and_marked(server: &Server) {
    let env = env(server).await;
    let make = format!(
        "mkdir -p /srv; cd /srv; head -c {} /dev/zero | tr '\\0' a > full; cp full over; printf b >> over; \
         head -c {} /dev/zero | tr '\\0' a > split; printf '\\303\\251\\303\\251' >> split; \
         printf 'a\\377\\376b\\303' > broken; : > empty; printf 'a\\000b' > nul",
        MIB,
        MIB - 1
    );
    env.sh(&make).await;
    let full = review(&env, json!({"path": "/srv/full"})).await;
    assert_eq!(full["content"].as_str().map(str::len), Some(MIB));
    assert!(full.get("truncated").is_none() && full.get("lossy").is_none());
    let over = review(&env, json!({"path": "/srv/over"})).await;
    assert_eq!(over["content"].as_str().map(str::len), Some(MIB));
    assert_eq!(over["truncated"], true);
    let split = review(&env, json!({"path": "/srv/split"})).await;
    assert_eq!(
        split["content"].as_str().map(str::len),
        Some(MIB - 1),
        "cut before a character, not in it"
    );
    assert_eq!(split["truncated"], true);
    assert!(
        split.get("lossy").is_none(),
        "a cut character is no broken one"
    );
    let broken = review(&env, json!({"path": "/srv/broken"})).await;
    assert_eq!(broken["content"], "a\u{fffd}\u{fffd}b\u{fffd}");
    assert_eq!(broken["lossy"], true);
    assert_eq!(
        review(&env, json!({"path": "/srv/empty"})).await["content"],
        ""
    );
    assert_eq!(
        review(&env, json!({"path": "/srv/nul"})).await["content"],
        "a\u{0}b"
    );
}

// check: REVIEW-7
async fn a_format_is_taken_or_guessed(server: &Server) {
    let env = env(server).await;
    env.sh("mkdir -p /srv; echo plain > /srv/a.patch; echo plain > /srv/a.diff; echo plain > /srv/a.txt").await;
    for (body, format) in [
        (json!({"content": "diff --git a/x b/x\n"}), "diff"),
        (json!({"content": "--- a\n+++ b\n"}), "diff"),
        (json!({"content": "--- a\nplain\n"}), "text"),
        (json!({"content": "---\ntitle: a\n---\n"}), "text"),
        (json!({"content": "plain", "format": "diff"}), "diff"),
        (
            json!({"content": "--- a\n+++ b\n", "format": "text"}),
            "text",
        ),
        (json!({"content": "--- a\n+++ b\n", "format": ""}), "diff"),
        (json!({"path": "/srv/a.patch"}), "diff"),
        (json!({"path": "/srv/a.diff"}), "diff"),
        (json!({"path": "/srv/a.txt"}), "text"),
        (json!({"path": "/srv/a.patch", "format": "text"}), "text"),
    ] {
        assert_eq!(review(&env, body.clone()).await["format"], format, "{body}");
    }
    let message = env
        .request(json!({"kind": "review", "content": "x", "format": "html"}))
        .await
        .invalid();
    assert!(message.starts_with("format"), "{message}");
}

// check: REVIEW-6
async fn inline_content_has_its_bounds(server: &Server) {
    let env = env(server).await;
    let inline = |content: String| json!({"kind": "review", "content": content});
    let shown = review(&env, json!({"content": "x".repeat(MIB)})).await;
    assert_eq!(shown["content"].as_str().map(str::len), Some(MIB));
    assert!(shown.get("truncated").is_none());
    env.request(inline("x".repeat(MIB + 1)))
        .await
        .refused(413, "payload_too_large");
    assert!(
        env.request(inline(String::new()))
            .await
            .invalid()
            .starts_with("content")
    );
    assert!(
        env.request(inline("a\u{0}".to_owned()))
            .await
            .invalid()
            .starts_with("content")
    );
}
