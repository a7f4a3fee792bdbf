//! The frames of an attach stream (`Upgrade: fuse-attach/1`), the same both ways.
//!
//! `[type:1][reserved:3][length:4, big-endian][payload]`. The codec does no I/O: bytes in, frames out, and what one side
//! sends is bounded for the other.

use serde::{Deserialize, Serialize};

/// The largest payload of one frame, in bytes.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// The length of a frame's header, in bytes.
pub const HEADER: usize = 8;

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}

/// How the attached command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitStatus {
    /// Its exit code.
    pub exit_code: i32,
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachFrame {
    /// What is typed.
    Stdin(Vec<u8>),
    /// What the command writes, or its terminal shows.
    Stdout(Vec<u8>),
    /// What a command without a terminal writes to standard error.
    Stderr(Vec<u8>),
    /// The terminal has a new size.
    Resize(WindowSize),
    /// The command ended; nothing follows.
    Exit(ExitStatus),
}

/// Why bytes are no frame. The stream cannot be used any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// A type that is not known.
    #[error("unknown attach frame type {0}")]
    Type(u8),
    /// The reserved bytes are not zero.
    #[error("the reserved bytes of an attach frame are set")]
    Reserved,
    /// The payload is over [`MAX_PAYLOAD`].
    #[error("an attach frame of {0} bytes, more than the {MAX_PAYLOAD} that are allowed")]
    TooLong(usize),
    /// A resize or exit frame whose payload is not what it has to be.
    #[error("the payload of an attach frame of type {0} is malformed")]
    Payload(u8),
}

impl AttachFrame {
    const fn kind(&self) -> u8 {
        match self {
            Self::Stdin(_) => 0,
            Self::Stdout(_) => 1,
            Self::Stderr(_) => 2,
            Self::Resize(_) => 3,
            Self::Exit(_) => 4,
        }
    }

    /// Appends the frame's bytes to `out`.
    ///
    /// # Errors
    /// [`AttachError::TooLong`] when the payload is over [`MAX_PAYLOAD`]; `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), AttachError> {
        let json;
        let payload = match self {
            Self::Stdin(bytes) | Self::Stdout(bytes) | Self::Stderr(bytes) => bytes,
            Self::Resize(size) => {
                json = format!(r#"{{"rows":{},"cols":{}}}"#, size.rows, size.cols).into_bytes();
                &json
            }
            Self::Exit(status) => {
                json = format!(r#"{{"exit_code":{}}}"#, status.exit_code).into_bytes();
                &json
            }
        };
        let length = u32::try_from(payload.len())
            .ok()
            .filter(|_| payload.len() <= MAX_PAYLOAD)
            .ok_or(AttachError::TooLong(payload.len()))?;
        out.extend([self.kind(), 0, 0, 0]);
        out.extend(length.to_be_bytes());
        out.extend(payload);
        Ok(())
    }

    fn decode(kind: u8, payload: &[u8]) -> Result<Self, AttachError> {
        let malformed = |_| AttachError::Payload(kind);
        match kind {
            0 => Ok(Self::Stdin(payload.to_vec())),
            1 => Ok(Self::Stdout(payload.to_vec())),
            2 => Ok(Self::Stderr(payload.to_vec())),
            3 => serde_json::from_slice(payload)
                .map(Self::Resize)
                .map_err(malformed),
            4 => serde_json::from_slice(payload)
                .map(Self::Exit)
                .map_err(malformed),
            5..=u8::MAX => Err(AttachError::Type(kind)),
        }
    }
}

/// Turns bytes, in whatever pieces they come, into frames. It holds one frame at most beside what was just pushed.
#[derive(Debug, Default)]
pub struct AttachDecoder {
    held: Vec<u8>,
    broken: Option<AttachError>,
}

impl AttachDecoder {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.held.extend_from_slice(bytes);
        }
    }

    /// The next whole frame; `None` until more bytes come.
    ///
    /// # Errors
    /// The bytes are no frame. Every later call gives the same error.
    pub fn next_frame(&mut self) -> Result<Option<AttachFrame>, AttachError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        self.take().inspect_err(|error| {
            self.held = Vec::new();
            self.broken = Some(error.clone());
        })
    }

    fn take(&mut self) -> Result<Option<AttachFrame>, AttachError> {
        let Some((&[kind, a, b, c, l0, l1, l2, l3], rest)) =
            self.held.split_first_chunk::<HEADER>()
        else {
            return Ok(None);
        };
        if kind > 4 {
            return Err(AttachError::Type(kind));
        }
        if [a, b, c] != [0, 0, 0] {
            return Err(AttachError::Reserved);
        }
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        if length > MAX_PAYLOAD {
            return Err(AttachError::TooLong(length));
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = AttachFrame::decode(kind, payload)?;
        self.held.drain(..HEADER + length);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> impl Strategy<Value = AttachFrame> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
        prop_oneof![
            bytes().prop_map(AttachFrame::Stdin),
            bytes().prop_map(AttachFrame::Stdout),
            bytes().prop_map(AttachFrame::Stderr),
            any::<(u16, u16)>()
                .prop_map(|(rows, cols)| AttachFrame::Resize(WindowSize { rows, cols })),
            any::<i32>().prop_map(|exit_code| AttachFrame::Exit(ExitStatus { exit_code })),
        ]
    }

    proptest! {
        #[test]
        fn frames_come_back_however_the_bytes_are_cut(
            sent in proptest::collection::vec(frames(), 0..8),
            cut in 1_usize..64,
        ) {
            let mut bytes = Vec::new();
            for frame in &sent {
                frame.encode(&mut bytes).expect("short");
            }
            let mut decoder = AttachDecoder::default();
            let mut got = Vec::new();
            for piece in bytes.chunks(cut) {
                decoder.push(piece);
                while let Some(frame) = decoder.next_frame().expect("well formed") {
                    got.push(frame);
                }
            }
            prop_assert_eq!(got, sent);
        }

        #[test]
        fn rubbish_is_an_error_that_stays(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = AttachDecoder::default();
            decoder.push(&bytes);
            loop {
                match decoder.next_frame() {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) => {
                        decoder.push(&[0; 16]);
                        prop_assert_eq!(decoder.next_frame(), Err(error));
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn a_frame_over_a_mebibyte_is_refused_before_its_bytes_come() {
        let mut decoder = AttachDecoder::default();
        decoder.push(&[0, 0, 0, 0, 0x00, 0x10, 0x00, 0x01]);
        assert_eq!(
            decoder.next_frame(),
            Err(AttachError::TooLong(MAX_PAYLOAD + 1))
        );
        let long = AttachFrame::Stdin(vec![0; MAX_PAYLOAD + 1]);
        let mut out = Vec::new();
        assert!(long.encode(&mut out).is_err() && out.is_empty());
    }

    #[test]
    fn a_resize_says_rows_and_columns_and_nothing_else() {
        for payload in [
            "",
            "{}",
            r#"{"rows":1}"#,
            r#"{"rows":1,"cols":70000}"#,
            r#"{"rows":1,"cols":2,"x":3}"#,
        ] {
            let mut bytes = vec![3, 0, 0, 0];
            bytes.extend(u32::try_from(payload.len()).expect("short").to_be_bytes());
            bytes.extend(payload.as_bytes());
            let mut decoder = AttachDecoder::default();
            decoder.push(&bytes);
            assert_eq!(
                decoder.next_frame(),
                Err(AttachError::Payload(3)),
                "{payload}"
            );
        }
    }
}
