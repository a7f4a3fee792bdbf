//! The terminal while it is ours, and how it is given back.

use std::{
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, Once, PoisonError, TryLockError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::termios::{
        FlushArg, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush,
        tcgetattr, tcsetattr,
    },
    unistd::write,
};

/// Alternate screen, no cursor, marked pastes, and no wrapping: a character that is wider than we think stays in its row.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?7l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?2004l\x1b[?25h\x1b[?1049l";

/// No screen is larger; what a terminal claims beyond it would cost memory for nothing.
const LARGEST: (u16, u16) = (1000, 500);
/// What is written at once, so that a terminal that takes nothing holds nobody up for long.
const CHUNK: usize = 1024;

/// Screens to be given back when the process panics.
static ACTIVE: Mutex<Vec<Weak<Screen>>> = Mutex::new(Vec::new());
static HOOK: Once = Once::new();

/// A terminal of ours.
#[derive(Debug)]
pub(crate) struct Screen {
    input: OwnedFd,
    output: OwnedFd,
    before: Mutex<Termios>,
    /// Held while something is written.
    writing: Mutex<()>,
    restored: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Screen {
    /// Takes the terminal over. It is given back by [`restore`](Self::restore), when it is dropped, and by a panic.
    pub fn take(input: OwnedFd, output: OwnedFd) -> io::Result<Arc<Self>> {
        let before = tcgetattr(&input)?;
        let mut now = before.clone();
        // Without ISIG Ctrl-C is a key, without IXON Ctrl-S is one.
        now.local_flags &= !(LocalFlags::ECHO
            | LocalFlags::ECHONL
            | LocalFlags::ICANON
            | LocalFlags::ISIG
            | LocalFlags::IEXTEN);
        now.input_flags &= !(InputFlags::IXON | InputFlags::ICRNL | InputFlags::INLCR);
        now.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        now.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        let screen = Arc::new(Self {
            input,
            output,
            before: Mutex::new(before),
            writing: Mutex::new(()),
            restored: AtomicBool::new(false),
        });
        HOOK.call_once(|| {
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                for screen in locked(&ACTIVE).iter().filter_map(Weak::upgrade) {
                    screen.restore();
                }
                hook(info);
            }));
        });
        let mut active = locked(&ACTIVE);
        active.retain(|screen| screen.strong_count() > 0);
        active.push(Arc::downgrade(&screen));
        drop(active);
        tcsetattr(&screen.input, SetArg::TCSAFLUSH, &now)?;
        screen.write(ENTER)?;
        Ok(screen)
    }

    pub fn input(&self) -> &OwnedFd {
        &self.input
    }

    /// Columns and rows; the usual ones where the terminal does not know.
    pub fn size(&self) -> (u16, u16) {
        match terminal_size::terminal_size_of(&self.output) {
            Some((columns, rows)) if columns.0 > 0 && rows.0 > 0 => {
                (columns.0.min(LARGEST.0), rows.0.min(LARGEST.1))
            }
            Some(_) | None => (80, 24),
        }
    }

    /// Throws away what was typed until now.
    pub fn discard(&self) -> io::Result<()> {
        Ok(tcflush(&self.input, FlushArg::TCIFLUSH)?)
    }

    pub fn is_restored(&self) -> bool {
        self.restored.load(Ordering::SeqCst)
    }

    /// Writes all of it, and nothing once the terminal was given back.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let _writing = locked(&self.writing);
        if self.is_restored() {
            return Ok(());
        }
        // A terminal may stand still for as long as its network does; nobody is asked meanwhile.
        self.write_all(bytes, None)
    }

    /// Without `patience` it waits until the terminal is given back.
    fn write_all(&self, bytes: &[u8], patience: Option<Duration>) -> io::Result<()> {
        let mut rest = bytes;
        let mut since = Instant::now();
        while !rest.is_empty() {
            let mut ready = [PollFd::new(self.output.as_fd(), PollFlags::POLLOUT)];
            match poll(&mut ready, PollTimeout::from(50u8)) {
                Ok(0)
                    if patience
                        .map_or(self.is_restored(), |patience| since.elapsed() > patience) =>
                {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(0) | Err(Errno::EINTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            match write(&self.output, &rest[..rest.len().min(CHUNK)]) {
                Ok(written) => {
                    rest = &rest[written..];
                    since = Instant::now();
                }
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Gives the terminal back. Only the first call does anything.
    pub fn restore(&self) {
        if self.restored.swap(true, Ordering::SeqCst) {
            return;
        }
        // Not held up by a drawing that the terminal does not take, nor by one that panicked.
        let until = Instant::now() + Duration::from_millis(200);
        let _writing = loop {
            match self.writing.try_lock() {
                Ok(guard) => break Some(guard),
                Err(TryLockError::Poisoned(guard)) => break Some(guard.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() > until => break None,
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(2)),
            }
        };
        // There is nobody to tell where it fails, since the terminal is gone then. What was typed must not become commands for
        // the shell.
        let _ = tcsetattr(&self.input, SetArg::TCSANOW, &locked(&self.before));
        let _ = tcflush(&self.input, FlushArg::TCIFLUSH);
        let _ = self.write_all(LEAVE, Some(Duration::from_millis(200)));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Collects a drawing and writes it at once.
#[derive(Debug)]
pub(crate) struct Output {
    screen: Arc<Screen>,
    held: Vec<u8>,
}

impl Output {
    pub fn new(screen: Arc<Screen>) -> Self {
        Self {
            screen,
            held: Vec::new(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.screen.write(&held)
    }
}
