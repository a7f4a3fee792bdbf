//! Reading and writing files against links and special files.

use super::{Bench, must, sh, suite};
use crate::{CallError, FileContent, Guest, RefusalCode};
use std::{sync::Arc, time::Duration};

suite![
    what_was_written_is_read,
    reading_is_cut_at_the_asked_size,
    links_are_resolved_inside_and_shown,
    special_files_are_refused_and_never_block,
    nothing_of_the_kernels_trees_is_read_however_it_is_reached,
    unclean_paths_are_refused,
    writing_follows_no_link,
    writing_makes_private_parents_and_replaces_atomically,
    a_file_that_is_swapped_while_it_is_read_never_shows_another_tree,
];

async fn read(guest: &Arc<dyn Guest>, path: &str) -> Result<FileContent, CallError> {
    match tokio::time::timeout(Duration::from_secs(5), guest.read_file(path, 1 << 20)).await {
        Ok(result) => result,
        Err(_) => panic!("reading {path} hangs"),
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, CallError>, expected: RefusalCode, path: &str) {
    match result {
        Err(CallError::Refused(refusal)) => assert_eq!(refusal.code, expected, "{path}: {refusal}"),
        other => panic!("{path} brought {other:?}"),
    }
}

async fn what_was_written_is_read(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            for content in [b"".to_vec(), b"hello\n\0\xff".to_vec(), vec![7; 1 << 20]] {
                must(
                    guest.write_file("/workspace/f", 0o640, &content).await,
                    "write",
                );
                let read = must(read(&guest, "/workspace/f").await, "read");
                assert_eq!((read.bytes == content, read.truncated), (true, false));
                assert_eq!(read.resolved, "/workspace/f");
            }
            assert_eq!(sh(&guest, "stat -c %a /workspace/f").await.ok(), "640");
        })
        .await;
}

async fn reading_is_cut_at_the_asked_size(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            sh(&guest, "head -c 100 /dev/zero > /workspace/f")
                .await
                .ok();
            let cut = must(guest.read_file("/workspace/f", 99).await, "read");
            assert_eq!((cut.bytes.len(), cut.size, cut.truncated), (99, 100, true));
            let whole = must(guest.read_file("/workspace/f", 100).await, "read");
            assert_eq!(
                (whole.bytes.len(), whole.size, whole.truncated),
                (100, 100, false)
            );
            refused(
                guest.read_file("/workspace/f", 1 << 40).await,
                RefusalCode::BadRequest,
                "a huge size",
            );
        })
        .await;
}

// check: REVIEW-10 REVIEW-11
async fn links_are_resolved_inside_and_shown(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            sh(
                &guest,
                "echo x > /tmp/real; ln -s ../tmp/real l1; ln -s /workspace/l1 l2; ln -s loop loop",
            )
            .await
            .ok();
            let found = must(read(&guest, "/workspace/l2").await, "read");
            assert_eq!(
                (found.resolved.as_str(), found.bytes.as_slice()),
                ("/tmp/real", b"x\n".as_slice())
            );
            refused(
                read(&guest, "/workspace/loop").await,
                RefusalCode::TooManyLinks,
                "a loop",
            );
            sh(&guest, "ln -s /etc/shadow s; ln -s /root/.ssh/id_rsa k")
                .await
                .ok();
            refused(
                read(&guest, "/workspace/s").await,
                RefusalCode::NotFound,
                "the machine's shadow",
            );
            refused(
                read(&guest, "/workspace/k").await,
                RefusalCode::NotFound,
                "the machine's keys",
            );
        })
        .await;
}

// check: REVIEW-10
async fn special_files_are_refused_and_never_block(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let make = "mkfifo fifo; mkdir dir; ln -s fifo link; perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un(\"sock\"))'";
            sh(&guest, make).await.ok();
            for name in ["fifo", "dir", "link", "sock"] {
                let path = format!("/workspace/{name}");
                refused(read(&guest, &path).await, RefusalCode::NotRegular, &path);
            }
            for name in ["fifo", "dir", "sock"] {
                let path = format!("/workspace/{name}");
                refused(guest.write_file(&path, 0o600, b"x").await, RefusalCode::NotRegular, &path);
            }
            refused(read(&guest, "/").await, RefusalCode::NotRegular, "/");
            refused(read(&guest, "/workspace/none").await, RefusalCode::NotFound, "nothing");
            refused(read(&guest, "/etc/passwd/x").await, RefusalCode::NotDirectory, "below a file");
        })
        .await;
}

// check: REVIEW-10
async fn nothing_of_the_kernels_trees_is_read_however_it_is_reached(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            for path in ["/proc/1/environ", "/proc/self/root/etc/passwd", "/dev/null", "/sys/x", "/fuse/x", "/proc"] {
                refused(read(&guest, path).await, RefusalCode::Forbidden, path);
                refused(guest.write_file(path, 0o600, b"x").await, RefusalCode::Forbidden, path);
            }
            sh(&guest, "ln -s /proc/version p; ln -s /proc t; ln -s /dev/zero z; ln -s /dev/fd/0 i; ln -s /proc/self/root/etc/passwd r").await.ok();
            refused(read(&guest, "/workspace/p").await, RefusalCode::Forbidden, "a link to /proc");
            refused(read(&guest, "/workspace/t/version").await, RefusalCode::Forbidden, "through a link to /proc");
            refused(read(&guest, "/workspace/z").await, RefusalCode::Forbidden, "a link to a device");
            for name in ["i", "r"] {
                let path = format!("/workspace/{name}");
                refused(read(&guest, &path).await, RefusalCode::TooManyLinks, &path);
            }
        })
        .await;
}

async fn unclean_paths_are_refused(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let long = format!("/{}", "a/".repeat(2100));
            for path in [
                "",
                "x",
                "./x",
                "/a/../etc/passwd",
                "/a//b",
                "/a/./b",
                "/etc/passwd/",
                "/a\0b",
                &long,
            ] {
                refused(read(&guest, path).await, RefusalCode::BadPath, path);
                refused(
                    guest.write_file(path, 0o600, b"x").await,
                    RefusalCode::BadPath,
                    path,
                );
            }
        })
        .await;
}

async fn writing_follows_no_link(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            sh(&guest, "mkdir /tmp/d; echo old > /tmp/d/f; ln -s /tmp/d dl; ln -s /tmp/d/f fl; ln -s /nowhere nl").await.ok();
            for name in ["dl/f", "dl/new/f", "fl", "nl", "nl/f"] {
                let path = format!("/workspace/{name}");
                refused(guest.write_file(&path, 0o600, b"new").await, RefusalCode::LinkInPath, &path);
            }
            assert_eq!(sh(&guest, "cat /tmp/d/f; ls /tmp/d; ls -A /workspace").await.ok(), "old\nf\ndl\nfl\nnl");
            refused(guest.write_file("/etc/passwd/x", 0o600, b"").await, RefusalCode::NotDirectory, "below a file");
        })
        .await;
}

async fn writing_makes_private_parents_and_replaces_atomically(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            must(
                guest.write_file("/root/a/b/secret", 0o600, b"one").await,
                "write",
            );
            assert_eq!(
                sh(&guest, "stat -c %a /root/a /root/a/b /root/a/b/secret")
                    .await
                    .ok(),
                "700\n700\n600"
            );
            // Another name of the old file keeps the old content: it was replaced, not overwritten.
            sh(&guest, "ln /root/a/b/secret /root/other").await.ok();
            must(
                guest.write_file("/root/a/b/secret", 0o600, b"two").await,
                "write",
            );
            assert_eq!(
                sh(&guest, "cat /root/other /root/a/b/secret; ls -A /root/a/b")
                    .await
                    .ok(),
                "onetwosecret"
            );
        })
        .await;
}

// check: REVIEW-11
async fn a_file_that_is_swapped_while_it_is_read_never_shows_another_tree(bench: Arc<Bench>) {
    bench
        .with(|guest| async move {
            let swap = r#"while (1) { unlink "f"; symlink "/proc/self/status", "f"; unlink "f"; open(F, ">", "g"); print F "mine"; close F; rename "g", "f" }"#;
            let spec = super::argv(&["perl", "-e", swap]);
            let id = spec.command_id.clone();
            let other = Arc::clone(&guest);
            let swapper = tokio::spawn(async move { other.exec(spec).await });
            for _ in 0..300 {
                match read(&guest, "/workspace/f").await {
                    Ok(found) => assert!(b"mine".starts_with(&found.bytes), "{:?}", found.bytes),
                    Err(CallError::Refused(refusal)) => assert!(
                        matches!(refusal.code, RefusalCode::Forbidden | RefusalCode::NotFound | RefusalCode::TooManyLinks),
                        "{refusal}"
                    ),
                    Err(other) => panic!("{other:?}"),
                }
            }
            must(guest.cancel(&id).await, "cancel");
            let _ = swapper.await;
        })
        .await;
}
