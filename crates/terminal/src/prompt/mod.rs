//! Questions to the person at the keyboard.
//!
//! They are drawn on stderr, so that stdout stays data, and answered on stdin. Both have to be terminals; `/dev/tty` is never
//! opened in their place, because a process whose input was redirected has nobody to ask. A question is drawn once nobody types;
//! what was typed before is thrown away, and so is what is left after the answer: neither can answer something
//! else. Enter, Escape, Ctrl-C, Ctrl-D and a closed input are all negative.
//!
//! A key that says yes counts only where it comes alone. Keys that arrive in one piece are a paste, or were typed by nobody: of
//! those only the negative ones count. An Enter behind a single one belongs to it. What a terminal marks as pasted (bracketed paste) answers no question at all.
//! An arrow key is one key although it is sent as Escape and more; where that cannot be told, it is an Escape.
//!
//! The calls block; in async code run them with `spawn_blocking` and let them be [cancelled](Prompt::cancelled_by).
//! A process in the background asks nobody: it would be stopped, and wait unseen.

mod approve;
mod ask;
mod layout;
mod line;
mod pager;
mod secret;
mod select;
mod session;

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::unistd::isatty;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::cut::OptionsError;
pub use approve::Approved;
pub use line::MAX_LINE;
pub use secret::{MAX_SECRET, secret_from};
pub use session::QUIET;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum PromptError {
    /// Nobody can be asked.
    #[error("stdin and stderr have to be a terminal to ask a question")]
    NotATerminal,
    /// The process is not in the foreground of its terminal, so what is typed there is for another one.
    #[error("a process in the background cannot ask a question")]
    Background,
    /// The person gave no value: Escape, Ctrl-C, Ctrl-D, an empty line or a closed input.
    #[error("no value was given")]
    Cancelled,
    /// The value is not text.
    #[error("the value is not valid UTF-8")]
    NotUtf8,
    /// The value holds a NUL character.
    #[error("the value holds a NUL character")]
    Nul,
    /// The value has more than [`MAX_SECRET`] bytes.
    #[error("the value is longer than {MAX_SECRET} bytes")]
    TooLong,
    /// The options cannot be offered.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The terminal failed.
    #[error("the terminal cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for PromptError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<T> {
    /// The person chose this; a plain no is a choice as well.
    Given(T),
    /// Escape.
    Escaped,
    /// Ctrl-C. It is no signal while a question stands.
    Interrupted,
    /// Ctrl-D, or the input was closed.
    Ended,
    /// Whatever [`Prompt::cancelled_by`] names cancelled it.
    Cancelled,
}

impl<T> Answer<T> {
    /// What was chosen, if anything was.
    pub fn given(self) -> Option<T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Escaped | Self::Interrupted | Self::Ended | Self::Cancelled => None,
        }
    }
}

/// Whether this process can ask: stdin and stderr are terminals and it is in their foreground.
pub fn can_ask() -> bool {
    match Prompt::new(io::stdin().as_fd(), io::stderr()) {
        Ok(prompt) => session::is_foreground(prompt.input),
        Err(_) => false,
    }
}

/// Asks a yes-or-no question on this process's terminal; see [`Prompt::confirm`].
///
/// # Errors
/// Where there is no terminal to ask on, or it fails. Take any error as a no.
pub fn confirm(question: &str) -> Result<bool, PromptError> {
    Prompt::new(io::stdin().as_fd(), io::stderr())?.confirm(question)
}

/// Reads a secret on this process's terminal without showing it; see [`Prompt::secret`].
///
/// # Errors
/// Where there is no terminal to ask on, or no usable value was given.
pub fn secret(label: &str) -> Result<Zeroizing<String>, PromptError> {
    Prompt::new(io::stdin().as_fd(), io::stderr())?.secret(label)
}

/// A terminal to ask on: where keys come from, and where the question is drawn.
pub struct Prompt<'fd, W> {
    input: BorrowedFd<'fd>,
    output: W,
    cancel: Option<BorrowedFd<'fd>>,
    bell: bool,
}

impl<'fd, W: Write + AsFd> Prompt<'fd, W> {
    /// # Errors
    /// [`PromptError::NotATerminal`] unless both are terminals.
    pub fn new(input: BorrowedFd<'fd>, output: W) -> Result<Self, PromptError> {
        if isatty(input) == Ok(true) && isatty(output.as_fd()) == Ok(true) {
            Ok(Self {
                input,
                output,
                cancel: None,
                bell: false,
            })
        } else {
            Err(PromptError::NotATerminal)
        }
    }

    /// Ends every question with [`Answer::Cancelled`] as soon as `fd` can be read or its other end is closed. A pipe whose
    /// writing end is dropped does it. [`secret`](Self::secret) does not look at it.
    #[must_use]
    pub fn cancelled_by(mut self, fd: BorrowedFd<'fd>) -> Self {
        self.cancel = Some(fd);
        self
    }

    /// Rings the terminal's bell with each question; not unless this is called.
    #[must_use]
    pub fn with_bell(mut self) -> Self {
        self.bell = true;
        self
    }
}
