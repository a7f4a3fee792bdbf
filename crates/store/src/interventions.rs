//! Reading interventions. Each read is one query on an index, and opens what it shows and nothing else.

use crate::Store;
use crate::cursor::{Filter, Page};
use crate::error::StoreError;
use crate::row::{COLUMNS, Row, parse_on_timeout};
use crate::sql::{Cells, Db};
use fuse_api::hitl::OnTimeout;
use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::{Kind, State};
use fuse_api::time::Timestamp;
use fuse_domain::intervention::end::Due;
use fuse_domain::intervention::{EnvUid, Record};
use fuse_domain::transition::Grant;

/// Which interventions a list shows. What is `None` does not narrow it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InterventionFilter {
    /// Of the environments of this id, earlier lives included.
    pub env_id: Option<EnvId>,
    /// Of these lives of environments.
    pub env_uids: Option<Vec<EnvUid>>,
    /// In this state; `None` is all.
    pub state: Option<State>,
    /// Of this kind.
    pub kind: Option<Kind>,
    /// Raised or decided by the actor of this id.
    pub actor: Option<String>,
}

impl InterventionFilter {
    fn mark(&self) -> Filter {
        let uids = self.env_uids.as_ref().map(|uids| {
            uids.iter()
                .map(|uid| uid.0.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        });
        Filter::new(&[
            "interventions",
            self.env_id.as_ref().map_or("", EnvId::as_str),
            uids.as_deref().unwrap_or("-"),
            self.state.map_or("", State::as_str),
            self.kind.map_or("", Kind::as_str),
            self.actor.as_deref().unwrap_or(""),
        ])
    }
}

/// One payload as it is stored.
pub(crate) async fn payload(db: &Db, id: &InterventionId) -> Result<Option<Vec<u8>>, StoreError> {
    let stmt = db
        .stmt("SELECT payload FROM interventions WHERE id = ")
        .bind(id.as_str());
    Ok(db
        .row(stmt, |cells| cells.bytes_opt("payload"))
        .await?
        .flatten())
}

fn id(cells: &dyn Cells) -> Result<InterventionId, StoreError> {
    let id = cells.text("id")?;
    InterventionId::parse(&id).map_err(|_| StoreError::corrupt("interventions", &id, "id"))
}

fn due(cells: &dyn Cells) -> Result<Due, StoreError> {
    let id = id(cells)?;
    let bad = |column| StoreError::corrupt("interventions", id.as_str(), column);
    Ok(Due {
        env_id: EnvId::parse(&cells.text("env_id")?).map_err(|_| bad("env_id"))?,
        kind: Kind::parse(&cells.text("kind")?).ok_or_else(|| bad("kind"))?,
        gate: cells.text_opt("gate")?,
        // Silence that cannot be read allows nothing.
        on_timeout: parse_on_timeout(&cells.text("on_timeout")?).unwrap_or(OnTimeout::Reject),
        version: cells.int("version")?,
        id,
    })
}

impl Store {
    /// One intervention, or none of this id. Where stored content does not open, it says that it is unreadable.
    ///
    /// # Errors
    /// The database is unavailable, or a column that stands in the clear makes no sense.
    pub async fn get_intervention(
        &self,
        id: &InterventionId,
    ) -> Result<Option<Record>, StoreError> {
        let stmt = self
            .db
            .stmt(&format!(
                "SELECT {COLUMNS}, payload FROM interventions WHERE id = "
            ))
            .bind(id.as_str());
        let row = self.db.row(stmt, Row::read).await?;
        Ok(row.map(|row| row.open(&self.sealer)))
    }

    /// Interventions, newest first by the time in their ids; `limit` at most. One whose stored content does not open says that it
    /// is unreadable; one whose columns in the clear make no sense is left out.
    ///
    /// # Errors
    /// The cursor is not one of this filter's, or the database is unavailable.
    pub async fn list_interventions(
        &self,
        filter: &InterventionFilter,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        let mark = filter.mark();
        let from = mark.read(cursor)?;
        let mut stmt = self
            .db
            .stmt(&format!(
                "SELECT {COLUMNS}, payload FROM interventions WHERE 1 = 1"
            ))
            .and("env_id", filter.env_id.as_ref().map(EnvId::as_str))
            .and("kind", filter.kind.map(Kind::as_str));
        if let Some(uids) = &filter.env_uids {
            let uids = uids.iter().map(|uid| uid.0.clone()).collect();
            stmt = stmt.push(" AND ").any("env_uid", uids);
        }
        // Pending ones have indexes of their own, which only a state in the text finds.
        stmt = match filter.state {
            Some(State::Pending) => stmt.push(" AND state = 'pending'"),
            state => stmt.and("state", state.map(State::as_str)),
        };
        if let Some(actor) = filter.actor.as_deref() {
            stmt = stmt
                .push(" AND (raised_id = ")
                .bind(actor)
                .push(" OR (decided_id = ")
                .bind(actor)
                // What nobody decided is not in the index.
                .push(match actor {
                    "system" => "))",
                    _ => " AND decided_source <> 'system'))",
                });
        }
        if let Some((_, id)) = from {
            stmt = stmt.push(" AND id < ").bind(id.as_str());
        }
        let stmt = stmt
            .push(" ORDER BY id DESC LIMIT ")
            .bind(i64::from(limit) + 1);
        // The place in the list is read by itself, so that a row that makes no sense does not end it.
        let rows = self
            .db
            .rows(stmt, |cells| Ok((cells.text("id")?, Row::read(cells))));
        let page = mark.page(rows.await?, limit as usize, |(id, _)| (0, id.clone()));
        let page = page.readable();
        Ok(Page {
            items: page
                .items
                .iter()
                .map(|row| row.open(&self.sealer))
                .collect(),
            next: page.next,
        })
    }

    /// What is pending although its deadline has passed, earliest first. Nothing sealed is read; a row that cannot be read is left
    /// out.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<Due>, StoreError> {
        let stmt = self
            .db
            .stmt(
                "SELECT id, env_id, kind, gate, on_timeout, version FROM interventions \
                 WHERE state = 'pending' AND deadline <= ",
            )
            .bind(now.as_micros())
            .push(" ORDER BY deadline, id LIMIT ")
            .bind(i64::from(limit));
        self.db.readable_rows(stmt, due).await
    }

    /// The earliest deadline of all that is pending.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn earliest_deadline(&self) -> Result<Option<Timestamp>, StoreError> {
        let stmt = self.db.stmt(
            "SELECT deadline FROM interventions WHERE state = 'pending' ORDER BY deadline, id LIMIT 1",
        );
        let deadline = self.db.row(stmt, |cells| cells.int("deadline")).await?;
        Ok(deadline.map(Timestamp::from_micros))
    }

    /// Those of `ids` whose waiters have nothing left to wait for. For [`crate::Notice::Resync`].
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn settled_among(
        &self,
        ids: &[InterventionId],
    ) -> Result<Vec<InterventionId>, StoreError> {
        let mut settled = Vec::new();
        for ids in ids.chunks(10_000) {
            let ids = ids.iter().map(|id| id.as_str().to_owned()).collect();
            let stmt = self
                .db
                .stmt("SELECT id FROM interventions WHERE state <> 'pending' AND run IN ('nothing', 'done') AND ")
                .any("id", ids);
            settled.extend(self.db.rows(stmt, id).await?);
        }
        Ok(settled)
    }

    /// The live grants of an environment that cover one of `keys`, oldest first.
    ///
    /// # Errors
    /// The database is unavailable, or a stored grant cannot be read.
    pub async fn live_grants(
        &self,
        env_uid: &EnvUid,
        keys: &[String],
        now: Timestamp,
    ) -> Result<Vec<Grant>, StoreError> {
        let blind = |key: &String| self.sealer.blind(key);
        let stmt = self
            .db
            .stmt("SELECT key, intervention_id, gate, reach, expires_at, created_at FROM grants WHERE env_uid = ")
            .bind(env_uid.0.as_str())
            .push(" AND ")
            .any("key", keys.iter().map(blind).collect())
            .push(" AND (expires_at IS NULL OR expires_at > ")
            .bind(now.as_micros())
            .push(") ORDER BY created_at, intervention_id");
        let mut grants = self.db.rows(stmt, grant).await?;
        for grant in &mut grants {
            grant.env_uid = env_uid.clone();
            if let Some(key) = keys.iter().find(|key| blind(key) == grant.key) {
                grant.key.clone_from(key);
            }
        }
        Ok(grants)
    }

    /// Forgets the grants that have ended. Tells how many there were.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn drop_ended_grants(&self, now: Timestamp) -> Result<usize, StoreError> {
        let stmt = self
            .db
            .stmt("DELETE FROM grants WHERE expires_at <= ")
            .bind(now.as_micros())
            .push(" RETURNING key");
        let dropped = self
            .db
            .change(stmt, |cells| cells.text("key"), |_| Vec::new());
        Ok(dropped.await?.len())
    }

    /// Approved actions on this host that nobody has started, oldest first.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn ready_runs(&self, host_id: &str, limit: u32) -> Result<Vec<Record>, StoreError> {
        self.runs("ready", host_id, limit).await
    }

    /// Approved actions on this host that an orchestrator instance started and whose result is not on record; the instance
    /// stands in the record's run state.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn started_runs(&self, host_id: &str, limit: u32) -> Result<Vec<Record>, StoreError> {
        self.runs("started", host_id, limit).await
    }

    async fn runs(&self, run: &str, host_id: &str, limit: u32) -> Result<Vec<Record>, StoreError> {
        // `run` is one of this module's own words; in the text it finds its partial index.
        let stmt = self
            .db
            .stmt(&format!(
                "SELECT {COLUMNS}, payload FROM interventions WHERE run = '{run}' AND EXISTS \
                 (SELECT 1 FROM environments e WHERE e.uid = interventions.env_uid AND e.host_id = "
            ))
            .bind(host_id)
            .push(") ORDER BY id LIMIT ")
            .bind(i64::from(limit));
        let rows = self.db.readable_rows(stmt, Row::read).await?;
        Ok(rows.iter().map(|row| row.open(&self.sealer)).collect())
    }

    /// How many interventions are pending, by kind. Kinds with none are left out.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn pending_by_kind(&self) -> Result<Vec<(Kind, i64)>, StoreError> {
        let stmt = self.db.stmt(
            "SELECT kind, COUNT(*) AS n FROM interventions WHERE state = 'pending' GROUP BY kind",
        );
        let counts = self
            .db
            .rows(stmt, |cells| Ok((cells.text("kind")?, cells.int("n")?)))
            .await?;
        Ok(counts
            .into_iter()
            .filter_map(|(kind, n)| Some((Kind::parse(&kind)?, n)))
            .collect())
    }
}

fn grant(cells: &dyn Cells) -> Result<Grant, StoreError> {
    let key = cells.text("key")?;
    let bad = |column| StoreError::corrupt("grants", &key, column);
    let id = cells.text("intervention_id")?;
    Ok(Grant {
        env_uid: EnvUid(String::new()),
        gate: cells.text("gate")?,
        reach: cells.text("reach")?.parse().map_err(|_| bad("reach"))?,
        expires_at: cells.int_opt("expires_at")?.map(Timestamp::from_micros),
        intervention_id: InterventionId::parse(&id).map_err(|_| bad("intervention_id"))?,
        created_at: Timestamp::from_micros(cells.int("created_at")?),
        key,
    })
}
