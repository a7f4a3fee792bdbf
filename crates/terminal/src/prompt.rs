//! Questions to the person at the keyboard.
//!
//! They are drawn on stderr, so that stdout stays data, and answered on stdin. Both have to be terminals; `/dev/tty` is never
//! opened in their place, because a process whose input was redirected has nobody to ask. What was typed
//! before the question could be seen is thrown away, and so is what is left after the answer: neither can answer something
//! else. Enter, Escape, Ctrl-C, Ctrl-D and a closed input are all negative.
//!
//! The calls block; in async code run them with `spawn_blocking`.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::termios::{
    FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr,
};
use nix::unistd::{isatty, read};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::cut::{MAX_TEXT, strip_and_cut};

/// The most bytes a secret may have.
pub const MAX_SECRET: usize = 64 * 1024;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum PromptError {
    /// Nobody can be asked.
    #[error("stdin and stderr have to be a terminal to ask a question")]
    NotATerminal,
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
    /// The terminal failed.
    #[error("the terminal cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for PromptError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
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

/// Reads a secret from something that is no terminal, such as a pipe: all of it, without one final line end.
///
/// # Errors
/// Where it cannot be read, or is empty, too long or no text.
///
/// ```
/// let secret = fuse_terminal::prompt::secret_from(&b"s3cret\n"[..]).unwrap();
/// assert_eq!(secret.as_str(), "s3cret");
/// ```
pub fn secret_from(input: impl Read) -> Result<Zeroizing<String>, PromptError> {
    // Room for all that is ever read: growing would leave copies behind.
    let mut value = Zeroizing::new(Vec::with_capacity(MAX_SECRET + 3));
    input.take(MAX_SECRET as u64 + 3).read_to_end(&mut value)?;
    if value.ends_with(b"\n") {
        value.pop();
        if value.ends_with(b"\r") {
            value.pop();
        }
    }
    finish(value)
}

fn finish(value: Zeroizing<Vec<u8>>) -> Result<Zeroizing<String>, PromptError> {
    if value.is_empty() {
        return Err(PromptError::Cancelled);
    }
    if value.len() > MAX_SECRET {
        return Err(PromptError::TooLong);
    }
    if value.contains(&0) {
        return Err(PromptError::Nul);
    }
    let text = std::str::from_utf8(&value).map_err(|_| PromptError::NotUtf8)?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// A terminal to ask on: where keys come from, and where the question is drawn.
pub struct Prompt<'fd, W> {
    input: BorrowedFd<'fd>,
    output: W,
}

impl<'fd, W: Write + AsFd> Prompt<'fd, W> {
    /// # Errors
    /// [`PromptError::NotATerminal`] unless both are terminals.
    pub fn new(input: BorrowedFd<'fd>, output: W) -> Result<Self, PromptError> {
        if isatty(input) == Ok(true) && isatty(output.as_fd()) == Ok(true) {
            Ok(Self { input, output })
        } else {
            Err(PromptError::NotATerminal)
        }
    }

    /// Draws `question [y/N]` and waits for one key: `y` is a yes; `n`, Enter, Escape, Ctrl-C, Ctrl-D and a closed
    /// input are a no; other keys do nothing.
    ///
    /// The question is stripped and cut like any free text.
    ///
    /// # Errors
    /// Where the terminal fails. Take it as a no.
    pub fn confirm(&mut self, question: &str) -> Result<bool, PromptError> {
        let text = format!("{} [y/N] ", strip_and_cut(question, MAX_TEXT));
        let keys = Keys::open(self.input, &mut self.output, &text)?;
        let yes = loop {
            match keys.next()? {
                Some(b'y' | b'Y') => break true,
                None | Some(b'n' | b'N' | b'\r' | b'\n' | ESCAPE | CTRL_C | CTRL_D) => break false,
                Some(_) => {}
            }
        };
        drop(keys);
        // The answer stands even where the terminal went away with it.
        let _ = writeln!(self.output, "{}", if yes { "yes" } else { "no" });
        Ok(yes)
    }

    /// Draws `label: ` and reads a line that is not shown. Backspace takes back a character and Ctrl-U all of them; other control
    /// characters but a tab are ignored.
    ///
    /// The label is stripped and cut like any free text.
    ///
    /// # Errors
    /// [`PromptError::Cancelled`] on Escape, Ctrl-C, Ctrl-D, a closed input or an empty line; others where the value cannot be
    /// a secret or the terminal fails.
    pub fn secret(&mut self, label: &str) -> Result<Zeroizing<String>, PromptError> {
        let text = format!("{}: ", strip_and_cut(label, MAX_TEXT));
        let keys = Keys::open(self.input, &mut self.output, &text)?;
        let mut value = Zeroizing::new(Vec::with_capacity(MAX_SECRET + 1));
        let done = loop {
            match keys.next()? {
                None | Some(ESCAPE | CTRL_C | CTRL_D) => break Err(PromptError::Cancelled),
                Some(b'\r' | b'\n') => break Ok(()),
                Some(BACKSPACE | DELETE) => while value.pop().is_some_and(is_continuation) {},
                Some(CTRL_U) => value.clear(),
                Some(byte) if byte.is_ascii_control() && byte != b'\t' => {}
                Some(_) if value.len() == MAX_SECRET => break Err(PromptError::TooLong),
                Some(byte) => value.push(byte),
            }
        };
        drop(keys);
        let _ = writeln!(self.output);
        done.and_then(|()| finish(value))
    }
}

const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Single keys, unechoed, until it is dropped.
struct Keys<'fd> {
    input: BorrowedFd<'fd>,
    before: Termios,
}

impl<'fd> Keys<'fd> {
    fn open(
        input: BorrowedFd<'fd>,
        output: &mut impl Write,
        text: &str,
    ) -> Result<Self, PromptError> {
        let before = tcgetattr(input)?;
        let mut now = before.clone();
        // Without ISIG Ctrl-C is a key: a negative answer, not the end of the process with the terminal left like this.
        now.local_flags &= !(LocalFlags::ECHO
            | LocalFlags::ECHONL
            | LocalFlags::ICANON
            | LocalFlags::ISIG
            | LocalFlags::IEXTEN);
        now.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        now.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(input, SetArg::TCSAFLUSH, &now)?;
        let keys = Self { input, before };
        output.write_all(text.as_bytes())?;
        output.flush()?;
        // Only now can the person have seen what they answer.
        tcflush(input, FlushArg::TCIFLUSH)?;
        Ok(keys)
    }

    /// The next byte, or `None` where the input is closed.
    fn next(&self) -> Result<Option<u8>, PromptError> {
        let mut byte = Zeroizing::new([0]);
        loop {
            match read(self.input, &mut *byte) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(byte[0])),
                Err(Errno::EINTR) => {}
                // A terminal that hung up.
                Err(Errno::EIO) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        // Flushing, too: the rest of a pasted secret must not become commands for the shell. There is nobody to tell
        // where it fails, since the terminal is gone then.
        let _ = tcsetattr(self.input, SetArg::TCSAFLUSH, &self.before);
    }
}
