//! A terminal while a question stands on it.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::termios::{
    FlushArg, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr,
    tcsetattr,
};
use nix::unistd::{getpgrp, read, tcgetpgrp};
use zeroize::Zeroizing;

use super::layout::Screen;
use super::{Prompt, PromptError};
use crate::keys::{Key, decode};

/// How often the size and the foreground are looked at.
const TICK: Duration = Duration::from_millis(150);

/// What follows a byte this soon belongs to the same key, or to the same paste.
const SETTLE: Duration = Duration::from_millis(30);

/// How long nobody may have typed before something new to answer is drawn. Whoever presses a key twice, or still holds it down for the
/// question before, would answer what they have not read; terminals begin to repeat a held key within this time.
pub const QUIET: Duration = Duration::from_millis(700);

/// A drawing that takes longer than this was held up by the terminal, so that keys may have come before it could be seen.
const HELD_UP: Duration = Duration::from_millis(100);

/// When a key was last read at any question of this process. A terminal forgets it between two questions.
static TYPED: Mutex<Option<Instant>> = Mutex::new(None);

/// The most that is kept of what comes at once.
const MAX_BURST: usize = 256 * 1024;

const PASTE_ON: &[u8] = b"\x1b[?2004h";
const PASTE_OFF: &[u8] = b"\x1b[?2004l";

const BREAKING: LocalFlags = LocalFlags::ECHO
    .union(LocalFlags::ECHONL)
    .union(LocalFlags::ICANON)
    .union(LocalFlags::ISIG)
    .union(LocalFlags::IEXTEN);

/// How pasted text is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paste {
    /// Like typed text.
    Plain,
    /// Marked as pasted, by terminals that can.
    Bracketed,
}

/// Something to answer, as it stands on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drawn {
    /// All that has to be seen before it is answered.
    pub body: String,
    /// The few characters behind which the answer is awaited.
    pub ready: String,
}

/// What happens at a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Keys that came in one piece; never none.
    Keys(Vec<Key>),
    /// The terminal has another size. What is drawn has to be drawn again.
    Resized(Screen),
    /// The input is closed.
    Closed,
    /// The question was cancelled.
    Cancelled,
}

/// Single keys, unechoed, until it is dropped. It stays on the thread that opened it.
pub(super) struct Session<'a, 'fd, W: Write + AsFd> {
    input: BorrowedFd<'fd>,
    cancel: Option<BorrowedFd<'fd>>,
    output: &'a mut W,
    before: Termios,
    now: Termios,
    mask: SigSet,
    paste: Paste,
    drawn: Screen,
    seen: Screen,
    /// What happened before keys counted, and has to be heard all the same.
    early: Option<Event>,
}

/// Whether what is typed at the terminal is for this process. A terminal that does not control the process has no foreground.
pub(super) fn is_foreground(input: BorrowedFd<'_>) -> bool {
    tcgetpgrp(input).map_or(true, |group| group == getpgrp())
}

impl<'a, 'fd, W: Write + AsFd> Session<'a, 'fd, W> {
    /// [`show`](Self::show)s the question for the size that the terminal has.
    pub fn open(
        prompt: &'a mut Prompt<'fd, W>,
        paste: Paste,
        question: impl FnOnce(Screen) -> Drawn,
    ) -> Result<Self, PromptError> {
        let input = prompt.input;
        if !is_foreground(input) {
            return Err(PromptError::Background);
        }
        let before = tcgetattr(input)?;
        let mut now = before.clone();
        // Without ISIG Ctrl-C is a key: a negative answer, not the end of the process with the terminal left like this.
        now.local_flags &= !BREAKING;
        // Ctrl-S would hold back what a cancelled question still has to write.
        now.input_flags &= !InputFlags::IXON;
        now.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        now.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        let mask = block_job_control()?;
        let drawn = Screen::of(prompt.output.as_fd());
        let bell: &[u8] = if prompt.bell { b"\x07" } else { b"" };
        // From here on its end puts everything back.
        let mut session = Self {
            input,
            cancel: prompt.cancel,
            output: &mut prompt.output,
            before,
            now,
            mask,
            paste,
            drawn,
            seen: drawn,
            early: None,
        };
        // Not flushing: what was typed so far tells whether somebody is typing.
        tcsetattr(input, SetArg::TCSANOW, &session.now)?;
        if paste == Paste::Bracketed {
            session.output.write_all(PASTE_ON)?;
        }
        session.output.write_all(bell)?;
        session.show(&question(drawn))?;
        Ok(session)
    }

    /// Writes safe text.
    pub fn draw(&mut self, text: &str) -> Result<(), PromptError> {
        self.output.write_all(text.as_bytes())?;
        self.output.flush()?;
        Ok(())
    }

    /// Draws something new to answer, once nobody types: what is typed before it can be seen is thrown away, and none of what is typed
    /// after that is lost.
    fn show(&mut self, what: &Drawn) -> Result<(), PromptError> {
        let (typed, _) = self.wait(Duration::ZERO, None)?;
        if typed {
            tcflush(self.input, FlushArg::TCIFLUSH)?;
            note_typed();
        }
        self.settle(|key| *key == Key::Interrupt)?;
        tcflush(self.input, FlushArg::TCIFLUSH)?;
        let began = Instant::now();
        self.draw(&what.body)?;
        if began.elapsed() > HELD_UP {
            tcflush(self.input, FlushArg::TCIFLUSH)?;
        }
        self.draw(&what.ready)
    }

    /// Draws a page to read at once. Until nobody types only keys that are `heard` count, so that one which is held down leaves it there.
    pub fn turn(&mut self, page: &Drawn, heard: impl Fn(&Key) -> bool) -> Result<(), PromptError> {
        self.draw(&page.body)?;
        self.settle(heard)?;
        self.draw(&page.ready)
    }

    /// Waits until nobody has typed for [`QUIET`], which is at once where nobody did. Only what ends the question and keys that are `heard` end
    /// it sooner.
    fn settle(&mut self, heard: impl Fn(&Key) -> bool) -> Result<(), PromptError> {
        while let Some(left) = quiet_in() {
            let (typed, cancelled) = self.wait(left, self.cancel)?;
            if cancelled {
                self.early = Some(Event::Cancelled);
                break;
            }
            if !is_foreground(self.input) {
                return Err(PromptError::Background);
            }
            if !typed {
                continue;
            }
            match self.burst()? {
                Event::Keys(mut keys) => {
                    keys.retain(&heard);
                    if !keys.is_empty() {
                        self.early = Some(Event::Keys(keys));
                        break;
                    }
                }
                ended @ (Event::Closed | Event::Cancelled | Event::Resized(_)) => {
                    self.early = Some(ended);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Draws the same again.
    pub fn redraw(&mut self, what: &Drawn) -> Result<(), PromptError> {
        self.draw(&format!("\n{}{}", what.body, what.ready))
    }

    /// The size that was drawn for.
    pub fn screen(&self) -> Screen {
        self.drawn
    }

    /// Puts everything back and ends the line.
    pub fn close(mut self, last: &str) {
        // The answer stands even where the terminal went away with it.
        let _ = self.draw(last);
        let _ = self.draw("\n");
    }

    /// Waits for the next thing to happen.
    pub fn next(&mut self) -> Result<Event, PromptError> {
        if let Some(event) = self.early.take() {
            return Ok(event);
        }
        loop {
            let (input, cancelled) = self.wait(TICK, self.cancel)?;
            if cancelled {
                return Ok(Event::Cancelled);
            }
            if !is_foreground(self.input) {
                return Err(PromptError::Background);
            }
            if input {
                match self.burst()? {
                    Event::Keys(keys) if keys.is_empty() => continue,
                    event => return Ok(event),
                }
            }
            self.hold_on()?;
            let size = Screen::of(self.output.as_fd());
            // Drawn again only once it stays: dragging a corner would fill the screen with questions.
            if size == self.seen && size != self.drawn {
                self.drawn = size;
                return Ok(Event::Resized(size));
            }
            self.seen = size;
        }
    }

    /// A process that was stopped and continued finds the terminal as its shell left it.
    fn hold_on(&self) -> Result<(), PromptError> {
        match tcgetattr(self.input) {
            Ok(is) if is.local_flags.intersects(BREAKING) => {
                tcsetattr(self.input, SetArg::TCSANOW, &self.now)?;
                Ok(())
            }
            // One that hung up tells so when it is read.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn burst(&mut self) -> Result<Event, PromptError> {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        let began = Instant::now();
        loop {
            match read(self.input, &mut chunk) {
                // A terminal that hung up. What came with it was not meant to be the last word.
                Ok(0) | Err(Errno::EIO) => return Ok(Event::Closed),
                Ok(n) => {
                    note_typed();
                    let room = MAX_BURST.saturating_sub(bytes.len());
                    bytes.extend_from_slice(&chunk[..n.min(room)]);
                }
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
            let (keys, partial) = decode(&bytes);
            let patience = match partial.patience() {
                Some(patience) if bytes.len() < MAX_BURST => patience,
                Some(_) | None => SETTLE,
            };
            // A sender that never stops must not keep the question from being cancelled.
            let endless = began.elapsed() > Duration::from_secs(5);
            let (more, cancelled) = self.wait(patience, self.cancel)?;
            if cancelled {
                return Ok(Event::Cancelled);
            }
            if !more || endless {
                return Ok(Event::Keys(keys));
            }
        }
    }

    /// Whether there is input, and whether the question was cancelled, within so long.
    fn wait(
        &self,
        timeout: Duration,
        cancel: Option<BorrowedFd<'fd>>,
    ) -> Result<(bool, bool), PromptError> {
        let mut fds = vec![PollFd::new(self.input, PollFlags::POLLIN)];
        fds.extend(cancel.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::ZERO);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let happened = |fd: &PollFd<'_>| fd.revents().is_some_and(|is| !is.is_empty());
        Ok((happened(&fds[0]), fds.get(1).is_some_and(happened)))
    }

    /// The next byte, or `None` where the input is closed.
    pub fn byte(&self) -> Result<Option<u8>, PromptError> {
        let mut byte = Zeroizing::new([0]);
        loop {
            match read(self.input, &mut *byte) {
                Ok(0) => return Ok(None),
                Ok(_) => {
                    note_typed();
                    return Ok(Some(byte[0]));
                }
                Err(Errno::EINTR) => {}
                // A terminal that hung up.
                Err(Errno::EIO) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

fn note_typed() {
    *TYPED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// How long until nobody has typed for [`QUIET`]; `None` where that is so.
fn quiet_in() -> Option<Duration> {
    let typed = *TYPED.lock().unwrap_or_else(PoisonError::into_inner);
    let left = QUIET.checked_sub(typed?.elapsed())?;
    (!left.is_zero()).then_some(left)
}

/// Reading and setting a terminal from the background fails instead of stopping the process; gives the mask before.
fn block_job_control() -> Result<SigSet, PromptError> {
    let mut stops = SigSet::empty();
    stops.add(Signal::SIGTTIN);
    stops.add(Signal::SIGTTOU);
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&stops), Some(&mut before))?;
    Ok(before)
}

impl<W: Write + AsFd> Drop for Session<'_, '_, W> {
    fn drop(&mut self) {
        // In the background the terminal is another's already. There is nobody to tell where any of this fails,
        // since the terminal is gone then.
        if is_foreground(self.input) {
            if self.paste == Paste::Bracketed {
                let _ = self.output.write_all(PASTE_OFF);
                let _ = self.output.flush();
            }
            // Flushing, too: the rest of a pasted secret must not become commands for the shell.
            let _ = tcsetattr(self.input, SetArg::TCSAFLUSH, &self.before);
        }
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None);
    }
}
