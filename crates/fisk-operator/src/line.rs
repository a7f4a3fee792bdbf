//! The operator at the terminal of this process, without a full screen.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use fisk_domain::{Approval, PromptFailure};
use fuse_terminal::prompt::{Answer, Approved, Prompt, PromptError, can_ask};
use fuse_terminal::{Exact, strip_and_cut};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::interrupts::Interrupts;
use crate::prompter::{ApprovalRequest, Confirm, Input, Prompter, Select};

/// How long a cancelled question may take to leave the screen.
const LEAVING: Duration = Duration::from_secs(1);

/// How the line prompter asks.
#[derive(Debug, Clone, Default)]
pub struct LineOptions {
    /// `harness.no_bell`: questions ring no bell.
    pub no_bell: bool,
    /// Where Ctrl-C at a question is counted.
    pub interrupts: Interrupts,
}

/// Asks on stderr and reads stdin. Both have to be terminals; `/dev/tty` is never opened in their place.
#[derive(Debug)]
pub struct LinePrompter {
    options: LineOptions,
    terminal: Terminal,
    /// One question at a time.
    turn: Arc<Mutex<()>>,
}

#[derive(Debug, Clone)]
enum Terminal {
    Own,
    Given(Arc<(OwnedFd, File)>),
}

impl LinePrompter {
    /// On the terminal of this process. Whether there is one is looked at with each question.
    pub fn new(options: LineOptions) -> Self {
        Self::with(options, Terminal::Own)
    }

    /// On another terminal: keys come from `input`, questions are drawn on `output`.
    pub fn on(options: LineOptions, input: OwnedFd, output: File) -> Self {
        Self::with(options, Terminal::Given(Arc::new((input, output))))
    }

    fn with(options: LineOptions, terminal: Terminal) -> Self {
        Self {
            options,
            terminal,
            turn: Arc::default(),
        }
    }

    /// Waits for its turn, asks on a thread where it may block, and takes the question off the screen when it is cancelled.
    async fn asked<T: Send + 'static>(
        &self,
        cancel: &CancellationToken,
        question: impl FnOnce(&mut dyn Asker) -> Result<Answer<T>, PromptError> + Send + 'static,
    ) -> Result<T, PromptFailure> {
        if cancel.is_cancelled() {
            return Err(PromptFailure::Cancelled);
        }
        let turn = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(PromptFailure::Cancelled),
            turn = Arc::clone(&self.turn).lock_owned() => turn,
        };
        // Its writing end is dropped with this future, too: a question that nobody waits for any more goes.
        let (cancelled, canceller) = io::pipe().map_err(|error| failed(&error))?;
        let terminal = self.terminal.clone();
        let bell = !self.options.no_bell;
        let mut asking = tokio::task::spawn_blocking(move || {
            let answer = terminal.ask(cancelled.as_fd(), bell, question);
            // The next question waits until this one has left the screen.
            drop(turn);
            answer
        });
        let joined = tokio::select! {
            biased;
            joined = &mut asking => joined,
            () = cancel.cancelled() => {
                drop(canceller);
                // A terminal that takes no output must not hold up the end of the run.
                match timeout(LEAVING, &mut asking).await {
                    Ok(joined) => joined,
                    Err(_) => return Err(PromptFailure::Cancelled),
                }
            }
        };
        let answer = joined.map_err(|error| failed(&error))?;
        if matches!(answer, Ok(Answer::Interrupted)) {
            self.options.interrupts.note();
        }
        // A yes that comes together with the end of the run is none.
        if cancel.is_cancelled() {
            return Err(PromptFailure::Cancelled);
        }
        match answer {
            Ok(Answer::Given(value)) => Ok(value),
            Ok(Answer::Escaped) => Err(PromptFailure::Dismissed),
            Ok(Answer::Interrupted) => Err(PromptFailure::Interrupted),
            Ok(Answer::Ended) => Err(PromptFailure::EndOfInput),
            Ok(Answer::Cancelled) => Err(PromptFailure::Cancelled),
            Err(PromptError::NotATerminal) => Err(PromptFailure::NoOperator),
            Err(error) => Err(failed(&error)),
        }
    }
}

fn failed(error: &dyn std::error::Error) -> PromptFailure {
    PromptFailure::Failed(error.to_string())
}

/// [`Prompt`], whatever it draws on.
trait Asker {
    fn approve(&mut self, title: &str, command: &Exact) -> Result<Answer<Approved>, PromptError>;
    fn ask(&mut self, question: &Confirm) -> Result<Answer<bool>, PromptError>;
    fn select(&mut self, question: &Select) -> Result<Answer<Option<usize>>, PromptError>;
    fn line(&mut self, question: &Input) -> Result<Answer<Option<String>>, PromptError>;
}

impl<W: io::Write + AsFd> Asker for Prompt<'_, W> {
    fn approve(&mut self, title: &str, command: &Exact) -> Result<Answer<Approved>, PromptError> {
        Prompt::approve(self, title, command)
    }

    fn ask(&mut self, question: &Confirm) -> Result<Answer<bool>, PromptError> {
        Prompt::ask(self, &question.question, question.default)
    }

    fn select(&mut self, question: &Select) -> Result<Answer<Option<usize>>, PromptError> {
        let Select {
            question,
            options,
            default,
        } = question;
        Prompt::select(self, question, options, default.as_deref())
    }

    fn line(&mut self, question: &Input) -> Result<Answer<Option<String>>, PromptError> {
        Prompt::line(self, &question.question, question.default.as_deref())
    }
}

impl Terminal {
    fn ask<T>(
        &self,
        cancelled: std::os::fd::BorrowedFd<'_>,
        bell: bool,
        question: impl FnOnce(&mut dyn Asker) -> Result<Answer<T>, PromptError>,
    ) -> Result<Answer<T>, PromptError> {
        match self {
            Self::Own => {
                let stdin = io::stdin();
                let prompt = Prompt::new(stdin.as_fd(), io::stderr())?;
                question(&mut set_up(prompt, cancelled, bell))
            }
            Self::Given(terminal) => {
                let prompt = Prompt::new(terminal.0.as_fd(), &terminal.1)?;
                question(&mut set_up(prompt, cancelled, bell))
            }
        }
    }
}

fn set_up<'fd, W: io::Write + AsFd>(
    prompt: Prompt<'fd, W>,
    cancelled: std::os::fd::BorrowedFd<'fd>,
    bell: bool,
) -> Prompt<'fd, W> {
    let prompt = prompt.cancelled_by(cancelled);
    if bell { prompt.with_bell() } else { prompt }
}

/// The most graphemes of a tool's name and of its tags in a question about it, so that there is room for both.
const MAX_NAME: usize = 100;

/// What is asked about a command: which tool it is, and why it is asked.
pub(crate) fn title(request: &ApprovalRequest) -> String {
    let tool = strip_and_cut(&request.tool, MAX_NAME);
    let tags = strip_and_cut(&request.tags.join(", "), MAX_NAME);
    format!("The agent wants to run {tool}, which needs your approval (tagged {tags}):")
}

impl Prompter for LinePrompter {
    fn interactive(&self) -> bool {
        match &self.terminal {
            Terminal::Own => can_ask(),
            Terminal::Given(terminal) => Prompt::new(terminal.0.as_fd(), &terminal.1).is_ok(),
        }
    }

    fn approve<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Approval, PromptFailure>> {
        let (title, command) = (title(request), request.command.clone());
        async move {
            let answer = self.asked(cancel, move |on| on.approve(&title, &command));
            Ok(match answer.await? {
                Approved::Once => Approval::Once,
                Approved::Session => Approval::Session,
                Approved::No => Approval::Denied { reason: None },
            })
        }
        .boxed()
    }

    fn confirm<'a>(
        &'a self,
        question: &'a Confirm,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, PromptFailure>> {
        let question = question.clone();
        self.asked(cancel, move |on| on.ask(&question)).boxed()
    }

    fn select<'a>(
        &'a self,
        question: &'a Select,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<usize>, PromptFailure>> {
        let question = question.clone();
        self.asked(cancel, move |on| on.select(&question)).boxed()
    }

    fn input<'a>(
        &'a self,
        question: &'a Input,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<String>, PromptFailure>> {
        let question = question.clone();
        self.asked(cancel, move |on| on.line(&question)).boxed()
    }
}
