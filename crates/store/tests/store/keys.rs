//! API keys.

use crate::bed::Bed;
use crate::build::{at, destroy, done, environment, insert, running};
use fuse_api::ids::KeyId;
use fuse_api::keys::{ActorLabel, Key, Scope};
use fuse_store::{EnvironmentRow, Inserted, KeyRow};

both!(
    a_key_is_found_by_the_hash_of_its_secret,
    a_key_is_revoked_once_and_stays_on_record,
    a_key_has_one_first_use,
    keys_are_listed_newest_first,
    an_environments_keys_are_revoked_when_it_closes,
);

fn key(n: i64) -> KeyRow {
    KeyRow {
        key: Key {
            id: KeyId::from_uuid(uuid::Uuid::now_v7()),
            label: format!("key {n}"),
            scopes: Vec::new(),
            env_id: None,
            expires_at: None,
            actor: None,
            created_at: at(n),
            revoked_at: None,
        },
        env_uid: None,
        first_used_at: None,
    }
}

fn scoped(env: &EnvironmentRow) -> KeyRow {
    let mut row = key(0);
    row.key.scopes = vec![Scope::Read, Scope::Decide];
    row.key.env_id = Some(env.id.clone());
    row.env_uid = Some(env.uid.clone());
    row.key.expires_at = Some(at(3_600));
    row.key.actor = Some(ActorLabel {
        id: "alice".into(),
        name: Some("Alice".into()),
    });
    row
}

async fn a_key_is_found_by_the_hash_of_its_secret(bed: &Bed) {
    let store = bed.open().await;
    let rows = [key(0), scoped(&environment("agent"))];
    for (row, n) in rows.iter().zip(1..) {
        let inserted = store.insert_key(row, &[n; 32]).await.expect("inserts");
        assert_eq!(inserted, Inserted::Done);
        assert_eq!(
            store.find_key(&[n; 32]).await.expect("reads").as_ref(),
            Some(row)
        );
        assert_eq!(
            store.get_key(&row.key.id).await.expect("reads").as_ref(),
            Some(row)
        );
    }
    assert_eq!(store.find_key(&[9; 32]).await.expect("reads"), None);
    let taken = store.insert_key(&key(1), &[1; 32]).await.expect("answers");
    assert_eq!(taken, Inserted::Taken);
}

async fn a_key_is_revoked_once_and_stays_on_record(bed: &Bed) {
    let store = bed.open().await;
    let row = key(0);
    store.insert_key(&row, &[1; 32]).await.expect("inserts");
    assert!(store.revoke_key(&row.key.id, at(5)).await.expect("revokes"));
    assert!(!store.revoke_key(&row.key.id, at(6)).await.expect("answers"));
    let read = store
        .find_key(&[1; 32])
        .await
        .expect("reads")
        .expect("is there");
    assert_eq!(read.key.revoked_at, Some(at(5)));
}

async fn a_key_has_one_first_use(bed: &Bed) {
    let store = bed.open().await;
    let row = key(0);
    store.insert_key(&row, &[1; 32]).await.expect("inserts");
    assert!(
        store
            .mark_key_used(&row.key.id, at(5))
            .await
            .expect("marks")
    );
    assert!(
        !store
            .mark_key_used(&row.key.id, at(6))
            .await
            .expect("marks")
    );
    let read = store
        .get_key(&row.key.id)
        .await
        .expect("reads")
        .expect("is there");
    assert_eq!(read.first_used_at, Some(at(5)));
}

async fn keys_are_listed_newest_first(bed: &Bed) {
    let store = bed.open().await;
    for n in 0..5 {
        store
            .insert_key(&key(n), &[n as u8; 32])
            .await
            .expect("inserts");
    }
    let first = store.list_keys(3, None).await.expect("lists");
    let rest = store
        .list_keys(3, first.next.as_deref())
        .await
        .expect("lists");
    assert_eq!(rest.next, None);
    let listed = first
        .items
        .iter()
        .chain(&rest.items)
        .map(|k| k.key.created_at);
    assert_eq!(listed.collect::<Vec<_>>(), [4, 3, 2, 1, 0].map(at));
}

async fn an_environments_keys_are_revoked_when_it_closes(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let other = environment("other");
    insert(&store, &other).await;
    let (mine, theirs, free) = (scoped(&env), scoped(&other), key(0));
    for (row, n) in [&mine, &theirs, &free].into_iter().zip(1..) {
        store.insert_key(row, &[n; 32]).await.expect("inserts");
    }
    done(store.commit(destroy(&env)).await.expect("commits"));
    let revoked = async |row: &KeyRow| {
        let read = store.get_key(&row.key.id).await.expect("reads");
        read.expect("is there").key.revoked_at
    };
    assert_eq!(revoked(&mine).await, Some(at(3)));
    assert_eq!(revoked(&theirs).await, None);
    assert_eq!(revoked(&free).await, None);
}
