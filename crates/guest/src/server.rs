//! Connections: each is served by one of a fixed set of threads, so that a guest that has run out of processes still answers.

use crate::{boot, commands::Commands, files, link::Link, state::State};
use fuse_guest_api::{
    Assembler, Channel, HelloReply, Incoming, MAX_WRITE, PROTOCOL_VERSION, Refusal, RefusalCode,
    Reply, Request,
};
use std::{
    collections::HashMap,
    io::Read,
    os::unix::net::{UnixListener, UnixStream},
    sync::Arc,
    time::Duration,
};

/// How long an orchestrator may take to read what it is sent.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a new connection may take to say hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Files that may be on their way on one connection.
const MAX_PENDING: usize = 8;

/// A file whose content has not wholly arrived.
struct Pending {
    path: String,
    mode: u32,
    size: usize,
    content: Vec<u8>,
}

/// Serves one connection after the other for ever.
pub fn serve(state: &Arc<State>, listener: &UnixListener) {
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                let _ = converse(state, socket);
            }
            // Out of descriptors, most likely: give others time to close some.
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn converse(state: &Arc<State>, mut socket: UnixStream) -> std::io::Result<()> {
    socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
    socket.set_read_timeout(Some(HELLO_TIMEOUT))?;
    let link = Arc::new(Link::new(socket.try_clone()?));
    let mut peer = Peer {
        state,
        link,
        greeted: false,
        pending: HashMap::new(),
    };
    let mut assembler = Assembler::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = socket.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        assembler.push(&buffer[..count]);
        loop {
            let incoming = match assembler.next_incoming::<Request>() {
                Ok(Some(incoming)) => incoming,
                Ok(None) => break,
                Err(error) => {
                    peer.link
                        .refuse(0, RefusalCode::BadRequest, error.to_string());
                    return Ok(());
                }
            };
            let greeted = peer.greeted;
            if !peer.handle(incoming) {
                return Ok(());
            }
            if !greeted && peer.greeted {
                socket.set_read_timeout(None)?;
            }
        }
    }
}

struct Peer<'a> {
    state: &'a Arc<State>,
    link: Arc<Link>,
    greeted: bool,
    pending: HashMap<u32, Pending>,
}

impl Peer<'_> {
    /// Handles one message; false hangs up.
    fn handle(&mut self, incoming: Incoming<Request>) -> bool {
        match incoming {
            Incoming::Message {
                stream,
                message: Err(problem),
            } => {
                self.link.refuse(
                    stream,
                    RefusalCode::Unsupported,
                    format!("unknown or malformed message: {problem}"),
                );
                self.greeted
            }
            Incoming::Message {
                stream,
                message: Ok(Request::Hello(hello)),
            } if !self.greeted => self.greet(stream, hello),
            Incoming::Message { stream, .. } | Incoming::Data { stream, .. } if !self.greeted => {
                self.link.refuse(
                    stream,
                    RefusalCode::BadRequest,
                    "the first message must be hello",
                );
                false
            }
            Incoming::Message {
                stream,
                message: Ok(request),
            } => {
                self.request(stream, request);
                true
            }
            Incoming::Data {
                stream,
                channel,
                bytes,
            } => self.data(stream, channel, &bytes),
        }
    }

    fn greet(&mut self, stream: u32, hello: fuse_guest_api::Hello) -> bool {
        if hello.version != PROTOCOL_VERSION {
            let message = format!(
                "this guest speaks version {PROTOCOL_VERSION}, not {}",
                hello.version
            );
            self.link.refuse(stream, RefusalCode::Version, message);
            return false;
        }
        if hello.identity != self.state.identity {
            self.link
                .refuse(stream, RefusalCode::WrongGuest, "this is another guest");
            return false;
        }
        self.greeted = true;
        let reply = HelloReply {
            version: PROTOCOL_VERSION,
            identity: self.state.identity.clone(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
        };
        self.link.reply(stream, &Reply::Hello(reply));
        true
    }

    fn request(&mut self, stream: u32, request: Request) {
        let state = self.state;
        match request {
            Request::Hello(_) => {
                self.link
                    .refuse(stream, RefusalCode::BadRequest, "hello was said already")
            }
            Request::Boot(boot) => boot::boot(state, &self.link, stream, boot),
            Request::Exec(exec) => Commands::exec(state, &self.link, stream, exec),
            Request::Recall { command_id } => {
                state.commands.recall(&self.link, stream, &command_id)
            }
            Request::Cancel { command_id } => {
                state.commands.cancel(state, &command_id);
                self.link.reply(stream, &Reply::Done);
            }
            Request::Signal { command_id, signal } => {
                if !(1..=64).contains(&signal) {
                    return self.link.refuse(
                        stream,
                        RefusalCode::BadRequest,
                        "signal must be 1 to 64",
                    );
                }
                state.commands.signal(state, &command_id, signal);
                self.link.reply(stream, &Reply::Done);
            }
            Request::ReadFile { path, max_bytes } => match files::read(&path, max_bytes) {
                Ok((info, bytes)) => {
                    self.link
                        .reply_with(stream, &[(Channel::Blob, &bytes)], &Reply::File(info));
                }
                Err(refusal) => self.link.reply(stream, &Reply::Refused(refusal)),
            },
            Request::WriteFile { path, mode, size } => self.expect_file(stream, path, mode, size),
            Request::SetEnv { vars } => match vars.problem() {
                None => {
                    state.grant(vars);
                    self.link.reply(stream, &Reply::Done);
                }
                Some((name, problem)) => {
                    self.link.refuse(
                        stream,
                        RefusalCode::BadRequest,
                        format!("env {name:?}: {problem}"),
                    );
                }
            },
            Request::Status => self.link.reply(stream, &Reply::Status(state.status())),
        }
    }

    fn expect_file(&mut self, stream: u32, path: String, mode: u32, size: u64) {
        let size = match usize::try_from(size) {
            Ok(count) if size <= MAX_WRITE => count,
            Ok(_) | Err(_) => {
                return self.link.refuse(
                    stream,
                    RefusalCode::BadRequest,
                    format!("size must be at most {MAX_WRITE}"),
                );
            }
        };
        if self.pending.len() >= MAX_PENDING || self.pending.contains_key(&stream) {
            return self.link.refuse(
                stream,
                RefusalCode::Busy,
                format!("{MAX_PENDING} files are on their way already"),
            );
        }
        // The buffer grows with what arrives, not with what was announced.
        self.pending.insert(
            stream,
            Pending {
                path,
                mode,
                size,
                content: Vec::new(),
            },
        );
        self.complete(stream);
    }

    fn data(&mut self, stream: u32, channel: Channel, bytes: &[u8]) -> bool {
        match channel {
            Channel::Blob => {}
            Channel::Stdin | Channel::Stdout | Channel::Stderr => {
                self.link
                    .refuse(stream, RefusalCode::Unsupported, "commands take no input");
                return true;
            }
        }
        // Data of a file that was refused is still on its way when the refusal goes out.
        let Some(pending) = self.pending.get_mut(&stream) else {
            return true;
        };
        if pending.content.len() + bytes.len() > pending.size {
            self.pending.remove(&stream);
            self.link.refuse(
                stream,
                RefusalCode::BadRequest,
                "more bytes came than were announced",
            );
            return true;
        }
        pending.content.extend_from_slice(bytes);
        self.complete(stream);
        true
    }

    /// Writes a file once all its bytes are there.
    fn complete(&mut self, stream: u32) {
        if self
            .pending
            .get(&stream)
            .is_none_or(|p| p.content.len() < p.size)
        {
            return;
        }
        let Some(file) = self.pending.remove(&stream) else {
            return;
        };
        let reply = match files::write(&file.path, file.mode, &file.content) {
            Ok(()) => Reply::Done,
            Err(refusal) => Reply::Refused(Refusal::new(refusal.code, refusal.message)),
        };
        self.link.reply(stream, &reply);
    }
}
