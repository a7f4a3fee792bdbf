//! A way to the database that a test can cut.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Bytes pass.
    Up,
    /// Connections are closed, and new ones at once.
    Down,
    /// Connections stay open, and nothing passes.
    Silent,
}

/// A forwarder on a port of this machine, in a thread of its own.
pub struct Proxy {
    port: u16,
    link: watch::Sender<Link>,
    end: watch::Sender<bool>,
}

impl Proxy {
    /// Forwards to an address.
    ///
    /// # Panics
    /// No port can be opened.
    #[must_use]
    pub fn to(address: &str) -> Self {
        let address: SocketAddr = address.parse().expect("an address");
        let (link, state) = watch::channel(Link::Up);
        let (end, ended) = watch::channel(false);
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                let port = listener.local_addr().expect("an address").port();
                tell.send(port).expect("the test waits");
                tokio::select! {
                    () = accept(&listener, address, &state) => {}
                    () = gone(ended) => {}
                }
            });
        });
        Self {
            port: told.recv().expect("a port"),
            link,
            end,
        }
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes what happens on the way.
    pub fn set(&self, link: Link) {
        self.link.send_replace(link);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end.send_replace(true);
    }
}

async fn gone(mut ended: watch::Receiver<bool>) {
    // An error means that the proxy is gone, too.
    let _ = ended.wait_for(|ended| *ended).await;
}

async fn accept(listener: &TcpListener, address: SocketAddr, state: &watch::Receiver<Link>) {
    loop {
        let Ok((mut near, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let mut state = state.clone();
        tokio::spawn(async move {
            if state.wait_for(|link| *link != Link::Silent).await.is_err()
                || *state.borrow() == Link::Down
            {
                return;
            }
            let Ok(mut far) = TcpStream::connect(address).await else {
                return;
            };
            forward(&mut near, &mut far, &mut state).await;
        });
    }
}

/// Passes bytes on until one side ends or the link goes down.
async fn forward(near: &mut TcpStream, far: &mut TcpStream, state: &mut watch::Receiver<Link>) {
    loop {
        let link = *state.borrow_and_update();
        match link {
            Link::Down => return,
            Link::Silent => {
                if state.changed().await.is_err() {
                    return;
                }
            }
            Link::Up => {
                // Bytes that were read and not yet written may be lost when the link changes, as on a real one.
                tokio::select! {
                    _ = copy_bidirectional(near, far) => return,
                    changed = state.changed() => if changed.is_err() { return; },
                }
            }
        }
    }
}
