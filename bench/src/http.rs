//! A client that costs next to nothing: one connection, one request at a time.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer.
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body, where the status is the wanted one.
    pub fn ok(self, status: u16) -> Result<Self> {
        if self.status == status {
            return Ok(self);
        }
        bail!(
            "answered {} instead of {status}: {}",
            self.status,
            String::from_utf8_lossy(&self.body)
        )
    }

    /// The first intervention id in the body.
    pub fn intervention(&self) -> Result<String> {
        const LENGTH: usize = "int_".len() + 32;
        let at = find(&self.body, b"\"int_").context("an answer without an intervention")? + 1;
        let id = self.body.get(at..at + LENGTH).context("a short answer")?;
        Ok(String::from_utf8_lossy(id).into_owned())
    }

    /// Whether the body holds this text.
    pub fn holds(&self, text: &str) -> bool {
        find(&self.body, text.as_bytes()).is_some()
    }
}

/// A kept connection.
pub struct Connection {
    stream: TcpStream,
    token: String,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects; nothing is sent yet.
    pub async fn open(address: SocketAddr, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            token: token.to_owned(),
            buffer: Vec::new(),
        })
    }

    /// Sends a request and waits for its answer.
    pub async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        self.send(method, path, body).await?;
        self.receive().await
    }

    /// Sends a request.
    pub async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: fuse\r\nAuthorization: Bearer {}\r\n",
            self.token
        );
        if !body.is_empty() {
            request += &format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            );
        }
        request += "\r\n";
        request += body;
        self.stream.write_all(request.as_bytes()).await?;
        Ok(())
    }

    /// Waits for an answer.
    pub async fn receive(&mut self) -> Result<Answer> {
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        let text = String::from_utf8_lossy(&self.buffer[..head]).to_ascii_lowercase();
        let status = text.get(9..12).and_then(|status| status.parse().ok());
        let status: u16 = status.context("no status line")?;
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = match length {
            Some(length) => length.trim().parse().context("content-length")?,
            None if status == 204 => 0,
            None => bail!("an answer of unknown length: {text}"),
        };
        while self.buffer.len() < head + length {
            self.more().await?;
        }
        let body = self.buffer[head..head + length].to_vec();
        self.buffer.drain(..head + length);
        Ok(Answer { status, body })
    }

    async fn more(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Ten thousand connections need as many descriptors; the soft limit is often 1,024.
pub fn raise_descriptor_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        eprintln!("the limit of open files stays as it is: {error}");
    }
}
