//! What is at rest is sealed, and a wrong key is told at once.

use crate::bed::{Bed, Kind, key};
use crate::build::{approve, ask, at, decision, done, environment, insert, raised, running};
use fuse_api::hitl::GrantReach;
use fuse_api::ids::InterventionId;
use fuse_api::intervention::{Intervention, Outcome};
use fuse_domain::intervention::run;
use fuse_domain::transition::Grant;
use fuse_store::{InterventionFilter, OpenError, Sealer, Store};

both!(
    no_content_is_at_rest_in_the_clear,
    a_sealed_database_opens_with_its_own_key_alone,
    a_database_in_the_clear_takes_a_key_from_then_on,
    without_a_key_content_is_stored_plain,
    altered_content_is_told_and_the_rest_is_shown,
    each_altered_column_is_told_and_hides_nothing_else,
    a_row_that_makes_no_sense_is_left_out_of_a_list,
    content_moved_to_another_row_or_column_does_not_open,
    what_does_not_open_still_ends,
    what_cannot_be_read_holds_up_nothing_else,
);

const CONTENT: [&str; 6] = [
    "the-question",
    "the-answer",
    "the-reason",
    "the-edited-argv",
    "the-edited-text",
    "the-result",
];

/// Puts every kind of content on record.
async fn everything(store: &Store) -> fuse_api::ids::InterventionId {
    let env = running(store).await;
    let mut record = ask(&env, "the-question");
    record.view.kind = fuse_api::intervention::Kind::Exec;
    let record = raised(store, record).await;
    let mut approval = approve(&record, "p");
    if let Some(resolve) = &mut approval.resolve {
        resolve.decision = decision(Outcome::Approve, "p");
        resolve.decision.answer = "the-answer".into();
        resolve.decision.reason = "the-reason".into();
        resolve.decision.edited_argv = Some(vec!["the-edited-argv".into()]);
        resolve.decision.edited_text = Some("the-edited-text".into());
    }
    approval.grants = vec![Grant {
        env_uid: env.uid.clone(),
        gate: "g".into(),
        key: "digest-of-the-argv".into(),
        reach: GrantReach::Env,
        expires_at: None,
        intervention_id: record.view.id.clone(),
        created_at: at(0),
    }];
    let approved = done(store.commit(approval).await.expect("commits")).remove(0);
    let finished = run::finish(&approved, run::failed("the-result"));
    done(store.commit(finished).await.expect("commits"));
    let keys = ["digest-of-the-argv".to_owned()];
    let grants = store
        .live_grants(&env.uid, &keys, at(1))
        .await
        .expect("reads");
    assert_eq!(grants[0].key, keys[0]);
    record.view.id.clone()
}

/// Every byte of the tables that hold content.
async fn at_rest(bed: &Bed) -> Vec<u8> {
    let columns = [
        "payload",
        "answer",
        "reason",
        "edited_argv",
        "edited_text",
        "result",
    ];
    let mut bytes = Vec::new();
    for column in columns {
        let sql = format!("SELECT {column} FROM interventions WHERE {column} IS NOT NULL");
        bytes.extend(bed.bytes(&sql).await.concat());
    }
    let rows = match bed.kind {
        Kind::Sqlite => {
            "SELECT CAST(json_group_array(g.key || i.raised_id) AS BLOB) FROM grants g, interventions i"
        }
        Kind::Postgres => {
            "SELECT convert_to(i::text || g::text, 'UTF8') FROM interventions i, grants g"
        }
    };
    bytes.extend(bed.bytes(rows).await.concat());
    bytes
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

// check: SEAL-1
// check: SEAL-7
// check: AUDIT-2
async fn no_content_is_at_rest_in_the_clear(bed: &Bed) {
    let store = bed.open().await;
    let id = everything(&store).await;
    let record = store
        .get_intervention(&id)
        .await
        .expect("reads")
        .expect("is there");
    let shown = format!("{record:?}");
    assert!(CONTENT.iter().all(|text| shown.contains(text)));
    let log = format!("{:?}", crate::build::verified_log(&store).await);
    assert!(log.contains(id.as_str()));
    assert!(!CONTENT.iter().any(|text| log.contains(text)));
    store.close().await;
    let stored = at_rest(bed).await;
    assert!(stored.len() > 200);
    let clear = CONTENT.iter().find(|text| holds(&stored, text));
    assert_eq!(clear, None);
    assert!(
        !holds(&stored, &record.view.payload_hash),
        "short content can be guessed by its hash"
    );
    let grant = bed
        .number("SELECT COUNT(*) FROM grants WHERE key = 'digest-of-the-argv'")
        .await;
    assert_eq!(grant, 0, "and so can a grant's key");
    let plain = bed
        .number("SELECT COUNT(*) FROM interventions WHERE state = 'approved' AND kind = 'exec' AND deadline > 0")
        .await;
    assert_eq!(plain, 1, "ids, states and times are there to be queried");
}

// check: SEAL-5
async fn a_sealed_database_opens_with_its_own_key_alone(bed: &Bed) {
    let store = bed.open().await;
    let id = everything(&store).await;
    store.close().await;
    let stored = key(1).key_id().expect("a key");
    match bed.try_open(key(2)).await.err() {
        Some(OpenError::KeyWrong { stored: was, given }) => {
            assert_eq!((was, Some(given)), (stored.clone(), key(2).key_id()));
        }
        other => panic!("{other:?}"),
    }
    match bed.try_open(Sealer::plain()).await.err() {
        Some(OpenError::KeyMissing { stored: was }) => assert_eq!(was, stored),
        other => panic!("{other:?}"),
    }
    let store = bed.open().await;
    assert!(store.get_intervention(&id).await.expect("reads").is_some());
    store.close().await;
    bed.alter("UPDATE sealing SET canary = (SELECT payload FROM interventions)")
        .await;
    assert!(matches!(
        bed.try_open(key(1)).await.err(),
        Some(OpenError::Canary)
    ));
}

// check: SEAL-4
async fn a_database_in_the_clear_takes_a_key_from_then_on(bed: &Bed) {
    let (store, _) = bed.try_open(Sealer::plain()).await.expect("opens");
    let old = everything(&store).await;
    store.close().await;
    let store = bed.open().await;
    let read = store
        .get_intervention(&old)
        .await
        .expect("reads")
        .expect("is there");
    assert!(format!("{read:?}").contains("the-question"));
    let env = store
        .list_environments(&Default::default(), 1, None)
        .await
        .expect("lists");
    raised(&store, ask(&env.items[0], "sealed-question")).await;
    store.close().await;
    assert!(!holds(&at_rest(bed).await, "sealed-question"));
    assert!(matches!(
        bed.try_open(Sealer::plain()).await.err(),
        Some(OpenError::KeyMissing { .. })
    ));
}

// check: SEAL-4
async fn without_a_key_content_is_stored_plain(bed: &Bed) {
    let (store, _) = bed.try_open(Sealer::plain()).await.expect("opens");
    let id = everything(&store).await;
    store.close().await;
    let stored = at_rest(bed).await;
    assert!(CONTENT.iter().all(|text| holds(&stored, text)));
    let (store, _) = bed.try_open(Sealer::plain()).await.expect("opens again");
    assert!(store.get_intervention(&id).await.expect("reads").is_some());
}

/// Flips the last bit of a stored value.
fn flip(bed: &Bed, column: &str) -> String {
    match bed.kind {
        // SQLite has no way to set a byte; cutting the last one off alters the value as well.
        Kind::Sqlite => {
            format!("UPDATE interventions SET {column} = substr({column}, 1, length({column}) - 1)")
        }
        Kind::Postgres => format!(
            "UPDATE interventions SET {column} = set_bit({column}, length({column}) * 8 - 1, \
             1 - get_bit({column}, length({column}) * 8 - 1))"
        ),
    }
}

// check: SEAL-1
async fn altered_content_is_told_and_the_rest_is_shown(bed: &Bed) {
    let store = bed.open().await;
    let id = everything(&store).await;
    bed.alter(&flip(bed, "reason")).await;
    let altered = read(&store, &id).await;
    assert!(altered.unreadable);
    assert!(altered.reason().contains("reason cannot be read"));
    assert_eq!(altered.answer(), "the-answer", "the rest is shown");
    let list = store
        .list_interventions(&InterventionFilter::default(), 10, None)
        .await
        .expect("lists");
    assert_eq!(list.items[0].view, altered);
}

async fn read(store: &Store, id: &InterventionId) -> Intervention {
    let record = store.get_intervention(id).await.expect("reads");
    record.expect("is there").view
}

// check: SEAL-8
async fn each_altered_column_is_told_and_hides_nothing_else(bed: &Bed) {
    let store = bed.open().await;
    let id = everything(&store).await;
    let whole = read(&store, &id).await;
    let other = raised(&store, ask(&running_other(&store).await, "another")).await;
    let columns = [
        "payload",
        "answer",
        "reason",
        "edited_argv",
        "edited_text",
        "result",
    ];
    for column in columns {
        let keep = format!("CREATE TABLE kept AS SELECT * FROM interventions WHERE id = '{id}'");
        bed.alter(&keep).await;
        bed.alter(&format!("{} WHERE id = '{id}'", flip(bed, column)))
            .await;
        let altered = read(&store, &id).await;
        assert!(altered.unreadable, "{column}");
        assert!(!altered.approved(), "{column}");
        assert_eq!(
            (altered.state, altered.kind),
            (whole.state, whole.kind),
            "{column}"
        );
        let (was, is) = (&whole.decision, &altered.decision);
        let (was, is) = (was.as_ref().expect("one"), is.as_ref().expect("one"));
        assert_eq!(was.outcome, is.outcome, "{column}");
        assert_eq!(was.decided_by, is.decided_by, "{column}");
        let shown = format!("{altered:?}");
        let seen = CONTENT.iter().filter(|text| shown.contains(**text)).count();
        assert_eq!(seen, CONTENT.len() - 1, "{column}");
        if column == "payload" {
            let json = serde_json::to_value(&altered).expect("serializes");
            assert!(json.get("payload").is_none() && json.get("payload_hash").is_none());
            assert_eq!(json["unreadable"], true);
        } else if column == "result" {
            let result = altered.result.expect("a result");
            assert!(result.error.expect("an error").contains("cannot be read"));
        } else {
            assert!(is.reason.contains("cannot be read"), "{column}");
        }
        let list = store
            .list_interventions(&InterventionFilter::default(), 10, None)
            .await
            .expect("lists");
        assert_eq!(list.items.len(), 2, "{column}");
        assert!(list.items.iter().any(|record| record.view == other.view));
        bed.alter(&format!(
            "UPDATE interventions SET {column} = (SELECT k.{column} FROM kept k) WHERE id = '{id}'"
        ))
        .await;
        bed.alter("DROP TABLE kept").await;
        assert_eq!(read(&store, &id).await, whole, "{column}");
    }
    assert!(fuse_store::unreadable_met() >= columns.len() as u64);
}

async fn running_other(store: &Store) -> fuse_store::EnvironmentRow {
    let env = environment("other");
    insert(store, &env).await;
    env
}

// check: SEAL-8
async fn a_row_that_makes_no_sense_is_left_out_of_a_list(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        let record = raised(&store, ask(&env, &n.to_string())).await;
        ids.push(record.view.id.clone());
    }
    bed.alter(&format!(
        "UPDATE interventions SET kind = 'strange' WHERE id = '{}'",
        ids[2]
    ))
    .await;
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = store
            .list_interventions(&InterventionFilter::default(), 1, cursor.as_deref())
            .await
            .expect("lists");
        seen.extend(page.items.into_iter().map(|record| record.view.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    seen.reverse();
    ids.remove(2);
    assert_eq!(seen, ids);
}

// check: SEAL-2
async fn content_moved_to_another_row_or_column_does_not_open(bed: &Bed) {
    let store = bed.open().await;
    let id = everything(&store).await;
    bed.alter("UPDATE interventions SET answer = reason, reason = answer")
        .await;
    let moved = read(&store, &id).await;
    assert!(moved.unreadable);
    assert_eq!(moved.answer(), "");
    assert!(moved.reason().contains("answer and reason cannot be read"));
    bed.alter("UPDATE interventions SET answer = reason, reason = answer")
        .await;
    assert!(!read(&store, &id).await.unreadable);

    let env = store
        .list_environments(&Default::default(), 1, None)
        .await
        .expect("lists");
    let other = raised(&store, ask(&env.items[0], "another")).await;
    bed.alter(&format!(
        "UPDATE interventions SET payload = (SELECT p.payload FROM interventions p WHERE p.id = '{id}') WHERE id = '{}'",
        other.view.id
    ))
    .await;
    let moved = read(&store, &other.view.id).await;
    assert!(moved.unreadable);
    assert_eq!((moved.payload.ask, moved.payload_hash.as_str()), (None, ""));
}

// check: SEAL-8
async fn what_does_not_open_still_ends(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    let one = raised(&store, ask(&env, "1")).await;
    raised(&store, ask(&env, "2")).await;
    bed.alter(&flip(bed, "payload")).await;
    let expired = fuse_domain::intervention::end::expire(&(&*one).into(), at(700));
    let expired = done(store.commit(expired).await.expect("commits")).remove(0);
    assert!(expired.view.unreadable && expired.is_settled());
    done(
        store
            .commit(crate::build::destroy(&env))
            .await
            .expect("commits"),
    );
    let pending = bed
        .number("SELECT COUNT(*) FROM interventions WHERE state = 'pending'")
        .await;
    assert_eq!(pending, 0);
}

async fn what_cannot_be_read_holds_up_nothing_else(bed: &Bed) {
    let store = bed.open().await;
    let env = running(&store).await;
    insert(&store, &environment("other")).await;
    let mut ids = Vec::new();
    for n in 0..4 {
        let mut record = ask(&env, "the-question");
        record.view.kind = fuse_api::intervention::Kind::Exec;
        let record = raised(&store, record).await;
        if n < 2 {
            done(store.commit(approve(&record, "p")).await.expect("commits"));
        }
        ids.push(record.view.id.clone());
    }
    let of = |id: &fuse_api::ids::InterventionId| format!(" WHERE id = '{id}'");
    bed.alter(&(flip(bed, "payload") + &of(&ids[0]))).await;
    bed.alter(&("UPDATE interventions SET kind = 'strange'".to_owned() + &of(&ids[2])))
        .await;
    bed.alter("UPDATE environments SET spec = '{' WHERE task_id = 'other'")
        .await;
    let ready = store.ready_runs("host", 10).await.expect("reads");
    let ready: Vec<_> = ready.iter().map(|record| &record.view.id).collect();
    assert_eq!(ready, [&ids[0], &ids[1]], "its waiter gets an outcome too");
    let due = store.due(at(700), 10).await.expect("reads");
    let due: Vec<_> = due.iter().map(|due| &due.id).collect();
    assert_eq!(due, [&ids[3]]);
    let live = store.live_on_host("host").await.expect("reads");
    assert_eq!(live, [env]);
}
