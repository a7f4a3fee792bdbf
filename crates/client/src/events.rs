//! The event stream of an environment.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use fuse_api::environment::EnvState;
use fuse_api::events::Event;
use futures_util::{Stream, StreamExt};
use sse_stream::SseStream;

use crate::backoff::Backoff;
use crate::builder::Client;
use crate::error::Error;
use crate::transport::Call;

/// The most bytes that one event may have.
const MAX_EVENT: usize = 1024 * 1024;

/// Tries to open the stream again before it is given up.
const TRIES: u32 = 8;

type Blocks = Pin<Box<dyn Stream<Item = Result<Option<String>, ()>> + Send>>;

/// Events of one environment. They are hints to read again: under load some are dropped.
///
/// A lost connection is opened again; the stream then begins with the current state, as at first.
pub struct EventStream {
    client: Client,
    path: String,
    blocks: Option<Blocks>,
    /// Bytes since the last event.
    pending: Arc<AtomicUsize>,
    ended: bool,
}

impl EventStream {
    pub(crate) async fn open(client: Client, path: String) -> Result<Self, Error> {
        let mut stream = Self {
            client,
            path,
            blocks: None,
            pending: Arc::default(),
            ended: false,
        };
        stream.connect().await?;
        Ok(stream)
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let response = self.client.open(&Call::get(self.path.as_str())).await?;
        self.pending.store(0, Ordering::Relaxed);
        let pending = Arc::clone(&self.pending);
        let bytes = response
            .bytes_stream()
            .map(move |chunk| -> Result<Bytes, std::io::Error> {
                let chunk = chunk.map_err(std::io::Error::other)?;
                let held = pending.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
                if held > MAX_EVENT {
                    return Err(std::io::Error::other("an event has no end"));
                }
                Ok(chunk)
            });
        let blocks = SseStream::from_bytes_stream(bytes)
            .map(|block| block.map(|block| block.data).map_err(|_| ()));
        self.blocks = Some(Box::pin(blocks));
        Ok(())
    }

    /// The next event, or `None` once the environment is gone or has failed.
    ///
    /// # Errors
    /// Where the stream breaks off and cannot be opened again, or tells what this version does not understand. There is nothing after that.
    ///
    /// ```no_run
    #[doc = include_str!("../examples/tour/events.rs")]
    /// ```
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        if self.ended {
            return None;
        }
        let outcome = self.advance().await;
        self.ended = match &outcome {
            Some(Ok(event)) => match event.state {
                EnvState::Destroyed | EnvState::Failed => true,
                EnvState::Provisioning
                | EnvState::Running
                | EnvState::Draining
                | EnvState::Destroying => false,
            },
            Some(Err(_)) | None => true,
        };
        outcome
    }

    async fn advance(&mut self) -> Option<Result<Event, Error>> {
        let mut backoff = Backoff::new();
        let mut left = TRIES;
        loop {
            if let Some(blocks) = &mut self.blocks {
                match blocks.next().await {
                    Some(Ok(data)) => {
                        self.pending.store(0, Ordering::Relaxed);
                        let Some(data) = data else { continue };
                        let event = serde_json::from_str(&data);
                        return Some(event.map_err(|error| Error::Protocol(error.to_string())));
                    }
                    Some(Err(())) | None => self.blocks = None,
                }
            }
            let Some(fewer) = left.checked_sub(1) else {
                let message = "the event stream breaks off before it tells anything";
                return Some(Err(Error::Protocol(message.to_owned())));
            };
            left = fewer;
            backoff.pause().await;
            match self.connect().await {
                Ok(()) => {}
                // Gone in the meantime, which is what the stream would have told.
                Err(error) if error.status() == Some(404) => return None,
                Err(error) if error.is_passing() && left > 0 => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
