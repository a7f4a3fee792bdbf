//! Activity of environments, gathered in memory and written together.

use crate::error::StoreError;
use crate::sql::Db;
use fuse_api::time::Timestamp;
use fuse_domain::intervention::EnvUid;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What was noted and not yet written.
#[derive(Default)]
pub(crate) struct Activity(Mutex<HashMap<EnvUid, Timestamp>>);

impl Activity {
    pub fn note(&self, uid: &EnvUid, at: Timestamp) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match noted.get_mut(uid) {
            Some(last) => *last = at.max(*last),
            None => {
                noted.insert(uid.clone(), at);
            }
        }
    }

    /// Writes what was noted. What could not be written is noted again.
    pub async fn flush(&self, db: &Db) -> Result<(), StoreError> {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if noted.is_empty() {
            return Ok(());
        }
        let written = write(db, &noted).await;
        if written.is_err() {
            for (uid, at) in &noted {
                self.note(uid, *at);
            }
        }
        written
    }
}

/// One statement for all. Each gets the latest of the times, which is at most the time between two writes ahead of its own.
async fn write(db: &Db, noted: &HashMap<EnvUid, Timestamp>) -> Result<(), StoreError> {
    let at = noted.values().max().map_or(0, |at| at.as_micros());
    let uids = noted.keys().map(|uid| uid.0.clone()).collect();
    let stmt = db
        .stmt("UPDATE environments SET last_activity = ")
        .bind(at)
        .push(" WHERE last_activity < ")
        .bind(at)
        .push(" AND ")
        .any("uid", uids)
        .push(" RETURNING uid");
    db.change(stmt, |cells| cells.text("uid"), |_| Vec::new())
        .await
        .map(drop)
}
