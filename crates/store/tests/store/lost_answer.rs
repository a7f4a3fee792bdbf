//! The answer to a COMMIT gets lost on the way, or the COMMIT itself does.

use crate::bed::{Bed, Kind, key};
use crate::build::{ask, raise, running, verified_log};
use fuse_domain::transition::Committed;
use fuse_store::{Store, StoreConfig, StoreError};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};

/// What the proxy does at the next COMMIT.
const PASS: u8 = 0;
const LOSE_ANSWER: u8 = 1;
const LOSE_COMMIT: u8 = 2;

/// A proxy before a PostgreSQL server.
async fn proxy(server: String, fault: Arc<AtomicU8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let upstream = TcpStream::connect(&server)
                .await
                .expect("the server answers");
            tokio::spawn(relay(client, upstream, Arc::clone(&fault)));
        }
    });
    address
}

async fn relay(client: TcpStream, server: TcpStream, fault: Arc<AtomicU8>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move { copy(&mut from_server, &mut to_client).await });
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(n @ 1..) = from_client.read(&mut bytes).await {
        let commits = bytes[..n].windows(7).any(|window| window == b"COMMIT\0");
        let fault = match commits {
            true => fault.swap(PASS, Ordering::SeqCst),
            false => PASS,
        };
        if fault != PASS {
            // Ending the way back closes the client's half before an answer can come.
            back.abort();
            let _ = back.await;
            if fault == LOSE_ANSWER {
                to_server.write_all(&bytes[..n]).await.expect("forwards");
            }
            return;
        }
        if to_server.write_all(&bytes[..n]).await.is_err() {
            return;
        }
    }
}

struct Proxied {
    bed: Bed,
    store: Store,
    fault: Arc<AtomicU8>,
}

async fn proxied() -> Proxied {
    let bed = Bed::new(Kind::Postgres).await;
    let (user, rest) = bed.url.rsplit_once('@').expect("a user in the URL");
    let (server, database) = rest.split_once('/').expect("a database in the URL");
    let fault = Arc::new(AtomicU8::new(PASS));
    let address = proxy(server.to_owned(), Arc::clone(&fault)).await;
    let config = StoreConfig {
        database_url: format!("{user}@{address}/{database}"),
        sealer: key(1),
    };
    let (store, _) = Store::open(&config).await.expect("opens");
    Proxied { bed, store, fault }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_found_to_have_taken_place() {
    let Proxied { bed, store, fault } = proxied().await;
    let env = running(&store).await;
    let record = ask(&env, "?");
    fault.store(LOSE_ANSWER, Ordering::SeqCst);
    let committed = store.commit(raise(&record)).await;
    assert!(matches!(committed, Ok(Committed::Done(_))), "{committed:?}");
    assert_eq!(fault.load(Ordering::SeqCst), PASS, "the fault took place");
    let stored = store.get_intervention(&record.view.id).await;
    assert!(stored.expect("reads").is_some());
    assert_eq!(verified_log(&store).await.len(), 1);
    bed.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_lost_is_found_not_to_have_taken_place() {
    let Proxied { bed, store, fault } = proxied().await;
    let env = running(&store).await;
    let record = ask(&env, "?");
    fault.store(LOSE_COMMIT, Ordering::SeqCst);
    let committed = store.commit(raise(&record)).await;
    assert!(
        matches!(committed, Err(StoreError::Unavailable(_))),
        "{committed:?}"
    );
    let stored = store.get_intervention(&record.view.id).await;
    assert!(stored.expect("reads").is_none());
    let again = store.commit(raise(&record)).await;
    assert!(matches!(again, Ok(Committed::Done(_))));
    assert_eq!(verified_log(&store).await.len(), 1);
    bed.remove().await;
}
