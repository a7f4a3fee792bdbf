//! One connection to a guest. The guest is not trusted: each stream takes no more bytes than were asked for, and a
//! breach of the protocol ends the connection.

use fuse_guest_api::{
    Assembler, Channel, Hello, HelloReply, Identity, Incoming, PROTOCOL_VERSION, Reply, Request,
    encode_data, encode_message,
};
use std::{
    collections::HashMap,
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, oneshot},
};

/// How long connecting and the hello may take.
const OPENING: Duration = Duration::from_secs(5);
/// Requests that may wait to be written.
const QUEUE: usize = 64;

/// Most bytes that a stream may bring, per channel.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caps {
    /// Standard output.
    pub stdout: usize,
    /// Standard error.
    pub stderr: usize,
    /// A file's content.
    pub blob: usize,
}

/// What a stream brought.
#[derive(Debug)]
pub struct Answer {
    /// The message that ended it.
    pub reply: Reply,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// A file's content.
    pub blob: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone)]
pub enum Failure {
    /// The request never left this process.
    NotSent(String),
    /// It may have arrived.
    Lost(String),
}

/// An open connection.
#[derive(Debug)]
pub struct Conn {
    outgoing: mpsc::Sender<Vec<u8>>,
    streams: Mutex<HashMap<u32, Stream>>,
    next: AtomicU32,
    open: AtomicBool,
}

#[derive(Debug)]
struct Stream {
    caps: Caps,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    blob: Vec<u8>,
    done: oneshot::Sender<Result<Answer, Failure>>,
}

impl Conn {
    /// Connects to the guest whose socket lies in `directory`, and makes sure that it is the one that is meant.
    pub async fn open(directory: &Path, identity: &Identity) -> Result<Arc<Self>, String> {
        let opened = tokio::time::timeout(OPENING, async {
            let mut socket = connect(directory).await.map_err(|e| e.to_string())?;
            let assembler = greet(&mut socket, identity).await?;
            Ok::<_, String>((socket, assembler))
        });
        let (socket, assembler) = match opened.await {
            Ok(result) => result?,
            Err(_) => return Err(format!("no hello within {} s", OPENING.as_secs())),
        };
        let (read, write) = socket.into_split();
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let conn = Arc::new(Self {
            outgoing,
            streams: Mutex::new(HashMap::new()),
            next: AtomicU32::new(1),
            open: AtomicBool::new(true),
        });
        let writer = tokio::spawn(write_all(write, queue));
        // The reader holds no strong reference: a connection that nobody uses any more closes.
        let weak = Arc::downgrade(&conn);
        tokio::spawn(async move {
            let why = read_all(read, assembler, &weak).await;
            writer.abort();
            if let Some(conn) = weak.upgrade() {
                conn.fail(&why);
            }
        });
        Ok(conn)
    }

    /// Whether it can be used.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    /// Takes no new requests. Those that wait for an answer go on waiting.
    pub fn retire(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    /// Sends a request and waits for its answer.
    pub async fn call(
        &self,
        request: &Request,
        blob: &[u8],
        caps: Caps,
    ) -> Result<Answer, Failure> {
        let stream = self.next.fetch_add(1, Ordering::SeqCst);
        // Numbers are never used twice; the connection is replaced long before they run out.
        if stream == 0 || stream > u32::MAX / 2 {
            self.retire();
            return Err(Failure::NotSent(
                "the connection has used up its stream numbers".to_owned(),
            ));
        }
        let mut bytes = Vec::new();
        encode_message(&mut bytes, stream, request).map_err(|e| Failure::NotSent(e.to_string()))?;
        encode_data(&mut bytes, stream, Channel::Blob, blob);
        let (done, answer) = oneshot::channel();
        let entry = Stream {
            caps,
            stdout: Vec::new(),
            stderr: Vec::new(),
            blob: Vec::new(),
            done,
        };
        self.streams().insert(stream, entry);
        // Checked after the insertion, as a failure looks at the table after it has closed.
        if !self.is_open() || self.outgoing.send(bytes).await.is_err() {
            self.streams().remove(&stream);
            return Err(Failure::NotSent("the connection is closed".to_owned()));
        }
        match answer.await {
            Ok(result) => result,
            Err(_) => Err(Failure::Lost("the connection was closed".to_owned())),
        }
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<u32, Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, why: &str) {
        self.retire();
        let streams = std::mem::take(&mut *self.streams());
        for stream in streams.into_values() {
            let _ = stream.done.send(Err(Failure::Lost(why.to_owned())));
        }
    }

    /// Takes in one message or piece of data.
    fn take(&self, incoming: Incoming<Reply>) -> Result<(), String> {
        match incoming {
            Incoming::Message {
                message: Err(problem),
                ..
            } => Err(format!("the guest sent nonsense: {problem}")),
            Incoming::Message {
                stream,
                message: Ok(reply),
            } => {
                let entry = self.streams().remove(&stream);
                let Some(entry) = entry else {
                    return match reply {
                        Reply::Refused(refusal) if stream == 0 => Err(refusal.message),
                        _ => Err("the guest answered what was not asked".to_owned()),
                    };
                };
                let Stream {
                    stdout,
                    stderr,
                    blob,
                    done,
                    ..
                } = entry;
                let _ = done.send(Ok(Answer {
                    reply,
                    stdout,
                    stderr,
                    blob,
                }));
                Ok(())
            }
            Incoming::Data {
                stream,
                channel,
                bytes,
            } => {
                let mut streams = self.streams();
                let Some(entry) = streams.get_mut(&stream) else {
                    return Err("the guest sent data on a stream that is not open".to_owned());
                };
                let (kept, cap) = match channel {
                    Channel::Stdout => (&mut entry.stdout, entry.caps.stdout),
                    Channel::Stderr => (&mut entry.stderr, entry.caps.stderr),
                    Channel::Blob => (&mut entry.blob, entry.caps.blob),
                    Channel::Stdin => return Err("the guest sent input".to_owned()),
                };
                if kept.len() + bytes.len() > cap {
                    return Err("the guest sent more than was asked for".to_owned());
                }
                kept.extend_from_slice(&bytes);
                Ok(())
            }
        }
    }
}

/// A socket's address holds 108 bytes, which a data directory may exceed: the path goes through a descriptor.
async fn connect(directory: &Path) -> io::Result<UnixStream> {
    let held = File::options()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
        .open(directory)?;
    let path = format!("/proc/self/fd/{}/guest.sock", held.as_raw_fd());
    loop {
        match UnixStream::connect(&path).await {
            // Too many wait to be accepted: the caller's patience is the limit.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                tokio::time::sleep(Duration::from_millis(20)).await
            }
            other => return other,
        }
    }
}

/// Says hello and judges the answer; what was read beyond it is in the assembler.
async fn greet(socket: &mut UnixStream, identity: &Identity) -> Result<Assembler, String> {
    let hello = Request::Hello(Hello {
        version: PROTOCOL_VERSION,
        identity: identity.clone(),
    });
    let mut bytes = Vec::new();
    encode_message(&mut bytes, 0, &hello).map_err(|e| e.to_string())?;
    socket.write_all(&bytes).await.map_err(|e| e.to_string())?;
    let mut assembler = Assembler::new();
    let mut buffer = vec![0; 4096];
    loop {
        match assembler
            .next_incoming::<Reply>()
            .map_err(|e| e.to_string())?
        {
            Some(Incoming::Message {
                stream: 0,
                message: Ok(Reply::Hello(reply)),
            }) => {
                return judge(&reply, identity).map(|()| assembler);
            }
            Some(Incoming::Message {
                message: Ok(Reply::Refused(refusal)),
                ..
            }) => return Err(refusal.message),
            Some(Incoming::Message { .. } | Incoming::Data { .. }) => {
                return Err("the guest did not answer hello with hello".to_owned());
            }
            None => {}
        }
        let count = socket.read(&mut buffer).await.map_err(|e| e.to_string())?;
        if count == 0 {
            return Err("the guest hung up at the hello".to_owned());
        }
        assembler.push(buffer.get(..count).unwrap_or_default());
    }
}

fn judge(reply: &HelloReply, identity: &Identity) -> Result<(), String> {
    if reply.version != PROTOCOL_VERSION {
        return Err(format!(
            "the guest speaks version {}, not {PROTOCOL_VERSION}",
            reply.version
        ));
    }
    if reply.identity != *identity {
        return Err("another guest answers at this socket".to_owned());
    }
    Ok(())
}

async fn write_all(mut socket: OwnedWriteHalf, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = queue.recv().await {
        if socket.write_all(&bytes).await.is_err() {
            // The reader notices the same and tells everybody.
            return;
        }
    }
}

/// Reads until the connection ends and answers why it did.
async fn read_all(
    mut socket: OwnedReadHalf,
    mut assembler: Assembler,
    conn: &std::sync::Weak<Conn>,
) -> String {
    let mut buffer = vec![0; 64 << 10];
    loop {
        loop {
            match assembler.next_incoming::<Reply>() {
                Ok(Some(incoming)) => {
                    let Some(conn) = conn.upgrade() else {
                        return "it is not used any more".to_owned();
                    };
                    if let Err(why) = conn.take(incoming) {
                        return why;
                    }
                }
                Ok(None) => break,
                Err(error) => return format!("the guest broke the framing: {error}"),
            }
        }
        match socket.read(&mut buffer).await {
            Ok(0) => return "the guest closed the connection".to_owned(),
            Ok(count) => assembler.push(buffer.get(..count).unwrap_or_default()),
            Err(error) => return error.to_string(),
        }
    }
}
