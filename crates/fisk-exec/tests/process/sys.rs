//! The one call that has no safe wrapper.
#![allow(unsafe_code)]

use std::{fs::File, io, os::fd::AsRawFd};

/// Puts a byte into a terminal's input, as if it had been typed there.
pub fn type_into(terminal: &File, byte: u8) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the byte outlives the call.
    match unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSTI, &raw const byte) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
