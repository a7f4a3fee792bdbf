//! What a log of a server's ordinary day holds.

mod common;

use std::{
    io,
    sync::{Arc, Mutex},
};

use common::{Answer, App, ERAS, Mcp, Person, call, connect_with, read};
use fisk_serve::Limits;
use serde_json::json;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// check: FISK-59
#[tokio::test]
async fn neither_the_token_nor_a_command_line_nor_an_output_is_in_the_log() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let app = App::new();
    let mcp = Mcp::start(app.served().await, Limits::default(), Some("t0ken-t0ken")).await;
    for era in ERAS {
        let person = Person::who(Answer::yes());
        let client = connect_with(&mcp.url(), era, person, Some("t0ken-t0ken"))
            .await
            .unwrap();
        let said = call(&client, "say", json!({"text": "s3cret-argument"})).await;
        assert_eq!(read(&said)["exit_code"], json!(0));
        call(&client, "purge", json!({"target": "s3cret-argument"})).await;
        call(
            &client,
            "say",
            json!({"text": "s3cret-argument", "x": "s3cret-argument"}),
        )
        .await;
        call(&client, "s3cret-argument", json!({})).await;
        client.cancel().await.unwrap();
    }
    mcp.cancel.cancel();
    mcp.serving.wait().await;
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("a command starts"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
    assert!(!log.contains("t0ken"), "{log}");
}
