//! The frame codec: bytes in, frames out.
//!
//! A frame is a header of 12 bytes and a payload:
//!
//! | bytes | meaning |
//! |---|---|
//! | 0..4 | payload length, big-endian, at most [`MAX_PAYLOAD`] |
//! | 4..8 | stream id, big-endian |
//! | 8 | kind: 0 control, 1 data |
//! | 9 | channel of a data frame; 0 in a control frame |
//! | 10 | flags: bit 0 says that the message goes on in the next control frame |
//! | 11 | 0 |

/// Largest payload of one frame, in bytes.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// Largest control message over all its frames, in bytes.
pub const MAX_MESSAGE: usize = 8 << 20;
/// Length of a frame's header, in bytes.
pub const HEADER: usize = 12;

const KIND_CONTROL: u8 = 0;
const KIND_DATA: u8 = 1;
const FLAG_MORE: u8 = 1;

/// What the bytes of a data frame are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Input of a command.
    Stdin,
    /// A command's standard output.
    Stdout,
    /// A command's standard error.
    Stderr,
    /// The content of a file.
    Blob,
}

impl Channel {
    fn to_byte(self) -> u8 {
        match self {
            Channel::Stdin => 0,
            Channel::Stdout => 1,
            Channel::Stderr => 2,
            Channel::Blob => 3,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Channel::Stdin),
            1 => Some(Channel::Stdout),
            2 => Some(Channel::Stderr),
            3 => Some(Channel::Blob),
            4..=u8::MAX => None,
        }
    }
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A piece of a JSON message.
    Control {
        /// The stream that it belongs to; 0 is the connection itself.
        stream: u32,
        /// Whether the message goes on in the next frame.
        more: bool,
        /// The bytes of the piece.
        payload: Vec<u8>,
    },
    /// Raw bytes.
    Data {
        /// The stream that they belong to.
        stream: u32,
        /// What they are.
        channel: Channel,
        /// The bytes.
        payload: Vec<u8>,
    },
}

/// Why bytes are no frame, or frames no message. The connection cannot be used any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The header announces more than [`MAX_PAYLOAD`].
    #[error("a frame announces {0} bytes, more than the {MAX_PAYLOAD} that are allowed")]
    TooLong(u32),
    /// A kind that this version does not know.
    #[error("unknown frame kind {0}")]
    Kind(u8),
    /// A channel that this version does not know.
    #[error("unknown data channel {0}")]
    Channel(u8),
    /// Flags or reserved bits that must be 0.
    #[error("reserved bits of a frame header are set")]
    Reserved,
    /// A message over [`MAX_MESSAGE`].
    #[error("a message is longer than {MAX_MESSAGE} bytes")]
    MessageTooLong,
    /// Another frame came in the middle of a message.
    #[error("a message was interrupted by another frame")]
    Interrupted,
}

impl Frame {
    /// Appends the frame's bytes to `out`.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] when the payload is over [`MAX_PAYLOAD`]; `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        let (stream, kind, channel, flags, payload) = match self {
            Frame::Control {
                stream,
                more,
                payload,
            } => (
                *stream,
                KIND_CONTROL,
                0,
                if *more { FLAG_MORE } else { 0 },
                payload,
            ),
            Frame::Data {
                stream,
                channel,
                payload,
            } => (*stream, KIND_DATA, channel.to_byte(), 0, payload),
        };
        put(out, stream, [kind, channel, flags], payload)
    }
}

/// Writes a control frame without copying the payload first.
pub(crate) fn put_control(
    out: &mut Vec<u8>,
    stream: u32,
    more: bool,
    payload: &[u8],
) -> Result<(), FrameError> {
    put(
        out,
        stream,
        [KIND_CONTROL, 0, if more { FLAG_MORE } else { 0 }],
        payload,
    )
}

/// Writes a data frame without copying the payload first.
pub(crate) fn put_data(
    out: &mut Vec<u8>,
    stream: u32,
    channel: Channel,
    payload: &[u8],
) -> Result<(), FrameError> {
    put(out, stream, [KIND_DATA, channel.to_byte(), 0], payload)
}

fn put(out: &mut Vec<u8>, stream: u32, kind: [u8; 3], payload: &[u8]) -> Result<(), FrameError> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    if payload.len() > MAX_PAYLOAD {
        return Err(FrameError::TooLong(length));
    }
    out.reserve(HEADER + payload.len());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(&kind);
    out.push(0);
    out.extend_from_slice(payload);
    Ok(())
}

/// Turns a byte stream into frames, however the bytes are cut.
///
/// Feed what was read with [`Decoder::push`], then call [`Decoder::next_frame`] until it has no more. A
/// header is judged as soon as it is complete, so at most one payload is ever waited for. After an
/// error the decoder answers that error for ever.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    failed: Option<FrameError>,
}

impl Decoder {
    /// An empty decoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes that were read. Bytes after an error are dropped.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        if self.start > 0 && (self.start == self.buffer.len() || self.start >= 64 << 10) {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, or `None` until more bytes come.
    ///
    /// # Errors
    /// The bytes are no frame of this protocol.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.parse();
        if let Err(error) = &result {
            self.failed = Some(error.clone());
            self.buffer = Vec::new();
            self.start = 0;
        }
        result
    }

    fn parse(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.buffer[self.start..];
        let Some(header) = rest.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [
            l0,
            l1,
            l2,
            l3,
            s0,
            s1,
            s2,
            s3,
            kind,
            channel,
            flags,
            reserved,
        ] = *header;
        let length = u32::from_be_bytes([l0, l1, l2, l3]);
        let stream = u32::from_be_bytes([s0, s1, s2, s3]);
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        if size > MAX_PAYLOAD {
            return Err(FrameError::TooLong(length));
        }
        if reserved != 0 {
            return Err(FrameError::Reserved);
        }
        let data_channel = match kind {
            KIND_CONTROL if channel != 0 || flags & !FLAG_MORE != 0 => {
                return Err(FrameError::Reserved);
            }
            KIND_CONTROL => None,
            KIND_DATA if flags != 0 => return Err(FrameError::Reserved),
            KIND_DATA => Some(Channel::from_byte(channel).ok_or(FrameError::Channel(channel))?),
            other => return Err(FrameError::Kind(other)),
        };
        let Some(payload) = rest.get(HEADER..HEADER + size) else {
            return Ok(None);
        };
        let payload = payload.to_vec();
        self.start += HEADER + size;
        Ok(Some(match data_channel {
            None => Frame::Control {
                stream,
                more: flags & FLAG_MORE != 0,
                payload,
            },
            Some(channel) => Frame::Data {
                stream,
                channel,
                payload,
            },
        }))
    }
}
