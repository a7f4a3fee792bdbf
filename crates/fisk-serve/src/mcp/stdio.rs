//! MCP over standard input and output. Standard output is the protocol's alone.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use rmcp::{
    service::{ServerInitializeError, ServiceExt},
    transport::async_rw::AsyncRwTransport,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::handler::{Client, Handler};
use crate::{Limits, ServeError, Served, run::Runner};

/// How long answers that are under way may take once the client or the server is about to go.
const GRACE: Duration = Duration::from_secs(2);

/// Serves MCP on standard input and output until the input ends or `cancel` is triggered. What runs then is killed.
///
/// Nothing else may write to standard output meanwhile, and logs belong on standard error. After a `cancel` a read of standard
/// input may still be pending on a thread of its own, so the process should end by `std::process::exit`.
///
/// # Errors
/// The client does not speak MCP.
pub async fn serve_mcp_stdio(served: Served, cancel: CancellationToken) -> Result<(), ServeError> {
    let (input, output) = rmcp::transport::io::stdio_pipes();
    serve_mcp_io(served, input, output, Limits::default(), cancel).await
}

/// The same on any pair of streams.
///
/// # Errors
/// As for [`serve_mcp_stdio`].
pub async fn serve_mcp_io<R, W>(
    served: Served,
    input: R,
    output: W,
    limits: Limits,
    cancel: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let stop = cancel.child_token();
    let closed = CancellationToken::new();
    let left = closed.clone();
    let longest = limits.body;
    let runner = Arc::new(Runner::new(served, limits, stop.clone()));
    let handler = Handler::new(Arc::clone(&runner), Client::Pipe(closed.clone()))?;
    let input = Watched {
        input,
        closed: Some(closed.drop_guard()),
    };
    let transport = AsyncRwTransport::new(input, output).with_max_line_length(longest);
    let serving = async {
        match handler.serve_with_ct(transport, stop).await {
            Ok(service) => service
                .waiting()
                .await
                .map(|_reason| ())
                .map_err(|error| ServeError::Start(error.to_string())),
            // A client that says nothing, or is told to go before it does, did nothing wrong.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                Ok(())
            }
            // What it says instead is not repeated: it may be a whole call.
            Err(_) => Err(ServeError::Start(
                "the client does not speak MCP".to_owned(),
            )),
        }
    };
    let over = async {
        tokio::select! {
            () = left.cancelled() => {}
            () = runner.stop().cancelled() => {}
        }
        runner.end().await;
        tokio::time::sleep(GRACE).await;
    };
    let ended = tokio::select! {
        ended = serving => ended,
        // A client that does not read its answers cannot hold up the end.
        () = over => Ok(()),
    };
    runner.end().await;
    ended
}

/// Says at once when the input is over: whoever called a command is gone then.
struct Watched<R> {
    input: R,
    closed: Option<DropGuard>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.input).poll_read(cx, buf));
        let over = read.is_err() || (buf.filled().len() == before && buf.remaining() > 0);
        if over {
            drop(self.closed.take());
        }
        Poll::Ready(read)
    }
}
