//! A disk that takes no more: told, and over by itself.

use crate::bed::key;
use crate::build::{ask, done, environment, insert, raise};
use fuse_store::{Store, StoreConfig, StoreError};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::process::Command;
use std::time::Duration;

const CHILD: &str = "full_disk::in_a_process_whose_files_are_bounded";

/// A limit on the size of files stands for the full disk. It holds for a process, so the work is done in one of its own.
// check: STORE-11
#[test]
fn a_full_disk_is_told_until_there_is_room_again() {
    let program = std::env::current_exe().expect("this program");
    let bounded =
        "trap '' XFSZ; ulimit -S -f 4096; exec \"$0\" --exact \"$1\" --ignored --nocapture";
    let child = Command::new("sh")
        .args(["-c", bounded])
        .arg(program)
        .arg(CHILD)
        .output()
        .expect("sh runs");
    let out = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && out.contains("1 passed"),
        "{out}{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

#[ignore = "needs a limit that holds for its whole process; another test starts it"]
#[tokio::test]
async fn in_a_process_whose_files_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = StoreConfig {
        database_url: format!("sqlite:{}", folder.path().join("fuse.db").display()),
        sealer: key(1),
    };
    let (store, _notices) = Store::open(&config).await.expect("opens");
    let env = environment("agent");
    insert(&store, &env).await;
    assert_eq!(store.failing(), None);
    store.ready().await.expect("ready");

    let large = "x".repeat(15_000);
    let mut on_record = 0;
    let refused = loop {
        match store.commit(raise(&ask(&env, &large))).await {
            Ok(committed) => on_record += done(committed).len(),
            Err(error) => break error,
        }
        assert!(on_record < 900, "the limit is met");
    };
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    let since = store.failing().expect("it is told").since;
    assert!(store.ready().await.is_err(), "a probe does not fit either");
    assert_eq!(store.failing().map(|failing| failing.since), Some(since));

    let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE).expect("a limit");
    setrlimit(Resource::RLIMIT_FSIZE, hard, hard).expect("room again");
    let ready = async {
        while store.ready().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ready)
        .await
        .expect("it is noticed without any other commit");
    assert_eq!(store.failing(), None);
    done(store.commit(raise(&ask(&env, "?"))).await.expect("commits"));
    let pending = store.pending_by_kind().await.expect("reads");
    let pending: i64 = pending.iter().map(|(_, count)| count).sum();
    assert_eq!(
        usize::try_from(pending),
        Ok(on_record + 1),
        "nothing was lost or doubled"
    );
}
