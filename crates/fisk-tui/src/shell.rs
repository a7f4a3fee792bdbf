//! The thread that owns the terminal.

use std::{
    collections::VecDeque,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use fuse_terminal::{
    ColourChoice,
    keys::{Key, Partial, decode},
    prompt::QUIET,
};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::read,
};
use ratatui::{Terminal, TerminalOptions, Viewport, backend::CrosstermBackend, layout::Rect};
use tokio::sync::oneshot;

use crate::{
    app::{App, Effect},
    inbox::{Asked, Lost},
    question::Reply,
    screen::{Output, Screen},
    tui::{OnSignal, Shared, Signal, TuiOptions},
    view::draw,
};

/// At most so often is drawn.
const FRAME: Duration = Duration::from_millis(33);
/// So often the clock and the size are looked at.
const TICK: Duration = Duration::from_millis(250);
/// What follows a byte this soon belongs to the same key, or to the same paste.
const SETTLE: Duration = Duration::from_millis(30);
/// How long keys are collected that never settle, as those of a key that is held down.
const COLLECT: Duration = Duration::from_millis(100);
/// How long keys are collected that end in an unfinished one each time.
const UNFINISHED: Duration = Duration::from_secs(5);
/// The most that is kept of what comes at once.
const MAX_BURST: usize = 256 * 1024;

/// Why the thread ends.
enum End {
    Stopped,
    HungUp,
}

impl From<io::Error> for End {
    /// A terminal that cannot be written to is as good as gone.
    fn from(_: io::Error) -> Self {
        Self::HungUp
    }
}

pub(crate) struct Shell {
    shared: Arc<Shared>,
    screen: Arc<Screen>,
    woken: OwnedFd,
    terminal: Terminal<CrosstermBackend<Output>>,
    app: App,
    size: (u16, u16),
    bell: bool,
    on_signal: OnSignal,
    started: Instant,
    answer: Option<(u64, oneshot::Sender<Reply>)>,
    waiting: VecDeque<Asked>,
    /// When the last key came, if any did.
    typed: Option<Instant>,
}

/// Whatever ends the thread, a panic too, denies what waits and gives the terminal back.
struct Ending {
    shared: Arc<Shared>,
    screen: Arc<Screen>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.shared.close();
        self.screen.restore();
    }
}

impl Shell {
    pub fn new(
        shared: Arc<Shared>,
        screen: Arc<Screen>,
        woken: OwnedFd,
        options: TuiOptions,
    ) -> io::Result<Self> {
        let size = screen.size();
        let mut app = App::new(&options.title, options.colour == ColourChoice::Colour);
        app.on_resize(size.0, size.1);
        let backend = CrosstermBackend::new(Output::new(Arc::clone(&screen)));
        // It never asks the terminal itself, which would open `/dev/tty`.
        let viewport = Viewport::Fixed(Rect::new(0, 0, size.0, size.1));
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport })?;
        Ok(Self {
            shared,
            screen,
            woken,
            terminal,
            app,
            size,
            bell: options.bell,
            on_signal: options.on_signal,
            started: Instant::now(),
            answer: None,
            waiting: VecDeque::new(),
            typed: None,
        })
    }

    pub fn run(mut self) {
        let ending = Ending {
            shared: Arc::clone(&self.shared),
            screen: Arc::clone(&self.screen),
        };
        let on_signal = Arc::clone(&self.on_signal);
        let end = match self.serve() {
            Ok(never) => match never {},
            Err(end) => end,
        };
        let hung_up = matches!(end, End::HungUp);
        if hung_up {
            self.shared.hung_up.store(true, Ordering::SeqCst);
        }
        // The answers that wait are dropped here, after the reason is known.
        drop(self);
        drop(ending);
        if hung_up {
            on_signal(Signal::HangUp);
        }
    }

    fn serve(&mut self) -> Result<std::convert::Infallible, End> {
        let mut dirty = true;
        let mut next_frame = Instant::now();
        loop {
            self.is_ours()?;
            if self.shared.stop.load(Ordering::SeqCst) {
                let rest = self.shared.take();
                rest.events.into_iter().for_each(|e| self.app.on_event(e));
                self.draw()?;
                return Err(End::Stopped);
            }
            let size = self.screen.size();
            if size != self.size {
                self.size = size;
                self.app.on_resize(size.0, size.1);
                self.terminal.resize(Rect::new(0, 0, size.0, size.1))?;
                (dirty, next_frame) = (true, Instant::now());
            }
            dirty |= self.app.tick(self.started.elapsed());
            let now = Instant::now();
            if dirty && now >= next_frame {
                self.draw()?;
                (dirty, next_frame) = (false, now + FRAME);
            }
            let wait = if dirty {
                next_frame.saturating_duration_since(Instant::now())
            } else {
                TICK
            };
            let wait = self.until_quiet().map_or(wait, |left| left.min(wait));
            let (typed, woken) = self.wait(wait, !dirty)?;
            if typed {
                let keys = self.burst()?;
                self.typed = Some(Instant::now());
                self.is_ours()?;
                self.on_keys(&keys);
                (dirty, next_frame) = (true, Instant::now());
            }
            if woken {
                self.on_wake()?;
                dirty = true;
            }
            self.next_question()?;
        }
    }

    /// How long until a question that waits may be drawn: nobody may have typed for that long, so that who pressed a key twice or holds it
    /// down does not answer what they have not read.
    fn until_quiet(&self) -> Option<Duration> {
        if self.answer.is_some() || self.waiting.is_empty() {
            return None;
        }
        Some(self.typed.map_or(Duration::ZERO, |typed| {
            QUIET.saturating_sub(typed.elapsed())
        }))
    }

    /// Nothing more is drawn, asked or agreed to once the terminal is gone, or a panic elsewhere has given it back.
    fn is_ours(&self) -> Result<(), End> {
        if self.shared.hung_up.load(Ordering::SeqCst) {
            return Err(End::HungUp);
        }
        if self.screen.is_restored() {
            return Err(End::Stopped);
        }
        Ok(())
    }

    /// Whether there is input, and whether the thread was woken; the latter is not looked at while a drawing is due.
    fn wait(&self, wait: Duration, wakeable: bool) -> Result<(bool, bool), End> {
        let (input, woken) = (self.screen.input().as_fd(), self.woken.as_fd());
        let mut fds = vec![PollFd::new(input, PollFlags::POLLIN)];
        if wakeable {
            fds.push(PollFd::new(woken, PollFlags::POLLIN));
        }
        match poll(&mut fds, timeout(wait)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
        let flags = |at: usize| {
            fds.get(at)
                .and_then(PollFd::revents)
                .unwrap_or(PollFlags::empty())
        };
        // What was typed before a hang-up counts for nothing.
        if flags(0).intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) {
            return Err(End::HungUp);
        }
        Ok((!flags(0).is_empty(), !flags(1).is_empty()))
    }

    /// The keys that come in one piece. There is input.
    fn burst(&self) -> Result<Vec<Key>, End> {
        let since = Instant::now();
        let mut bytes = Vec::new();
        loop {
            let mut chunk = [0; 4096];
            match read(self.screen.input(), &mut chunk) {
                Ok(0) | Err(Errno::EIO) => return Err(End::HungUp),
                Ok(length) => bytes.extend_from_slice(&chunk[..length]),
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
            let (keys, partial) = decode(&bytes);
            let patience = match (partial, partial.patience()) {
                (Partial::Escape | Partial::Key, _) if since.elapsed() > UNFINISHED => {
                    return Ok(keys);
                }
                (_, Some(patience)) => patience,
                (_, None) if since.elapsed() > COLLECT => return Ok(keys),
                (_, None) => SETTLE,
            };
            if bytes.len() > MAX_BURST {
                self.screen.discard()?;
                return Ok(keys);
            }
            if !self.wait(patience, false)?.0 {
                return Ok(keys);
            }
        }
    }

    fn on_keys(&mut self, keys: &[Key]) {
        for effect in self.app.on_keys(keys) {
            match effect {
                Effect::Reply { id, reply } => self.reply(id, reply),
                Effect::Interrupt => (self.on_signal)(Signal::Interrupt),
            }
        }
    }

    fn reply(&mut self, id: u64, reply: Reply) {
        if let Some((_, answer)) = self.answer.take_if(|(asked, _)| *asked == id) {
            // Whoever asked may have gone.
            let _ = answer.send(reply);
        }
    }

    fn on_wake(&mut self) -> Result<(), End> {
        let mut bytes = [0; 64];
        // Emptied first: what comes later wakes again.
        match read(&self.woken, &mut bytes) {
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
        let inbox = self.shared.take();
        if inbox.lost > 0 {
            self.app.on_lost(Lost(inbox.lost));
        }
        for event in inbox.events {
            self.app.on_event(event);
        }
        self.waiting.extend(inbox.asked);
        for id in inbox.withdrawn {
            self.waiting.retain(|asked| asked.id != id);
            self.app.withdraw(id);
            self.answer.take_if(|(asked, _)| *asked == id);
        }
        Ok(())
    }

    /// Puts the next question on the screen, once nobody types. Its keys count as soon as it can be seen, and none that came before.
    fn next_question(&mut self) -> Result<(), End> {
        while self.until_quiet().is_some_and(|left| left.is_zero()) {
            let Some(Asked {
                id,
                question,
                answer,
            }) = self.waiting.pop_front()
            else {
                return Ok(());
            };
            self.answer = Some((id, answer));
            if let Some(Effect::Reply { id, reply }) = self.app.ask(id, question) {
                self.reply(id, reply);
                continue;
            }
            if self.bell {
                self.terminal.backend_mut().write_all(b"\x07")?;
            }
            self.screen.discard()?;
            self.app.arm();
            self.draw()?;
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<(), End> {
        let app = &self.app;
        self.terminal.draw(|frame| {
            let area = frame.area();
            draw(app, area, frame.buffer_mut());
        })?;
        self.app.drawn();
        Ok(())
    }
}

fn timeout(wait: Duration) -> PollTimeout {
    // Rounded up, so that nothing is waited for in circles.
    let millis = wait.as_micros().div_ceil(1000);
    PollTimeout::from(u16::try_from(millis).unwrap_or(u16::MAX))
}
