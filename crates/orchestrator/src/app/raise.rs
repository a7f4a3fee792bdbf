//! The agent asks a person (spec: "Asking", "Reviews").

use super::{App, AppError, AppResult, Outcome, Rely, homes::require_running};
use crate::known::Shown;
use fuse_api::ids::{EnvId, InterventionId};
use fuse_api::intervention::{Kind, Payload, RaiseRequest};
use fuse_api::routes::Access;
use fuse_backend::CallError;
use fuse_domain::access::Presented;
use fuse_domain::intervention::declared;
use fuse_domain::intervention::raise::{Draft, request_timeout, transition};
use fuse_domain::intervention::request::{self, FileRead, MAX_REVIEW, Request};
use fuse_domain::refusal::Refusal;
use fuse_store::EnvironmentRow;
use std::sync::Arc;

impl App {
    /// Raises a request.
    ///
    /// # Errors
    /// See [`super::AppError`].
    pub async fn raise(
        &self,
        who: &Presented,
        env: &EnvId,
        body: RaiseRequest,
    ) -> AppResult<Arc<Shown>> {
        let kind = request::kind(&body)?;
        let (row, remembered) = self.environment_seen(env, Rely::Recent).await?;
        match self.raise_in(who, &row, kind, &body).await {
            // The ledger takes nothing for an environment that is gone; but what is refused has no commit to prove it.
            Err(AppError::Refused(_)) if remembered => {}
            done => return done,
        }
        let (row, _) = self.environment_seen(env, Rely::Database).await?;
        self.raise_in(who, &row, kind, &body).await
    }

    async fn raise_in(
        &self,
        who: &Presented,
        row: &EnvironmentRow,
        kind: Kind,
        body: &RaiseRequest,
    ) -> AppResult<Arc<Shown>> {
        let now = self.now();
        let caller = who.admit(Access::Full)?;
        require_running(row)?;
        let home = self.home(row)?;
        let policy = declared::check(home.policy.as_ref(), kind)?;
        let timeout_seconds =
            request_timeout(body.timeout_seconds, policy.block().timeout_seconds)?;
        let asked = match kind {
            Kind::Ask => request::ask(body)?,
            Kind::Review => request::review(body)?,
            Kind::Secret
            | Kind::Takeover
            | Kind::Exec
            | Kind::Lifecycle
            | Kind::Computer
            | Kind::Stall
            | Kind::Expiry => {
                return Err(Refusal::Unserved(format!(
                    "this release does not serve requests of kind {kind}"
                ))
                .into());
            }
        };
        let payload = match asked {
            Request::Ask(ask) => Payload {
                ask: Some(ask),
                ..Payload::default()
            },
            Request::ReviewContent(review) => Payload {
                review: Some(review),
                ..Payload::default()
            },
            Request::ReviewPath {
                path,
                format,
                message,
            } => {
                let read = self.read_for_review(row, &path).await?;
                Payload {
                    review: Some(request::review_of_file(path, format, message, read)),
                    ..Payload::default()
                }
            }
        };
        let record = Draft {
            id: InterventionId::from_uuid(uuid::Uuid::now_v7()),
            kind,
            gate: None,
            triggered_by: caller.actor.clone(),
            payload,
            now,
            timeout_seconds,
        }
        .pending(&home.raise);
        match self.commit(transition(vec![record], &caller)).await? {
            Outcome::Done(mut records) => records
                .pop()
                .map(|record| self.known.committed(&record))
                .ok_or_else(|| AppError::Internal("a raise committed without its record".into())),
            Outcome::Conflict => Err(AppError::Internal(
                "a fresh intervention id was taken".into(),
            )),
        }
    }

    async fn read_for_review(&self, row: &EnvironmentRow, path: &str) -> AppResult<FileRead> {
        let guest = self.guest(row).await?;
        // A few bytes more than are kept tell whether the last character is whole.
        match guest.read_file(path, MAX_REVIEW as u64 + 4).await {
            Ok(content) => Ok(FileRead {
                resolved_path: content.resolved,
                bytes: content.bytes,
                truncated: content.truncated,
            }),
            Err(CallError::Refused(refusal)) => Err(Refusal::invalid(
                "path",
                format!("cannot be read in the guest: {refusal}"),
            )
            .into()),
            Err(e @ (CallError::NotSent(_) | CallError::Lost(_))) => Err(AppError::Unavailable(
                format!("reading {path} in the guest: {e}"),
            )),
        }
    }
}
