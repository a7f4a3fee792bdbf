//! Any bytes, however cut, are frames or an error that stays; what is decoded encodes to bytes that decode to the same.
#![no_main]

use fuse_api::attach::{AttachDecoder, AttachFrame, MAX_PAYLOAD};
use libfuzzer_sys::fuzz_target;

fn decode(bytes: &[u8], cut: usize) -> (Vec<AttachFrame>, bool) {
    let mut decoder = AttachDecoder::default();
    let mut frames = Vec::new();
    for piece in bytes.chunks(cut) {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next_frame(), Err(error));
                    return (frames, false);
                }
            }
        }
    }
    (frames, true)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let (whole, _) = decode(bytes, bytes.len().max(1));
    let (cut_up, _) = decode(bytes, usize::from(cut).max(1));
    assert_eq!(whole, cut_up);
    let mut again = Vec::new();
    for frame in &whole {
        frame.encode(&mut again).expect("it was short enough to be decoded");
    }
    assert!(again.len() <= whole.len() * (MAX_PAYLOAD + 8));
    assert_eq!(decode(&again, again.len().max(1)), (whole, true));
});
