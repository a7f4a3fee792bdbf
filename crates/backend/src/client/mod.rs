//! The orchestrator's side of the protocol: one connection, shared by all calls, opened again when it breaks.

mod conn;
#[cfg(test)]
mod tests;

use crate::{
    error::CallError,
    guest::{BoxFuture, ExecOutcome, ExecSpec, FileContent, Guest},
    id::EnvId,
};
use conn::{Answer, Caps, Conn, Failure};
use fuse_guest_api::{
    Boot, EnvVars, Exec, Exit, HeadTail, Identity, MAX_OUTPUT, Merge, Merged, Refusal, RefusalCode,
    Reply, Request, Status,
};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::Mutex;

/// How long a guest may take beyond what a call itself takes.
const PATIENCE: Duration = Duration::from_secs(15);
/// Longest time that a command may be given, in the guest's eyes.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A guest behind a unix socket.
#[derive(Debug)]
pub struct Client {
    id: EnvId,
    directory: PathBuf,
    identity: Identity,
    conn: Mutex<Option<Arc<Conn>>>,
}

impl Client {
    /// Connects on the first call.
    pub fn new(id: EnvId, directory: PathBuf, identity: Identity) -> Self {
        Self {
            id,
            directory,
            identity,
            conn: Mutex::new(None),
        }
    }

    /// Boots the guest; `longest` is what the boot itself may take.
    pub async fn boot(&self, boot: Boot, longest: Duration) -> Result<Reply, CallError> {
        let answer = self
            .once(
                &Request::Boot(boot),
                &[],
                Caps::default(),
                longest + PATIENCE,
            )
            .await?;
        Ok(answer.reply)
    }

    async fn connection(&self) -> Result<Arc<Conn>, CallError> {
        let mut held = self.conn.lock().await;
        if let Some(conn) = held.as_ref().filter(|c| c.is_open()) {
            return Ok(Arc::clone(conn));
        }
        let conn = Conn::open(&self.directory, &self.identity)
            .await
            .map_err(CallError::NotSent)?;
        *held = Some(Arc::clone(&conn));
        Ok(conn)
    }

    /// Sends a request once.
    async fn once(
        &self,
        request: &Request,
        blob: &[u8],
        caps: Caps,
        limit: Duration,
    ) -> Result<Answer, CallError> {
        let conn = self.connection().await?;
        let answer = match tokio::time::timeout(limit, conn.call(request, blob, caps)).await {
            Ok(answer) => answer,
            Err(_) => {
                // What answers late, or never, is no longer asked anything; a new connection may fare better.
                conn.retire();
                return Err(CallError::Lost(format!(
                    "no answer within {} s",
                    limit.as_secs()
                )));
            }
        };
        match answer {
            Ok(Answer {
                reply: Reply::Refused(refusal),
                ..
            }) => Err(CallError::Refused(refusal)),
            Ok(answer) => Ok(answer),
            Err(Failure::NotSent(why)) => Err(CallError::NotSent(why)),
            Err(Failure::Lost(why)) => Err(CallError::Lost(why)),
        }
    }

    /// Sends a request that does no harm when it is done twice, once more if the connection broke.
    async fn twice(&self, request: &Request, blob: &[u8], caps: Caps) -> Result<Answer, CallError> {
        match self.once(request, blob, caps, PATIENCE).await {
            Err(CallError::NotSent(_) | CallError::Lost(_)) => {
                self.once(request, blob, caps, PATIENCE).await
            }
            other => other,
        }
    }

    async fn done(&self, request: &Request, blob: &[u8]) -> Result<(), CallError> {
        match self.twice(request, blob, Caps::default()).await?.reply {
            Reply::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    async fn run(&self, spec: ExecSpec) -> Result<ExecOutcome, CallError> {
        let cap = |cap: usize| u32::try_from(cap.min(MAX_OUTPUT)).unwrap_or(u32::MAX);
        let limit = spec.timeout.min(LONGEST) + PATIENCE;
        let part = |cap: usize| match spec.merge_output {
            None => cap.min(MAX_OUTPUT),
            Some(merge) => HeadTail::part_limit(merge.half),
        };
        let caps = Caps {
            stdout: part(spec.stdout_cap),
            stderr: part(spec.stderr_cap),
            blob: 0,
        };
        let limit = limit + spec.merge_output.map_or(Duration::ZERO, |m| m.linger);
        let request = Request::Exec(Exec {
            command_id: spec.command_id.clone(),
            command: spec.command,
            env: spec.env,
            cwd: spec.cwd,
            timeout_ms: u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX),
            stdout_cap: cap(spec.stdout_cap),
            stderr_cap: cap(spec.stderr_cap),
            merge: spec.merge_output.map(|merge| Merge {
                half: u32::try_from(merge.half).unwrap_or(u32::MAX),
                linger_ms: u32::try_from(merge.linger.as_millis()).unwrap_or(u32::MAX),
            }),
        });
        let mut result = self.once(&request, &[], caps, limit).await;
        if let Err(CallError::NotSent(_)) = result {
            // Surely not started, and the next connection may be better.
            result = self.once(&request, &[], caps, limit).await;
        }
        match result {
            Ok(answer) => outcome(answer),
            Err(CallError::Lost(why)) => match self.ask_after(&spec.command_id, limit).await {
                Ok(Some(outcome)) => Ok(outcome),
                Ok(None) => Err(CallError::Lost(format!(
                    "{why}; the guest does not know the command"
                ))),
                Err(CallError::NotSent(_) | CallError::Lost(_) | CallError::Refused(_)) => {
                    Err(CallError::Lost(why))
                }
            },
            Err(error @ (CallError::NotSent(_) | CallError::Refused(_))) => Err(error),
        }
    }

    async fn ask_after(
        &self,
        command_id: &str,
        limit: Duration,
    ) -> Result<Option<ExecOutcome>, CallError> {
        let request = Request::Recall {
            command_id: command_id.to_owned(),
        };
        let caps = Caps {
            stdout: MAX_OUTPUT,
            stderr: MAX_OUTPUT,
            blob: 0,
        };
        let mut result = self.once(&request, &[], caps, limit).await;
        if let Err(CallError::NotSent(_) | CallError::Lost(_)) = result {
            result = self.once(&request, &[], caps, limit).await;
        }
        let answer = result?;
        match answer.reply {
            Reply::UnknownCommand => Ok(None),
            _ => outcome(answer).map(Some),
        }
    }

    async fn read(&self, path: &str, max_bytes: u64) -> Result<FileContent, CallError> {
        let request = Request::ReadFile {
            path: path.to_owned(),
            max_bytes,
        };
        let blob = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let answer = self
            .twice(
                &request,
                &[],
                Caps {
                    blob,
                    ..Caps::default()
                },
            )
            .await?;
        match answer.reply {
            Reply::File(info) => Ok(FileContent {
                resolved: info.resolved,
                truncated: info.truncated,
                size: info.size,
                bytes: answer.blob,
            }),
            _ => Err(unexpected()),
        }
    }
}

fn outcome(answer: Answer) -> Result<ExecOutcome, CallError> {
    match answer.reply {
        Reply::Exit(Exit {
            exit_code,
            timed_out,
            cancelled,
            truncated,
            duration_ms,
            merged,
            ..
        }) => {
            let (stdout, stderr, truncated) = match merged {
                None => (answer.stdout, answer.stderr, truncated),
                Some(Merged { half, total }) => {
                    let half = usize::try_from(half).unwrap_or(usize::MAX);
                    let halves = HeadTail::from_parts(half, answer.stdout, answer.stderr, total)
                        .ok_or_else(unexpected)?;
                    let (text, truncated) = halves.finish();
                    (text.into_bytes(), Vec::new(), truncated)
                }
            };
            Ok(ExecOutcome {
                exit_code,
                stdout,
                stderr,
                timed_out,
                cancelled,
                truncated,
                duration: Duration::from_millis(duration_ms),
            })
        }
        _ => Err(unexpected()),
    }
}

/// The guest's words are left out: they may be long, and are whatever it likes.
pub fn unexpected() -> CallError {
    CallError::Lost("the guest gave an answer that belongs to another request".to_owned())
}

impl Guest for Client {
    fn id(&self) -> &EnvId {
        &self.id
    }

    fn exec(&self, spec: ExecSpec) -> BoxFuture<'_, Result<ExecOutcome, CallError>> {
        Box::pin(self.run(spec))
    }

    fn recall<'a>(
        &'a self,
        command_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<ExecOutcome>, CallError>> {
        Box::pin(self.ask_after(command_id, LONGEST + PATIENCE))
    }

    fn signal<'a>(
        &'a self,
        command_id: &'a str,
        signal: i32,
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            self.done(
                &Request::Signal {
                    command_id: command_id.to_owned(),
                    signal,
                },
                &[],
            )
            .await
        })
    }

    fn cancel<'a>(&'a self, command_id: &'a str) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            self.done(
                &Request::Cancel {
                    command_id: command_id.to_owned(),
                },
                &[],
            )
            .await
        })
    }

    fn read_file<'a>(
        &'a self,
        path: &'a str,
        max_bytes: u64,
    ) -> BoxFuture<'a, Result<FileContent, CallError>> {
        Box::pin(self.read(path, max_bytes))
    }

    fn write_file<'a>(
        &'a self,
        path: &'a str,
        mode: u32,
        content: &'a [u8],
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
            if size > fuse_guest_api::MAX_WRITE {
                let message = format!(
                    "a file may have at most {} bytes",
                    fuse_guest_api::MAX_WRITE
                );
                return Err(CallError::Refused(Refusal::new(
                    RefusalCode::BadRequest,
                    message,
                )));
            }
            self.done(
                &Request::WriteFile {
                    path: path.to_owned(),
                    mode,
                    size,
                },
                content,
            )
            .await
        })
    }

    fn set_env(&self, vars: EnvVars) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move { self.done(&Request::SetEnv { vars }, &[]).await })
    }

    fn status(&self) -> BoxFuture<'_, Result<Status, CallError>> {
        Box::pin(async move {
            match self
                .twice(&Request::Status, &[], Caps::default())
                .await?
                .reply
            {
                Reply::Status(status) => Ok(status),
                _ => Err(unexpected()),
            }
        })
    }
}
