//! Any bytes from a guest are bounded messages or an error; nothing panics and nothing grows without bound.
#![no_main]

use fuse_guest_api::{Assembler, Reply};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let mut assembler = Assembler::new();
    for piece in bytes.chunks(usize::from(cut).max(1)) {
        assembler.push(piece);
        loop {
            match assembler.next_incoming::<Reply>() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
});
