//! API keys (spec: "Access").

use super::{App, AppResult, digest};
use crate::known::{Digest, FRESH};
use fuse_api::ids::KeyId;
use fuse_api::keys::{CreateKey, CreatedKey, KeyList, KeySecret};
use fuse_api::routes::Access;
use fuse_domain::access::{Credential, KeyFacts, Presented, mint};
use fuse_domain::refusal::{Refusal, What};
use fuse_store::KeyRow;
use rand::Rng;
use std::sync::Arc;
use std::time::Instant;

impl App {
    /// Proves a bearer token.
    ///
    /// # Errors
    /// [`Refusal::Unauthenticated`] where it is no valid credential; the database's own errors.
    pub async fn authenticate(self: &Arc<Self>, bearer: Option<&str>) -> AppResult<Credential> {
        let token = bearer.ok_or(Refusal::Unauthenticated)?;
        let digest = digest(token);
        if self.master.has_digest(&digest) {
            return Ok(Credential::Master);
        }
        if !token.starts_with(KeySecret::PREFIX) {
            return Err(Refusal::Unauthenticated.into());
        }
        let row = self.key(digest).await?.ok_or(Refusal::Unauthenticated)?;
        let now = self.now();
        let key = &row.key;
        if key.revoked_at.is_some() || key.expires_at.is_some_and(|at| at <= now) {
            return Err(Refusal::Unauthenticated.into());
        }
        Ok(Credential::Key(KeyFacts {
            id: key.id.clone(),
            label: key.label.clone(),
            scopes: key.scopes.clone(),
            env_id: key.env_id.clone(),
            actor: key.actor.clone(),
        }))
    }

    /// The key of this digest. One that was read within [`FRESH`] is taken from memory, also while nothing is heard of others: a
    /// revocation that this process is not told of is in force a second later. One in use is read again ahead of that.
    async fn key(self: &Arc<Self>, digest: Digest) -> AppResult<Option<Arc<KeyRow>>> {
        if let Some((row, age)) = self.known.keys.get(&digest, Instant::now())
            && age <= FRESH
        {
            if age >= FRESH / 2 && self.known.keys.is_first_to_renew(&digest) {
                let app = Arc::clone(self);
                tokio::spawn(async move { app.read_key(digest).await.map(drop) });
            }
            return Ok(Some(row));
        }
        self.read_key(digest).await
    }

    async fn read_key(&self, digest: Digest) -> AppResult<Option<Arc<KeyRow>>> {
        let keys = &self.known.keys;
        let ticket = keys.ticket(&digest, Instant::now());
        let Some(row) = self.store.find_key(&digest).await?.map(Arc::new) else {
            keys.forget(&digest);
            return Ok(None);
        };
        keys.learn(digest, Arc::clone(&row), 1, ticket, |_| true);
        Ok(Some(row))
    }

    /// Makes a key. Its secret is in the answer and nowhere else.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn create_key(&self, who: &Presented, body: CreateKey) -> AppResult<CreatedKey> {
        who.admit(Access::Mint)?;
        let label = mint::full_access(&body)?;
        let mut secret = [0_u8; 32];
        rand::rng().fill_bytes(&mut secret);
        let secret = format!("{}{}", KeySecret::PREFIX, hex::encode(secret));
        let info = fuse_api::keys::Key {
            id: KeyId::from_uuid(uuid::Uuid::now_v7()),
            label,
            scopes: Vec::new(),
            env_id: None,
            expires_at: None,
            actor: None,
            created_at: self.now(),
            revoked_at: None,
        };
        let row = KeyRow {
            key: info.clone(),
            env_uid: None,
            first_used_at: None,
        };
        self.store.insert_key(&row, &digest(&secret)).await?;
        Ok(CreatedKey {
            key: KeySecret(secret),
            info,
        })
    }

    /// A page of keys, newest first.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn list_keys(
        &self,
        who: &Presented,
        limit: u32,
        cursor: Option<&str>,
    ) -> AppResult<KeyList> {
        who.admit(Access::Master)?;
        let page = self.store.list_keys(limit, cursor).await?;
        Ok(KeyList {
            api_keys: page.items.into_iter().map(|row| row.key).collect(),
            next_cursor: page.next,
        })
    }

    /// Revokes a key. Revoking it again is fine.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn revoke_key(&self, who: &Presented, id: &KeyId) -> AppResult<()> {
        let known = self.store.get_key(id).await?.is_some();
        who.admit(Access::Master)?;
        if !known {
            return Err(Refusal::NotFound(What::Key).into());
        }
        self.store.revoke_key(id, self.now()).await?;
        self.known.keys.forget_where(|row| row.key.id == *id);
        Ok(())
    }
}
