//! Environments: one row per life. A destroyed life's row stays, so that what belongs to it can still be told apart.

use crate::Store;
use crate::cursor::{Filter, Page};
use crate::error::StoreError;
use crate::notice::{self, Notice};
use crate::sql::{Arg, Cells, Map};
use fuse_api::environment::{EnvState, Spec};
use fuse_api::hitl::HitlBlock;
use fuse_api::ids::{EnvId, TaskId};
use fuse_api::time::Timestamp;
use fuse_domain::intervention::EnvUid;

const COLUMNS: &str = "uid, id, task_id, host_id, state, url, spec, hitl, has_task, error, created_at, updated_at, \
    started_at, last_activity";

/// One life of an environment.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvironmentRow {
    /// Names this life.
    pub uid: EnvUid,
    /// Its id. Of all lives with this id one at most is not destroyed.
    pub id: EnvId,
    /// The caller's name for it.
    pub task_id: TaskId,
    /// The host that runs it.
    pub host_id: String,
    /// Where it is in its life.
    pub state: EnvState,
    /// Where its exposed service answers, or empty.
    pub url: String,
    /// What was asked for, defaults filled in. The reapers go by its `idle_timeout_seconds` and `max_runtime_seconds`.
    pub spec: Spec,
    /// What needs a person.
    pub hitl: Option<HitlBlock>,
    /// Whether it was made with a `run`: a warning ahead of `max_runtime` is for such alone.
    pub has_task: bool,
    /// Why it failed.
    pub error: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// When it began to run; `max_runtime` counts from here.
    pub started_at: Option<Timestamp>,
    /// When it last did something; `idle_timeout` counts from here.
    pub last_activity: Timestamp,
}

/// What an update of an environment changes. What is `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvironmentChange {
    /// The new state. To `destroying`, `destroyed` and `failed` an environment goes by a transition that closes it, since its
    /// interventions have to end along with it; here they count only where it was there already.
    pub state: Option<EnvState>,
    /// Why it failed.
    pub error: Option<String>,
    /// When it began to run.
    pub started_at: Option<Timestamp>,
    /// Where its exposed service answers.
    pub url: Option<String>,
}

/// Which environments a list shows. Destroyed ones are never shown. What is `None` does not narrow it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvironmentFilter {
    /// With this task id.
    pub task_id: Option<TaskId>,
    /// In this state.
    pub state: Option<EnvState>,
    /// On this host.
    pub host_id: Option<String>,
}

impl EnvironmentFilter {
    fn mark(&self) -> Filter {
        Filter::new(&[
            "environments",
            self.task_id.as_ref().map_or("", TaskId::as_str),
            self.state.map_or("", EnvState::as_str),
            self.host_id.as_deref().unwrap_or(""),
        ])
    }
}

/// How an insert went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// It is on record.
    Done,
    /// The id belongs to another one that is alive.
    Taken,
}

fn read(cells: &dyn Cells) -> Result<EnvironmentRow, StoreError> {
    let uid = cells.text("uid")?;
    let bad = |column| StoreError::corrupt("environments", &uid, column);
    let time = |column| Ok::<_, StoreError>(Timestamp::from_micros(cells.int(column)?));
    Ok(EnvironmentRow {
        id: EnvId::parse(&cells.text("id")?).map_err(|_| bad("id"))?,
        task_id: TaskId::parse(&cells.text("task_id")?).map_err(|_| bad("task_id"))?,
        host_id: cells.text("host_id")?,
        state: EnvState::parse(&cells.text("state")?).ok_or_else(|| bad("state"))?,
        url: cells.text("url")?,
        spec: serde_json::from_str(&cells.text("spec")?).map_err(|_| bad("spec"))?,
        hitl: cells
            .text_opt("hitl")?
            .map(|hitl| serde_json::from_str(&hitl).map_err(|_| bad("hitl")))
            .transpose()?,
        has_task: cells.int("has_task")? != 0,
        error: cells.text_opt("error")?,
        created_at: time("created_at")?,
        updated_at: time("updated_at")?,
        started_at: cells.int_opt("started_at")?.map(Timestamp::from_micros),
        last_activity: time("last_activity")?,
        uid: EnvUid(uid),
    })
}

const READ: Map<EnvironmentRow> = read;

fn micros(seconds: Option<u64>) -> Option<i64> {
    seconds.map(|s| {
        i64::try_from(s)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000_000)
    })
}

impl Store {
    /// Puts a new environment on record.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn insert_environment(&self, row: &EnvironmentRow) -> Result<Inserted, StoreError> {
        let bad = |column| StoreError::corrupt("environments", &row.uid.0, column);
        let spec = serde_json::to_string(&row.spec).map_err(|_| bad("spec"))?;
        let hitl = row.hitl.as_ref().map(serde_json::to_string).transpose();
        let values: Vec<Arg> = vec![
            row.uid.0.as_str().into(),
            row.id.as_str().into(),
            row.task_id.as_str().into(),
            row.host_id.as_str().into(),
            row.state.as_str().into(),
            row.url.as_str().into(),
            spec.as_str().into(),
            hitl.map_err(|_| bad("hitl"))?.into(),
            i64::from(row.has_task).into(),
            row.error.clone().into(),
            row.created_at.as_micros().into(),
            row.updated_at.as_micros().into(),
            row.started_at.map(Timestamp::as_micros).into(),
            row.last_activity.as_micros().into(),
            micros(row.spec.idle_timeout_seconds).into(),
            micros(row.spec.max_runtime_seconds).into(),
        ];
        let mut stmt = self.db.stmt(&format!(
            "INSERT INTO environments ({COLUMNS}, idle_timeout, max_runtime) VALUES ("
        ));
        for (n, value) in values.into_iter().enumerate() {
            stmt = if n == 0 { stmt } else { stmt.push(", ") }.bind(value);
        }
        let stmt = stmt.push(&format!(") ON CONFLICT DO NOTHING RETURNING {COLUMNS}"));
        let rows = self.change_environment(stmt).await?;
        Ok(match rows.is_empty() {
            false => Inserted::Done,
            true => Inserted::Taken,
        })
    }

    /// Changes an environment that is in one of `from`, and gives it as it then stands; none where it is not in one of them.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn update_environment(
        &self,
        uid: &EnvUid,
        from: &[EnvState],
        change: EnvironmentChange,
        now: Timestamp,
    ) -> Result<Option<EnvironmentRow>, StoreError> {
        let from = from.iter().map(|state| state.as_str().to_owned()).collect();
        let stmt = self
            .db
            .stmt("UPDATE environments SET updated_at = ")
            .bind(now.as_micros())
            .push(", state = COALESCE(")
            .bind(change.state.map(EnvState::as_str))
            .push(", state), error = COALESCE(")
            .bind(change.error)
            .push(", error), started_at = COALESCE(")
            .bind(change.started_at.map(Timestamp::as_micros))
            .push(", started_at), url = COALESCE(")
            .bind(change.url)
            .push(", url) WHERE uid = ")
            .bind(uid.0.as_str())
            .push(" AND ")
            .any("state", from)
            .push(&format!(" RETURNING {COLUMNS}"));
        Ok(self.change_environment(stmt).await?.pop())
    }

    async fn change_environment(
        &self,
        stmt: crate::sql::Stmt,
    ) -> Result<Vec<EnvironmentRow>, StoreError> {
        let ledger = &self.ledger_id;
        let rows = self
            .db
            .change(stmt, READ, |rows: &[EnvironmentRow]| {
                let changed: Vec<_> = rows
                    .iter()
                    .map(|row| (row.uid.clone(), row.id.clone(), row.state))
                    .collect();
                notice::payloads(ledger, &[], &changed)
            })
            .await?;
        for row in &rows {
            self.notifier.send(Notice::Environment {
                uid: row.uid.clone(),
                id: row.id.clone(),
                state: row.state,
            });
        }
        Ok(rows)
    }

    /// The environment of this id that is not destroyed.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn get_environment(&self, id: &EnvId) -> Result<Option<EnvironmentRow>, StoreError> {
        let stmt = self
            .select_environments("state <> 'destroyed' AND id = ")
            .bind(id.as_str());
        self.db.row(stmt, READ).await
    }

    /// One life of an environment, destroyed or not.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn get_environment_by_uid(
        &self,
        uid: &EnvUid,
    ) -> Result<Option<EnvironmentRow>, StoreError> {
        let stmt = self.select_environments("uid = ").bind(uid.0.as_str());
        self.db.row(stmt, READ).await
    }

    /// Environments that are not destroyed, newest first; `limit` at most. One that cannot be read is left out.
    ///
    /// # Errors
    /// The cursor is not one of this filter's, or the database is unavailable.
    pub async fn list_environments(
        &self,
        filter: &EnvironmentFilter,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<EnvironmentRow>, StoreError> {
        let mark = filter.mark();
        let from = mark.read(cursor)?;
        let mut stmt = self
            .select_environments("state <> 'destroyed'")
            .and("task_id", filter.task_id.as_ref().map(TaskId::as_str))
            .and("state", filter.state.map(EnvState::as_str))
            .and("host_id", filter.host_id.as_deref());
        if let Some((at, uid)) = from {
            stmt = stmt
                .push(" AND (created_at, uid) < (")
                .bind(at)
                .push(", ")
                .bind(uid.as_str())
                .push(")");
        }
        let stmt = stmt
            .push(" ORDER BY created_at DESC, uid DESC LIMIT ")
            .bind(i64::from(limit) + 1);
        let place =
            |cells: &dyn Cells| Ok::<_, StoreError>((cells.int("created_at")?, cells.text("uid")?));
        let rows = self.db.rows(stmt, |cells| Ok((place(cells)?, read(cells))));
        let page = mark.page(rows.await?, limit as usize, |(place, _)| place.clone());
        Ok(page.readable())
    }

    /// Every environment of a host that is not destroyed, oldest first. A row that cannot be read is left out, as in what the
    /// reapers may take.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn live_on_host(&self, host_id: &str) -> Result<Vec<EnvironmentRow>, StoreError> {
        let stmt = self
            .select_environments("state <> 'destroyed' AND host_id = ")
            .bind(host_id)
            .push(" ORDER BY created_at, uid");
        self.db.readable_rows(stmt, READ).await
    }

    /// What the idle reaper may take on a host: running or draining, without activity for the whole of its idle timeout, and
    /// with nothing pending (spec: "Invariants"). Activity noted here is written first.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn idle_environments(
        &self,
        host_id: &str,
        now: Timestamp,
    ) -> Result<Vec<EnvironmentRow>, StoreError> {
        self.activity.flush(&self.db).await?;
        let stmt = self
            .select_environments(
                "state IN ('running', 'draining') AND idle_timeout IS NOT NULL AND last_activity <= ",
            )
            .bind(now.as_micros())
            .push(" - idle_timeout AND host_id = ")
            .bind(host_id)
            .push(
                " AND NOT EXISTS (SELECT 1 FROM interventions i WHERE i.env_uid = environments.uid AND i.state = 'pending')",
            );
        self.db.readable_rows(stmt, READ).await
    }

    /// What the runtime reaper may take on a host: its whole `max_runtime` is over since its creation, with a task or without. What is
    /// pending does not hold it back.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn overdue_environments(
        &self,
        host_id: &str,
        now: Timestamp,
    ) -> Result<Vec<EnvironmentRow>, StoreError> {
        let stmt = self
            .select_environments(
                "state IN ('running', 'draining') AND max_runtime IS NOT NULL AND created_at <= ",
            )
            .bind(now.as_micros())
            .push(" - max_runtime AND host_id = ")
            .bind(host_id);
        self.db.readable_rows(stmt, READ).await
    }

    /// Notes that an environment did something. It costs no query now; notes are gathered and written once a second.
    pub fn touch(&self, uid: &EnvUid, at: Timestamp) {
        self.activity.note(uid, at);
    }

    /// How many environments are in each state. Destroyed ones, and states with none, are left out.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn environments_by_state(&self) -> Result<Vec<(EnvState, i64)>, StoreError> {
        let stmt = self.db.stmt(
            "SELECT state, COUNT(*) AS n FROM environments WHERE state <> 'destroyed' GROUP BY state",
        );
        let counts = self
            .db
            .rows(stmt, |cells| Ok((cells.text("state")?, cells.int("n")?)))
            .await?;
        Ok(counts
            .into_iter()
            .filter_map(|(state, n)| Some((EnvState::parse(&state)?, n)))
            .collect())
    }

    fn select_environments(&self, condition: &str) -> crate::sql::Stmt {
        self.db.stmt(&format!(
            "SELECT {COLUMNS} FROM environments WHERE {condition}"
        ))
    }
}
