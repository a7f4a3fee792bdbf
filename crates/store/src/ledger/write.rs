//! The transaction of a batch: what it reads, and what it writes.

use super::plan::{EnvFacts, Facts, Sealed, Writes};
use crate::conn::{Bulk, Conn, Type, Verb};
use crate::error::StoreError;
use crate::notice;
use crate::row::{COLUMNS, INLINE, Row, run_columns};
use crate::seal::Sealer;
use crate::sql::{Arg, readable};
use fuse_api::audit::AuditEntry;
use fuse_api::environment::EnvState;
use fuse_api::ids::EnvId;
use fuse_api::intervention::Actor;
use fuse_domain::audit::Head;
use fuse_domain::intervention::EnvUid;
use fuse_domain::transition::Grant;
use std::collections::{BTreeSet, HashMap};

/// The columns that change in a row's life, in the order of [`state_columns`].
const STATE: &[(&str, Type)] = &[
    ("version", Type::Int),
    ("state", Type::Text),
    ("resolved_at", Type::Int),
    ("run", Type::Text),
    ("run_instance", Type::Text),
    ("outcome", Type::Text),
    ("granted", Type::Text),
    ("decided_at", Type::Int),
    ("decided_id", Type::Text),
    ("decided_name", Type::Text),
    ("decided_source", Type::Text),
    ("decided_key", Type::Text),
    ("answer", Type::Bytes),
    ("reason", Type::Bytes),
    ("edited_argv", Type::Bytes),
    ("edited_text", Type::Bytes),
    ("result", Type::Bytes),
];

const INSERT: Bulk = Bulk {
    table: "interventions",
    verb: Verb::Insert,
    columns: &[
        ("id", Type::Text),
        ("env_uid", Type::Text),
        ("env_id", Type::Text),
        ("kind", Type::Text),
        ("deadline", Type::Int),
        ("created_at", Type::Int),
        ("gate", Type::Text),
        ("mode", Type::Text),
        ("on_timeout", Type::Text),
        ("require_actor", Type::Int),
        ("raised_id", Type::Text),
        ("raised_name", Type::Text),
        ("raised_source", Type::Text),
        ("raised_key", Type::Text),
        ("payload", Type::Bytes),
        ("payload_len", Type::Int),
    ],
    more: STATE,
};

const UPDATE: Bulk = Bulk {
    table: "interventions",
    verb: Verb::Update,
    columns: &[("id", Type::Text), ("expected", Type::Int)],
    more: STATE,
};

const AUDIT: Bulk = Bulk {
    table: "audit_log",
    verb: Verb::Insert,
    columns: &[
        ("seq", Type::Int),
        ("event", Type::Text),
        ("at", Type::Int),
        ("env_id", Type::Text),
        ("intervention_id", Type::Text),
        ("surface", Type::Text),
        ("gate", Type::Text),
        ("actor_id", Type::Text),
        ("actor_name", Type::Text),
        ("actor_source", Type::Text),
        ("actor_key", Type::Text),
        ("remote_addr", Type::Text),
        ("recording_id", Type::Text),
        ("prev_hash", Type::Text),
        ("hash", Type::Text),
    ],
    more: &[],
};

const GRANTS: Bulk = Bulk {
    table: "grants",
    verb: Verb::Insert,
    columns: &[
        ("env_uid", Type::Text),
        ("key", Type::Text),
        ("intervention_id", Type::Text),
        ("gate", Type::Text),
        ("reach", Type::Text),
        ("expires_at", Type::Int),
        ("created_at", Type::Int),
    ],
    more: &[],
};

/// Reads what a batch is decided over. The caller holds the chain's lock, so that it stays so until the commit.
pub(super) async fn load<'a>(
    conn: &mut Conn,
    head: Head,
    batch: impl Iterator<Item = &'a Sealed> + Clone,
) -> Result<Facts, StoreError> {
    let closing: BTreeSet<&EnvUid> = batch
        .clone()
        .filter_map(|sealed| sealed.transition.close.as_ref().map(|close| &close.env_uid))
        .collect();
    let raising = batch
        .clone()
        .flat_map(|sealed| sealed.raised.iter().map(|(_, row)| &row.env_uid));
    let environments: BTreeSet<&EnvUid> = closing.iter().copied().chain(raising).collect();
    let changing: BTreeSet<&str> = batch
        .flat_map(Sealed::changes)
        .map(|id| id.as_str())
        .collect();

    let mut facts = Facts {
        head,
        ..Facts::default()
    };
    // A payload that is not small is left where it is: it never changes, and nothing is decided by it.
    let columns = format!(
        "SELECT {COLUMNS}, CASE WHEN payload_len <= {INLINE} THEN payload END AS payload FROM interventions WHERE "
    );
    if !changing.is_empty() {
        let ids = changing.into_iter().map(str::to_owned).collect();
        let stmt = conn.stmt(&columns).any("id", ids);
        let rows = conn.rows(stmt, |cells| Ok(Row::read(cells))).await?;
        facts.rows.extend(readable(rows));
    }
    if !closing.is_empty() {
        let stmt = conn
            .stmt(&columns)
            .push("state = 'pending' AND ")
            .any("env_uid", uids(&closing));
        let rows = conn.rows(stmt, |cells| Ok(Row::read(cells))).await?;
        facts.rows.extend(readable(rows));
    }
    if !environments.is_empty() {
        facts.environments = load_environments(conn, &environments).await?;
    }
    Ok(facts)
}

fn uids(uids: &BTreeSet<&EnvUid>) -> Vec<String> {
    uids.iter().map(|uid| uid.0.clone()).collect()
}

async fn load_environments(
    conn: &mut Conn,
    environments: &BTreeSet<&EnvUid>,
) -> Result<HashMap<EnvUid, EnvFacts>, StoreError> {
    let stmt = conn
        .stmt(
            "SELECT e.uid, e.id, e.state, (SELECT COUNT(*) FROM interventions i WHERE i.env_uid = e.uid AND \
             i.state = 'pending') AS pending FROM environments e WHERE ",
        )
        .any("e.uid", uids(environments));
    let rows = conn
        .rows(stmt, |cells| {
            let uid = cells.text("uid")?;
            let bad = |column| StoreError::corrupt("environments", &uid, column);
            let facts = EnvFacts {
                id: EnvId::parse(&cells.text("id")?).map_err(|_| bad("id"))?,
                state: EnvState::parse(&cells.text("state")?).ok_or_else(|| bad("state"))?,
                pending: cells.int("pending")?,
            };
            Ok((EnvUid(uid), facts))
        })
        .await?;
    Ok(rows.into_iter().collect())
}

/// Writes what a batch came to. `ledger` and `number` name the batch, so that it can be looked for after a lost answer.
pub(super) async fn write(
    conn: &mut Conn,
    sealer: &Sealer,
    writes: Writes,
    (ledger, number): (&str, i64),
) -> Result<(), StoreError> {
    let mut changed: Vec<_> = writes.inserts.iter().map(|row| row.id.clone()).collect();
    changed.extend(writes.updates.iter().map(|(_, row)| row.id.clone()));

    let inserts = writes.inserts.into_iter().map(insert_row).collect();
    conn.bulk(&INSERT, inserts).await?;
    let expected = writes.updates.len();
    let updates = writes.updates.into_iter().map(update_row).collect();
    let updated = conn.bulk(&UPDATE, updates).await?;
    if usize::try_from(updated) != Ok(expected) {
        return Err(StoreError::Internal(std::sync::Arc::new(Overtaken)));
    }
    let grants = writes.grants.iter().map(|g| grant_row(sealer, g)).collect();
    conn.bulk(&GRANTS, grants).await?;
    let mut environments = Vec::new();
    for (uid, state, at) in writes.closed {
        environments.extend(close(conn, &uid, state, at.as_micros()).await?);
    }
    conn.bulk(&AUDIT, writes.audit.into_iter().map(audit_row).collect())
        .await?;

    let payloads = notice::payloads(ledger, &changed, &environments);
    let Head { seq, hash } = writes.head;
    finish(conn, seq, hash, (ledger, number), payloads).await
}

/// The head, the batch's mark and the notifications: on PostgreSQL in one round trip.
async fn finish(
    conn: &mut Conn,
    seq: i64,
    hash: String,
    (ledger, number): (&str, i64),
    payloads: Vec<String>,
) -> Result<(), StoreError> {
    match conn {
        Conn::Postgres(_) => {
            let stmt = conn
                .stmt("WITH head AS (UPDATE chain_head SET seq = ")
                .bind(seq)
                .push(", hash = ")
                .bind(hash.as_str())
                .push(" WHERE id = 1), mark AS (UPDATE ledgers SET last_batch = ")
                .bind(number)
                .push(", at = ")
                .bind(crate::now().as_micros())
                .push(" WHERE id = ")
                .bind(ledger)
                .push(") SELECT pg_notify(")
                .bind(crate::conn::CHANNEL)
                .push(", payload) FROM UNNEST(")
                .bind(Arg::List(payloads))
                .push("::text[]) AS payload");
            conn.execute(stmt).await?;
        }
        Conn::Sqlite(_) => {
            let head = conn
                .stmt("UPDATE chain_head SET seq = ")
                .bind(seq)
                .push(", hash = ")
                .bind(hash.as_str())
                .push(" WHERE id = 1");
            conn.execute(head).await?;
            let mark = conn
                .stmt("UPDATE ledgers SET last_batch = ")
                .bind(number)
                .push(", at = ")
                .bind(crate::now().as_micros())
                .push(" WHERE id = ")
                .bind(ledger);
            conn.execute(mark).await?;
        }
    }
    Ok(())
}

/// A row changed although the chain's lock was held: something else writes to this database.
#[derive(Debug, thiserror::Error)]
#[error("an intervention changed under the ledger's lock")]
struct Overtaken;

async fn close(
    conn: &mut Conn,
    uid: &EnvUid,
    state: EnvState,
    at: i64,
) -> Result<Option<(EnvUid, EnvId, EnvState)>, StoreError> {
    let environment = conn
        .stmt("UPDATE environments SET state = ")
        .bind(state.as_str())
        .push(", updated_at = ")
        .bind(at)
        .push(" WHERE uid = ")
        .bind(uid.0.as_str())
        .push(" RETURNING id");
    let ids = conn.rows(environment, |cells| cells.text("id")).await?;
    let grants = conn
        .stmt("DELETE FROM grants WHERE env_uid = ")
        .bind(uid.0.as_str());
    conn.execute(grants).await?;
    let keys = conn
        .stmt("UPDATE api_keys SET revoked_at = ")
        .bind(at)
        .push(" WHERE revoked_at IS NULL AND env_uid = ")
        .bind(uid.0.as_str());
    conn.execute(keys).await?;
    Ok(ids
        .first()
        .and_then(|id| EnvId::parse(id).ok())
        .map(|id| (uid.clone(), id, state)))
}

fn actor(actor: Actor) -> [Arg; 4] {
    [
        Arg::Text(Some(actor.id)),
        Arg::Text(Some(actor.name)),
        actor.source.as_str().into(),
        actor.key_id.as_ref().map(|id| id.as_str()).into(),
    ]
}

fn insert_row(mut row: Row) -> Vec<Arg> {
    let mut args: Vec<Arg> = vec![
        row.id.as_str().into(),
        row.env_uid.0.as_str().into(),
        row.env_id.as_str().into(),
        row.kind.as_str().into(),
        row.deadline.as_micros().into(),
        row.created_at.as_micros().into(),
        row.gate.as_deref().into(),
        row.mode.map(|mode| mode.as_str()).into(),
        row.on_timeout.as_str().into(),
        i64::from(row.require_actor).into(),
    ];
    args.extend(actor(row.raised_by.clone()));
    args.push(row.payload.take().into());
    args.push(row.payload_len.into());
    args.extend(state_columns(row));
    args
}

fn update_row((expected, row): (i64, Row)) -> Vec<Arg> {
    let mut args = vec![row.id.as_str().into(), expected.into()];
    args.extend(state_columns(row));
    args
}

/// The columns that change in a row's life.
fn state_columns(row: Row) -> impl Iterator<Item = Arg> {
    let (run, instance) = run_columns(&row.run);
    let head = [
        row.version.into(),
        row.state.as_str().into(),
        row.resolved_at.map(|at| at.as_micros()).into(),
        run.into(),
        instance.into(),
    ];
    let decision = match row.decision {
        Some(decision) => {
            let [id, name, source, key] = actor(decision.by);
            [
                decision.outcome.as_str().into(),
                decision.granted.into(),
                decision.at.as_micros().into(),
                id,
                name,
                source,
                key,
                decision.answer.into(),
                decision.reason.into(),
                decision.edited_argv.into(),
                decision.edited_text.into(),
            ]
        }
        None => {
            let text = || Arg::Text(None);
            let bytes = || Arg::Bytes(None);
            [
                text(),
                text(),
                Arg::Int(None),
                text(),
                text(),
                text(),
                text(),
                bytes(),
                bytes(),
                bytes(),
                bytes(),
            ]
        }
    };
    head.into_iter().chain(decision).chain([row.result.into()])
}

fn grant_row(sealer: &Sealer, grant: &Grant) -> Vec<Arg> {
    vec![
        grant.env_uid.0.as_str().into(),
        sealer.blind(&grant.key).as_str().into(),
        grant.intervention_id.as_str().into(),
        grant.gate.as_str().into(),
        grant.reach.to_string().as_str().into(),
        grant.expires_at.map(|at| at.as_micros()).into(),
        grant.created_at.as_micros().into(),
    ]
}

fn audit_row(entry: AuditEntry) -> Vec<Arg> {
    let mut args: Vec<Arg> = vec![
        entry.seq.into(),
        entry.event.as_str().into(),
        entry.at.as_micros().into(),
        entry.env_id.as_ref().map(EnvId::as_str).into(),
        entry.intervention_id.as_ref().map(|id| id.as_str()).into(),
        entry.on.as_str().into(),
        entry.gate.as_str().into(),
    ];
    args.extend(actor(entry.actor));
    args.extend([
        Arg::Text(Some(entry.remote_addr)),
        entry.recording_id.as_ref().map(|id| id.as_str()).into(),
        Arg::Text(Some(entry.prev_hash)),
        Arg::Text(Some(entry.hash)),
    ]);
    args
}
