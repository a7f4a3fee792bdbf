//! Reading the audit log (spec: "Audit log"). Only the ledger writes it.

use crate::Store;
use crate::cursor::{Filter, Page};
use crate::error::StoreError;
use crate::sql::Cells;
use fuse_api::audit::{AuditEntry, AuditEvent};
use fuse_api::ids::{EnvId, InterventionId, KeyId, RecordingId};
use fuse_api::intervention::{Actor, ActorSource};
use fuse_api::time::Timestamp;
use fuse_domain::audit::{Broken, Head, Verifier};

const COLUMNS: &str = "seq, event, at, env_id, intervention_id, surface, gate, actor_id, actor_name, actor_source, actor_key, \
    remote_addr, recording_id, prev_hash, hash";

const EVENTS: [AuditEvent; 12] = [
    AuditEvent::Raised,
    AuditEvent::Decided,
    AuditEvent::Expired,
    AuditEvent::Cancelled,
    AuditEvent::GrantCreated,
    AuditEvent::GrantUsed,
    AuditEvent::InviteMinted,
    AuditEvent::InviteUsed,
    AuditEvent::SecretAnswered,
    AuditEvent::TakeoverStarted,
    AuditEvent::TakeoverEnded,
    AuditEvent::TakeoverSession,
];

/// Which entries a page of the log shows. What is `None` does not narrow it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// Of this environment.
    pub env_id: Option<EnvId>,
    /// Of the actor with this id.
    pub actor: Option<String>,
    /// From this time on.
    pub since: Option<Timestamp>,
}

impl AuditFilter {
    fn mark(&self) -> Filter {
        let since = self.since.map(|since| since.as_micros().to_string());
        Filter::new(&[
            "audit_log",
            self.env_id.as_ref().map_or("", EnvId::as_str),
            self.actor.as_deref().unwrap_or(""),
            since.as_deref().unwrap_or(""),
        ])
    }
}

fn parsed<T, E>(
    text: Option<String>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, E> {
    text.map(|text| parse(&text)).transpose()
}

fn read(cells: &dyn Cells) -> Result<AuditEntry, StoreError> {
    let seq = cells.int("seq")?;
    let bad = |column| StoreError::corrupt("audit_log", &seq.to_string(), column);
    let event = cells.text("event")?;
    let event = EVENTS.into_iter().find(|e| e.as_str() == event);
    Ok(AuditEntry {
        seq,
        event: event.ok_or_else(|| bad("event"))?,
        at: Timestamp::from_micros(cells.int("at")?),
        env_id: parsed(cells.text_opt("env_id")?, EnvId::parse).map_err(|_| bad("env_id"))?,
        intervention_id: parsed(cells.text_opt("intervention_id")?, InterventionId::parse)
            .map_err(|_| bad("intervention_id"))?,
        on: cells.text("surface")?,
        gate: cells.text("gate")?,
        actor: Actor {
            id: cells.text("actor_id")?,
            name: cells.text("actor_name")?,
            source: ActorSource::parse(&cells.text("actor_source")?)
                .ok_or_else(|| bad("actor_source"))?,
            key_id: parsed(cells.text_opt("actor_key")?, KeyId::parse)
                .map_err(|_| bad("actor_key"))?,
        },
        remote_addr: cells.text("remote_addr")?,
        recording_id: parsed(cells.text_opt("recording_id")?, RecordingId::parse)
            .map_err(|_| bad("recording_id"))?,
        prev_hash: cells.text("prev_hash")?,
        hash: cells.text("hash")?,
    })
}

impl Store {
    /// Audit entries, oldest first; `limit` at most. A row that holds what no entry can is left out, which breaks the chain there.
    ///
    /// # Errors
    /// The cursor is not one of this filter's, or the database is unavailable.
    pub async fn audit_page(
        &self,
        filter: &AuditFilter,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<AuditEntry>, StoreError> {
        let mark = filter.mark();
        let after = mark.read(cursor)?.map_or(0, |(seq, _)| seq);
        let mut stmt = self
            .db
            .stmt(&format!("SELECT {COLUMNS} FROM audit_log WHERE seq > "))
            .bind(after)
            .and("env_id", filter.env_id.as_ref().map(EnvId::as_str))
            .and("actor_id", filter.actor.as_deref());
        if let Some(since) = filter.since {
            stmt = stmt.push(" AND at >= ").bind(since.as_micros());
        }
        let stmt = stmt.push(" ORDER BY seq LIMIT ").bind(i64::from(limit) + 1);
        let rows = self
            .db
            .rows(stmt, |cells| Ok((cells.int("seq")?, read(cells))));
        let page = mark.page(rows.await?, limit as usize, |(seq, _)| {
            (*seq, String::new())
        });
        Ok(page.readable())
    }

    /// The end of the chain, as the ledger noted it.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn audit_head(&self) -> Result<Head, StoreError> {
        let stmt = self
            .db
            .stmt("SELECT seq, hash FROM chain_head WHERE id = 1");
        let head = self
            .db
            .row(stmt, |cells| {
                Ok(Head {
                    seq: cells.int("seq")?,
                    hash: cells.text("hash")?,
                })
            })
            .await?;
        head.ok_or_else(|| StoreError::corrupt("chain_head", "1", "id"))
    }

    /// Checks the last `n` entries of the chain, and that it ends where the ledger noted. For the start of a server.
    ///
    /// # Errors
    /// The database is unavailable. A broken chain is no error of the check: it is its answer.
    pub async fn check_tail(&self, n: u32) -> Result<Result<Head, Broken>, StoreError> {
        let head = self.audit_head().await?;
        // The entry before the first that is checked says what that one has to follow.
        let first = (head.seq - i64::from(n)).max(0);
        let stmt = self
            .db
            .stmt(&format!("SELECT {COLUMNS} FROM audit_log WHERE seq >= "))
            .bind(first)
            .push(" AND seq <= ")
            .bind(head.seq)
            .push(" ORDER BY seq");
        let rows = self
            .db
            .rows(stmt, |cells| Ok((cells.int("seq")?, read(cells))))
            .await?;
        let mut verifier = Verifier::with_noted_head(Some(head.clone()));
        for (seq, entry) in rows {
            let entry = match entry {
                Ok(entry) => entry,
                // What no entry can hold was put there by somebody else.
                Err(StoreError::Corrupt { .. }) => return Ok(Err(Broken::Edited(seq))),
                Err(error) => return Err(error),
            };
            if seq == first {
                let (seq, hash) = (entry.seq, entry.hash);
                verifier = Verifier::after(Head { seq, hash }, Some(head.clone()));
            } else if let Err(broken) = verifier.next(&entry) {
                return Ok(Err(broken));
            }
        }
        Ok(verifier.finish())
    }
}
