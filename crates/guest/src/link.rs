//! The writing half of a connection.

use crate::{job::Outcome, reaper::lock};
use fuse_guest_api::{Channel, Exit, Refusal, RefusalCode, Reply, encode_data, encode_message};
use std::{io::Write, net::Shutdown, os::unix::net::UnixStream, sync::Mutex};

/// Sends replies; shared by everything that has something to say on a connection.
#[derive(Debug)]
pub struct Link {
    socket: Mutex<UnixStream>,
}

impl Link {
    /// Over a socket that has a write timeout.
    pub fn new(socket: UnixStream) -> Self {
        Self {
            socket: Mutex::new(socket),
        }
    }

    /// Ends a stream.
    pub fn reply(&self, stream: u32, reply: &Reply) {
        self.reply_with(stream, &[], reply);
    }

    /// Ends a stream after its data.
    pub fn reply_with(&self, stream: u32, data: &[(Channel, &[u8])], reply: &Reply) {
        let mut bytes = Vec::new();
        for (channel, piece) in data {
            encode_data(&mut bytes, stream, *channel, piece);
        }
        if encode_message(&mut bytes, stream, reply).is_err() {
            bytes.clear();
            let refusal = Refusal::new(RefusalCode::Io, "the answer is too long");
            let _ = encode_message(&mut bytes, stream, &Reply::Refused(refusal));
        }
        let mut socket = lock(&self.socket);
        if socket.write_all(&bytes).is_err() {
            // The peer is gone or does not read; half a frame may be out, so nothing can follow.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Ends a stream with a refusal.
    pub fn refuse(&self, stream: u32, code: RefusalCode, message: impl Into<String>) {
        self.reply(stream, &Reply::Refused(Refusal::new(code, message)));
    }

    /// Ends a stream with a command's outcome.
    pub fn outcome(&self, stream: u32, outcome: &Outcome, cancelled: bool) {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let exit = Exit {
            exit_code: outcome.exit_code,
            timed_out: outcome.timed_out,
            cancelled,
            truncated: outcome.truncated,
            stdout_len: length(&outcome.stdout),
            stderr_len: length(&outcome.stderr),
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            merged: outcome.merged,
        };
        let data = [
            (Channel::Stdout, &outcome.stdout[..]),
            (Channel::Stderr, &outcome.stderr[..]),
        ];
        self.reply_with(stream, &data, &Reply::Exit(exit));
    }
}
