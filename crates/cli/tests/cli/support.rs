//! A home for one test, and a server in it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Folders that nobody else uses; gone with the value.
pub struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    pub fn config(&self) -> PathBuf {
        self.path().join("config/fuse/config.yaml")
    }

    /// The program with nothing of this process's own surroundings but the search path.
    pub fn fuse(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fuse"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("FUSE_DATA_DIR", self.data())
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.fuse(args).output().unwrap())
    }

    /// Runs it and feeds it this on standard input.
    pub fn run_with(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self
            .fuse(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What it printed, once it is sure that it went well.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }
}

/// Something that runs, ended with the value.
pub struct Running {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
    pub said: Vec<String>,
}

const PATIENCE: Duration = Duration::from_secs(30);

impl Running {
    /// Starts it and listens to its standard error.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in err.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self {
            child,
            lines,
            said: Vec::new(),
        }
    }

    /// Waits for a line with this in it, and returns that line.
    #[track_caller]
    pub fn says(&mut self, part: &str) -> String {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.said.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
        panic!("it did not say {part:?} but {:?}", self.said);
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Waits for its end and returns how long that took.
    #[track_caller]
    pub fn ends(&mut self) -> (ExitStatus, Duration) {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(1)) {
                    self.said.push(line);
                }
                return (status, since.elapsed());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it goes on");
    }

    /// What it printed on standard output; it has ended.
    pub fn printed(&mut self) -> String {
        std::io::read_to_string(self.child.stdout.take().unwrap()).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `fuse dev` with its own home; its environments end with it.
pub struct Dev {
    pub running: Running,
    pub home: Home,
    pub url: String,
}

impl Dev {
    pub fn start() -> Self {
        Self::start_in(Home::new())
    }

    pub fn start_in(home: Home) -> Self {
        let mut running = Running::start(home.fuse(&["dev", "--listen", "127.0.0.1:0"]));
        let line = running.says("listening on http://");
        let url = line.split_once("listening on ").unwrap().1.to_owned();
        Self { running, home, url }
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.home.run(args)
    }

    /// An environment with every kind of gate.
    pub fn environment(&self, name: &str) -> String {
        let request = serde_json::json!({
            "task_id": name,
            "hitl": {
                "timeout_seconds": 120,
                "requests": {"ask": {}, "review": {}},
                "gates": [
                    {"name": "held", "on": "exec", "match": {"program": ["printf"]}, "reason": "printing needs a person"},
                    {"name": "never", "on": "exec", "match": {"program": ["reboot"]}, "mode": "deny", "reason": "not this machine"},
                ],
            },
        });
        let file = self
            .home
            .write(&format!("{name}.json"), &request.to_string());
        let id = self
            .run(&["environment", "create", "-f", file.to_str().unwrap()])
            .ok();
        assert_eq!(id, format!("fuse-{name}\n"));
        id.trim().to_owned()
    }

    /// Starts an exec that a gate holds; returns the intervention's id with it.
    pub fn held(&self, env: &str, args: &[&str]) -> (Running, String) {
        let all: Vec<&str> = [&["environment", "exec", env, "--"], args].concat();
        let mut command = self.home.fuse(&all);
        command.stdout(Stdio::piped());
        let mut running = Running::start(command);
        let line = running.says("held by");
        let id = line.rsplit(' ').next().unwrap().to_owned();
        assert_eq!(
            line,
            format!("held by hitl gate held: waiting on intervention {id}")
        );
        (running, id)
    }

    /// Does something as an agent does, through the Rust client.
    pub fn agent<T>(
        &self,
        act: impl AsyncFnOnce(&fuse_client::Client) -> Result<T, fuse_client::Error>,
    ) -> T {
        let token = std::fs::read_to_string(self.home.data().join("master-token")).unwrap();
        let client = fuse_client::Client::builder(&self.url)
            .token(token)
            .build()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(act(&client)).unwrap()
    }

    /// Raises a question and returns its id.
    pub fn asks(&self, env: &str, question: &str, choices: &[&str]) -> String {
        let mut request = fuse_client::HumanRequest::ask(question).no_wait();
        if !choices.is_empty() {
            request = request.choices(choices.iter().copied());
        }
        self.agent(async |client| client.environments().request_human(env, request).await)
            .id
            .to_string()
    }

    /// Raises a review and returns its id.
    pub fn reviews(&self, env: &str, content: &str) -> String {
        let request = fuse_client::ReviewRequest::content(content).no_wait();
        self.agent(
            async |client| match client.environments().request_review(env, request).await {
                Err(fuse_client::Error::PendingIntervention { intervention }) => Ok(intervention),
                Err(error) => Err(error),
                Ok(verdict) => panic!("nobody can have judged it: {verdict:?}"),
            },
        )
        .id
        .to_string()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let listed = self.run(&["-o", "json", "environment", "list"]);
        let Ok(list) = serde_json::from_str::<serde_json::Value>(&listed.out) else {
            return;
        };
        for environment in list["environments"].as_array().into_iter().flatten() {
            let id = environment["id"].as_str().unwrap_or_default();
            self.run(&["environment", "destroy", id]);
        }
        self.running.signal(Signal::SIGTERM);
        // It may be gone already.
        let _ = self.running.child.wait();
    }
}
