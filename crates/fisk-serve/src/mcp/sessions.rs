//! MCP sessions over HTTP (protocols before 2026-07-28): bounded in number and age, and able to say when one is over.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::Stream;
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::session::{
        ServerSseMessage, SessionId, SessionManager,
        local::{LocalSessionManager, LocalSessionManagerError},
    },
};
use thiserror::Error;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Limits;

/// Why a session fails.
#[derive(Debug, Error)]
pub(super) enum SessionsError {
    /// There are as many as there may be.
    #[error("too many sessions are open; end one, or try again later")]
    TooMany,
    /// It is not there, or it ended.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

/// The open sessions.
pub(super) struct Sessions {
    inner: Arc<LocalSessionManager>,
    /// Dropping an entry cancels what its session runs.
    open: Arc<Mutex<HashMap<SessionId, DropGuard>>>,
    most: usize,
    age: Duration,
}

impl Sessions {
    pub(super) fn new(limits: &Limits, tool_timeout: Duration) -> Self {
        let mut inner = LocalSessionManager::default();
        // A session is silent while somebody thinks about a question and while a command runs.
        let busy = limits.answer.saturating_add(tool_timeout);
        inner.session_config.keep_alive =
            Some(limits.session_idle.max(busy + Duration::from_secs(60)));
        inner.session_config.init_timeout = Some(Duration::from_secs(10));
        Self {
            inner: Arc::new(inner),
            open: Arc::default(),
            most: limits.sessions,
            age: limits.session_age,
        }
    }

    /// Is cancelled once the session is over. A session that is not there is over.
    pub(super) fn over(&self, id: &str) -> CancellationToken {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get(id) {
            Some(guard) => guard.token().clone(),
            None => {
                let over = CancellationToken::new();
                over.cancel();
                over
            }
        }
    }
}

fn close(open: &Mutex<HashMap<SessionId, DropGuard>>, id: &SessionId) {
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    drop(open.remove(id));
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let full = |open: &HashMap<SessionId, DropGuard>| open.len() >= self.most;
        if full(&self.open.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Err(SessionsError::TooMany);
        }
        let (id, transport) = self.inner.create_session().await?;
        let over = CancellationToken::new();
        let added = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            // Others may have come in between.
            let fits = !full(&open);
            if fits {
                open.insert(id.clone(), over.clone().drop_guard());
            }
            fits
        };
        if !added {
            self.inner.close_session(&id).await?;
            return Err(SessionsError::TooMany);
        }
        let (inner, open, age, old) = (
            Arc::clone(&self.inner),
            Arc::clone(&self.open),
            self.age,
            id.clone(),
        );
        tokio::spawn(async move {
            tokio::select! {
                () = over.cancelled() => {}
                () = tokio::time::sleep(age) => {
                    close(&open, &old);
                    let _ = inner.close_session(&old).await;
                }
            }
        });
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.inner.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        close(&self.open, id);
        Ok(self.inner.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.inner.create_stream(id, message).await?)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        Ok(self.inner.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.inner.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.inner.resume(id, last_event_id).await?)
    }
}
