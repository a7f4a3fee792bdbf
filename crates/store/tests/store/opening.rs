//! What a store opens, and what it refuses to.

use crate::bed::{Bed, Kind, key};
use fuse_store::{OpenError, Store};
use std::sync::Arc;

both!(
    migrations_run_once_though_many_start_at_once,
    a_database_of_a_newer_release_is_refused,
    a_database_of_the_first_release_is_brought_into_shape,
    a_url_that_names_no_database_is_refused,
);

// check: STORE-6
async fn migrations_run_once_though_many_start_at_once(bed: &Bed) {
    let url = Arc::new(bed.url.clone());
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let url = Arc::clone(&url);
        opening.spawn(async move {
            let config = fuse_store::StoreConfig {
                database_url: (*url).clone(),
                sealer: key(1),
            };
            Store::open(&config).await.map(|(store, _)| store)
        });
    }
    let mut stores = Vec::new();
    while let Some(opened) = opening.join_next().await {
        match opened.expect("opens") {
            Ok(store) => stores.push(store),
            // One file, one server.
            Err(OpenError::InUse { .. }) if bed.kind == Kind::Sqlite => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(stores.len(), if bed.kind == Kind::Sqlite { 1 } else { 6 });
    for store in stores {
        store.close().await;
    }
    let applied = bed.number("SELECT COUNT(*) FROM _sqlx_migrations").await;
    bed.open().await;
    assert_eq!(
        bed.number("SELECT COUNT(*) FROM _sqlx_migrations").await,
        applied
    );
    assert_eq!(bed.number("SELECT COUNT(*) FROM chain_head").await, 1);
}

// check: STORE-6
async fn a_database_of_the_first_release_is_brought_into_shape(bed: &Bed) {
    bed.open().await.close().await;
    bed.alter("DROP TABLE probes").await;
    bed.alter("DELETE FROM _sqlx_migrations WHERE version > 1")
        .await;
    bed.open().await.close().await;
    assert_eq!(bed.number("SELECT COUNT(*) FROM probes").await, 0);
}

// check: STORE-6
async fn a_database_of_a_newer_release_is_refused(bed: &Bed) {
    bed.open().await.close().await;
    bed.alter("UPDATE _sqlx_migrations SET version = 9999 WHERE version = (SELECT MAX(version) FROM _sqlx_migrations)")
        .await;
    let refused = bed.try_open(key(1)).await.err();
    assert!(
        matches!(refused, Some(OpenError::NewerRelease(9999))),
        "{refused:?}"
    );
}

async fn a_url_that_names_no_database_is_refused(_: &Bed) {
    for url in [
        "",
        "mysql://x",
        "sqlite:",
        "sqlite::memory:",
        "sqlite:a?mode=ro",
        "/x.db",
    ] {
        let config = fuse_store::StoreConfig {
            database_url: url.into(),
            sealer: key(1),
        };
        let refused = Store::open(&config).await.err();
        assert!(
            matches!(refused, Some(OpenError::Url)),
            "{url}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_new_database_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("fuse.db");
    let config = fuse_store::StoreConfig {
        database_url: format!("sqlite:{}", path.display()),
        sealer: fuse_store::Sealer::plain(),
    };
    let (store, _notices) = Store::open(&config).await.expect("opens");
    for name in ["fuse.db", "fuse.db-wal", "fuse.db-shm"] {
        let mode = std::fs::metadata(folder.path().join(name))
            .expect(name)
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    store.close().await;
}
