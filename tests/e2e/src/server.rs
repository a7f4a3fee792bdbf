//! A real server: the binary that was built, on a free port of this machine.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Api, Data, Log, Store, unique};

const START: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(20);

/// How a server is started.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// `TOKEN_ENCRYPTION_KEY`.
    pub key: Option<String>,
    /// Another URL than the database's own.
    pub database_url: Option<String>,
    /// Another folder than the data's own.
    pub folder: Option<PathBuf>,
    /// Lets the server make its own master token.
    pub own_token: bool,
    /// More variables.
    pub variables: Vec<(String, String)>,
}

impl Settings {
    /// With a fresh key, so that content is sealed.
    #[must_use]
    pub fn sealed() -> Self {
        Self {
            key: Some(hex::encode(rand::random::<[u8; 32]>())),
            ..Self::default()
        }
    }

    /// With one more variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// How a process ended that was not told to.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code.
    pub code: Option<i32>,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// A server with its data. Both go when this does.
pub struct Server {
    data: Arc<Data>,
    settings: Mutex<Settings>,
    token: OnceLock<String>,
    port: Mutex<u16>,
    process: Mutex<Option<Child>>,
    log: Log,
}

/// The `fuse` binary under test: the server and the command line.
///
/// # Panics
/// It is not built.
#[must_use]
pub fn fuse() -> PathBuf {
    let given = std::env::var_os("FUSE_TEST_BIN").map(PathBuf::from);
    let path = given.unwrap_or_else(|| {
        // target/debug/deps/suite-…
        let own = std::env::current_exe().expect("this program has a path");
        let folder = own.parent().and_then(|deps| deps.parent());
        folder.expect("it lies in target").join("fuse")
    });
    assert!(
        path.is_file(),
        "{} is not there: build it with `cargo build -p fuse-cli`, or run the tests with `cargo xtask test`",
        path.display()
    );
    path
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static SHARED: [Mutex<Weak<Server>>; 2] = [Mutex::new(Weak::new()), Mutex::new(Weak::new())];

impl Server {
    /// The server that tests share which leave each other alone: everything they do is in environments of their own. It
    /// ends with the last of them.
    #[must_use]
    pub fn shared(store: Store) -> Arc<Self> {
        let mut shared = lock(match store {
            Store::Sqlite => &SHARED[0],
            Store::Postgres => &SHARED[1],
        });
        if let Some(running) = shared.upgrade() {
            return running;
        }
        let fresh = Arc::new(Self::start(store));
        *shared = Arc::downgrade(&fresh);
        fresh
    }

    /// A server with fresh data.
    #[must_use]
    pub fn start(store: Store) -> Self {
        Self::with(store, Settings::default())
    }

    /// A server with fresh data, started like this.
    #[must_use]
    pub fn with(store: Store, settings: Settings) -> Self {
        Self::on(Data::new(store), settings)
    }

    /// A server on data that is there.
    #[must_use]
    pub fn on(data: Arc<Data>, settings: Settings) -> Self {
        let own = settings.own_token;
        let server = Self::stopped(data, settings);
        if !own {
            let _ = server.token.set(unique("master"));
        }
        server.restart();
        server
    }

    /// One more server beside this one: the same data, the same master token. Only on PostgreSQL: a SQLite file takes one.
    #[must_use]
    pub fn beside(&self) -> Self {
        self.beside_with(lock(&self.settings).clone())
    }

    /// One more server, as if on another machine: the same database and master token, and a folder of its own, so that it
    /// does not reach this one's guests.
    #[must_use]
    pub fn elsewhere(&self) -> Self {
        let settings = lock(&self.settings).clone();
        let folder = self.data.folder().join(unique("elsewhere"));
        self.beside_with(Settings {
            folder: Some(folder),
            ..settings
        })
    }

    /// The same, by another URL of the database.
    #[must_use]
    pub fn elsewhere_at(&self, url: &str) -> Self {
        self.beside_with(Settings {
            database_url: Some(url.to_owned()),
            folder: Some(self.data.folder().join(unique("elsewhere"))),
            ..lock(&self.settings).clone()
        })
    }

    fn beside_with(&self, settings: Settings) -> Self {
        let server = Self::stopped(Arc::clone(&self.data), settings);
        let _ = server.token.set(self.token().to_owned());
        server.restart();
        server
    }

    fn stopped(data: Arc<Data>, settings: Settings) -> Self {
        Self {
            data,
            settings: Mutex::new(settings),
            token: OnceLock::new(),
            port: Mutex::new(0),
            process: Mutex::new(None),
            log: Log::default(),
        }
    }

    /// Starts a process that is expected to end by itself.
    ///
    /// # Panics
    /// It does not.
    #[must_use]
    pub fn refuse(data: &Data, settings: &Settings) -> Ended {
        let mut command = command(data, settings, Some("an-unused-master-token"), 0);
        let mut child = command.spawn().expect("the binary starts");
        let log = Log::default();
        log.follow(child.stderr.take().expect("a pipe"));
        let end = Instant::now() + START;
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if Instant::now() > end {
                let _ = child.kill();
                let _ = child.wait();
                panic!("it did not end by itself:\n{}", log.text());
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        log.drained(1);
        Ended {
            code: status.code(),
            stderr: log.text(),
        }
    }

    /// Starts the process again, on the same port as before.
    ///
    /// # Panics
    /// It runs already, or does not come up.
    pub fn restart(&self) {
        let mut process = lock(&self.process);
        assert!(process.is_none(), "the server runs already");
        let (from, closed) = (self.log.len(), self.log.closed());
        let mut port = lock(&self.port);
        let token = self.token.get().map(String::as_str);
        let mut command = command(&self.data, &lock(&self.settings), token, *port);
        let mut child = command.spawn().expect("the binary starts");
        self.log.follow(child.stderr.take().expect("a pipe"));
        *process = Some(child);
        drop(process);
        let address = self
            .log
            .rest_of("listening on http://127.0.0.1:", from, closed + 1, START);
        match address.and_then(|text| text.trim().parse().ok()) {
            Some(number) => *port = number,
            None => panic!("the server did not come up:\n{}", self.log.text()),
        }
        self.token.get_or_init(|| {
            let file = self.data.folder().join("master-token");
            let text = std::fs::read_to_string(file).expect("the generated token");
            text.trim().to_owned()
        });
    }

    /// Starts the process again, with other settings.
    pub fn restart_with(&self, settings: Settings) {
        *lock(&self.settings) = settings;
        self.restart();
    }

    /// Ends the process as a power cut would.
    pub fn kill9(&self) {
        if let Some(mut child) = lock(&self.process).take() {
            let closed = self.log.closed();
            let _ = child.kill();
            let _ = child.wait();
            self.log.drained(closed + 1);
        }
    }

    /// Asks the process to end, and tells how and after how long it did.
    ///
    /// # Panics
    /// It does not run, or does not end.
    pub fn stop(&self) -> (ExitStatus, Duration) {
        let mut child = lock(&self.process).take().expect("the server runs");
        let closed = self.log.closed();
        let begun = Instant::now();
        kill(pid_of(&child), Signal::SIGTERM).expect("the child can be told");
        while begun.elapsed() < END {
            if let Some(status) = child.try_wait().expect("a child") {
                let took = begun.elapsed();
                self.log.drained(closed + 1);
                return (status, took);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
        let _ = child.wait();
        panic!(
            "the server did not end within {END:?}:\n{}",
            self.log.text()
        );
    }

    /// Its address and port.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", *lock(&self.port))
    }

    /// Where it answers.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Its master token.
    #[must_use]
    pub fn token(&self) -> &str {
        self.token.get().map_or("", String::as_str)
    }

    /// Its data.
    #[must_use]
    pub fn data(&self) -> &Arc<Data> {
        &self.data
    }

    /// What it wrote to standard error.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Raw calls with the master token.
    #[must_use]
    pub fn api(&self) -> Api {
        Api::new(&self.url()).with_token(self.token())
    }

    /// The SDK with the master token.
    ///
    /// # Panics
    /// No client can be made.
    #[must_use]
    pub fn client(&self) -> fuse_client::Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = fuse_client::Client::builder(self.url()).token(self.token());
        builder.build().expect("a client")
    }
}

fn command(data: &Data, settings: &Settings, token: Option<&str>, port: u16) -> Command {
    let mut command = Command::new(fuse());
    let folder = settings.folder.as_deref().unwrap_or(data.folder());
    command
        .arg("serve")
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .arg("--data-dir")
        .arg(folder)
        .args(["--database-url"])
        .arg(settings.database_url.as_deref().unwrap_or(data.url()))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if let Some(token) = token.filter(|_| !settings.own_token) {
        command.env("ORCH_AUTH_TOKEN", token);
    }
    if let Some(key) = &settings.key {
        command.env("TOKEN_ENCRYPTION_KEY", key);
    }
    command.envs(settings.variables.iter().cloned());
    command
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a process number"))
}

impl Drop for Server {
    fn drop(&mut self) {
        let panicking = std::thread::panicking();
        if let Some(mut child) = lock(&self.process).take() {
            // Its data goes with it: there is nothing to end in good order.
            let _ = child.kill();
            let _ = child.wait();
        }
        if panicking {
            let lines = self.log.lines();
            let last = lines.len().saturating_sub(60);
            eprintln!("the server's last words:\n{}", lines[last..].join("\n"));
        }
    }
}
