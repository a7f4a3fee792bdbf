//! From frames to messages and back.

use crate::frame::{self, Channel, Decoder, Frame, FrameError, MAX_MESSAGE, MAX_PAYLOAD};
use serde::{Serialize, de::DeserializeOwned};

/// What arrived.
#[derive(Debug)]
pub enum Incoming<T> {
    /// A message.
    Message {
        /// The stream that it belongs to.
        stream: u32,
        /// The message, or why its bytes are none. The connection stays usable: an unknown message
        /// is answered, not a reason to hang up.
        message: Result<T, String>,
    },
    /// Raw bytes.
    Data {
        /// The stream that they belong to.
        stream: u32,
        /// What they are.
        channel: Channel,
        /// The bytes, at most [`MAX_PAYLOAD`].
        bytes: Vec<u8>,
    },
}

/// Bytes in, messages out; holds at most one unfinished message.
#[derive(Debug, Default)]
pub struct Assembler {
    decoder: Decoder,
    partial: Option<(u32, Vec<u8>)>,
}

impl Assembler {
    /// An empty assembler.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes that were read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes);
    }

    /// The next whole message or piece of data, or `None` until more bytes come.
    ///
    /// # Errors
    /// The peer broke the framing; hang up.
    pub fn next_incoming<T: DeserializeOwned>(
        &mut self,
    ) -> Result<Option<Incoming<T>>, FrameError> {
        while let Some(frame) = self.decoder.next_frame()? {
            match (frame, self.partial.take()) {
                (
                    Frame::Data {
                        stream,
                        channel,
                        payload,
                    },
                    None,
                ) => {
                    return Ok(Some(Incoming::Data {
                        stream,
                        channel,
                        bytes: payload,
                    }));
                }
                (Frame::Data { .. }, Some(_)) => return Err(FrameError::Interrupted),
                (
                    Frame::Control {
                        stream,
                        more,
                        payload,
                    },
                    held,
                ) => {
                    let whole = match held {
                        None => payload,
                        Some((other, _)) if other != stream => return Err(FrameError::Interrupted),
                        Some((_, mut start)) => {
                            if start.len() + payload.len() > MAX_MESSAGE {
                                return Err(FrameError::MessageTooLong);
                            }
                            start.extend_from_slice(&payload);
                            start
                        }
                    };
                    if more {
                        self.partial = Some((stream, whole));
                        continue;
                    }
                    // serde_json's text may quote the input, which can hold a secret: keep the place only.
                    let message = serde_json::from_slice(&whole).map_err(|e| {
                        format!(
                            "{:?} error at line {} column {}",
                            e.classify(),
                            e.line(),
                            e.column()
                        )
                    });
                    return Ok(Some(Incoming::Message { stream, message }));
                }
            }
        }
        Ok(None)
    }
}

/// Appends `message` to `out`, in as many control frames as it needs.
///
/// # Errors
/// [`FrameError::MessageTooLong`] when it is over [`MAX_MESSAGE`]; `out` is then unchanged.
pub fn encode_message<T: Serialize>(
    out: &mut Vec<u8>,
    stream: u32,
    message: &T,
) -> Result<(), FrameError> {
    // Our own types always serialize; should one not, it is as unsendable as one that is too long.
    let json = serde_json::to_vec(message).map_err(|_| FrameError::MessageTooLong)?;
    if json.len() > MAX_MESSAGE {
        return Err(FrameError::MessageTooLong);
    }
    let mut pieces = json.chunks(MAX_PAYLOAD).peekable();
    while let Some(piece) = pieces.next() {
        frame::put_control(out, stream, pieces.peek().is_some(), piece)?;
    }
    Ok(())
}

/// Appends `bytes` to `out`, in as many data frames as they need; none for no bytes.
pub fn encode_data(out: &mut Vec<u8>, stream: u32, channel: Channel, bytes: &[u8]) {
    for piece in bytes.chunks(MAX_PAYLOAD) {
        // A piece is never over the limit, which is the one way that this can fail.
        let _ = frame::put_data(out, stream, channel, piece);
    }
}
