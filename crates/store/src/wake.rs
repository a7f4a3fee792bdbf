//! Listening to other processes on the same PostgreSQL.

use crate::conn::CHANNEL;
use crate::notice::{Notice, Notifier, read_payload};
use sqlx::PgPool;
use sqlx::postgres::PgListener;
use std::time::Duration;
use tokio::time::sleep;

/// How long a lost listener waits before it tries again, at first.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest wait of a lost listener.
const LONGEST: Duration = Duration::from_secs(2);

/// Passes on what other orchestrators of a PostgreSQL tell. Whatever may have been missed becomes a resync.
pub(crate) async fn postgres(pool: PgPool, ledger: String, notifier: Notifier) {
    let mut pause = PAUSE;
    loop {
        if let Ok(mut listener) = listen(&pool).await {
            pause = PAUSE;
            notifier.listens();
            notifier.send(Notice::Resync);
            // `None` is a connection that was lost; it is made anew above, so that nothing rests on a half-open one.
            while let Ok(Some(notification)) = listener.try_recv().await {
                for notice in read_payload(&ledger, notification.payload()) {
                    notifier.send(notice);
                }
            }
            notifier.is_deaf();
        }
        if pool.is_closed() {
            return;
        }
        sleep(pause).await;
        pause = LONGEST.min(pause * 2);
    }
}

async fn listen(pool: &PgPool) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}
