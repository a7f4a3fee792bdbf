//! A line that is not shown.

use std::io::{Read, Write};
use std::os::fd::AsFd;

use zeroize::Zeroizing;

use super::session::{Drawn, Paste, Session};
use super::{Prompt, PromptError};
use crate::cut::{MAX_TEXT, strip_and_cut};

/// The most bytes a secret may have.
pub const MAX_SECRET: usize = 64 * 1024;

const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

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

impl<W: Write + AsFd> Prompt<'_, W> {
    /// Draws `label: ` and reads a line that is not shown. Backspace takes back a character and Ctrl-U all of them; other control
    /// characters but a tab are ignored.
    ///
    /// The label is stripped and cut like any free text.
    ///
    /// # Errors
    /// [`PromptError::Cancelled`] on Escape, Ctrl-C, Ctrl-D, a closed input or an empty line; others where the value cannot be
    /// a secret or the terminal fails.
    pub fn secret(&mut self, label: &str) -> Result<Zeroizing<String>, PromptError> {
        let label = Drawn {
            body: strip_and_cut(label, MAX_TEXT),
            ready: ": ".to_owned(),
        };
        let session = Session::open(self, Paste::Plain, |_| label)?;
        let mut value = Zeroizing::new(Vec::with_capacity(MAX_SECRET + 1));
        let done = loop {
            match session.byte()? {
                None | Some(ESCAPE | CTRL_C | CTRL_D) => break Err(PromptError::Cancelled),
                Some(b'\r' | b'\n') => break Ok(()),
                Some(BACKSPACE | DELETE) => while value.pop().is_some_and(is_continuation) {},
                Some(CTRL_U) => value.clear(),
                Some(byte) if byte.is_ascii_control() && byte != b'\t' => {}
                Some(_) if value.len() == MAX_SECRET => break Err(PromptError::TooLong),
                Some(byte) => value.push(byte),
            }
        };
        session.close("");
        done.and_then(|()| finish(value))
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
