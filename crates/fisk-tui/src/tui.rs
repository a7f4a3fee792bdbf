//! The interface as the binary sees it.

use std::{
    fmt,
    io::{self, IsTerminal},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use fisk_domain::{
    Approval, PromptFailure,
    event::{Event, Watcher},
};
use fisk_operator::{ApprovalRequest, Confirm, Input, Prompter, Select};
use fuse_terminal::ColourChoice;
use futures_util::future::BoxFuture;
use nix::{
    fcntl::OFlag,
    unistd::{getpgrp, isatty, pipe2, tcgetpgrp, write},
};
use thiserror::Error;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::{
    inbox::{Asked, Inbox},
    question::{Question, Reply},
    screen::Screen,
    shell::Shell,
};

/// Longer than a terminal that takes nothing may hold up the thread.
const JOIN: Duration = Duration::from_secs(3);

/// What the operator, or the terminal, does to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C was pressed, at a question or elsewhere.
    Interrupt,
    /// The terminal is gone. Every question is denied from here on.
    HangUp,
}

/// Takes [`Signal`]s. It is called on the interface's thread and must not block.
pub type OnSignal = Arc<dyn Fn(Signal) + Send + Sync>;

/// How the interface starts.
#[derive(Clone)]
pub struct TuiOptions {
    /// Whether the terminal's bell rings once with each question.
    pub bell: bool,
    /// Shown in the status line: what runs.
    pub title: String,
    /// Whether there are colours.
    pub colour: ColourChoice,
    /// What Ctrl-C and a hang-up do.
    pub on_signal: OnSignal,
}

impl fmt::Debug for TuiOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TuiOptions")
            .field("bell", &self.bell)
            .field("title", &self.title)
            .field("colour", &self.colour)
            .finish_non_exhaustive()
    }
}

/// Why there is no interface.
#[derive(Debug, Error)]
pub enum StartError {
    /// It is never drawn into a pipe.
    #[error("the full-screen interface needs stdin, stdout and stderr to be a terminal")]
    NotATerminal,
    /// What is typed is for another process.
    #[error("a process in the background cannot draw a full-screen interface")]
    Background,
    /// The terminal failed.
    #[error("the terminal cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// A started interface, who asks on it, and who is told what happens in the run.
pub type Started = (Tui, Arc<TuiPrompter>, Arc<dyn Watcher>);

/// What the thread and its callers share.
#[derive(Debug)]
pub(crate) struct Shared {
    inbox: Mutex<Inbox>,
    /// A pipe that the thread waits on; it never blocks.
    wake: OwnedFd,
    woken: AtomicBool,
    pub alive: AtomicBool,
    pub stop: AtomicBool,
    pub hung_up: AtomicBool,
}

impl Shared {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Inbox {
        self.woken.store(false, Ordering::SeqCst);
        self.inbox().take()
    }

    pub fn wake(&self) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            // A full pipe wakes as well, and a closed one has nobody to wake.
            let _ = write(&self.wake, b"!");
        }
    }

    pub fn hang_up(&self) {
        self.hung_up.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// From here on nobody is asked; questions that wait end.
    pub fn close(&self) {
        let mut inbox = self.inbox();
        self.alive.store(false, Ordering::SeqCst);
        let gone = inbox.take();
        drop(inbox);
        drop(gone);
    }

    fn failure(&self) -> PromptFailure {
        if self.hung_up.load(Ordering::SeqCst) {
            PromptFailure::EndOfInput
        } else {
            PromptFailure::Failed("the full-screen interface ended".to_owned())
        }
    }
}

/// The full-screen interface. The terminal is given back when it is [stopped](Self::stop) or dropped.
#[derive(Debug)]
pub struct Tui {
    shared: Arc<Shared>,
    screen: Arc<Screen>,
    ended: mpsc::Receiver<()>,
    signals: JoinHandle<()>,
}

impl Tui {
    /// Takes over this process's terminal, drawing on stderr so that stdout stays data. Has to be called in a tokio runtime.
    ///
    /// # Errors
    /// Where stdin, stdout or stderr is no terminal, or it cannot be used. Nothing was drawn then.
    pub fn start(options: TuiOptions) -> Result<Started, StartError> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        if !(stdin.is_terminal() && stdout.is_terminal() && stderr.is_terminal()) {
            return Err(StartError::NotATerminal);
        }
        // A terminal that does not control this process has no foreground.
        if tcgetpgrp(&stdin).is_ok_and(|group| group != getpgrp()) {
            return Err(StartError::Background);
        }
        let input = stdin.as_fd().try_clone_to_owned()?;
        let output = stderr.as_fd().try_clone_to_owned()?;
        Self::start_on(input, output, options)
    }

    /// Like [`start`](Self::start), on another terminal.
    ///
    /// # Errors
    /// Where one of the two is no terminal, or it cannot be used.
    pub fn start_on(
        input: OwnedFd,
        output: OwnedFd,
        options: TuiOptions,
    ) -> Result<Started, StartError> {
        if isatty(&input) != Ok(true) || isatty(&output) != Ok(true) {
            return Err(StartError::NotATerminal);
        }
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut resized = signal(SignalKind::window_change())?;
        let (woken, wake) = pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).map_err(io::Error::from)?;
        let shared = Arc::new(Shared {
            inbox: Mutex::default(),
            wake,
            woken: AtomicBool::new(false),
            alive: AtomicBool::new(true),
            stop: AtomicBool::new(false),
            hung_up: AtomicBool::new(false),
        });
        let screen = Screen::take(input, output)?;
        let (on_end, ended) = mpsc::channel();
        let shell = Shell::new(Arc::clone(&shared), Arc::clone(&screen), woken, options)?;
        thread::Builder::new()
            .name("fisk-tui".to_owned())
            .spawn(move || {
                shell.run();
                let _ = on_end.send(());
            })?;
        let signals = runtime.spawn({
            let shared = Arc::clone(&shared);
            async move {
                loop {
                    tokio::select! {
                        Some(()) = hang_up.recv() => shared.hang_up(),
                        Some(()) = resized.recv() => shared.wake(),
                        else => return,
                    }
                }
            }
        });
        let prompter = Arc::new(TuiPrompter {
            shared: Arc::clone(&shared),
            next: AtomicU64::new(1),
            turn: tokio::sync::Mutex::new(()),
        });
        let watcher = Arc::new(TuiWatcher(Arc::clone(&shared)));
        let tui = Self {
            shared,
            screen,
            ended,
            signals,
        };
        Ok((tui, prompter, watcher))
    }

    /// Draws what is left, ends the interface and gives the terminal back. Questions that still wait are denied. Print the final
    /// answer after this.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        self.signals.abort();
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.wake();
        // It either ends, or hangs on the terminal; that is given back all the same.
        let _ = self.ended.recv_timeout(JOIN);
        self.shared.close();
        self.screen.restore();
    }
}

struct TuiWatcher(Arc<Shared>);

impl Watcher for TuiWatcher {
    fn event(&self, event: Event) {
        if self.0.alive.load(Ordering::SeqCst) {
            self.0.inbox().push(event);
            self.0.wake();
        }
    }
}

/// Asks the operator on the full screen. One question stands there at a time; the others wait.
#[derive(Debug)]
pub struct TuiPrompter {
    shared: Arc<Shared>,
    next: AtomicU64,
    turn: tokio::sync::Mutex<()>,
}

/// Takes the question off the screen however the wait for its answer ends.
struct Withdraw<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        let mut inbox = self.shared.inbox();
        if self.shared.alive.load(Ordering::SeqCst) {
            inbox.withdrawn.push(self.id);
            drop(inbox);
            self.shared.wake();
        }
    }
}

impl TuiPrompter {
    async fn ask(
        &self,
        question: Question,
        cancel: &CancellationToken,
    ) -> Result<Reply, PromptFailure> {
        let _turn = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(PromptFailure::Cancelled),
            turn = self.turn.lock() => turn,
        };
        let (answer, answered) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        {
            let mut inbox = self.shared.inbox();
            if !self.shared.alive.load(Ordering::SeqCst) {
                return Err(if self.shared.hung_up.load(Ordering::SeqCst) {
                    PromptFailure::EndOfInput
                } else {
                    PromptFailure::NoOperator
                });
            }
            inbox.asked.push_back(Asked {
                id,
                question,
                answer,
            });
        }
        self.shared.wake();
        let _withdraw = Withdraw {
            shared: &self.shared,
            id,
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(PromptFailure::Cancelled),
            reply = answered => match reply {
                Ok(Reply::Failed(failure)) => Err(failure),
                Ok(reply) => Ok(reply),
                Err(_) => Err(self.shared.failure()),
            },
        }
    }
}

/// An answer of another kind than its question is none.
fn unexpected() -> PromptFailure {
    PromptFailure::Failed("the answer does not belong to the question".to_owned())
}

impl Prompter for TuiPrompter {
    fn interactive(&self) -> bool {
        self.shared.alive.load(Ordering::SeqCst) && !self.shared.hung_up.load(Ordering::SeqCst)
    }

    fn approve<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Approval, PromptFailure>> {
        Box::pin(async move {
            match self.ask(Question::Approve(request.clone()), cancel).await? {
                Reply::Approve(approval) => Ok(approval),
                Reply::Failed(failure) => Err(failure),
                Reply::Confirm(_) | Reply::Select(_) | Reply::Input(_) => Err(unexpected()),
            }
        })
    }

    fn confirm<'a>(
        &'a self,
        question: &'a Confirm,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, PromptFailure>> {
        Box::pin(async move {
            match self
                .ask(Question::Confirm(question.clone()), cancel)
                .await?
            {
                Reply::Confirm(yes) => Ok(yes),
                Reply::Failed(failure) => Err(failure),
                Reply::Approve(_) | Reply::Select(_) | Reply::Input(_) => Err(unexpected()),
            }
        })
    }

    fn select<'a>(
        &'a self,
        question: &'a Select,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<usize>, PromptFailure>> {
        Box::pin(async move {
            match self.ask(Question::Select(question.clone()), cancel).await? {
                Reply::Select(chosen) => Ok(chosen),
                Reply::Failed(failure) => Err(failure),
                Reply::Approve(_) | Reply::Confirm(_) | Reply::Input(_) => Err(unexpected()),
            }
        })
    }

    fn input<'a>(
        &'a self,
        question: &'a Input,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<String>, PromptFailure>> {
        Box::pin(async move {
            match self.ask(Question::Input(question.clone()), cancel).await? {
                Reply::Input(text) => Ok(text),
                Reply::Failed(failure) => Err(failure),
                Reply::Approve(_) | Reply::Confirm(_) | Reply::Select(_) => Err(unexpected()),
            }
        })
    }
}
