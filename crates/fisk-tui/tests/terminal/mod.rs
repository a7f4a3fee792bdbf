//! A person at a pseudo-terminal.

#![allow(dead_code)]

use std::{
    fs::File,
    io::{Read, Write},
    num::NonZero,
    os::fd::{AsFd, OwnedFd},
    process::{Command, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use fisk_domain::event::Watcher;
use fisk_tui::{Signal, Tui, TuiOptions, TuiPrompter};
use fuse_terminal::ColourChoice;
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    pty::{Winsize, openpty},
    sys::termios::{LocalFlags, tcgetattr},
};
use tokio::task::JoinHandle;

pub const SOON: Duration = Duration::from_secs(30);

pub fn options(bell: bool, signal: mpsc::Sender<Signal>) -> TuiOptions {
    TuiOptions {
        bell,
        title: "demo".to_owned(),
        colour: ColourChoice::Colour,
        on_signal: Arc::new(move |what| {
            let _ = signal.send(what);
        }),
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a size")
}

/// The person's side of a terminal.
pub struct Side {
    pub keyboard: File,
    pub slave: OwnedFd,
    pub parser: vt100::Parser,
    pub drawn: Vec<u8>,
}

impl Side {
    pub fn new() -> Self {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&size), None).expect("a pty");
        Self {
            keyboard: File::from(pty.master),
            slave: pty.slave,
            parser: vt100::Parser::new(cells(24), cells(80), 0),
            drawn: Vec::new(),
        }
    }

    /// Takes what is drawn within a moment; false where nothing was.
    pub fn pump(&mut self) -> bool {
        let mut ready = [PollFd::new(self.keyboard.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut ready, PollTimeout::from(20u8)).expect("a terminal");
        if ready == 0 {
            return false;
        }
        let mut bytes = [0; 4096];
        let Ok(length) = self.keyboard.read(&mut bytes) else {
            return false;
        };
        self.drawn.extend_from_slice(&bytes[..length]);
        self.parser.process(&bytes[..length]);
        length > 0
    }

    pub fn until(&mut self, what: &str, mut is: impl FnMut(&mut Self) -> bool) {
        let since = Instant::now();
        while !is(self) {
            assert!(since.elapsed() < SOON, "{what} in\n{}", self.screen());
            self.pump();
        }
    }

    pub fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    pub fn drawn_text(&self) -> String {
        String::from_utf8_lossy(&self.drawn).into_owned()
    }

    /// A line end may be one that was wrapped.
    fn shows(&self, text: &str) -> bool {
        let screen = self.screen();
        let words: Vec<&str> = screen.split_whitespace().collect();
        screen.contains(text) || words.join(" ").contains(text)
    }

    pub fn sees(&mut self, text: &str) {
        self.until(text, |side| side.shows(text));
    }

    pub fn sees_no_more(&mut self, text: &str) {
        self.until(text, |side| !side.shows(text));
    }

    pub fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("typed");
    }

    /// Presses keys, and waits until the interface has taken them for one piece.
    pub fn types(&mut self, keys: &[u8]) {
        self.press(keys);
        self.until("the keys are taken", |side| {
            let mut ready = [PollFd::new(side.slave.as_fd(), PollFlags::POLLIN)];
            poll(&mut ready, PollTimeout::ZERO) == Ok(0)
        });
        // As long as a person is slower than a paste.
        let pause = Instant::now();
        while pause.elapsed() < Duration::from_millis(120) {
            self.pump();
        }
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        let done = Command::new("stty")
            .args(["cols", &columns.to_string(), "rows", &rows.to_string()])
            .stdin(Stdio::from(self.slave.try_clone().expect("a copy")))
            .status()
            .expect("stty");
        assert!(done.success());
        self.parser
            .screen_mut()
            .set_size(cells(rows), cells(columns));
    }

    /// The terminal was given back.
    pub fn is_as_before(&mut self) {
        while self.pump() {}
        let flags = tcgetattr(&self.slave).expect("a terminal").local_flags;
        assert!(flags.contains(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG));
        let screen = self.parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    }
}

/// An interface, and the person in front of it.
pub struct Desk {
    side: Side,
    pub prompter: Arc<TuiPrompter>,
    pub watcher: Arc<dyn Watcher>,
    pub signals: mpsc::Receiver<Signal>,
    tui: Option<Tui>,
}

impl std::ops::Deref for Desk {
    type Target = Side;

    fn deref(&self) -> &Side {
        &self.side
    }
}

impl std::ops::DerefMut for Desk {
    fn deref_mut(&mut self) -> &mut Side {
        &mut self.side
    }
}

impl Desk {
    pub fn new() -> Self {
        Self::with_bell(false)
    }

    pub fn with_bell(bell: bool) -> Self {
        let side = Side::new();
        let slave = || side.slave.try_clone().expect("a copy");
        let (signal, signals) = mpsc::channel();
        let (tui, prompter, watcher) =
            Tui::start_on(slave(), slave(), options(bell, signal)).expect("an interface");
        Self {
            side,
            prompter,
            watcher,
            signals,
            tui: Some(tui),
        }
    }

    /// Waits for an answer while the terminal goes on taking what is drawn.
    pub fn answer<T>(&mut self, answer: JoinHandle<T>) -> T {
        self.until("there is an answer", |_| answer.is_finished());
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(answer))
            .expect("an answer")
    }

    pub fn stop(&mut self) {
        let tui = self.tui.take().expect("an interface");
        let stopped = thread::spawn(move || tui.stop());
        self.until("the interface has ended", |_| stopped.is_finished());
        stopped.join().expect("stopped");
    }

    /// Closes the person's side.
    pub fn hang_up(self) -> mpsc::Receiver<Signal> {
        drop(self.side);
        self.signals
    }
}
