//! Reading server-sent events.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use serde_json::Value;
use tokio::time::timeout;

type Bytes = Pin<Box<dyn Stream<Item = Option<Vec<u8>>> + Send>>;

/// An open event stream.
pub struct Events {
    chunks: Bytes,
    buffer: Vec<u8>,
    /// What comment lines said.
    pub comments: Vec<String>,
}

impl Events {
    pub(crate) fn new(response: reqwest::Response) -> Self {
        let chunks = response
            .bytes_stream()
            .map(|chunk| chunk.ok().map(|c| c.to_vec()));
        Self {
            chunks: Box::pin(chunks),
            buffer: Vec::new(),
            comments: Vec::new(),
        }
    }

    /// The next line; none once the stream is closed.
    ///
    /// # Panics
    /// Nothing comes for half a minute.
    pub async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            let chunk = timeout(Duration::from_secs(30), self.chunks.next()).await;
            match chunk.expect("something within half a minute") {
                Some(Some(bytes)) => self.buffer.extend(bytes),
                Some(None) | None => return None,
            }
        }
    }

    /// The next event; none once the stream is closed.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let line = self.line().await?;
            if let Some(comment) = line.strip_prefix(':') {
                self.comments.push(comment.trim().to_owned());
            }
            if let Some(data) = line.strip_prefix("data:") {
                return Some(serde_json::from_str(data).expect("an event is JSON"));
            }
        }
    }
}
