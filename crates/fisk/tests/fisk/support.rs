//! A folder with a configuration, a scripted provider, and somebody at a terminal.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use fisk_llm::standin::{KEY, Recorded, Server, Turn};
use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    pty::{Winsize, openpty},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Long enough for a slow machine; nothing waits that long where all is well.
pub const SOON: Duration = Duration::from_secs(60);

/// The application that the tests run.
pub fn application() -> PathBuf {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/go-fixtures");
    let folder = std::env::var_os("FISK_TEST_FIXTURES").map_or_else(|| built.into(), PathBuf::from);
    let path = folder.join("app");
    assert!(
        path.is_file(),
        "{} is missing: run `cargo xtask test`, or `cargo xtask fixtures` once",
        path.display()
    );
    path.canonicalize().unwrap()
}

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub struct World {
    pub dir: TempDir,
    server: Server,
    _runtime: Runtime,
}

impl World {
    /// `more` is added to the configuration; a key of `harness` goes on a line that begins with two blanks, behind the last
    /// `harness:`.
    pub fn new(more: &str, turns: Vec<Turn>) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(Server::start(turns));
        let dir = TempDir::new().unwrap();
        let world = Self {
            dir,
            server,
            _runtime: runtime,
        };
        world.configure(more);
        world
    }

    /// Writes the configuration anew.
    pub fn configure(&self, more: &str) {
        let text = format!(
            "application_path: {}\nllm: {{model: claude-test}}\n{more}",
            application().display()
        );
        fs::write(self.path("agent.yaml"), text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn journal(&self, name: &str) -> String {
        self.read(&format!("sessions/{name}.jsonl"))
    }

    pub fn base_url(&self) -> String {
        self.server.base_url()
    }

    pub fn requests(&self) -> Vec<Recorded> {
        self.server.requests()
    }

    /// The results of tools in the last request, as the model reads them: content, and whether it is an error.
    pub fn results(&self) -> Vec<(String, bool)> {
        let requests = self.requests();
        let messages = requests.last().unwrap().body["messages"].clone();
        let mut found = Vec::new();
        for message in messages.as_array().unwrap() {
            for block in message["content"].as_array().into_iter().flatten() {
                if block["type"] == "tool_result" {
                    let content = match &block["content"] {
                        Value::String(text) => text.clone(),
                        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
                    };
                    found.push((content, block["is_error"] == true));
                }
            }
        }
        found
    }

    /// The only result, as JSON, which is no error.
    #[track_caller]
    pub fn result(&self) -> Value {
        let results = self.results();
        let [(content, false)] = results.as_slice() else {
            panic!("{results:?}")
        };
        serde_json::from_str(content).unwrap()
    }

    pub fn fisk(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fisk"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.dir.path())
            .env("FISK_SESSIONS_DIR", self.path("sessions"))
            .env("ANTHROPIC_API_KEY", KEY)
            .env("ANTHROPIC_BASE_URL", self.server.base_url())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        ran(&mut self.fisk(arguments))
    }

    /// With standard input and error on a terminal.
    pub fn at_terminal(&self, arguments: &[&str]) -> Screen {
        Screen::start(self.fisk(arguments), false)
    }

    /// With everything on a terminal.
    pub fn on_screen(&self, arguments: &[&str]) -> Screen {
        Screen::start(self.fisk(arguments), true)
    }
}

pub fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < SOON, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, signal).unwrap();
}

/// Waits for the end; a run that does not end fails its test.
#[track_caller]
pub fn end(child: &mut Child) -> ExitStatus {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if since.elapsed() > SOON {
            let _ = child.kill();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// Somebody at a terminal.
pub struct Screen {
    master: fs::File,
    pub child: Child,
    pub seen: String,
}

impl Screen {
    fn start(mut command: Command, all: bool) -> Self {
        let size = Winsize {
            ws_row: 30,
            ws_col: 200,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(&size, None).unwrap();
        for fd in [&pty.master, &pty.slave] {
            fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        }
        let side = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        command.stdin(side(&pty.slave)).stderr(side(&pty.slave));
        command.stdout(match all {
            true => side(&pty.slave),
            false => Stdio::piped(),
        });
        command.env("TERM", "xterm-256color");
        let child = command.spawn().unwrap();
        drop(command);
        Self {
            master: pty.master.into(),
            child,
            seen: String::new(),
        }
    }

    /// Reads until this is on the screen, and forgets what stood before it.
    #[track_caller]
    pub fn sees(&mut self, part: &str) -> String {
        self.read_until(Some(part));
        let at = self.seen.find(part).unwrap() + part.len();
        let rest = self.seen.split_off(at);
        std::mem::replace(&mut self.seen, rest)
    }

    #[track_caller]
    fn read_until(&mut self, part: Option<&str>) {
        let since = Instant::now();
        loop {
            if part.is_some_and(|part| self.seen.contains(part)) {
                return;
            }
            assert!(
                since.elapsed() < SOON,
                "{part:?} did not come but {:?}",
                self.seen
            );
            let mut fds = [PollFd::new(self.master.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, PollTimeout::from(100_u16)).unwrap() == 0 {
                continue;
            }
            let mut bytes = [0; 4096];
            match self.master.read(&mut bytes) {
                Ok(n) if n > 0 => self.seen.push_str(&String::from_utf8_lossy(&bytes[..n])),
                Ok(_) | Err(_) if part.is_none() => return,
                Ok(_) | Err(_) => panic!("{part:?} did not come but {:?}", self.seen),
            }
        }
    }

    pub fn types(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Its exit code, what went to standard output, and what was on the screen since the last look.
    #[track_caller]
    pub fn ends(mut self) -> Ran {
        self.read_until(None);
        let code = end(&mut self.child).code();
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).unwrap();
        }
        Ran {
            code,
            stdout,
            stderr: std::mem::take(&mut self.seen),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
