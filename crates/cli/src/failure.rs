//! Why a command failed, and the exit code.

use std::io;

use fuse_client::Error;

/// What a command comes to: an exit code, or the reason why not.
pub type Done = Result<u8, Failure>;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Bad usage or configuration: 2.
    Usage(String),
    /// A refusal or an error: 1.
    Said(String),
    /// Everything was said already: 1.
    Silent,
    /// The server, or the way to it: 1.
    Client(Box<Error>),
    /// Nobody reads the output any more: 0, without a word.
    Closed,
}

impl Failure {
    /// A failure in a sentence of our own.
    pub fn said(sentence: impl Into<String>) -> Self {
        Self::Said(sentence.into())
    }

    /// The exit code of this failure.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Said(_) | Self::Silent | Self::Client(_) => 1,
            Self::Closed => 0,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Client(Box::new(error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::Closed
        } else {
            Self::Said(error.to_string())
        }
    }
}
