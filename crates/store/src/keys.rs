//! API keys. Of a key's secret only the SHA-256 is stored.

use crate::Store;
use crate::cursor::{Filter, Page};
use crate::environments::Inserted;
use crate::error::StoreError;
use crate::notice::{self, Notice};
use crate::sql::{Arg, Cells, Map, Stmt};
use fuse_api::ids::{EnvId, KeyId};
use fuse_api::keys::{ActorLabel, Key, Scope};
use fuse_api::time::Timestamp;
use fuse_domain::intervention::EnvUid;

const COLUMNS: &str = "id, label, scopes, env_uid, env_id, actor_id, actor_name, created_at, expires_at, revoked_at, first_used_at";

/// A key on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// What the wire shows.
    pub key: Key,
    /// The life of the environment that a scoped key is limited to.
    pub env_uid: Option<EnvUid>,
    /// When it first authenticated.
    pub first_used_at: Option<Timestamp>,
}

const READ: Map<KeyRow> = read;

fn key_id(cells: &dyn Cells) -> Result<KeyId, StoreError> {
    let id = cells.text("id")?;
    KeyId::parse(&id).map_err(|_| StoreError::corrupt("api_keys", &id, "id"))
}

fn read(cells: &dyn Cells) -> Result<KeyRow, StoreError> {
    let id = cells.text("id")?;
    let bad = |column| StoreError::corrupt("api_keys", &id, column);
    let scopes: Vec<Scope> =
        serde_json::from_str(&cells.text("scopes")?).map_err(|_| bad("scopes"))?;
    let env_id = cells
        .text_opt("env_id")?
        .map(|env| EnvId::parse(&env).map_err(|_| bad("env_id")))
        .transpose()?;
    let name = cells.text_opt("actor_name")?;
    Ok(KeyRow {
        key: Key {
            id: KeyId::parse(&id).map_err(|_| bad("id"))?,
            label: cells.text("label")?,
            scopes,
            env_id,
            expires_at: cells.int_opt("expires_at")?.map(Timestamp::from_micros),
            actor: cells
                .text_opt("actor_id")?
                .map(|id| ActorLabel { id, name }),
            created_at: Timestamp::from_micros(cells.int("created_at")?),
            revoked_at: cells.int_opt("revoked_at")?.map(Timestamp::from_micros),
        },
        env_uid: cells.text_opt("env_uid")?.map(EnvUid),
        first_used_at: cells.int_opt("first_used_at")?.map(Timestamp::from_micros),
    })
}

impl Store {
    /// Puts a key on record under the SHA-256 of its secret.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn insert_key(
        &self,
        row: &KeyRow,
        secret_sha256: &[u8; 32],
    ) -> Result<Inserted, StoreError> {
        let key = &row.key;
        let scopes = serde_json::to_string(&key.scopes)
            .map_err(|_| StoreError::corrupt("api_keys", key.id.as_str(), "scopes"))?;
        let actor = key.actor.as_ref();
        let values: Vec<Arg> = vec![
            key.id.as_str().into(),
            key.label.as_str().into(),
            scopes.as_str().into(),
            row.env_uid.as_ref().map(|uid| uid.0.as_str()).into(),
            key.env_id.as_ref().map(EnvId::as_str).into(),
            actor.map(|actor| actor.id.as_str()).into(),
            actor.and_then(|actor| actor.name.as_deref()).into(),
            key.created_at.as_micros().into(),
            key.expires_at.map(Timestamp::as_micros).into(),
            key.revoked_at.map(Timestamp::as_micros).into(),
            row.first_used_at.map(Timestamp::as_micros).into(),
        ];
        let mut stmt = self
            .db
            .stmt(&format!(
                "INSERT INTO api_keys (secret_sha256, {COLUMNS}) VALUES ("
            ))
            .bind(hex::encode(secret_sha256).as_str());
        for value in values {
            stmt = stmt.push(", ").bind(value);
        }
        let stmt = stmt.push(") ON CONFLICT DO NOTHING RETURNING id");
        Ok(match self.change_keys(stmt).await? {
            0 => Inserted::Taken,
            _ => Inserted::Done,
        })
    }

    /// The key of a secret, by the secret's SHA-256; also one that is revoked or has expired.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn find_key(&self, secret_sha256: &[u8; 32]) -> Result<Option<KeyRow>, StoreError> {
        let stmt = self
            .select_keys("secret_sha256 = ")
            .bind(hex::encode(secret_sha256).as_str());
        self.db.row(stmt, READ).await
    }

    /// One key.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn get_key(&self, id: &KeyId) -> Result<Option<KeyRow>, StoreError> {
        let stmt = self.select_keys("id = ").bind(id.as_str());
        self.db.row(stmt, READ).await
    }

    /// Keys, newest first, revoked ones included; `limit` at most. One that cannot be read is left out.
    ///
    /// # Errors
    /// The cursor is not one of this list's, or the database is unavailable.
    pub async fn list_keys(
        &self,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<KeyRow>, StoreError> {
        let mark = Filter::new(&["api_keys"]);
        let mut stmt = self.select_keys("1 = 1");
        if let Some((at, id)) = mark.read(cursor)? {
            stmt = stmt
                .push(" AND (created_at, id) < (")
                .bind(at)
                .push(", ")
                .bind(id.as_str())
                .push(")");
        }
        let stmt = stmt
            .push(" ORDER BY created_at DESC, id DESC LIMIT ")
            .bind(i64::from(limit) + 1);
        let place =
            |cells: &dyn Cells| Ok::<_, StoreError>((cells.int("created_at")?, cells.text("id")?));
        let rows = self.db.rows(stmt, |cells| Ok((place(cells)?, read(cells))));
        let page = mark.page(rows.await?, limit as usize, |(place, _)| place.clone());
        Ok(page.readable())
    }

    /// Revokes a key. Tells whether there was one to revoke; doing it twice is no error.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn revoke_key(&self, id: &KeyId, now: Timestamp) -> Result<bool, StoreError> {
        let stmt = self
            .db
            .stmt("UPDATE api_keys SET revoked_at = ")
            .bind(now.as_micros())
            .push(" WHERE revoked_at IS NULL AND id = ")
            .bind(id.as_str())
            .push(" RETURNING id");
        let ledger = &self.ledger_id;
        let told = |keys: &[KeyId]| notice::key_payloads(ledger, keys);
        let revoked = self.db.change(stmt, key_id, told).await?;
        for key in &revoked {
            self.notifier.send(Notice::Key(key.clone()));
        }
        Ok(!revoked.is_empty())
    }

    /// Notes a key's first use. True for the one call that was first.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn mark_key_used(&self, id: &KeyId, now: Timestamp) -> Result<bool, StoreError> {
        let stmt = self
            .db
            .stmt("UPDATE api_keys SET first_used_at = ")
            .bind(now.as_micros())
            .push(" WHERE first_used_at IS NULL AND id = ")
            .bind(id.as_str())
            .push(" RETURNING id");
        Ok(self.change_keys(stmt).await? > 0)
    }

    async fn change_keys(&self, stmt: Stmt) -> Result<usize, StoreError> {
        let changed = self
            .db
            .change(stmt, |cells| cells.text("id"), |_| Vec::new());
        Ok(changed.await?.len())
    }

    fn select_keys(&self, condition: &str) -> Stmt {
        self.db
            .stmt(&format!("SELECT {COLUMNS} FROM api_keys WHERE {condition}"))
    }
}
