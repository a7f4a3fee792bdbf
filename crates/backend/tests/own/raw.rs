//! The guest's side of the protocol, spoken to byte by byte.

use super::{create, destroy, noted};
use fuse_guest_api::{
    Assembler, Frame, Hello, Identity, Incoming, PROTOCOL_VERSION, RefusalCode, Reply, Request,
    encode_message,
};
use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

fn connect(data: &Path, name: &str) -> UnixStream {
    let socket = UnixStream::connect(data.join("environments").join(name).join("guest.sock"))
        .expect("connecting");
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("a timeout");
    socket
}

fn identity(data: &Path, name: &str) -> Identity {
    let (_, meta, _) = noted(data, name);
    serde_json::from_value(meta["identity"].clone()).expect("an identity")
}

fn say(socket: &mut UnixStream, stream: u32, request: &Request) {
    let mut bytes = Vec::new();
    encode_message(&mut bytes, stream, request).expect("encoding");
    socket.write_all(&bytes).expect("writing");
}

/// The next reply, or `None` when the guest hangs up.
fn hear(socket: &mut UnixStream, assembler: &mut Assembler) -> Option<Reply> {
    let mut buffer = [0; 4096];
    loop {
        match assembler.next_incoming::<Reply>().expect("frames") {
            Some(Incoming::Message { message, .. }) => return Some(message.expect("a reply")),
            Some(Incoming::Data { .. }) => {}
            None => match socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => assembler.push(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            },
        }
    }
}

fn code(reply: Option<Reply>) -> Option<RefusalCode> {
    match reply {
        Some(Reply::Refused(refusal)) => Some(refusal.code),
        _ => None,
    }
}

fn hello(version: u32, identity: Identity) -> Request {
    Request::Hello(Hello { version, identity })
}

// check: BOX-12
pub async fn refuses(data: PathBuf) {
    let guest = create(&data, "raw").await;
    let who = identity(&data, "raw");
    let stranger = Identity {
        token: "guessed".to_owned(),
        ..who.clone()
    };
    for (first, expected) in [
        (Request::Status, RefusalCode::BadRequest),
        (
            hello(PROTOCOL_VERSION + 1, who.clone()),
            RefusalCode::Version,
        ),
        (hello(PROTOCOL_VERSION, stranger), RefusalCode::WrongGuest),
    ] {
        let (mut socket, mut assembler) = (connect(&data, "raw"), Assembler::new());
        say(&mut socket, 0, &first);
        assert_eq!(code(hear(&mut socket, &mut assembler)), Some(expected));
        assert_eq!(hear(&mut socket, &mut assembler), None, "and hangs up");
    }
    let (mut socket, mut assembler) = (connect(&data, "raw"), Assembler::new());
    say(&mut socket, 0, &hello(PROTOCOL_VERSION, who));
    assert!(matches!(
        hear(&mut socket, &mut assembler),
        Some(Reply::Hello(_))
    ));
    let mut bytes = Vec::new();
    let unknown = Frame::Control {
        stream: 5,
        more: false,
        payload: b"{\"type\":\"dance\"}".to_vec(),
    };
    unknown.encode(&mut bytes).expect("encoding");
    socket.write_all(&bytes).expect("writing");
    assert_eq!(
        code(hear(&mut socket, &mut assembler)),
        Some(RefusalCode::Unsupported)
    );
    let huge = Request::WriteFile {
        path: "/tmp/f".to_owned(),
        mode: 0o600,
        size: u64::MAX,
    };
    say(&mut socket, 6, &huge);
    assert_eq!(
        code(hear(&mut socket, &mut assembler)),
        Some(RefusalCode::BadRequest)
    );
    say(&mut socket, 7, &Request::Status);
    assert!(
        matches!(hear(&mut socket, &mut assembler), Some(Reply::Status(_))),
        "the connection stays usable"
    );
    drop(guest);
    destroy(&data, "raw").await;
}

// check: BOX-12
pub async fn garbage(data: PathBuf) {
    let guest = create(&data, "garbage").await;
    for bytes in [
        vec![0xff; 4096],
        vec![0; 11],
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 100_000],
    ] {
        let mut socket = connect(&data, "garbage");
        // The guest may hang up before it has taken all.
        let _ = socket.write_all(&bytes);
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let _ = socket.read_to_end(&mut Vec::new());
    }
    guest.status().await.expect("status");
    destroy(&data, "garbage").await;
}
