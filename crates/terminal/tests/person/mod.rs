//! Somebody at a pseudo-terminal on which a prompt waits.
#![allow(dead_code)] // Each test program uses a part of it.

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use fuse_terminal::prompt::Prompt;
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};

pub const SOON: Duration = Duration::from_secs(20);

/// The person's side of a terminal on which a prompt waits.
pub struct Person<T> {
    pub keyboard: File,
    pub terminal: OwnedFd,
    pub screen: Receiver<u8>,
    answer: Receiver<T>,
    before: Termios,
}

/// How the terminal is when the prompt comes.
#[derive(Default)]
pub struct Setting {
    /// Reaches the terminal before the prompt does.
    pub typed_before: Vec<u8>,
    /// Columns and rows.
    pub size: Option<(u16, u16)>,
    /// Cancels the prompt.
    pub cancel: Option<PipeReader>,
    pub bell: bool,
}

impl Setting {
    pub fn sized(columns: u16, rows: u16) -> Self {
        Self {
            size: Some((columns, rows)),
            ..Self::default()
        }
    }
}

impl<T: Send + 'static> Person<T> {
    pub fn asked(
        typed_before: &[u8],
        prompt: impl FnOnce(&mut Prompt<'_, File>) -> T + Send + 'static,
    ) -> Self {
        let setting = Setting {
            typed_before: typed_before.to_vec(),
            ..Setting::default()
        };
        Self::asked_in(setting, prompt)
    }

    pub fn asked_in(
        setting: Setting,
        prompt: impl FnOnce(&mut Prompt<'_, File>) -> T + Send + 'static,
    ) -> Self {
        let size = setting.size.map(|(ws_col, ws_row)| Winsize {
            ws_row,
            ws_col,
            ws_xpixel: 0,
            ws_ypixel: 0,
        });
        let pty = openpty(size.as_ref(), None).expect("a pty");
        let mut keyboard = File::from(pty.master);
        keyboard.write_all(&setting.typed_before).expect("typed");
        let terminal = pty.slave.try_clone().expect("a copy");
        let before = tcgetattr(&terminal).expect("a terminal");
        let (on_answer, answer) = channel();
        thread::spawn(move || {
            let output = File::from(pty.slave.try_clone().expect("a copy"));
            let mut on = Prompt::new(pty.slave.as_fd(), output).expect("a terminal");
            if let Some(cancel) = &setting.cancel {
                on = on.cancelled_by(cancel.as_fd());
            }
            if setting.bell {
                on = on.with_bell();
            }
            let _ = on_answer.send(prompt(&mut on));
        });
        let (on_screen, screen) = channel();
        let mut reader = keyboard.try_clone().expect("a copy");
        thread::spawn(move || {
            let mut byte = [0];
            while matches!(reader.read(&mut byte), Ok(1)) && on_screen.send(byte[0]).is_ok() {}
        });
        Self {
            keyboard,
            terminal,
            screen,
            answer,
            before,
        }
    }

    /// Everything that is drawn until this is.
    #[track_caller]
    pub fn sees(&self, text: &str) -> String {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(text) {
            match self.screen.recv_timeout(SOON) {
                Ok(byte) => seen.push(byte),
                Err(_) => panic!("{text:?} not in {:?}", String::from_utf8_lossy(&seen)),
            }
        }
        String::from_utf8(seen).expect("text")
    }

    /// In one piece.
    pub fn types(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("typed");
    }

    #[track_caller]
    pub fn answer(&self) -> T {
        let answer = self.answer.recv_timeout(SOON).expect("an answer");
        self.is_restored();
        answer
    }

    /// Presses a key until it is answered to: keys that the machine was too slow to tell from the one before do not count.
    #[track_caller]
    pub fn insists(&mut self, key: &[u8]) -> T {
        for _ in 0..20 {
            self.types(key);
            if let Ok(answer) = self.answer.recv_timeout(Duration::from_secs(1)) {
                self.is_restored();
                return answer;
            }
        }
        panic!("{key:?} is no answer");
    }

    #[track_caller]
    pub fn gets_no_answer(&self) {
        let nothing = self.answer.recv_timeout(Duration::from_millis(300));
        assert!(matches!(nothing, Err(RecvTimeoutError::Timeout)));
    }

    #[track_caller]
    fn is_restored(&self) {
        let now = tcgetattr(&self.terminal).expect("a terminal");
        assert_eq!(now.local_flags, self.before.local_flags);
        assert_eq!(now.input_flags, self.before.input_flags);
        assert!(now.local_flags.contains(LocalFlags::ECHO));
    }

    pub fn resizes(&self, columns: u16, rows: u16) {
        let terminal = self.terminal.try_clone().expect("a copy");
        let done = Command::new("stty")
            .args(["cols", &columns.to_string(), "rows", &rows.to_string()])
            .stdin(Stdio::from(terminal))
            .status();
        assert!(done.expect("stty").success());
    }

    /// The rest of what is drawn.
    pub fn rest(&self) -> Vec<u8> {
        let mut rest = Vec::new();
        while let Ok(byte) = self.screen.recv_timeout(Duration::from_millis(200)) {
            rest.push(byte);
        }
        rest
    }
}

/// What a prompt says on a terminal that hangs up while it waits, once `ready` is drawn.
pub fn hung_up<T: Send + 'static>(
    ready: &str,
    prompt: impl FnOnce(&mut Prompt<'_, File>) -> T + Send + 'static,
) -> T {
    let pty = openpty(None, None).expect("a pty");
    let mut screen = File::from(pty.master);
    let prompt = thread::spawn(move || {
        let output = File::from(pty.slave.try_clone().expect("a copy"));
        prompt(&mut Prompt::new(pty.slave.as_fd(), output).expect("a terminal"))
    });
    let mut seen = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&seen).contains(ready) {
        screen.read_exact(&mut byte).expect("a question");
        seen.push(byte[0]);
    }
    drop(screen);
    prompt.join().expect("an answer")
}
