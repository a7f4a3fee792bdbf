//! A line that shows that something is waited on.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::output;
use crate::time::span;

/// Shown on a terminal once the wait has lasted a second, and gone when this is dropped.
pub struct Progress {
    line: Arc<Mutex<Line>>,
    task: Option<JoinHandle<()>>,
}

struct Line {
    text: String,
    since: Instant,
    drawn: usize,
}

impl Progress {
    /// Begins a wait. It has to be called in a runtime.
    pub fn start(text: impl Into<String>) -> Self {
        let line = Arc::new(Mutex::new(Line {
            text: text.into(),
            since: Instant::now(),
            drawn: 0,
        }));
        let task = output::stderr_is_terminal().then(|| {
            let line = Arc::clone(&line);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    lock(&line).draw();
                }
            })
        });
        Self { line, task }
    }

    /// What is waited on from now. `text` has to be safe.
    pub fn turn_to(&self, text: impl Into<String>) {
        lock(&self.line).text = text.into();
    }

    /// Prints a line above. `text` has to be safe.
    pub fn say(&self, text: &str) {
        let mut line = lock(&self.line);
        line.erase();
        output::note(text);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
            lock(&self.line).erase();
            // Never drawn again by a task that was about to.
            lock(&self.line).text.clear();
        }
    }
}

fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    fn draw(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let columns = terminal_size::terminal_size_of(io::stderr())
            .map_or(80, |(columns, _)| usize::from(columns.0));
        let text = format!("{} ({})", self.text, span(self.since.elapsed().as_secs()));
        let text = fuse_terminal::cell(&text, columns.saturating_sub(1));
        self.erase();
        self.drawn = columns.saturating_sub(1);
        let mut err = io::stderr().lock();
        let _ = write!(err, "{text}");
        let _ = err.flush();
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            let mut err = io::stderr().lock();
            let _ = write!(err, "\r{:width$}\r", "", width = self.drawn);
            let _ = err.flush();
            self.drawn = 0;
        }
    }
}
