//! The client against guests that break the rules.

use super::Client;
use crate::{CallError, EnvId, ExecSpec, Guest};
use fuse_guest_api::{
    Assembler, Channel, Command, Frame, HelloReply, Identity, Incoming, PROTOCOL_VERSION, Reply,
    Request, encode_data, encode_message,
};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
};

fn identity() -> Identity {
    Identity {
        env_id: "e".to_owned(),
        token: "t".to_owned(),
    }
}

/// One request as a guest reads it.
async fn request(socket: &mut UnixStream, assembler: &mut Assembler) -> Option<(u32, Request)> {
    let mut buffer = [0; 4096];
    loop {
        match assembler.next_incoming::<Request>() {
            Ok(Some(Incoming::Message {
                stream,
                message: Ok(request),
            })) => return Some((stream, request)),
            Ok(Some(_)) | Err(_) => return None,
            Ok(None) => {}
        }
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => assembler.push(&buffer[..count]),
        }
    }
}

/// A guest that says hello as `as_who` and then answers the first request of each connection with the given bytes.
async fn guest(
    listener: UnixListener,
    as_who: Identity,
    answer: impl Fn(u32) -> Vec<u8> + Send + 'static,
) {
    while let Ok((mut socket, _)) = listener.accept().await {
        let mut assembler = Assembler::new();
        while let Some((stream, request)) = request(&mut socket, &mut assembler).await {
            let mut bytes = Vec::new();
            if matches!(request, Request::Hello(_)) {
                let hello = HelloReply {
                    version: PROTOCOL_VERSION,
                    identity: as_who.clone(),
                    build: String::new(),
                };
                encode_message(&mut bytes, stream, &Reply::Hello(hello)).expect("encoding");
            } else {
                bytes = answer(stream);
            }
            if socket.write_all(&bytes).await.is_err() {
                break;
            }
        }
    }
}

async fn exec(
    as_who: Identity,
    answer: impl Fn(u32) -> Vec<u8> + Send + 'static,
) -> Result<(), CallError> {
    let directory = tempfile::tempdir().expect("a directory");
    let listener = UnixListener::bind(directory.path().join("guest.sock")).expect("binding");
    let serving = tokio::spawn(guest(listener, as_who, answer));
    let id = EnvId::new("e").expect("an id");
    let client = Client::new(id, directory.path().to_owned(), identity());
    let spec = ExecSpec {
        stdout_cap: 10,
        ..ExecSpec::new("c", Command::Shell("true".to_owned()))
    };
    let result = tokio::time::timeout(Duration::from_secs(10), client.exec(spec)).await;
    serving.abort();
    result.expect("no hang").map(|_| ())
}

#[tokio::test]
async fn another_guest_at_the_socket_is_not_talked_to() {
    let other = Identity {
        token: "another".to_owned(),
        ..identity()
    };
    assert!(matches!(
        exec(other, |_| Vec::new()).await,
        Err(CallError::NotSent(_))
    ));
}

#[tokio::test]
async fn a_guest_that_breaks_the_protocol_loses_the_call_and_nothing_else() {
    let garbage = |_| vec![0xff; 64];
    let too_much = |stream| {
        let mut bytes = Vec::new();
        encode_data(
            &mut bytes,
            stream,
            Channel::Stdout,
            &vec![b'x'; (1 << 20) + 1],
        );
        bytes
    };
    let unasked = |stream: u32| {
        let mut bytes = Vec::new();
        encode_message(&mut bytes, stream + 1000, &Reply::Done).expect("encoding");
        bytes
    };
    let nonsense = |stream| {
        let mut bytes = Vec::new();
        let frame = Frame::Control {
            stream,
            more: false,
            payload: b"{\"type\":\"party\"}".to_vec(),
        };
        frame.encode(&mut bytes).expect("encoding");
        bytes
    };
    let other_kind = |stream| {
        let mut bytes = Vec::new();
        encode_message(&mut bytes, stream, &Reply::Done).expect("encoding");
        bytes
    };
    for result in [
        exec(identity(), garbage).await,
        exec(identity(), too_much).await,
        exec(identity(), unasked).await,
        exec(identity(), nonsense).await,
        exec(identity(), other_kind).await,
    ] {
        assert!(matches!(result, Err(CallError::Lost(_))), "{result:?}");
    }
}

#[tokio::test]
async fn nobody_at_the_socket_is_surely_not_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let client = Client::new(
        EnvId::new("e").expect("an id"),
        directory.path().to_owned(),
        identity(),
    );
    let result = client
        .exec(ExecSpec::new("c", Command::Shell("true".to_owned())))
        .await;
    assert!(matches!(result, Err(CallError::NotSent(_))), "{result:?}");
}
