//! What a server wrote to its standard error.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// All lines so far, also those of earlier processes of the same server. Clones share them.
#[derive(Clone, Default)]
pub struct Log(Arc<Inner>);

#[derive(Default)]
struct Inner {
    lines: Mutex<Lines>,
    news: Condvar,
}

#[derive(Default)]
struct Lines {
    all: Vec<String>,
    closed: u32,
}

impl Log {
    /// Copies a pipe, line by line, until it is closed.
    pub(crate) fn follow(&self, pipe: impl Read + Send + 'static) {
        let log = self.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                log.change(|lines| lines.all.push(line));
            }
            log.change(|lines| lines.closed += 1);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Lines)) {
        change(&mut self.0.lines.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.news.notify_all();
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines().len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every line.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.all.clone()
    }

    /// All of it.
    #[must_use]
    pub fn text(&self) -> String {
        self.lines().join("\n")
    }

    /// The rest of the first line from `from` on that starts with `prefix`; none where that does not come in time or the
    /// pipe is closed for the `closed`th time before.
    pub(crate) fn rest_of(
        &self,
        prefix: &str,
        from: usize,
        closed: u32,
        patience: Duration,
    ) -> Option<String> {
        let end = Instant::now() + patience;
        let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let found = lines.all.iter().skip(from);
            if let Some(rest) = found.filter_map(|line| line.strip_prefix(prefix)).next() {
                return Some(rest.to_owned());
            }
            let left = end.saturating_duration_since(Instant::now());
            if lines.closed >= closed || left.is_zero() {
                return None;
            }
            let waited = self.0.news.wait_timeout(lines, left);
            lines = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How often a pipe was closed.
    pub(crate) fn closed(&self) -> u32 {
        let lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.closed
    }

    /// Waits until a pipe was closed so often, so that the last lines are there.
    pub(crate) fn drained(&self, closed: u32) {
        let end = Instant::now() + Duration::from_secs(5);
        let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        while lines.closed < closed {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.news.wait_timeout(lines, left);
            lines = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
