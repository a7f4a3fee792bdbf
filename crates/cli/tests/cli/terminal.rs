//! What people at a terminal get to see and are asked.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use std::os::fd::AsFd as _;

use crate::support::Dev;

/// A terminal of 100 columns and 20 rows with a program on it.
struct Screen {
    master: std::fs::File,
    child: Child,
    seen: String,
}

impl Screen {
    /// Runs it with standard input, error, and, where `all`, output on the terminal.
    fn start(mut command: Command, all: bool) -> Self {
        let size = Winsize {
            ws_row: 20,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(&size, None).unwrap();
        // A program that held this end, too, would never see the terminal hang up.
        fcntl(&pty.master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        fcntl(&pty.slave, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        command.stdin(end(&pty.slave)).stderr(end(&pty.slave));
        command.stdout(if all { end(&pty.slave) } else { Stdio::piped() });
        let child = command.spawn().unwrap();
        // The command holds copies of the terminal's end, too.
        drop(command);
        Self {
            master: pty.master.into(),
            child,
            seen: String::new(),
        }
    }

    /// Reads until this is on the screen, or until the end.
    fn until(&mut self, part: Option<&str>) {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(20) {
            if part.is_some_and(|part| self.seen.contains(part)) {
                return;
            }
            let mut fds = [PollFd::new(self.master.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, PollTimeout::from(200_u16)).unwrap() == 0 {
                continue;
            }
            let mut bytes = [0; 4096];
            match self.master.read(&mut bytes) {
                Ok(n) if n > 0 => self.seen.push_str(&String::from_utf8_lossy(&bytes[..n])),
                // Nobody holds the other end any more.
                Ok(_) | Err(_) if part.is_none() => return,
                Ok(_) | Err(_) => break,
            }
        }
        let awaited = part.unwrap_or("the end");
        panic!("{awaited:?} did not come but {:?}", self.seen);
    }

    /// Presses a key after the question is there; what is typed before that is thrown away.
    fn answers(&mut self, key: &str) {
        self.until(Some("[y/N]"));
        std::thread::sleep(Duration::from_millis(300));
        self.master.write_all(key.as_bytes()).unwrap();
    }

    /// Its exit code and everything that was on the screen.
    fn ends(mut self) -> (Option<i32>, String) {
        self.until(None);
        let code = self.child.wait().unwrap().code();
        (code, std::mem::take(&mut self.seen))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_person_sees_what_will_run_before_it_is_approved() {
    let dev = Dev::start();
    let env = dev.environment("asked");
    let (mut exec, id) = dev.held(&env, &["printf", "a\u{202e}b"]);

    for key in ["\r", "n", "\u{1b}", "\u{3}"] {
        let mut screen = Screen::start(dev.home.fuse(&["hitl", "approve", &id]), false);
        screen.answers(key);
        let (code, seen) = screen.ends();
        assert_eq!(code, Some(1), "{key:?} {seen}");
        assert!(
            seen.contains(r"printf $'a\u{202e}b'") && seen.contains("stays pending"),
            "{seen}"
        );
    }
    let mut screen = Screen::start(
        dev.home
            .fuse(&["hitl", "approve", &id, "--edit", "--", "echo", "else"]),
        false,
    );
    screen.until(Some("[y/N]"));
    assert!(
        screen.seen.contains("instead      echo else"),
        "{}",
        screen.seen
    );
    screen.answers("y");
    assert_eq!(screen.ends().0, Some(0));
    assert!(exec.ends().0.success());
    assert_eq!(exec.printed(), "else\n");
}

#[test]
fn yes_asks_nobody_and_neither_does_a_question() {
    let dev = Dev::start();
    let env = dev.environment("yes");
    let (mut exec, id) = dev.held(&env, &["printf", "x"]);
    let screen = Screen::start(dev.home.fuse(&["hitl", "approve", &id, "--yes"]), false);
    let (code, seen) = screen.ends();
    assert!(code == Some(0) && !seen.contains("[y/N]"), "{seen}");
    assert!(exec.ends().0.success());

    let id = dev.asks(&env, "Go?", &[]);
    let (code, seen) = Screen::start(dev.home.fuse(&["hitl", "answer", &id, "yes"]), false).ends();
    assert!(code == Some(0) && !seen.contains("[y/N]"), "{seen}");
}

// check: CLI-21
#[test]
fn a_command_too_long_to_show_is_read_whole_before_it_is_approved() {
    let dev = Dev::start();
    let env = dev.environment("long");
    let long = format!("{}THE-END", "x".repeat(5000));
    let (_exec, id) = dev.held(&env, &["printf", &long]);
    let mut command = dev.home.fuse(&["hitl", "approve", &id]);
    command.env("PAGER", "cat >&2");
    let mut screen = Screen::start(command, false);
    screen.until(Some("[y/N]"));
    assert!(
        screen.seen.contains("more characters") && screen.seen.contains("THE-END"),
        "{}",
        screen.seen
    );
    screen.answers("n");
    assert_eq!(screen.ends().0, Some(1));
}

// check: CLI-9
// check: CLI-2
#[test]
fn a_review_is_coloured_and_paged_on_a_terminal() {
    let dev = Dev::start();
    let env = dev.environment("paged");
    let mut diff = "--- a\n+++ b\n@@ -0,0 +1,60 @@\n".to_owned();
    for n in 0..60 {
        diff.push_str(&format!("+line {n}\n"));
    }
    let id = dev.reviews(&env, &diff);
    let mut command = dev.home.fuse(&["hitl", "show", &id]);
    command.env("PAGER", "echo PAGED; cat");
    let (code, seen) = Screen::start(command, true).ends();
    assert_eq!(code, Some(0), "{seen}");
    assert!(
        seen.starts_with("PAGED") && seen.contains("\u{1b}[32m+line 59\u{1b}[0m"),
        "{seen}"
    );

    let mut command = dev.home.fuse(&["hitl", "show", &id]);
    command.env("PAGER", "/no/such/pager").env("NO_COLOR", "1");
    let (code, seen) = Screen::start(command, true).ends();
    assert_eq!(code, Some(0), "{seen}");
    assert!(
        seen.contains("+line 59") && !seen.contains("\u{1b}[3"),
        "{seen}"
    );
}

// check: CLI-20
#[test]
fn a_long_wait_shows_progress_and_a_terminal_gets_no_escapes_of_the_guest() {
    let dev = Dev::start();
    let env = dev.environment("slow");
    let command = dev.home.fuse(&[
        "environment",
        "exec",
        &env,
        "--shell",
        "--",
        "sleep 2; echo a | sed 's/a/\\x1b[31mred/'",
    ]);
    let (code, seen) = Screen::start(command, true).ends();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains(&format!("running in {env} (1s)")), "{seen:?}");
    assert!(
        seen.trim_end().ends_with("red") && !seen.contains("\u{1b}[31m"),
        "{seen:?}"
    );

    let quick = dev.home.fuse(&["environment", "exec", &env, "--", "true"]);
    let (_, seen) = Screen::start(quick, true).ends();
    assert_eq!(seen, "");
}
