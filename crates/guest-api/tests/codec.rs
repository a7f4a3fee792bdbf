//! The codec against arbitrary bytes, cut anywhere.

use fuse_guest_api::{
    Assembler, Channel, Decoder, EnvVars, Frame, FrameError, Incoming, MAX_MESSAGE, MAX_PAYLOAD,
    Reply, Request, encode_data, encode_message,
};
use proptest::{collection::vec, prelude::*};
use std::collections::BTreeMap;

fn channel() -> impl Strategy<Value = Channel> {
    prop_oneof![
        Just(Channel::Stdin),
        Just(Channel::Stdout),
        Just(Channel::Stderr),
        Just(Channel::Blob)
    ]
}

fn frame() -> impl Strategy<Value = Frame> {
    let payload = || vec(any::<u8>(), 0..200);
    prop_oneof![
        (any::<u32>(), any::<bool>(), payload()).prop_map(|(stream, more, payload)| {
            Frame::Control {
                stream,
                more,
                payload,
            }
        }),
        (any::<u32>(), channel(), payload()).prop_map(|(stream, channel, payload)| Frame::Data {
            stream,
            channel,
            payload
        }),
    ]
}

/// Feeds bytes in pieces of the given lengths and collects what comes out.
fn decode(bytes: &[u8], cuts: &[usize]) -> Result<Vec<Frame>, FrameError> {
    let mut decoder = Decoder::new();
    let mut frames = Vec::new();
    let mut rest = bytes;
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let cut = cuts.next().copied().unwrap_or(1).clamp(1, rest.len());
        let (piece, later) = rest.split_at(cut);
        rest = later;
        decoder.push(piece);
        while let Some(frame) = decoder.next_frame()? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

proptest! {
    #[test]
    fn frames_survive_any_cutting(frames in vec(frame(), 0..12), cuts in vec(1..50_usize, 1..20)) {
        let mut bytes = Vec::new();
        for frame in &frames {
            frame.encode(&mut bytes).map_err(|e| TestCaseError::fail(e.to_string()))?;
        }
        prop_assert_eq!(decode(&bytes, &cuts), Ok(frames));
    }

    #[test]
    fn garbage_gives_the_same_verdict_however_it_is_cut(bytes in vec(any::<u8>(), 0..400), cuts in vec(1..50_usize, 1..20)) {
        prop_assert_eq!(decode(&bytes, &cuts), decode(&bytes, &[usize::MAX]));
    }

    #[test]
    fn an_announced_length_over_the_limit_fails_on_the_header_alone(extra in 1..=u32::MAX - (1 << 20), rest in any::<[u8; 8]>()) {
        let length = (1 << 20) + extra;
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend(rest);
        let mut decoder = Decoder::new();
        decoder.push(&bytes);
        prop_assert_eq!(decoder.next_frame(), Err(FrameError::TooLong(length)));
        decoder.push(&[0; 100]);
        prop_assert_eq!(decoder.next_frame(), Err(FrameError::TooLong(length)), "and for ever after");
    }

    #[test]
    fn arbitrary_frames_never_break_the_assembler(frames in vec(frame(), 0..12)) {
        let mut assembler = Assembler::new();
        for frame in &frames {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes).map_err(|e| TestCaseError::fail(e.to_string()))?;
            assembler.push(&bytes);
        }
        while let Ok(Some(_)) = assembler.next_incoming::<Request>() {}
    }

    #[test]
    fn messages_and_data_arrive_in_order(id in "[a-z0-9]{1,40}", data in vec(any::<u8>(), 1..3000), stream in 1..u32::MAX) {
        let request = Request::Recall { command_id: id };
        let mut bytes = Vec::new();
        encode_data(&mut bytes, stream, Channel::Blob, &data);
        encode_message(&mut bytes, stream, &request).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let mut assembler = Assembler::new();
        assembler.push(&bytes);
        match assembler.next_incoming::<Request>() {
            Ok(Some(Incoming::Data { stream: s, channel: Channel::Blob, bytes })) => prop_assert_eq!((s, bytes), (stream, data)),
            other => prop_assert!(false, "{other:?}"),
        }
        match assembler.next_incoming::<Request>() {
            Ok(Some(Incoming::Message { stream: s, message: Ok(m) })) => prop_assert_eq!((s, m), (stream, request)),
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

#[test]
fn a_message_longer_than_a_frame_takes_several() {
    let vars = EnvVars(BTreeMap::from([(
        "A".to_owned(),
        "x".repeat(3 * MAX_PAYLOAD),
    )]));
    let request = Request::SetEnv { vars };
    let mut bytes = Vec::new();
    assert_eq!(encode_message(&mut bytes, 7, &request), Ok(()));
    let mut assembler = Assembler::new();
    assembler.push(&bytes);
    match assembler.next_incoming::<Request>() {
        Ok(Some(Incoming::Message {
            stream: 7,
            message: Ok(arrived),
        })) => assert_eq!(arrived, request),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_over_the_limit_is_neither_sent_nor_taken() {
    let vars = EnvVars(BTreeMap::from([("A".to_owned(), "x".repeat(MAX_MESSAGE))]));
    let mut bytes = Vec::new();
    assert_eq!(
        encode_message(&mut bytes, 1, &Request::SetEnv { vars }),
        Err(FrameError::MessageTooLong)
    );
    assert!(bytes.is_empty());
    let mut assembler = Assembler::new();
    let verdict = (0..=MAX_MESSAGE / MAX_PAYLOAD).find_map(|_| {
        let mut bytes = Vec::new();
        let frame = Frame::Control {
            stream: 1,
            more: true,
            payload: vec![b' '; MAX_PAYLOAD],
        };
        assert_eq!(frame.encode(&mut bytes), Ok(()));
        assembler.push(&bytes);
        assembler.next_incoming::<Request>().err()
    });
    assert_eq!(verdict, Some(FrameError::MessageTooLong));
}

#[test]
fn a_message_that_another_frame_interrupts_ends_the_connection() {
    for intruder in [
        Frame::Data {
            stream: 1,
            channel: Channel::Blob,
            payload: vec![],
        },
        Frame::Control {
            stream: 2,
            more: false,
            payload: vec![],
        },
    ] {
        let mut bytes = Vec::new();
        let start = Frame::Control {
            stream: 1,
            more: true,
            payload: b"{".to_vec(),
        };
        assert_eq!(start.encode(&mut bytes), Ok(()));
        assert_eq!(intruder.encode(&mut bytes), Ok(()));
        let mut assembler = Assembler::new();
        assembler.push(&bytes);
        assert_eq!(
            assembler.next_incoming::<Request>().err(),
            Some(FrameError::Interrupted)
        );
    }
}

#[test]
fn an_unknown_message_is_an_answerable_error_that_quotes_nothing() {
    for json in [
        r#"{"type":"attach","secret":"hunter2"}"#,
        "hunter2",
        r#"{"type":"set_env","vars":"hunter2"}"#,
        "",
    ] {
        let mut bytes = Vec::new();
        let frame = Frame::Control {
            stream: 3,
            more: false,
            payload: json.as_bytes().to_vec(),
        };
        assert_eq!(frame.encode(&mut bytes), Ok(()));
        let mut assembler = Assembler::new();
        assembler.push(&bytes);
        match assembler.next_incoming::<Request>() {
            Ok(Some(Incoming::Message {
                stream: 3,
                message: Err(problem),
            })) => assert!(!problem.contains("hunter2")),
            other => panic!("{other:?}"),
        }
        assert!(
            matches!(assembler.next_incoming::<Request>(), Ok(None)),
            "the connection stays usable"
        );
    }
}

#[test]
fn debug_output_shows_no_secret() {
    let vars = EnvVars(BTreeMap::from([("KEY".to_owned(), "hunter2".to_owned())]));
    let text = format!("{:?}", Request::SetEnv { vars });
    assert!(text.contains("KEY") && !text.contains("hunter2"), "{text}");
    let identity = fuse_guest_api::Identity {
        env_id: "e".to_owned(),
        token: "hunter2".to_owned(),
    };
    assert!(!format!("{identity:?}").contains("hunter2"));
}

#[test]
fn a_refusal_of_a_newer_guest_is_understood() {
    let parsed: Result<Reply, _> =
        serde_json::from_str(r#"{"type":"refused","code":"not_yet_known","message":"m"}"#);
    match parsed {
        Ok(Reply::Refused(refusal)) => assert_eq!(refusal.code, fuse_guest_api::RefusalCode::Other),
        other => panic!("{other:?}"),
    }
}
