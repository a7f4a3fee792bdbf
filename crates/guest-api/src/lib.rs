//! Frames and messages between the orchestrator and a guest.
//!
//! One byte stream carries everything: a unix socket today, a virtio serial port or vsock as well.
//! [`frame`] turns bytes into bounded frames and back, [`assemble`] turns frames into messages, and
//! [`message`] is the vocabulary. Nothing here does I/O, so each side brings its own loop.
//!
//! A conversation starts with [`Request::Hello`] on stream 0. Every further request opens a stream
//! whose id the orchestrator picks (never 0, never reused on one connection); the guest answers on
//! that stream with any number of data frames and then exactly one [`Reply`].
//!
//! Neither side trusts the other: a length over its limit, an unknown frame kind or a message that
//! does not parse is an error, never an allocation or a panic.

pub mod assemble;
pub mod frame;
mod keep;
pub mod message;

pub use assemble::{Assembler, Incoming, encode_data, encode_message};
pub use frame::{Channel, Decoder, Frame, FrameError, MAX_MESSAGE, MAX_PAYLOAD};
pub use keep::HeadTail;
pub use message::{
    Boot, BootFailure, BootStage, BuildStep, Command, EnvVars, Exec, Exit, FileInfo, Hello,
    HelloReply, Identity, Merge, Merged, Phase, Refusal, RefusalCode, Reply, Request, Startup,
    Status, TaskState,
};

/// Version of this protocol; both sides must name the same one in their hello.
pub const PROTOCOL_VERSION: u32 = 1;
/// Most bytes of one output stream of a command that are kept, in bytes.
pub const MAX_OUTPUT: usize = 1 << 20;
/// Largest file that one [`Request::WriteFile`] may carry, in bytes.
pub const MAX_WRITE: u64 = 1 << 20;
/// Most bytes that one [`Request::ReadFile`] may ask for.
pub const MAX_READ: u64 = 4 << 20;
/// Longest command id, in bytes.
pub const MAX_COMMAND_ID: usize = 128;
/// Bytes of output that a failed boot step reports at most.
pub const BOOT_TAIL: usize = 16 << 10;
/// The exit code of a command that was stopped at its timeout.
pub const EXIT_TIMEOUT: i32 = 124;
