//! The few calls on files and loop devices that have no safe wrapper.
#![allow(unsafe_code)]

use std::{fs::File, io, os::fd::AsRawFd};

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LO_FLAGS_AUTOCLEAR: u32 = 4;

/// The kernel's `loop_config`, of which most is unused here.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    /// `loop_info64` up to its flags: device, inode, rdevice, offset, size limit.
    numbers: [u64; 5],
    /// Number, encryption and its key's size.
    more: [u32; 3],
    flags: u32,
    /// Names, key and start values.
    rest: [u8; 176],
    reserved: [u64; 8],
}

/// Makes `to` share all blocks of `from`, where the file system can.
pub fn clone_file(from: &File, to: &File) -> io::Result<()> {
    // SAFETY: takes numbers only.
    done(unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONE, from.as_raw_fd()) }).map(drop)
}

/// The number of a loop device that was free a moment ago.
pub fn free_loop(control: &File) -> io::Result<i32> {
    // SAFETY: takes numbers only.
    done(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) })
}

/// Puts a file behind a loop device, until nobody uses the device any more.
pub fn configure_loop(device: &File, image: &File) -> io::Result<()> {
    let config = LoopConfig {
        fd: image.as_raw_fd().unsigned_abs(),
        block_size: 0,
        numbers: [0; 5],
        more: [0; 3],
        flags: LO_FLAGS_AUTOCLEAR,
        rest: [0; 176],
        reserved: [0; 8],
    };
    // SAFETY: `config` has the kernel's layout and outlives the call, which only reads it.
    done(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) }).map(drop)
}

/// Start and end of the next bytes that are no hole; `None` after the last.
pub fn next_data(file: &File, from: u64) -> io::Result<Option<(u64, u64)>> {
    let seek = |position: u64, whence| {
        let position =
            i64::try_from(position).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        // SAFETY: takes numbers only.
        let found = unsafe { libc::lseek64(file.as_raw_fd(), position, whence) };
        u64::try_from(found).map_err(|_| io::Error::last_os_error())
    };
    let start = match seek(from, libc::SEEK_DATA) {
        Ok(start) => start,
        Err(e) if e.raw_os_error() == Some(libc::ENXIO) => return Ok(None),
        Err(e) => return Err(e),
    };
    Ok(Some((start, seek(start, libc::SEEK_HOLE)?)))
}

fn done(result: libc::c_int) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::LoopConfig;

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(size_of::<LoopConfig>(), 304);
        assert_eq!(std::mem::offset_of!(LoopConfig, flags), 60);
    }
}
