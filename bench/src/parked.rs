//! Thousands of long polls that wait, on a thread of their own, so that nothing else of this program delays them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::http::Connection;

/// Polls that are opened at a time.
const AT_ONCE: usize = 64;
/// The pause after each of them, 2,500 polls a second: the memory of calls that queue for the database is not that of parked ones.
const PAUSE: Duration = Duration::from_millis(25);

/// One waiter's answer.
pub struct Heard {
    /// Which waiter, by its place in the list.
    pub waiter: usize,
    /// When the answer was there.
    pub at: Instant,
    /// Whether it told an end, not that the wait was over.
    pub settled: bool,
}

/// The waiters. They end with this.
pub struct Parked {
    heard: mpsc::UnboundedReceiver<Result<Heard>>,
}

impl Parked {
    /// Opens a poll for each id, and returns once all requests are sent.
    pub async fn open(address: SocketAddr, token: &str, ids: Vec<String>) -> Result<Self> {
        let (tell, heard) = mpsc::unbounded_channel();
        let (opened, all_open) = tokio::sync::oneshot::channel();
        let token = token.to_owned();
        std::thread::Builder::new()
            .name("waiters".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                match runtime {
                    Ok(runtime) => runtime.block_on(async {
                        let waiting = open_all(address, &token, ids, &tell).await;
                        let failed = waiting.as_ref().err().map(|error| format!("{error:#}"));
                        let _ = opened.send(failed);
                        if let Ok(mut waiting) = waiting {
                            while waiting.join_next().await.is_some() {}
                        }
                    }),
                    Err(error) => drop(opened.send(Some(error.to_string()))),
                }
            })?;
        match all_open.await.context("the waiters' thread broke off")? {
            None => Ok(Self { heard }),
            Some(error) => anyhow::bail!("opening the polls: {error}"),
        }
    }

    /// The next answer.
    pub async fn next(&mut self) -> Result<Heard> {
        self.heard.recv().await.context("no waiter is left")?
    }
}

async fn open_all(
    address: SocketAddr,
    token: &str,
    ids: Vec<String>,
    tell: &mpsc::UnboundedSender<Result<Heard>>,
) -> Result<JoinSet<()>> {
    let mut waiting = JoinSet::new();
    for (n, ids) in ids.chunks(AT_ONCE).enumerate() {
        tokio::time::sleep(PAUSE).await;
        let mut opening = JoinSet::new();
        for (m, id) in ids.iter().enumerate() {
            let path = format!("/v1/interventions/{id}?wait=50s");
            let token = token.to_owned();
            opening.spawn(async move {
                let mut connection = Connection::open(address, &token).await?;
                connection.send("GET", &path, "").await?;
                anyhow::Ok((n * AT_ONCE + m, connection))
            });
        }
        while let Some(opened) = opening.join_next().await {
            let (waiter, mut connection) = opened??;
            let tell = tell.clone();
            waiting.spawn(async move {
                let answer = connection.receive().await;
                let at = Instant::now();
                let heard = answer
                    .and_then(|answer| answer.ok(200))
                    .map(|answer| Heard {
                        waiter,
                        at,
                        settled: !answer.holds(r#""state":"pending""#),
                    });
                // Whoever listened may have gone.
                let _ = tell.send(heard);
            });
        }
    }
    Ok(waiting)
}
